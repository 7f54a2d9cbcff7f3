//! Options that several commands share.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use downpour::Rate;
use downpour::files::{Backup, Preserve};

use super::rules::Rules;
use super::values::{self, ProfileChoice, SshCommand};
use crate::exit::{Code, Failure};
use crate::limit::Limit;
use crate::rates;

/// Which files of the sources are copied.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is copied")]
pub(crate) struct SelectionArgs {
    /// How to handle symbolic links [default: copy; but cp, send and verify follow links named as sources]
    #[arg(long, value_enum, value_name = "HOW", overrides_with = "links")]
    pub(crate) links: Option<Links>,
    /// Preserve hard links
    #[arg(short = 'H', long)]
    pub(crate) hard_links: bool,
    /// Do not enter folders on which another file system is mounted
    #[arg(short = 'x', long)]
    pub(crate) one_file_system: bool,
    #[command(flatten)]
    pub(crate) rules: Rules,
    /// Copy only the files listed in FILE, one per line, relative to the single SRC; `-` reads stdin
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    pub(crate) files_from: Option<PathBuf>,
    /// Names in --files-from are separated by NUL, as written by `find -print0`
    #[arg(short = '0', long, requires = "files_from")]
    pub(crate) from0: bool,
    /// Write BLAKE3 checksums of all files to FILE, for `b3sum -c FILE` in the target folder
    ///
    /// A file that is copied to another machine under a new name is listed under its local name. FILE is replaced if it is empty
    /// or an older list, and is itself not copied.
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    pub(crate) checksums: Option<PathBuf>,
}

/// How symbolic links are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Links {
    /// Copy links as links
    Copy,
    /// Copy the files that links point to
    Follow,
    /// Skip links
    Skip,
}

/// What is preserved beyond contents, modes and times.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "What is preserved")]
pub(crate) struct PreserveArgs {
    /// Preserve owners, where root receives
    #[arg(long)]
    owner: bool,
    /// Preserve groups, where root receives, or a member of the group
    #[arg(long)]
    group: bool,
    /// Map owners and groups by number, not by name
    #[arg(long)]
    numeric_ids: bool,
    /// Preserve ACLs, and modes
    #[arg(short = 'A', long)]
    pub(crate) acls: bool,
    /// Preserve extended attributes: user.*, and between root and root trusted.* and file capabilities
    #[arg(short = 'X', long)]
    xattrs: bool,
    /// Copy pipes and sockets, and devices where root receives
    #[arg(long, alias = "devices")]
    specials: bool,
}

impl PreserveArgs {
    /// What is preserved. `archive` adds what rsync's -a does; `also` are the short options of one command.
    pub(crate) const fn choice(self, archive: bool, also: PreserveToo) -> Preserve {
        Preserve {
            owner: self.owner || archive || also.owner,
            group: self.group || archive || also.group,
            numeric_ids: self.numeric_ids,
            acls: self.acls,
            xattrs: self.xattrs,
            specials: self.specials || archive || also.specials,
        }
    }
}

/// rsync's short options for some of [`PreserveArgs`]; scp has others with these letters.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct PreserveToo {
    #[arg(id = "owner_too", short = 'o', hide = true)]
    owner: bool,
    #[arg(id = "group_too", short = 'g', hide = true)]
    group: bool,
    #[arg(id = "specials_too", short = 'D', hide = true)]
    specials: bool,
}

/// How existing files are handled where they are replaced by default.
#[derive(Args, Debug)]
#[command(next_help_heading = "At the target")]
pub(crate) struct ExistingArgs {
    /// What to do with files that already exist
    #[arg(long, value_enum, value_name = "WHAT", default_value = "replace")]
    pub(crate) existing: WhenExisting,
    /// Keep files that are newer at the target: --existing keep-newer
    #[arg(short, long, conflicts_with_all = ["existing", "ignore_existing"])]
    pub(crate) update: bool,
    /// Keep all files that exist at the target: --existing skip
    #[arg(long, conflicts_with = "existing")]
    pub(crate) ignore_existing: bool,
}

impl ExistingArgs {
    /// What was chosen.
    pub(crate) const fn choice(&self) -> WhenExisting {
        match (self.update, self.ignore_existing) {
            (true, _) => WhenExisting::KeepNewer,
            (_, true) => WhenExisting::Skip,
            _ => self.existing,
        }
    }
}

/// How a file is handled that exists at the target and differs from the one that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenExisting {
    /// Replace it once the new file is complete
    Replace,
    /// Keep it and copy the others
    Skip,
    /// Copy nothing
    Refuse,
    /// Replace it unless it is newer
    KeepNewer,
    /// Replace it, and create nothing new
    Only,
}

