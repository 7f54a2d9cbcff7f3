//! A command that continues in the background once it is ready, like `ssh -f`: the process in the foreground starts another
//! one, which may ask for a password on the terminal until it is ready.

use std::env;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::exit::{Code, Failure};

/// Interval at which the process in the background checks that the one in the foreground still exists.
const CHECK_PERIOD: Duration = Duration::from_millis(200);

/// Runs the command `name` of this process again in the background, and waits until it is ready; returns the exit code.
/// The other process reports its errors itself.
pub(crate) fn start(name: &str) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::new(Code::Other, format!("cannot start a background process: {error}"));
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    let mut is_inserted = false;
    for argument in env::args_os().skip(1) {
        command.arg(&argument);
        if argument == name && !is_inserted {
            command.arg("--in-background");
            is_inserted = true;
        }
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut ready = [0];
    let is_ready = child.stdout.take().is_some_and(|mut stdout| stdout.read_exact(&mut ready).is_ok());
    if is_ready {
        return Ok(Code::Done as u8);
    }
    let status = child.wait().map_err(failed)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(Code::Other as u8))
}

/// Detaches from the terminal, and signals the starting process that this one is ready.
pub(crate) fn ready() {
    // Errors are ignored: they concern only the terminal, which may vanish with the other process.
    let _ = rustix::process::setsid();
    if let Ok(null) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = dup2_stdin(&null);
        let _ = dup2_stderr(&null);
        let _ = rustix::io::write(io::stdout(), b"\n");
        let _ = dup2_stdout(&null);
    }
}

/// Waits until the starting process exits before this one is ready.
pub(crate) async fn abandoned() {
    loop {
        let stdout = io::stdout();
        let mut reader = [PollFd::new(&stdout, PollFlags::empty())];
        let is_gone = poll(&mut reader, Some(&Timespec::default())).is_ok_and(|found| found > 0)
            && reader[0].revents().intersects(PollFlags::ERR | PollFlags::HUP);
        if is_gone {
            return;
        }
        tokio::time::sleep(CHECK_PERIOD).await;
    }
}
