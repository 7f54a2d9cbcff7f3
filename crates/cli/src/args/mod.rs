//! The command line: a table of commands, a table of options, and what was typed.

mod brief;
mod commands;
mod definition;
mod flag;
pub(crate) mod flags;
mod reference;
mod rsync_hints;
mod rules;
#[cfg(test)]
mod tests;
mod values;

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::error::ErrorKind;
use clap_complete::Shell;
use downpour::files::{Backup, Compare, Existing, Modes, ReceiveRequest, SourceOptions};
use downpour::remote::{Location, PathOptions, SshOptions};
use downpour::tunnel::{Forward, ForwardAddress, Permit};
use downpour::{Rate, TransferOptions};
use netsim::Duplex;

use crate::exit::{Code, Failure};
use crate::rate_timetable::Limit;
pub(crate) use brief::{command_at, help, wants_json};
pub(crate) use commands::{Command, Completed, completing};
pub(crate) use definition::{NAME, definition};
pub(crate) use flag::Settable;
pub(crate) use reference::reference;
pub(crate) use rsync_hints::{answer, translate};
pub(crate) use rules::{Rules, is_rule};
pub(crate) use values::ProfileChoice;

/// The network of the demo unless `--link` says another: 100 Mbit/s, 100 ms there and back, one packet in twenty lost
/// each way.
pub(crate) const DEMO_LINK: &str = "rate=100M,delay=50ms,loss=5%,queue=256KB";

/// How long others can connect to a tunnel with its ticket.
const VALID: Duration = Duration::from_secs(3600);

/// What was typed. The options of the library are set by the entries of the table themselves; the rest is what this program
/// makes of its options before it calls the library, and what it shows.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) command: Command,
    pub(crate) config: Option<PathBuf>,
    pub(crate) no_config: bool,

    /// What is sent of the sources.
    pub(crate) scan: SourceOptions,
    /// What is done at the target.
    pub(crate) receive: ReceiveRequest,
    /// How ssh is called.
    pub(crate) ssh: SshOptions,
    /// Where the data goes.
    pub(crate) path: PathOptions,
    /// How this side transfers.
    pub(crate) options: TransferOptions,
    /// Between two other machines: the data goes through this one in any case.
    pub(crate) through_here: bool,
    /// A remote sender may announce names that were not requested.
    pub(crate) trusts_sender: bool,

    /// Rules by which names are left out.
    pub(crate) rules: Rules,
    /// The list of names to send, and whether they end with NUL.
    pub(crate) files_from: Option<PathBuf>,
    pub(crate) from0: bool,
    pub(crate) backup: BackupArgs,
    /// Delete what the source does not have.
    pub(crate) delete: bool,
    /// Sources keep their paths.
    pub(crate) relative: bool,
    /// `-p` was typed, for which some type the port of ssh.
    pub(crate) preserves: bool,
    pub(crate) speed: SpeedArgs,
    pub(crate) when_missing: WhenMissing,
    pub(crate) ticket: TicketArgs,
    pub(crate) tunnel: TunnelArgs,
    pub(crate) output: OutputArgs,
    /// Print rsync's numbers at the end.
    pub(crate) stats: bool,
    /// Open a picture of the transfer.
    pub(crate) web: bool,
    /// What the shell runs at the end.
    pub(crate) on_end: Option<String>,

    /// Operands that may be on another machine.
    pub(crate) places: Vec<Location>,
    /// Operands that are paths.
    pub(crate) paths: Vec<PathBuf>,
    /// Operands that are words: a ticket, a command.
    pub(crate) words: Vec<String>,
    /// The operand that is a host.
    pub(crate) host: Option<String>,
    /// Port of the ssh server of `proxy`.
    pub(crate) server_port: Option<u16>,
    /// Name of a stream.
    pub(crate) stream_name: Option<OsString>,
    /// Bytes of the transfer that is forecast or shown.
    pub(crate) size: Option<u64>,
    pub(crate) bootstrap: BootstrapArgs,
    pub(crate) clean: CleanArgs,
    pub(crate) pid: Option<u32>,
    /// The link of the demo, and whether TCP is left out.
    pub(crate) link: Option<Duplex>,
    pub(crate) no_compare: bool,
    /// Profiles that are shown.
    pub(crate) profiles: Vec<ProfileChoice>,
    pub(crate) allowed: bool,
    pub(crate) shell: Option<Shell>,
    /// The word to complete.
    pub(crate) word: OsString,
    pub(crate) remote: RemoteArgs,
}

