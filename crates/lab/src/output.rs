//! Stdout and stderr, and whether what was written has got there.
//!
//! The macros of the standard library panic where a line cannot be written.

use std::io::{self, Write as _};
use std::sync::OnceLock;

use crate::exit::{Code, Failure};

/// The first thing that went wrong with stdout. That is one for the process, and so is this.
static TROUBLE: OnceLock<io::Error> = OnceLock::new();

/// Writes to stdout at once. What is under way goes on where that fails, without output from there on; the end of the program tells it.
pub(crate) fn say(text: &str) {
    if TROUBLE.get().is_some() {
        return;
    }
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // Another thread's trouble would do as well.
        let _ = TROUBLE.set(error);
    }
}

/// Writes a line to stderr. Where that is gone there is nobody to tell.
pub(crate) fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Looks whether everything was written that somebody still reads: one who closes a pipe has read enough.
///
/// # Errors
/// A full device, say.
pub(crate) fn is_complete() -> Result<(), Failure> {
    match TROUBLE.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Code::Other, format_args!("cannot write to stdout: {error}; the output is not complete")))
        }
        _ => Ok(()),
    }
}