/// What happens at the target.
#[derive(Args, Debug)]
#[command(next_help_heading = "At the target")]
pub(crate) struct TargetArgs {
    /// Compare files of the same size by content instead of mtime
    #[arg(long)]
    pub(crate) checksum: bool,
    /// Show what would be done without doing it
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Skip symbolic links that point out of the copied tree
    #[arg(long)]
    pub(crate) safe_links: bool,
    /// Send changed files in full instead of their differences
    ///
    /// The differences of a file cost reading both versions. Between folders of this machine it is always sent in full.
    #[arg(short = 'W', long)]
    pub(crate) whole_file: bool,
    /// Accept names from a remote source that were not requested
    ///
    /// By default, names that match neither the paths, wildcards and filters of the command line nor the list of
    /// --files-from end the copy.
    #[arg(long)]
    pub(crate) trust_sender: bool,
    /// Use what an interrupted run has left without reading and comparing it; the summary then does not say "verified"
    #[arg(long)]
    pub(crate) trust_staging: bool,
}

/// What becomes of what is replaced or deleted.
#[derive(Args, Debug)]
#[command(next_help_heading = "At the target")]
pub(crate) struct BackupArgs {
    /// Keep what is replaced or deleted under another name: with a `~` at its end
    ///
    /// Names that end so are not deleted by --delete.
    #[arg(short, long)]
    backup: bool,
    /// Keep it in this folder, named relative to the target, under its own path; implies --backup
    ///
    /// The folder itself is not deleted by --delete.
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,
    /// End the names of backups with SUFFIX
    #[arg(long, value_name = "SUFFIX")]
    suffix: Option<OsString>,
}

impl BackupArgs {
    /// What was chosen.
    ///
    /// # Errors
    /// A directory outside of the target, or a suffix that cannot be one.
    pub(crate) fn choice(&self) -> Result<Option<Backup>, Failure> {
        let wrong = |what: &dyn Display| Failure::new(Code::Usage, what.to_string());
        let (directory, suffix) = (self.backup_dir.as_deref(), self.suffix.as_deref());
        if !self.backup && directory.is_none() {
            let alone = suffix.map(|_| wrong(&"--suffix is for backups: use it with --backup or --backup-dir"));
            return alone.map_or(Ok(None), Err);
        }
        let directory = directory.map(|directory| directory.as_os_str().as_bytes());
        if let Some(directory) = directory.filter(|directory| directory.starts_with(b"~")) {
            let shown = String::from_utf8_lossy(directory);
            let why = "backups go to a directory within the target, and no home is there";
            return Err(wrong(&format_args!("--backup-dir {shown}: {why}; write ./{shown} for one called so")));
        }
        Backup::new(directory, suffix.map(OsStr::as_bytes)).map(Some).map_err(|error| wrong(&error))
    }
}

/// How ssh is called, and which program it starts.
#[derive(Args, Debug)]
#[command(next_help_heading = "The other side")]
pub(crate) struct SshArgs {
    /// Port of the ssh server
    #[arg(short = 'P', long, value_name = "PORT")]
    pub(crate) ssh_port: Option<u16>,
    /// Identity file for ssh
    #[arg(short = 'i', long, value_name = "KEY", value_parser = values::path())]
    pub(crate) identity: Option<PathBuf>,
    /// Jump host for ssh
    #[arg(short = 'J', long, value_name = "HOST")]
    pub(crate) jump: Option<String>,
    /// The ssh command, with options [default: ssh]
    #[arg(long, value_name = "CMD", value_parser = values::command)]
    pub(crate) ssh: Option<SshCommand>,
    /// Path of downpour on the remote host [default: downpour]
    #[arg(long, value_name = "PATH")]
    pub(crate) remote_bin: Option<String>,
    /// What to do if the remote host has no downpour: nothing, offer to copy this one there, or copy it
    #[arg(long, value_name = "WHEN", value_enum, default_value = "ask")]
    pub(crate) bootstrap: WhenMissing,
}

/// What happens if the remote host has no downpour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenMissing {
    /// Fail
    Never,
    /// Ask, if stdin and stderr are a terminal
    Ask,
    /// Copy this program to ~/.local/bin there, and say so
    Auto,
}

/// How the data gets across.
#[derive(Args, Debug)]
#[command(next_help_heading = "The connection")]
pub(crate) struct ConnectionArgs {
    /// Transport for the data
    #[arg(long, value_enum, value_name = "WHAT", default_value = "auto")]
    pub(crate) via: Via,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    /// Reconnect for this long after the connection breaks, such as 1h
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) retry_for: Option<Duration>,
}

/// Ports, addresses and patience.
#[derive(Args, Debug)]
#[command(next_help_heading = "The connection")]
pub(crate) struct NetworkArgs {
    /// UDP port or range of ports for the remote side
    #[arg(long, value_name = "A[:B]", value_parser = values::ports)]
    pub(crate) port: Option<RangeInclusive<u16>>,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    pub(crate) ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long)]
    pub(crate) ipv6: bool,
    /// Consider the connection broken after this long without a packet
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "30")]
    pub(crate) timeout: Duration,
}