/// What becomes of what is replaced or deleted.
#[derive(Debug, Default)]
pub(crate) struct BackupArgs {
    pub(crate) is_on: bool,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) suffix: Option<OsString>,
}

/// How fast a sender sends.
#[derive(Debug, Default)]
pub(crate) struct SpeedArgs {
    pub(crate) rate: Option<Rate>,
    pub(crate) min_rate: Option<Rate>,
    pub(crate) policy: Option<Policy>,
    pub(crate) limit: Option<Limit>,
    pub(crate) no_memory: bool,
    pub(crate) profile: Option<ProfileChoice>,
    pub(crate) set: Vec<(String, String)>,
    /// What the repair of streams may cost.
    pub(crate) max_overhead: Option<String>,
}

/// What is claimed of a path that others use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Fair,
    Low,
    Fixed,
}

/// What happens if the remote host has no downpour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WhenMissing {
    Never,
    #[default]
    Ask,
    Auto,
}

/// How two sides connect with a ticket.
#[derive(Debug, Default)]
pub(crate) struct TicketArgs {
    pub(crate) file: Option<PathBuf>,
    /// Connect, with this ticket if it was typed.
    pub(crate) to: Option<Option<String>>,
    /// Listen, at this address if one was typed.
    pub(crate) listen: Option<Option<SocketAddr>>,
    /// Serve more than one.
    pub(crate) keep: bool,
}

/// What a tunnel carries, and for how long.
#[derive(Debug)]
pub(crate) struct TunnelArgs {
    pub(crate) local: Vec<Forward>,
    pub(crate) remote: Vec<Forward>,
    pub(crate) proxy: Vec<Forward>,
    pub(crate) eager: bool,
    pub(crate) permit: Vec<Permit>,
    pub(crate) valid: Duration,
    pub(crate) background: bool,
    pub(crate) in_background: bool,
    pub(crate) persist: Option<Duration>,
    pub(crate) metrics: Option<ForwardAddress>,
    pub(crate) control: Option<TunnelControl>,
}

/// What is asked of the tunnels that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelControl {
    Check,
    Exit,
}

/// What is shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputArgs {
    pub(crate) progress: Option<ProgressMode>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    Bar,
    Line,
    None,
}

/// What `bootstrap` copies to where.
#[derive(Debug, Default)]
pub(crate) struct BootstrapArgs {
    pub(crate) to: Option<String>,
    pub(crate) from: Option<PathBuf>,
}

/// What `clean` lists.
#[derive(Debug, Default)]
pub(crate) struct CleanArgs {
    pub(crate) search_below: bool,
    pub(crate) remove: bool,
    pub(crate) older_than: Option<Duration>,
}

/// What `remote` may do.
#[derive(Debug, Default)]
pub(crate) struct RemoteArgs {
    pub(crate) only: Option<PathBuf>,
    pub(crate) read_only: bool,
    pub(crate) write_only: bool,
    pub(crate) digest: bool,
}

