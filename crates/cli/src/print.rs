//! Output of lines and bytes to stdout and stderr, and whether everything was written to stdout.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, OnceLock, PoisonError};

use downpour::remote::Said;
use indicatif::ProgressBar;

use crate::exit::{Code, Failure};
use crate::stop_signal::stopping;
use crate::{blocking, escape};

/// The first error on stdout, which is global to the process.
static STDOUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// The moving line at the bottom of the terminal, while there is one: what other threads print goes above it.
static MOVING: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Sets the line that moves from now on.
pub(crate) fn moves(line: Option<ProgressBar>) {
    *MOVING.lock().unwrap_or_else(PoisonError::into_inner) = line;
}

/// Prints on stderr what ssh or the machine `host` says there: escaped, and after the host's name, so that it cannot be
/// taken for words of this program.
pub(crate) fn said(host: &str, said: Said<'_>) {
    let line = spoken(host, said, columns());
    let moving = MOVING.lock().unwrap_or_else(PoisonError::into_inner);
    match &*moving {
        Some(moving) => moving.suspend(|| err(line)),
        None => err(line),
    }
}

/// Formats what a machine says, each row of a terminal with so many columns after its name: a line that is wrapped could
/// continue like one of this program.
fn spoken(host: &str, said: Said<'_>, columns: Option<usize>) -> String {
    let words = match said {
        Said::Line(line) => escape::line(line),
        Said::LeftOut(count) => format!("({} left out)", units::count(count, "line", "lines")),
    };
    let name = format!("{}: ", escape::text(host));
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(width(&name)).max(NARROWEST));
    let mut rows = vec![String::new()];
    for c in words.chars() {
        if let Some(last) = rows.last_mut().filter(|last| width(last) + width_of(c) <= room) {
            last.push(c);
        } else {
            rows.push(c.to_string());
        }
    }
    rows.iter().map(|row| format!("{name}{row}")).collect::<Vec<_>>().join("\n")
}

/// Fewest columns for the words of a machine.
const NARROWEST: usize = 20;

fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// The most columns that a terminal gives to a character.
fn width_of(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// Returns the columns of the terminal that stderr is; `None` if it is none, or does not say.
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

/// Prints a note of the library on stderr, escaped. On a terminal, one that begins with a line break leaves the line alone
/// on which ssh may be asking for something.
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
            if let Some(stop) = stopping() {
                return Err(Failure::stopped(stop));
            }
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
    fn what_a_host_says_is_one_line_that_begins_with_its_name() {
        for (line, wanted) in [
            (&b"a warning"[..], "far: a warning"),
            (b"\r\x1b[2K1 file, verified", "far: \\r\\u{1b}[2K1 file, verified"),
            (b"\x9b2K \xff", "far: \\x9b2K \\xff"),
            ("\u{202e}exe \u{9b}2J".as_bytes(), "far: \\u{202e}exe \\u{9b}2J"),
        ] {
            assert_eq!(spoken("far", Said::Line(line), None), wanted);
        }
        assert_eq!(spoken("far", Said::LeftOut(7), None), "far: (7 lines left out)");
        let forged = format!("{}1 file, verified", " ".repeat(75));
        let rows = spoken("far", Said::Line(forged.as_bytes()), Some(80));
        assert_eq!(rows, format!("far: {}\nfar: 1 file, verified", " ".repeat(75)));
        let wide = spoken("far", Said::Line("\u{4e00}".repeat(40).as_bytes()), Some(80));
        assert_eq!(wide.lines().map(|row| row.chars().count()).collect::<Vec<_>>(), [5 + 37, 5 + 3]);
    }

    #[test]
    fn a_note_leaves_alone_the_line_of_a_question() {
        assert_eq!(noted("\nfar has not\x07 answered", true), "\nfar has not\\u{7} answered\n");
        assert_eq!(noted("\nfar has not answered", false), "far has not answered\n");
        assert_eq!(noted("on\n we go", true), noted("on\n we go", false));
        assert_eq!(noted("on\n we go", true).matches('\n').count(), 1, "in one line");
    }
}
