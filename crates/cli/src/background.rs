//! A command that goes on in the background once it is ready, as `ssh -f` does: the process that the user waits for starts
//! another one, which may ask for a password on the terminal until then.

use std::env;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use crate::exit::{Code, Failure};

/// Runs this command again, as the one in the background, and waits until it is ready; returns the exit code. What
/// prevents it, the other process says itself.
pub(crate) fn start() -> Result<u8, Failure> {
    let failed =
        |error: io::Error| Failure::new(Code::Other, format!("cannot start a process in the background: {error}"));
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.args(env::args_os().skip(1)).arg("--in-background").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let mut said = [0];
    let is_ready = child.stdout.take().is_some_and(|mut stdout| stdout.read_exact(&mut said).is_ok());
    if is_ready {
        return Ok(Code::Done as u8);
    }
    let status = child.wait().map_err(failed)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(Code::Other as u8))
}

/// Tells the process that has started this one that it is ready, and leaves the terminal.
pub(crate) fn ready() {
    // The other process may have been killed, and the rest is for the sake of terminals: it goes on without.
    let _ = rustix::io::write(io::stdout(), b"\n");
    let _ = rustix::process::setsid();
    if let Ok(null) = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = dup2_stdin(&null);
        let _ = dup2_stdout(&null);
        let _ = dup2_stderr(&null);
    }
}
