//! Output of lines and bytes to stdout and stderr, and whether everything was written to stdout.

use std::sync::OnceLock;
use std::{fmt, io};

use crate::blocking;
use crate::exit::{Code, Failure};

/// The first error on stdout, which is global to the process.
static STDOUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Prints a line on stdout.
pub(crate) fn out(line: impl fmt::Display) {
    write_out(format!("{line}\n").as_bytes());
}

/// Prints a line on stderr.
pub(crate) fn err(line: impl fmt::Display) {
    write_err(format!("{line}\n").as_bytes());
}

/// Prints a warning of the program itself on stderr.
pub(crate) fn warn(line: impl fmt::Display) {
    err(format_args!("downpour: warning: {line}"));
}

/// Writes to stdout at once. After an error nothing more is written, the command continues, and [`is_complete`] reports
/// the error at its end.
pub(crate) fn write_out(bytes: &[u8]) {
    if STDOUT_ERROR.get().is_some() {
        return;
    }
    // Bypasses the standard library's buffer, which does not tell how much was written before it ran out of room.
    if let Err(error) = blocking::write_all(io::stdout().lock(), bytes) {
        // An error that another thread has set is just as good.
        let _ = STDOUT_ERROR.set(error);
    }
}

/// Writes to stderr at once. If stderr is gone the text is lost.
pub(crate) fn write_err(bytes: &[u8]) {
    let _ = blocking::write_all(io::stderr().lock(), bytes);
}

/// Checks that everything was written to stdout. A reader that has closed its pipe has read enough.
///
/// # Errors
/// A full device, for example.
pub(crate) fn is_complete() -> Result<(), Failure> {
    match STDOUT_ERROR.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Disk, format!("cannot write to stdout: {error}; the output is not complete")))
        }
        _ => Ok(()),
    }
}

/// Checks that the ticket was written, without which no one can connect.
///
/// # Errors
/// A full device, or a pipe without a reader.
pub(crate) fn has_ticket() -> Result<(), Failure> {
    let failed = |error| Failure::new(Code::Disk, format!("cannot write the ticket to stdout: {error}"));
    STDOUT_ERROR.get().map(failed).map_or(Ok(()), Err)
}