impl Args {
    /// Returns what a command does without any options.
    fn new(command: Command) -> Self {
        let follows = matches!(command, Command::Cp | Command::Send | Command::Verify);
        let is_exact = matches!(command, Command::Sync | Command::Verify);
        let scan =
            SourceOptions { recursive: command != Command::Cp, follow_items: follows, ..SourceOptions::default() };
        let mut receive = ReceiveRequest {
            existing: Existing::Replace,
            modes: if is_exact { Modes::Exact } else { Modes::Masked },
            differences: true,
            ..ReceiveRequest::to_target("")
        };
        // A comparison is a copy that is not carried out: what it would do is how the two sides differ.
        if command == Command::Verify {
            (receive.compare, receive.dry_run, receive.compare_trees) = (Compare::Checksum, true, true);
        }
        if command == Command::Recv {
            receive.requested.many = true;
        }
        Self {
            command,
            config: None,
            no_config: false,
            scan,
            receive,
            ssh: SshOptions::default(),
            path: PathOptions::default(),
            options: TransferOptions { confirm: command == Command::Recv, ..TransferOptions::default() },
            through_here: false,
            trusts_sender: false,
            rules: Rules::default(),
            files_from: None,
            from0: false,
            backup: BackupArgs::default(),
            delete: command == Command::Verify,
            relative: false,
            preserves: false,
            speed: SpeedArgs::default(),
            when_missing: WhenMissing::default(),
            ticket: TicketArgs::default(),
            tunnel: TunnelArgs::default(),
            output: OutputArgs::default(),
            stats: false,
            web: false,
            on_end: None,
            places: Vec::new(),
            paths: Vec::new(),
            words: Vec::new(),
            host: None,
            server_port: None,
            stream_name: None,
            size: None,
            bootstrap: BootstrapArgs::default(),
            clean: CleanArgs::default(),
            pid: None,
            link: None,
            no_compare: false,
            profiles: Vec::new(),
            allowed: false,
            shell: None,
            word: OsString::new(),
            remote: RemoteArgs::default(),
        }
    }

    /// Sets what rsync's `-a` preserves.
    fn archive(&mut self) {
        let preserve = &mut self.receive.preserve;
        (preserve.owner, preserve.group, preserve.specials) = (true, true, true);
        self.receive.modes = Modes::Exact;
    }

    /// Checks what clap does not, and puts the rules in order.
    fn checked(mut self) -> Result<Self, clap::Error> {
        if matches!(self.command, Command::Cp | Command::Sync) && self.places.len() < 2 {
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, "where to? write SRC... DST\n"));
        }
        self.rules.put_in_order();
        Ok(self)
    }

    /// Returns the options of a command that takes rules.
    pub(crate) fn has_rules(&self) -> bool {
        flags::of(self.command).any(|flag| is_rule(flag.name))
    }

    /// Whether stdin was named as a list, so that it cannot be read again.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.rules.from_pipe || self.files_from.as_deref() == Some(Path::new("-"))
    }

    /// Returns the sources and the target of a copy or a comparison.
    pub(crate) fn sources_and_target(&self) -> Option<(&[Location], &Location)> {
        self.places.split_last().map(|(target, sources)| (sources, target))
    }

    /// The machine that it reaches through ssh, as it was typed: `[user@]host`.
    pub(crate) fn reached(&self) -> Option<&str> {
        self.host.as_deref().or_else(|| {
            self.places.iter().find_map(|location| match location {
                Location::Remote { host, .. } => Some(host.as_str()),
                Location::Local(_) => None,
            })
        })
    }
}

impl Default for TunnelArgs {
    fn default() -> Self {
        Self {
            local: Vec::new(),
            remote: Vec::new(),
            proxy: Vec::new(),
            eager: false,
            permit: Vec::new(),
            valid: VALID,
            background: false,
            in_background: false,
            persist: None,
            metrics: None,
            control: None,
        }
    }
}

impl BackupArgs {
    /// Returns what was chosen.
    ///
    /// # Errors
    /// A directory outside of the target, or a suffix that cannot be one.
    pub(crate) fn choice(&self) -> Result<Option<Backup>, Failure> {
        use std::fmt::Display;
        use std::os::unix::ffi::OsStrExt as _;
        let wrong = |what: &dyn Display| Failure::new(Code::Usage, what.to_string());
        let (directory, suffix) = (self.directory.as_deref(), self.suffix.as_deref());
        if !self.is_on && directory.is_none() {
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
