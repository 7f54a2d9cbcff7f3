//! The command line: a table of commands, a table of options, and the parsed arguments.

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

/// The default link of the demo: 100 Mbit/s, RTT 100 ms, 5 % loss in each direction.
pub(crate) const DEMO_LINK: &str = "rate=100M,delay=50ms,loss=5%,queue=256KB";

/// The default lifetime of a tunnel's ticket.
const VALID: Duration = Duration::from_secs(3600);

/// The parsed arguments. The entries of the table set the options of the library directly; the other fields are options of
/// this program alone.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) command: Command,
    pub(crate) config: Option<PathBuf>,
    pub(crate) no_config: bool,

    /// What the sender reads of the sources.
    pub(crate) scan: SourceOptions,
    /// What the receiver does at the destination.
    pub(crate) receive: ReceiveRequest,
    /// How to call ssh.
    pub(crate) ssh: SshOptions,
    /// How the data is carried.
    pub(crate) path: PathOptions,
    /// Options of the transfer on this side.
    pub(crate) options: TransferOptions,
    /// Relay the data between two remote hosts through this one.
    pub(crate) relay_locally: bool,
    /// Accept names that a remote sender announces without a request.
    pub(crate) trusts_sender: bool,

    /// Rules by which names are skipped.
    pub(crate) rules: Rules,
    /// The list of names to send, and whether NUL separates them.
    pub(crate) files_from: Option<PathBuf>,
    pub(crate) nul_separated: bool,
    pub(crate) backup: BackupArgs,
    /// Delete names that the source does not have.
    pub(crate) delete: bool,
    /// Sources keep their paths.
    pub(crate) relative: bool,
    /// `-p` was given; some users mean the port of ssh by it.
    pub(crate) preserves_modes: bool,
    pub(crate) speed: SpeedArgs,
    pub(crate) when_missing: WhenMissing,
    pub(crate) ticket: TicketArgs,
    pub(crate) tunnel: TunnelArgs,
    pub(crate) output: OutputArgs,
    /// Print rsync's numbers at the end.
    pub(crate) stats: bool,
    /// Show live charts of the transfer.
    pub(crate) web: bool,
    /// The shell command to run at the end.
    pub(crate) on_end: Option<String>,

    /// Operands that may be on a remote host.
    pub(crate) places: Vec<Location>,
    /// Operands that are paths.
    pub(crate) paths: Vec<PathBuf>,
    /// Operands that are words: a ticket, a command.
    pub(crate) words: Vec<String>,
    /// The host operand.
    pub(crate) host: Option<String>,
    /// Port of the ssh server of `proxy`.
    pub(crate) server_port: Option<u16>,
    /// Name of a stream.
    pub(crate) stream_name: Option<OsString>,
    /// Bytes of the transfer that the doctor forecasts or the demo runs.
    pub(crate) size: Option<u64>,
    pub(crate) bootstrap: BootstrapArgs,
    pub(crate) clean: CleanArgs,
    pub(crate) pid: Option<u32>,
    /// The link of the demo, and whether to skip the comparison with TCP.
    pub(crate) link: Option<Duplex>,
    pub(crate) no_compare: bool,
    /// Profiles to show.
    pub(crate) profiles: Vec<ProfileChoice>,
    pub(crate) allowed: bool,
    pub(crate) shell: Option<Shell>,
    /// The word to complete.
    pub(crate) word: OsString,
    pub(crate) remote: RemoteArgs,
}

/// Options of backups.
#[derive(Debug, Default)]
pub(crate) struct BackupArgs {
    pub(crate) is_on: bool,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) suffix: Option<OsString>,
}

/// Options of the sender's rate and profile.
#[derive(Debug, Default)]
pub(crate) struct SpeedArgs {
    pub(crate) rate: Option<Rate>,
    pub(crate) min_rate: Option<Rate>,
    pub(crate) policy: Option<Policy>,
    pub(crate) limit: Option<Limit>,
    pub(crate) no_path_cache: bool,
    pub(crate) profile: Option<ProfileChoice>,
    pub(crate) set: Vec<(String, String)>,
    /// Limit of the proactive repair of streams.
    pub(crate) max_overhead: Option<String>,
}

/// How to share the path with other traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Fair,
    Low,
    Fixed,
}

/// Whether to install downpour on a remote host that lacks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WhenMissing {
    Never,
    #[default]
    Ask,
    Auto,
}

