//! Options that several commands share.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use downpour::{Profile, Rate};

use super::offering::WhenExisting;
use super::rules::Rules;
use super::values;
use crate::limit::Limit;
use crate::rates;

/// What of the sources takes part.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is copied")]
pub(crate) struct SelectionArgs {
    /// What becomes of symbolic links
    #[arg(long, value_enum, value_name = "HOW", default_value = "copy")]
    pub(crate) links: Links,
    /// Keep files that share their content sharing it
    #[arg(short = 'H', long)]
    pub(crate) hard_links: bool,
    #[command(flatten)]
    pub(crate) rules: Rules,
    /// Only the names in this file, one a line, beneath the one SRC; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) files_from: Option<PathBuf>,
    /// The names of --files-from end with a zero byte, as `find -print0` writes them
    #[arg(short = '0', long, requires = "files_from")]
    pub(crate) from0: bool,
    /// Write the BLAKE3 of every file to FILE, for `b3sum -c FILE` in the target folder
    ///
    /// What goes to another machine under a new name is listed by the name it has here.
    #[arg(long, value_name = "FILE")]
    pub(crate) checksums: Option<PathBuf>,
}

/// What becomes of symbolic links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Links {
    /// They stay links
    Copy,
    /// What they lead to takes their place
    Follow,
    /// They are left out
    Skip,
}

/// What becomes of what exists, where that is replaced by default.
#[derive(Args, Debug)]
#[command(next_help_heading = "At the target")]
pub(crate) struct ExistingArgs {
    /// What becomes of files that exist already
    #[arg(long, value_enum, value_name = "WHAT", default_value = "replace")]
    pub(crate) existing: WhenExisting,
}

/// What happens at the target.
#[derive(Args, Debug)]
#[command(next_help_heading = "At the target")]
pub(crate) struct TargetArgs {
    /// Compare by content what has the same size, instead of by time
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Only say what would be done
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// How ssh is called, and what it starts.
#[derive(Args, Debug)]
#[command(next_help_heading = "The other side")]
pub(crate) struct SshArgs {
    /// The port of the ssh server
    #[arg(short = 'P', long, value_name = "PORT")]
    pub(crate) ssh_port: Option<u16>,
    /// The key that ssh identifies itself with
    #[arg(short = 'i', long, value_name = "KEY")]
    pub(crate) identity: Option<PathBuf>,
    /// A machine that ssh goes through on its way
    #[arg(short = 'J', long, value_name = "HOST")]
    pub(crate) jump: Option<String>,
    /// The ssh to use, with options of its own [default: ssh]
    #[arg(long, value_name = "CMD", value_parser = values::command)]
    pub(crate) ssh: Option<SshCommand>,
    /// What downpour is called over there [default: downpour]
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_bin: Option<String>,
}

/// A command in words, as a shell would split it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SshCommand(pub(crate) Vec<OsString>);

/// How the data gets across.
#[derive(Args, Debug)]
#[command(next_help_heading = "The connection")]
pub(crate) struct ConnectionArgs {
    /// What carries the data
    #[arg(long, value_enum, value_name = "WHAT", default_value = "auto")]
    pub(crate) via: Via,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    /// Connect again by itself for so long after the connection broke, such as 1h
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) retry_for: Option<Duration>,
}

/// Ports, addresses and patience.
#[derive(Args, Debug)]
#[command(next_help_heading = "The connection")]
pub(crate) struct NetworkArgs {
    /// UDP ports that the other side may take: one, or the first and the last
    #[arg(long, value_name = "A[:B]", value_parser = values::ports)]
    pub(crate) port: Option<RangeInclusive<u16>>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Take the connection as broken when nothing is heard for so long
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "30")]
    pub(crate) timeout: Duration,
}

/// What carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Via {
    /// UDP, or ssh where UDP is closed
    Auto,
    /// UDP or nothing
    Udp,
    /// The connection that ssh has
    Ssh,
}

/// How fast a sender sends.
#[derive(Args, Debug)]
#[command(next_help_heading = "Speed")]
pub(crate) struct SpeedArgs {
    /// Send at exactly this rate, which you know the path has (100M, 12MB/s): fastest, and unfair if it has less
    ///
    /// Counts whole IP packets. Without it the sender finds out by itself and shares the path.
    #[arg(long, value_name = "RATE", value_parser = rates::parse)]
    pub(crate) rate: Option<Rate>,
    /// Never send faster than this; or a timetable in local time, such as '08:00,200M 19:00,off'
    #[arg(long, value_name = "RATE|TIMETABLE")]
    pub(crate) limit: Option<Limit>,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
}

/// A profile, and what is changed of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProfileArgs {
    /// How to send: a name that `downpour profile list` knows, or a file as `downpour profile show` prints one
    #[arg(long, value_name = "NAME|FILE", value_parser = values::profile, default_value = "auto")]
    pub(crate) profile: ProfileChoice,
    /// Change one choice of the profile, or one number of a choice: congestion=cubic, congestion.beta=0.5
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
}

/// A profile as it is named.
#[derive(Clone, Debug)]
pub(crate) enum ProfileChoice {
    /// One that downpour knows.
    Named(Box<Profile>),
    /// A file with one.
    File(PathBuf),
}

/// How the two sides find each other by a ticket.
#[derive(Args, Debug)]
#[command(next_help_heading = "The other side")]
pub(crate) struct TicketArgs {
    /// Where the listening side writes the ticket (mode 0600), and the connecting side reads it
    #[arg(long, value_name = "FILE")]
    pub(crate) ticket_file: Option<PathBuf>,
    /// How long the connecting side waits for an answer
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "10")]
    pub(crate) connect_timeout: Duration,
    /// Give up when the other side has been silent for so long
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "30")]
    pub(crate) timeout: Duration,
}

/// What is shown.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct OutputArgs {
    /// How progress is shown [default: bar at a terminal, line elsewhere]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) progress: Option<HowShown>,
    /// Tell the story on stdout as JSON, one object a line
    ///
    /// Every object has "v":1 and a "type": start, path, progress, file, notice, summary, finding, checkup,
    /// demo, attempt or error.
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors, the ticket and questions
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more: every file and deletion, the addresses, the counts of the connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// What is written for those who look into a connection.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct TraceArgs {
    /// Append a trace of the connection (qlog, JSON-SEQ)
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HowShown {
    /// A line that moves
    Bar,
    /// A line a minute
    Line,
    /// Nothing
    None,
}
