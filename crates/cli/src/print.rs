//! Output of lines and bytes to stdout and stderr, and whether everything was written to stdout.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, OnceLock, PoisonError};

use downpour::remote::StderrPart;
use indicatif::ProgressBar;

use crate::exit::{Code, Failure};
use crate::stop_signal::stopping;
use crate::{blocking, escape};

/// The first error on stdout, which is global to the process.
static STDOUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// The moving line at the bottom of the terminal, if there is one: output of other threads goes above it.
static MOVING: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Sets the moving line.
pub(crate) fn set_moving_line(line: Option<ProgressBar>) {
    *MOVING.lock().unwrap_or_else(PoisonError::into_inner) = line;
}

/// Prints on stderr a message of ssh or of the remote `host`: escaped and after the name of the host, so it cannot look
/// like a message of this program.
pub(crate) fn remote_message(host: &str, message: StderrPart<'_>) {
    let line = prefixed(host, message, columns());
    let moving = MOVING.lock().unwrap_or_else(PoisonError::into_inner);
    match &*moving {
        Some(moving) => moving.suspend(|| err(line)),
        None => err(line),
    }
}

/// Formats a message of a host, with its name before each row of the terminal: a wrapped line could otherwise look like one
/// of this program.
fn prefixed(host: &str, message: StderrPart<'_>, columns: Option<usize>) -> String {
    let text = match message {
        StderrPart::Line(line) => escape::line(line),
        StderrPart::Skipped(count) => format!("({} skipped)", units::count(count, "line", "lines")),
    };
    let name = format!("{}: ", escape::text(host));
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(width(&name)).max(MIN_COLUMNS));
    let mut rows = vec![String::new()];
    for c in text.chars() {
        if let Some(last) = rows.last_mut().filter(|last| width(last) + width_of(c) <= room) {
            last.push(c);
        } else {
            rows.push(c.to_string());
        }
    }
    rows.iter().map(|row| format!("{name}{row}")).collect::<Vec<_>>().join("\n")
}

/// Fewest columns for the text of a message.
const MIN_COLUMNS: usize = 20;

fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// Returns the most columns of a character on a terminal.
fn width_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// Returns the columns of the terminal on stderr; `None` if there is no terminal or it does not report them.
fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Prints a line on stdout.
pub(crate) fn out(line: impl fmt::Display) {
    write_out(format!("{line}\n").as_bytes());
}

/// Prints a line on stderr.
pub(crate) fn err(line: impl fmt::Display) {
    write_err(format!("{line}\n").as_bytes());
}

/// Prints a note of the library on stderr, escaped. On a terminal, a note that begins with a line break keeps the line on
/// which ssh may be asking for a password.
pub(crate) fn note(note: &str) {
    write_err(noted(note, io::stderr().is_terminal()).as_bytes());
}

fn noted(note: &str, is_terminal: bool) -> String {
    match note.strip_prefix('\n') {
        Some(line) if is_terminal => format!("\n{}\n", escape::text(line)),
        line => format!("{}\n", escape::text(line.unwrap_or(note))),
    }
}

/// Prints a warning of the program itself on stderr.
pub(crate) fn warn(line: impl fmt::Display) {
    err(format_args!("downpour: warning: {}", escape::without_error_numbers(&line.to_string())));
}

/// Writes to stdout at once. After an error nothing more is written, the command continues, and [`is_complete`] reports
/// the error at its end.
pub(crate) fn write_out(bytes: &[u8]) {
    if STDOUT_ERROR.get().is_some() {
        return;
    }
    // Bypasses the standard library's buffer, which does not report how much was written before an error.
    if let Err(error) = blocking::write_all(io::stdout().lock(), bytes) {
        // Another thread may have set an error, which serves as well.
        let _ = STDOUT_ERROR.set(error);
    }
}

/// Writes to stderr at once. If stderr is closed, the text is lost.
pub(crate) fn write_err(bytes: &[u8]) {
    let _ = blocking::write_all(io::stderr().lock(), bytes);
}

/// Checks that everything was written to stdout. A closed pipe is not an error: its reader has read enough.
///
/// # Errors
/// A full device, for example.
pub(crate) fn is_complete() -> Result<(), Failure> {
    match STDOUT_ERROR.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            if let Some(stop) = stopping() {
                return Err(Failure::stopped(stop));
            }
            Err(Failure::new(Code::Disk, format!("cannot write to stdout: {error}; output truncated")))
        }
        _ => Ok(()),
    }
}

/// Checks that the ticket was written: without it no peer can connect.
///
/// # Errors
/// A full device, or a pipe without a reader.
pub(crate) fn has_ticket() -> Result<(), Failure> {
    let failed = |error| match stopping() {
        Some(stop) => Failure::stopped(stop),
        None => Failure::new(Code::Disk, format!("cannot write the ticket to stdout: {error}")),
    };
    STDOUT_ERROR.get().map(failed).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_of_a_host_begins_each_row_with_its_name() {
        for (line, wanted) in [
            (&b"a warning"[..], "far: a warning"),
            (b"\r\x1b[2K1 file, verified", "far: \\r\\u{1b}[2K1 file, verified"),
            (b"\x9b2K \xff", "far: \\x9b2K \\xff"),
            ("\u{202e}exe \u{9b}2J".as_bytes(), "far: \\u{202e}exe \\u{9b}2J"),
        ] {
            assert_eq!(prefixed("far", StderrPart::Line(line), None), wanted);
        }
        assert_eq!(prefixed("far", StderrPart::Skipped(7), None), "far: (7 lines skipped)");
        let forged = format!("{}1 file, verified", " ".repeat(75));
        let rows = prefixed("far", StderrPart::Line(forged.as_bytes()), Some(80));
        assert_eq!(rows, format!("far: {}\nfar: 1 file, verified", " ".repeat(75)));
        let wide = prefixed("far", StderrPart::Line("\u{4e00}".repeat(40).as_bytes()), Some(80));
        assert_eq!(wide.lines().map(|row| row.chars().count()).collect::<Vec<_>>(), [5 + 37, 5 + 3]);
    }

    #[test]
    fn note_keeps_the_line_of_a_question() {
        assert_eq!(noted("\nfar has not\x07 answered", true), "\nfar has not\\u{7} answered\n");
        assert_eq!(noted("\nfar has not answered", false), "far has not answered\n");
        assert_eq!(noted("on\n we go", true), noted("on\n we go", false));
        assert_eq!(noted("on\n we go", true).matches('\n').count(), 1, "in one line");
    }
}
