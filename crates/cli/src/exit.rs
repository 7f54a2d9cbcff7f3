//! The exit of the program: one line on stderr and a documented exit code.

use std::collections::BTreeSet;
use std::fmt;

use downpour::remote::ServeResult;
use downpour::{ErrorKind, Summary};

use crate::advice;
use crate::args::{Command, Settable, flags};
use crate::escape;
use crate::stop_signal::StopSignal;

/// The exit codes. They are part of the interface: scripts use them to distinguish failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Code {
    /// Everything is at the destination, verified or unchanged.
    Done = 0,
    /// Failures without a code of their own.
    Other = 1,
    /// Invalid arguments.
    Usage = 2,
    /// A source path does not exist.
    SourceAbsent = 3,
    /// A damaged or expired ticket, or one unknown to the peer.
    Authentication = 4,
    /// No answer, or UDP is blocked.
    Unreachable = 5,
    /// The received data is corrupt, not requested, or not decodable.
    Integrity = 6,
    /// A file or directory that cannot be read or written, or a full disk.
    Disk = 7,
    /// The connection was lost.
    Timeout = 8,
    /// Some names were not transferred.
    Partial = 23,
    /// Some names were not transferred, all because they vanished from the source during the transfer.
    Vanished = 24,
    /// SIGTERM; the same command resumes.
    Resumable = 75,
    /// Ctrl-C.
    Interrupted = 130,
}

impl From<StopSignal> for Code {
    fn from(stop: StopSignal) -> Self {
        match stop {
            StopSignal::Interrupted => Self::Interrupted,
            StopSignal::Terminated => Self::Resumable,
        }
    }
}

/// The list in `--help`.
const HELP: &str = "\
Exit codes:
    0  success: everything is at the destination, verified or unchanged (same size and time)
    1  other failures; for verify, a difference
    2  usage: invalid arguments
    3  a source path does not exist, or downpour is not installed on the remote host
    4  authentication: the ticket is damaged, expired or rejected, or ssh cannot log in
    5  unreachable: no answer, or UDP is blocked
    6  integrity: received data is corrupt, not requested, or not decodable
    7  disk: full, over quota, or permission denied; also for stdin, stdout and --qlog
    8  timeout: connection lost, or no progress
   23  partial: some files were not transferred or changed during the transfer; each is listed
   24  partial: some files vanished from the source during the transfer
   75  stopped by SIGTERM; run the same command to resume (143 while reading input)
  130  stopped by Ctrl-C; run the same command to resume
`downpour pipe` exits with the exit code of its command, or 141 if its output was closed.

Rates are in bits per second (500k, 100M, 1.5G) or bytes (12MB/s, 12MiB/s; not with --set),
sizes in bytes (10MB, 1.5G, 64KiB).

Patterns of --include and --exclude are those of rsync; the first matching rule applies:
  *.tmp    names with this ending, in any directory; * and ? do not match /
  /a/b     a leading / anchors the pattern at the top of the copied tree
  cache/   a trailing / matches directories only
  a/**/b   ** also matches /

Configuration: ~/.config/downpour/config.toml (or in XDG_CONFIG_HOME, or --config FILE). Keys are the long options:
  limit = \"08:00,200M 19:00,off\"
  exclude = [\".cache/\", \"*.tmp\"]
  [host.\"*.far.example\"]       for a host as typed, with any user; * and ? are wildcards
  retry-for = \"1h\"
  ipv4 = true
The first of these that sets an option applies:
  1. the command line
  2. the environment: DOWNPOUR_RETRY_FOR=1h for --retry-for, DOWNPOUR_QUIET=true or =false for -q
  3. the sections that match the host, in order
  4. the top level of the file
Patterns of --include and --exclude add up in this order, except those after an empty one
(--exclude '', exclude = []). --no-config ignores the file.
Switches are true or false, times are numbers or strings, everything else is a string.
The whole file is checked, for any host. Commands ignore keys of options that
they do not have. Only allowed on the command line:";

const VARIABLES: &str = "\
Other environment variables:
  DOWNPOUR_CONFIG  the configuration file, or none
  DOWNPOUR_TICKET  the ticket, instead of the prompt";

/// Columns of the list of options.
const WIDTH: usize = 98;

/// Returns the end of `--help`.
pub(crate) fn help() -> String {
    let typed: BTreeSet<&str> = flags::all()
        .filter(|flag| flag.settable == Settable::Typed && !flag.hidden && flag.of != [Command::Remote])
        .map(|flag| flag.name)
        .collect();
    let mut lines = vec![String::new()];
    for (at, name) in typed.iter().enumerate() {
        let word = format!("--{name}{}", if at + 1 < typed.len() { "," } else { "." });
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < WIDTH => {
                *line += if line.is_empty() { "" } else { " " };
                *line += &word;
            }
            _ => lines.push(word),
        }
    }
    format!("{HELP}\n{}\n\n{VARIABLES}", lines.join("\n"))
}

impl From<ErrorKind> for Code {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Usage => Self::Usage,
            ErrorKind::NotFound => Self::SourceAbsent,
            ErrorKind::Authentication | ErrorKind::WrongRole => Self::Authentication,
            ErrorKind::Unreachable => Self::Unreachable,
            ErrorKind::Integrity | ErrorKind::Undecodable | ErrorKind::NotRequested => Self::Integrity,
            ErrorKind::NoSpace | ErrorKind::Permission | ErrorKind::Storage => Self::Disk,
            ErrorKind::Timeout => Self::Timeout,
            ErrorKind::Cancelled => Self::Interrupted,
            ErrorKind::Terminated => Self::Resumable,
            _ => Self::Other,
        }
    }
}