/// Options of connections by ticket.
#[derive(Debug, Default)]
pub(crate) struct TicketArgs {
    pub(crate) file: Option<PathBuf>,
    /// Connect, with this ticket if one was given.
    pub(crate) to: Option<Option<String>>,
    /// Listen, at this address if one was given.
    pub(crate) listen: Option<Option<SocketAddr>>,
    /// Serve several receivers.
    pub(crate) keep: bool,
}

/// Options of tunnels.
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

/// A request to running tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelControl {
    Check,
    Exit,
}

/// Options of the output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputArgs {
    pub(crate) progress: Option<ProgressMode>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

/// How to show progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    Bar,
    Line,
    None,
}

/// Options of `bootstrap`.
#[derive(Debug, Default)]
pub(crate) struct BootstrapArgs {
    pub(crate) to: Option<String>,
    pub(crate) from: Option<PathBuf>,
}

/// Options of `clean`.
#[derive(Debug, Default)]
pub(crate) struct CleanArgs {
    pub(crate) search_below: bool,
    pub(crate) remove: bool,
    pub(crate) older_than: Option<Duration>,
}

/// Options of `remote`.
#[derive(Debug, Default)]
pub(crate) struct RemoteArgs {
    pub(crate) only: Option<PathBuf>,
    pub(crate) read_only: bool,
    pub(crate) write_only: bool,
    pub(crate) digest: bool,
}

impl Args {
    /// Returns the defaults of a command.
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
        // A comparison is a dry run of a copy: the planned changes are the differences.
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
            options: TransferOptions::default().confirm(command == Command::Recv),
            relay_locally: false,
            trusts_sender: false,
            rules: Rules::default(),
            files_from: None,
            nul_separated: false,
            backup: BackupArgs::default(),
            delete: command == Command::Verify,
            relative: false,
            preserves_modes: false,
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

    /// Sets the attributes that rsync's `-a` preserves.
    fn archive(&mut self) {
        let preserve = &mut self.receive.preserve;
        (preserve.owner, preserve.group, preserve.specials) = (true, true, true);
        self.receive.modes = Modes::Exact;
    }

    /// Makes the checks that clap does not make, and orders the rules.
    fn checked(mut self) -> Result<Self, clap::Error> {
        if matches!(self.command, Command::Cp | Command::Sync) && self.places.len() < 2 {
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, "no destination: write SRC... DST\n"));
        }
        self.rules.put_in_order();
        Ok(self)
    }

    /// Returns whether the command takes rules.
    pub(crate) fn has_rules(&self) -> bool {
        flags::of(self.command).any(|flag| is_rule(flag.name))
    }

    /// Returns whether a list is read from stdin, which cannot be read again.
    pub(crate) fn reads_stdin(&self) -> bool {
        self.rules.from_pipe || self.files_from.as_deref() == Some(Path::new("-"))
    }

    /// Returns the sources and the destination of a copy or a comparison.
    pub(crate) fn sources_and_target(&self) -> Option<(&[Location], &Location)> {
        self.places.split_last().map(|(target, sources)| (sources, target))
    }

    /// Returns the host that the command reaches through ssh, as typed: `[user@]host`.
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
    /// Returns the chosen backup.
    ///
    /// # Errors
    /// A directory outside of the destination, or an invalid suffix.
    pub(crate) fn choice(&self) -> Result<Option<Backup>, Failure> {
        use std::fmt::Display;
        use std::os::unix::ffi::OsStrExt as _;
        let wrong = |message: &dyn Display| Failure::new(Code::Usage, message.to_string());
        let (directory, suffix) = (self.directory.as_deref(), self.suffix.as_deref());
        if !self.is_on && directory.is_none() {
            let alone = suffix.map(|_| wrong(&"--suffix is for backups: use it with --backup or --backup-dir"));
            return alone.map_or(Ok(None), Err);
        }
        let directory = directory.map(|directory| directory.as_os_str().as_bytes());
        if let Some(directory) = directory.filter(|directory| directory.starts_with(b"~")) {
            let shown = String::from_utf8_lossy(directory);
            let why = "must be a path relative to the destination, where ~ is not expanded";
            return Err(wrong(&format_args!(
                "--backup-dir {shown}: {why}; write ./{shown} for a directory of that name"
            )));
        }
        Backup::new(directory, suffix.map(OsStr::as_bytes)).map(Some).map_err(|error| wrong(&error))
    }
}
