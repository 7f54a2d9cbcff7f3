//! How the program ends: one line on stderr and a documented exit code.

use std::fmt;

/// The exit codes. They are part of the interface: scripts tell failures apart by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// Everything arrived and was checked.
    Done = 0,
    /// What has no code of its own.
    Other = 1,
    /// What was typed makes no sense.
    Usage = 2,
    /// A path to send does not exist.
    SourceAbsent = 3,
    /// A ticket that is damaged, expired or not known to the other side.
    Authentication = 4,
    /// What arrived is not what was sent.
    Integrity = 6,
    /// A file or a folder that cannot be read or written, or a full disk.
    Disk = 7,
    /// Ctrl-C.
    Interrupted = 130,
}

/// The list in `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
    0  done: everything arrived and was checked
    1  other failures
    2  usage: what was typed makes no sense
    3  a path to send does not exist
    4  authentication: the ticket is damaged, expired or refused
    5  unreachable: no answer, or UDP is blocked on the way
    6  integrity: what arrived is not what was sent
    7  disk: no room, a quota, or no permission
    8  timeout: the other side fell silent
   23  partial: some files were not sent or changed meanwhile
  130  Ctrl-C

Environment:
  DOWNPOUR_TICKET  the ticket, instead of the prompt

Rates are in bits per second (500k, 100M, 1.5G) or bytes (12MB/s, 12MiB/s).";

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One line, without the name of the program.
    pub(crate) message: String,
    /// The exit code.
    pub(crate) code: u8,
}

impl Failure {
    /// A failure of the program itself.
    pub(crate) fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { message: one_line(&message.to_string()), code: code as u8 }
    }

    /// Ctrl-C before anything was under way.
    pub(crate) fn interrupted() -> Self {
        Self::new(Code::Interrupted, "interrupted")
    }
}

impl From<downpour::Error> for Failure {
    fn from(error: downpour::Error) -> Self {
        Self { message: one_line(&error.to_string()), code: error.exit_code() }
    }
}

/// Messages quote paths, and a line break in one must not look like a second message. What comes from the other side is escaped already.
fn one_line(message: &str) -> String {
    message.trim().replace(char::is_control, "\u{fffd}")
}
