//! How the program ends: one line on stderr and a documented exit code.

use std::fmt;

use downpour::files::FilesError;

use crate::interrupt::Stop;

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
    /// A path to read does not exist.
    SourceAbsent = 3,
    /// A ticket that is damaged, expired or not known to the other side.
    Authentication = 4,
    /// No answer, or UDP is blocked on the way.
    Unreachable = 5,
    /// What arrived is not what was sent.
    Integrity = 6,
    /// A file or a folder that cannot be read or written, or a full disk.
    Disk = 7,
    /// SIGTERM; the same command goes on.
    Resumable = 75,
    /// Ctrl-C.
    Interrupted = 130,
}

/// The list in `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
    0  done: everything arrived and was checked
    1  other failures; of verify, a difference
    2  usage: what was typed makes no sense
    3  a path to read does not exist, or no downpour over there
    4  authentication: the ticket is damaged, expired or refused
    5  unreachable: no answer, or UDP is blocked on the way
    6  integrity: what arrived is not what was sent, or too little came to decode it
    7  disk: no room, a quota, or no permission; also for stdin and stdout
    8  timeout: the other side fell silent
   23  partial: some names did not come across, or changed; each is named
   24  partial: all that is missing vanished from the source meanwhile
   75  ended by SIGTERM; the same command goes on where it stopped
  130  Ctrl-C; the same command goes on where it stopped
A pipe ends with the exit code of its command.

Rates are in bits per second (500k, 100M, 1.5G) or bytes (12MB/s, 12MiB/s; not with --set),
sizes in bytes (10MB, 1.5G, 64KiB).

Patterns of --include and --exclude are those of rsync; the first rule that matches a name decides:
  *.tmp    every name that ends so, in any folder; * and ? stop at a /
  /a/b     a / in front: only from the top of what is copied
  cache/   a / at the end: folders only
  a/**/b   ** crosses /

Configuration: ~/.config/downpour/config.toml (or below XDG_CONFIG_HOME, or --config FILE). Its keys are the long options:
  limit = \"08:00,200M 19:00,off\"
  exclude = [\".cache/\", \"*.tmp\"]
  [host.\"*.far.example\"]       for a host as it is typed, of any user; * and ? stand for anything
  retry-for = \"1h\"
  ipv4 = true
An option is taken from the first of these places that has it:
  1. the command line
  2. the environment: DOWNPOUR_RETRY_FOR=1h for --retry-for, DOWNPOUR_QUIET=true or =false for -q
  3. the sections of the host, from first to last
  4. the top of the file
Switches are true or false, times are numbers or texts, all else is texts. The
whole file is checked, whatever the host. A key that a command does not know
does nothing there. Only on the command line, for they are for a single run:
--checksums, --delete, --dry-run, --files-from, --from0, --keep, --ticket-file, --to.

Environment, besides:
  DOWNPOUR_CONFIG  the configuration, or none for none
  DOWNPOUR_TICKET  the ticket, instead of the prompt";

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

    /// A signal before anything was under way.
    pub(crate) fn stopped(stop: Stop) -> Self {
        let message = match stop {
            Stop::Interrupted => "interrupted",
            Stop::Terminated => "terminated",
        };
        Self::new(stop.code(), message)
    }

    /// A signal, and the transfer goes on another time.
    pub(crate) fn goes_on(stop: Stop) -> Self {
        Self::new(stop.code(), "stopped; the same command goes on where it stopped")
    }
}

impl From<downpour::Error> for Failure {
    fn from(error: downpour::Error) -> Self {
        let advice = match &error {
            downpour::Error::Files(FilesError::TargetExists { .. }) => {
                "; --existing replace or --existing skip goes on"
            }
            _ => "",
        };
        Self { message: one_line(&format!("{error}{advice}")), code: error.exit_code() }
    }
}

/// Messages quote paths, and a line break in one must not look like a second message. What comes from the other side is escaped already.
fn one_line(message: &str) -> String {
    message.trim().replace(char::is_control, "\u{fffd}")
}
