//! `--on-end`: the command that sh runs after a command with valid arguments.

use std::io;
use std::os::fd::AsFd as _;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::exit::Failure;
use crate::interrupt::Attention;
use crate::stop_signal::StopSignal;
use crate::watch::GRACE;
use crate::{event_loop, print, signals};

/// The variable with the exit code.
pub(crate) const VARIABLE: &str = "DOWNPOUR_EXIT_CODE";

/// Runs a command and waits for it. Its failure is reported, and the exit code remains. A signal to stop is passed on to the
/// command.
pub(crate) fn run(command: &str, code: u8) {
    let ended = event_loop().and_then(|runtime| runtime.block_on(end_of(command, code)));
    let failed = match ended {
        Ok(status) if status.success() => return,
        Ok(status) => format!("command failed with {status}"),
        Err(failure) => failure.message,
    };
    print::warn(format_args!("--on-end: {failed}"));
}

async fn end_of(command: &str, code: u8) -> Result<ExitStatus, Failure> {
    let mut interrupts = signals()?;
    let mut attention = interrupts.attend();
    let child = start(command, code).map_err(downpour::Error::OutOfResources)?;
    Ok(wait(child, &mut attention).await.map_err(downpour::Error::OutOfResources)?)
}

/// Starts it in a process group of its own: a signal then also reaches the children of sh.
fn start(command: &str, code: u8) -> io::Result<Child> {
    // stdout may be the input of a program, such as JSON.
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    Command::new("sh")
        .args(["-c", command])
        .env(VARIABLE, code.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::from(stderr))
        .process_group(0)
        .spawn()
}

/// Waits for the command. It has [`GRACE`] to exit after a signal to stop, and none after a second one. A hang-up is
/// ignored, as in a running transfer.
async fn wait(mut child: Child, attention: &mut Attention<'_>) -> io::Result<ExitStatus> {
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    // If this fails, the group no longer exists.
    let send = |signal| group.map(|group| kill_process_group(group, signal));
    let stop = tokio::select! {
        biased;
        status = child.wait() => return status,
        stop = attention.next() => stop,
    };
    send(match stop {
        StopSignal::Interrupted => Signal::INT,
        StopSignal::Terminated => Signal::TERM,
    });
    tokio::select! {
        biased;
        status = child.wait() => return status,
        () = sleep(GRACE) => {}
        _ = attention.next() => {}
    }
    send(Signal::KILL);
    child.wait().await
}
