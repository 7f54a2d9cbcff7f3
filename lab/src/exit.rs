//! How the program ends: one line on stderr and a documented exit code.

use std::path::Path;
use std::{fmt, io};

/// The exit codes. They are part of the interface: scripts distinguish failures by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Code {
    /// Success.
    Done = 0,
    /// A failure without a code of its own.
    Other = 1,
    /// The command line, a plan or a topology is invalid.
    Usage = 2,
    /// This machine lacks something: the right to make namespaces, a program.
    Lacking = 3,
    /// The machine did not keep up with the model, or a check failed.
    Invalid = 4,
    /// Of `link`: the lab failed, not the command.
    LabFailed = 125,
    /// Of `link`: the command cannot be started.
    NotStartable = 126,
    /// Of `link`: there is no such command.
    NotFound = 127,
    /// Interrupted; results are kept, and the same command resumes.
    Interrupted = 75,
}

/// The list in `--help`.
pub const HELP: &str = "\
Exit codes:
    0  done
    1  other failures, such as a full disk
    2  usage: invalid arguments, plan or topology
    3  this machine lacks something: permission to create namespaces, or a program
    4  the machine did not keep up with the model, or a check failed
   75  interrupted; results are kept, and the same command resumes
`link` exits with the exit code of its command, with 128 plus the number of the signal that ended it, with 127 or 126 if the command does not exist or
cannot be started, and with 125 if the lab itself failed.";

/// The reason why a command failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// One line.
    pub message: String,
}

impl Failure {
    /// A failure with one of the codes.
    pub fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { code: code as u8, message: message.to_string() }
    }

    /// Returns a function for `map_err` that reports an error with a file.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::new(Code::Other, format_args!("{}: {error}", path.display()))
    }
}
