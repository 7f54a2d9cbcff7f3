//! Stdout, and whether what was written has got there.

use std::io;
use std::sync::OnceLock;

use crate::blocking;
use crate::exit::{Code, Failure};

/// The first thing that went wrong. Stdout is one for the process, and so is this.
static TROUBLE: OnceLock<io::Error> = OnceLock::new();

/// Writes at once. What is under way goes on where that fails, without output from there on; the end of the program tells it.
pub(crate) fn write(bytes: &[u8]) {
    if TROUBLE.get().is_some() {
        return;
    }
    // Past the buffer of the library, which does not tell how much of it was written before there was no room.
    if let Err(error) = blocking::write_all(io::stdout().lock(), bytes) {
        // Another thread's trouble would do as well.
        let _ = TROUBLE.set(error);
    }
}

/// Looks whether everything was written that somebody still reads: one who closes a pipe has read enough.
///
/// # Errors
/// A full device, say.
pub(crate) fn is_complete() -> Result<(), Failure> {
    match TROUBLE.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Disk, format!("cannot write to stdout: {error}; the output is not complete")))
        }
        _ => Ok(()),
    }
}

/// Looks whether the ticket was written, without which nobody can come.
///
/// # Errors
/// A full device, a pipe that nobody reads.
pub(crate) fn has_ticket() -> Result<(), Failure> {
    let failed = |error| Failure::new(Code::Disk, format!("cannot write the ticket to stdout: {error}"));
    TROUBLE.get().map(failed).map_or(Ok(()), Err)
}
