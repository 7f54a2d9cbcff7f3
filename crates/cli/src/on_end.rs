//! `--on-end`: what sh runs once a command has ended that could be read.

use std::io;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};

use crate::print;

/// The variable that tells the exit code.
pub(crate) const VARIABLE: &str = "DOWNPOUR_EXIT_CODE";

/// Runs a command and waits for it. Its failure is told, and changes nothing.
pub(crate) fn run(command: &str, code: u8) {
    let failed = match start(command, code) {
        Ok(status) if status.success() => return,
        Ok(status) => format!("ended with {status}"),
        Err(error) => error.to_string(),
    };
    print::warn(format_args!("--on-end: {failed}"));
}

/// stdout may be what a program reads, such as JSON.
fn start(command: &str, code: u8) -> io::Result<std::process::ExitStatus> {
    let stderr = io::stderr().as_fd().try_clone_to_owned()?;
    Command::new("sh")
        .args(["-c", command])
        .env(VARIABLE, code.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::from(stderr))
        .status()
}
