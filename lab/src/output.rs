//! Stdout and stderr, and whether the output was written.
//!
//! The macros of the standard library panic if a line cannot be written.

use std::io::{self, Write as _};
use std::sync::OnceLock;

use crate::exit::{Code, Failure};

/// The first error on stdout, which belongs to the process, as stdout does.
static TROUBLE: OnceLock<io::Error> = OnceLock::new();

/// Writes to stdout at once. If that fails, the program continues without output and reports the error at its end.
pub(crate) fn say(text: &str) {
    if TROUBLE.get().is_some() {
        return;
    }
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // The error of any thread is sufficient.
        let _ = TROUBLE.set(error);
    }
}

/// Writes a line to stderr. Errors are ignored.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Checks that all output was written, except to a pipe that its reader has closed.
///
/// # Errors
/// A full device, for example.
pub(crate) fn is_complete() -> Result<(), Failure> {
    match TROUBLE.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Other, format_args!("cannot write to stdout: {error}; output truncated")))
        }
        _ => Ok(()),
    }
}