/// What carries the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Via {
    /// UDP, falling back to ssh if UDP is blocked
    Auto,
    /// UDP only
    Udp,
    /// The ssh connection
    Ssh,
}

/// How fast a sender sends.
#[derive(Args, Debug)]
#[command(next_help_heading = "Speed")]
pub(crate) struct SpeedArgs {
    /// Send at exactly this rate (100M, 12MB/s): fastest if the path has it, unfair to others if it has less
    ///
    /// The rate counts whole IP packets. Without it, congestion control finds the rate and shares the path; it also
    /// takes over if the path carries far less than the rate, unless --policy fixed insists on it.
    #[arg(long, value_name = "RATE", value_parser = rates::parse)]
    pub(crate) rate: Option<Rate>,
    /// Begin at this rate, which the path is known to carry, instead of searching for one
    ///
    /// Congestion control goes on from there, and may send more or less.
    #[arg(long, value_name = "RATE", value_parser = rates::parse, conflicts_with = "rate")]
    pub(crate) min_rate: Option<Rate>,
    /// What to claim of a path that others use
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) policy: Option<Policy>,
    /// Neither use nor keep what is known of the path from transfers of the last day
    #[arg(long)]
    pub(crate) no_memory: bool,
    /// Limit the sending rate, at all times or by a timetable in local time, such as '08:00,200M 19:00,off'
    #[arg(long, value_name = "RATE|TIMETABLE")]
    pub(crate) limit: Option<Limit>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
}

/// How a host is reached to which streams go.
#[derive(Args, Debug)]
pub(crate) struct ReachArgs {
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    /// Transport for the data
    #[arg(long, value_enum, value_name = "WHAT", default_value = "auto", help_heading = "The connection")]
    pub(crate) via: Via,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) overhead: OverheadArgs,
    /// Print only errors
    #[arg(short, long, help_heading = "What is shown")]
    pub(crate) quiet: bool,
}

impl ReachArgs {
    /// What is shown.
    pub(crate) fn shown(&self) -> OutputArgs {
        OutputArgs { quiet: self.quiet, ..OutputArgs::default() }
    }
}

/// What the repair of streams may cost.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Speed")]
pub(crate) struct OverheadArgs {
    /// Send at most this share of the data as repair before anything is lost, or 'none' for no bound [default: 50%]
    ///
    /// Up to 16 kB/s repair is free, since delay then counts more than bytes.
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_overhead: Option<String>,
}

/// How much memory each side may fill.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Speed")]
pub(crate) struct MemoryArgs {
    /// Buffer at most this much data on each side, such as 256MB [default: an eighth of its memory, at most 2GiB]
    ///
    /// With a ticket, it is the bound of this side alone. A long fast path needs about four times its rate times its
    /// RTT; the summary says where a bound has slowed the transfer. The least is 32MB. What the program needs besides,
    /// some tens of MB, comes on top.
    #[arg(long, value_name = "SIZE", value_parser = values::memory)]
    pub(crate) max_memory: Option<u64>,
}

/// What is claimed of a path that others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// A share like TCP's (default)
    Fair,
    /// Only what others leave
    Low,
    /// The rate given with --rate, even if most of it is lost
    Fixed,
}

/// A profile and changes to it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProfileArgs {
    /// Profile to send with: a name from `downpour profile list`, or a file as printed by `downpour profile show`
    #[arg(long, value_name = "NAME|FILE", value_parser = values::profile, default_value = "auto")]
    pub(crate) profile: ProfileChoice,
    /// Change a setting of the profile: congestion=cubic, congestion.beta=0.5
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
}

/// How two sides connect with a ticket.
#[derive(Args, Debug)]
#[command(next_help_heading = "The other side")]
pub(crate) struct TicketArgs {
    /// File that the listening side writes the ticket to (mode 0600) and the connecting side reads it from
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    pub(crate) ticket_file: Option<PathBuf>,
    /// How long to wait for an answer when connecting
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "10")]
    pub(crate) connect_timeout: Duration,
    /// Give up after this long without a packet
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "30")]
    pub(crate) timeout: Duration,
}

/// What is shown.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct OutputArgs {
    /// How to show progress [default: bar on a terminal, line otherwise]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) progress: Option<HowShown>,
    /// Print events to stdout as JSON, one object per line
    ///
    /// Every object has "v":1 and a "type": start, path, progress, file, notice, summary, finding, checkup,
    /// demo, attempt or error.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors, the ticket and questions
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print every file and deletion, addresses and connection statistics
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Traces of a connection.
#[derive(Args, Debug)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct TraceArgs {
    /// Append a qlog trace of the connection to FILE (JSON-SEQ)
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    pub(crate) qlog: Option<PathBuf>,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HowShown {
    /// A progress bar
    Bar,
    /// A line per minute
    Line,
    /// Nothing
    None,
}