impl From<&Summary> for Code {
    fn from(summary: &Summary) -> Self {
        match summary.failures.count {
            0 if summary.trace_lost.is_some() => Self::Disk,
            0 => Self::Done,
            failed if failed == summary.failures.vanished => Self::Vanished,
            _ => Self::Partial,
        }
    }
}

/// Returns the exit code of the program that ssh starts: the peer has received the error already.
pub(crate) fn of_remote(result: Result<ServeResult, downpour::Error>) -> u8 {
    match result {
        Ok(ServeResult::Transfer(summary)) => Code::from(&*summary) as u8,
        Ok(ServeResult::Command(code)) => code,
        Ok(ServeResult::Examination | ServeResult::Tunnel) => Code::Done as u8,
        Err(error) => Code::from(error.kind()) as u8,
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// One line, without the name of the program.
    pub(crate) message: String,
    /// The exit code.
    pub(crate) code: u8,
    /// The host without downpour, if that is the reason.
    pub(crate) lacks_program: Option<String>,
}

impl Failure {
    /// Creates a failure of the program itself.
    pub(crate) fn new(code: Code, message: impl fmt::Display) -> Self {
        Self { message: escape::text(&message.to_string()), code: code as u8, lacks_program: None }
    }

    /// Creates the failure for a signal before any transfer began.
    pub(crate) fn stopped(stop: StopSignal) -> Self {
        let message = match stop {
            StopSignal::Interrupted => "interrupted",
            StopSignal::Terminated => "terminated",
        };
        Self::new(stop.into(), message)
    }

    /// Creates the failure for a signal during a transfer that can resume.
    pub(crate) fn resumable(stop: StopSignal) -> Self {
        Self::new(stop.into(), "stopped; run the same command to resume")
    }
}

impl From<downpour::Error> for Failure {
    fn from(error: downpour::Error) -> Self {
        let advice = advice::on_error(&error).map_or_else(String::new, |advice| format!("; {advice}"));
        Self {
            message: escape::text(&format!("{error}{advice}")),
            code: Code::from(error.kind()) as u8,
            lacks_program: match &error {
                downpour::Error::NotInstalled { host, .. } => Some(host.clone()),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_kinds_have_documented_exit_codes() {
        let code = |error: downpour::Error| Failure::from(error).code;
        let remote = |kind| downpour::Error::Described { kind, message: String::new() };
        for (kind, wanted) in [
            (ErrorKind::Other, 1),
            (ErrorKind::Usage, 2),
            (ErrorKind::NotFound, 3),
            (ErrorKind::Authentication, 4),
            (ErrorKind::Unreachable, 5),
            (ErrorKind::Integrity, 6),
            (ErrorKind::Storage, 7),
            (ErrorKind::Timeout, 8),
            (ErrorKind::Terminated, 75),
            (ErrorKind::Cancelled, 130),
        ] {
            assert_eq!(code(remote(kind)), wanted, "{kind:?}");
            assert_eq!(of_remote(Err(remote(kind))), wanted, "{kind:?}");
            assert!(HELP.contains(&format!("\n{wanted:5}  ")), "{wanted}");
        }
        assert_eq!((of_remote(Ok(ServeResult::Command(42))), of_remote(Ok(ServeResult::Examination))), (42, 0));
    }

    #[test]
    fn transfer_with_failed_names_exits_partial() {
        let summary = |count, vanished| Summary {
            role: downpour::Role::Receiver,
            peer: ([192, 0, 2, 1], 1).into(),
            into: None,
            names: downpour::NameCounts { files: 3, ..downpour::NameCounts::default() },
            bytes: downpour::ByteCounts::default(),
            elapsed: std::time::Duration::from_secs(1),
            failures: downpour::Failures { listed: Vec::new(), count, vanished },
            wire_bytes: 0,
            connection: downpour::ConnectionFigures::default(),
            trace_lost: None,
        };
        let code = |failed, vanished| Code::from(&summary(failed, vanished)) as u8;
        assert_eq!((code(0, 0), code(2, 1), code(2, 2)), (0, 23, 24));
        let without_trace = |failed| Summary { trace_lost: Some(String::new()), ..summary(failed, 0) };
        assert_eq!((0..2).map(|failed| Code::from(&without_trace(failed)) as u8).collect::<Vec<_>>(), [7, 23]);
    }
}
