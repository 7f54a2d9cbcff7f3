//! The command line. Its meaning is defined in [`crate::options`].

mod brief;
mod copying;
mod demo;
mod foreign;
mod groups;
mod offering;
mod other;
mod paths;
mod rules;
#[cfg(test)]
mod tests;
mod values;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use downpour::Family;
use downpour::remote::{Location, SshOptions};

use crate::{exit, options, version};
pub(crate) use brief::{command_at, help};
pub(crate) use copying::{CopyArgs, CpArgs, SyncArgs, VerifyArgs};
#[cfg(test)]
pub(crate) use demo::DEMO_LINK;
pub(crate) use demo::DemoArgs;
pub(crate) use foreign::{answer, translate};
pub(crate) use groups::{
    ConnectionArgs, HowShown, Links, MemoryArgs, NetworkArgs, OutputArgs, Policy, PreserveToo, ProfileArgs, ReachArgs,
    SelectionArgs, SpeedArgs, SshArgs, TraceArgs, Via, WhenExisting, WhenMissing,
};
pub(crate) use offering::{RecvArgs, SendArgs};
pub(crate) use other::{
    BootstrapArgs, CleanArgs, CompleteArgs, CompletionsArgs, Control, DoctorArgs, ManArgs, PipeArgs, ProfileCommand,
    ProxyArgs, RemoteArgs, StatusArgs, TunnelArgs,
};
pub(crate) use paths::PathArgs;
pub(crate) use rules::{Rules, is_rule};
pub(crate) use values::ProfileChoice;

/// Transfer files fast, encrypted and verified, over networks that lose packets
///
/// Data goes over UDP, with erasure codes that repair losses before they are noticed, and is verified end to end.
#[derive(Debug, Parser)]
#[command(name = "downpour", version, long_version = version::long(), after_long_help = exit::HELP)]
#[command(
    after_help = "`downpour --help` explains options of all commands, exit codes, rates, patterns and the configuration."
)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// Configuration file, or `none` [default: ~/.config/downpour/config.toml]
    #[arg(
        long,
        value_name = "FILE",
        global = true,
        help_heading = "What is shown",
        display_order = 1000,
        hide_short_help = true,
        value_parser = values::path()
    )]
    pub(crate) config: Option<PathBuf>,
    /// Ignore the configuration file
    #[arg(
        long,
        global = true,
        conflicts_with = "config",
        help_heading = "What is shown",
        display_order = 1001,
        hide_short_help = true
    )]
    pub(crate) no_config: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy files and folders to or from a host that ssh can reach
    ///
    /// Like scp, it starts the remote side through your ssh. The data goes over UDP, or over ssh if UDP is blocked. An
    /// interrupted copy resumes when the same command runs again. Without a host it copies locally, and with two from one
    /// to the other.
    ///
    /// A source that is a symbolic link is followed: what it points to arrives under the name of the link. Links within
    /// folders are copied as links. --links sets the same for both.
    #[command(after_help = CP_EXAMPLES, override_usage = "downpour cp [OPTIONS] SRC... DST", args_override_self = true)]
    Cp(Box<CpArgs>),
    /// Make a folder like another: cp -r -p; --delete removes the rest
    ///
    /// Files with matching size and mtime are skipped.
    #[command(after_help = SYNC_EXAMPLES, override_usage = "downpour sync [OPTIONS] SRC... DST", args_override_self = true)]
    Sync(Box<SyncArgs>),
    /// Send files and folders to the holder of a ticket
    ///
    /// Prints a ticket and waits for a `downpour recv` with it. The ticket is valid for one complete transfer and for
    /// one hour. With --to, this side connects instead, with a ticket from `downpour recv --listen`.
    #[command(after_help = SEND_EXAMPLES)]
    Send(Box<SendArgs>),
    /// Receive files and folders with a ticket
    ///
    /// Asks for the ticket that `downpour send` printed, shows the offered files and the target folder, and asks for
    /// confirmation. Answers are read from stdin; at its end the offer is declined unless --yes is given. Existing
    /// files are not overwritten unless --existing says so. With --listen, this side prints a ticket and waits for a
    /// `downpour send --to`.
    #[command(after_help = RECV_EXAMPLES)]
    Recv(Box<RecvArgs>),
    /// Compare two files or folders by content, locally or remotely
    ///
    /// Changes nothing. Prints every difference; exits with 0 if there is none and 1 otherwise.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(Box<VerifyArgs>),
    /// Diagnose the path to another machine and suggest improvements
    ///
    /// Starts the remote side as `downpour cp` does. Checks whether UDP passes in both directions and at which packet
    /// size; measures round-trip time, loss, rate and disks; estimates how long transfers will take.
    Doctor(Box<DoctorArgs>),
    /// Run a remote command and pipe stdin to it
    ///
    /// Exits with the exit code of the command. If the connection breaks, the command is killed, so that it never
    /// mistakes a part of its input for the whole. If nothing reads its output any more, its next write fails, as in a
    /// shell pipeline.
    #[command(after_help = PIPE_EXAMPLES)]
    Pipe(Box<PipeArgs>),
    /// Carry TCP connections over a path that loses packets
    ///
    /// Takes connections on ports of this machine or of the remote host and carries them through one encrypted connection
    /// over UDP, as ssh does with -L, -R and -D. It begins with a login by ssh and goes on without it, through outages
    /// and changes of address, until it is interrupted.
    #[command(after_help = TUNNEL_EXAMPLES)]
    Tunnel(Box<TunnelArgs>),
    /// Carry ssh's own connection to a host, as its ProxyCommand
    ///
    /// ssh, sftp, git and rsync then reach the host over a path that loses packets as if it were clean. It begins with a
    /// login of its own by ssh; with --persist only the first one does. What goes through it is still bound by ssh's own
    /// window of about 2 MB a round trip; `downpour cp` is not.
    #[command(after_help = PROXY_EXAMPLES)]
    Proxy(Box<ProxyArgs>),
    /// Copy this program to a host that ssh can reach
    ///
    /// It goes through ssh, and takes its name there once it has run and found itself whole. The other commands offer this
    /// if the remote host has no downpour.
    #[command(after_help = BOOTSTRAP_EXAMPLES)]
    Bootstrap(Box<BootstrapArgs>),
    /// List or remove what interrupted transfers have left
    ///
    /// A transfer stages files in a folder .downpour-XXXXXXXX within its target. If it is interrupted, the same command
    /// goes on from there; if it never runs again, the folder stays. Lists those of this user in each DIR: when they
    /// were last used, the space they take, the number of incomplete files.
    #[command(after_help = CLEAN_EXAMPLES)]
    Clean(CleanArgs),
    /// Show your running transfers and how far they are
    ///
    /// Lists every cp, sync, verify, send, recv, pipe, tunnel, proxy and demo of this user on this machine, and what others
    /// have started here through ssh. A transfer prints its own progress line when it gets SIGUSR1.
    #[command(after_help = STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Send a file over an emulated lossy link on this machine
    ///
    /// Two endpoints in this process exchange UDP packets through a relay with the rate, delay and loss of --link.
    /// Shows the time of the transfer, the least possible time, and the time of CUBIC with retransmission, as in TCP,
    /// over the same link.
    Demo(Box<DemoArgs>),
    /// Show profiles and all their settings
    ///
    /// A profile determines how data is sent: code and blocks, schedule, congestion control, loss detection, feedback.
    /// --profile selects one, --set changes a setting.
    #[command(subcommand, after_help = PROFILE_EXAMPLES)]
    Profile(ProfileCommand),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Show a manual page, or write those of all commands to a directory
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArgs),
    /// Print what completes a host or a remote path, for the scripts of `downpour completions`
    #[command(hide = true)]
    Complete(CompleteArgs),
    /// The remote side of cp, sync, verify, doctor, pipe, tunnel and proxy, started through ssh
    ///
    /// Nobody needs to start it by hand. With --only, it is a command for `authorized_keys` that limits a key to one
    /// folder, whatever the other side asks for.
    #[command(hide = true, after_help = REMOTE_EXAMPLES)]
    Remote(RemoteArgs),
}

const CP_EXAMPLES: &str = "\
Examples:
  downpour cp -r results/ me@far.example:archive   copy the contents of results into archive
  downpour cp -r far.example:archive/2024 .        copy the folder 2024 to the current folder
  downpour cp --limit '08:00,200M 19:00,off' huge.tar far:   with a limit by day
  downpour cp -r far.example:data other.example:   from host to host
  downpour cp -rn --exclude '*.tmp' results far:   show what would be copied";

const SYNC_EXAMPLES: &str = "\
Examples:
  downpour sync results/ far.example:results/            copy new and changed files
  downpour sync --delete -n results/ far.example:results/   show what would be deleted";

const SEND_EXAMPLES: &str = "\
Examples:
  downpour send photos/ notes.txt
  downpour send --rate 100M photos/        at a fixed rate, whatever the loss
  tar c photos | downpour send - --name photos.tar   to `downpour recv`, or to `downpour recv - | tar x`
  downpour send photos/ --to --ticket-file t   to a `downpour recv --listen --ticket-file t`";

const RECV_EXAMPLES: &str = "\
Examples:
  downpour recv --into ~/incoming
  downpour recv - --ticket-file t | tar x
  downpour recv -y --listen :4000 --ticket-file t";

const VERIFY_EXAMPLES: &str = "\
Example:
  downpour verify results/ far.example:archive/results/";

const PIPE_EXAMPLES: &str = "\
Examples:
  tar c results | downpour pipe far.example tar x -C archive
  downpour pipe --set streams=window far.example ./console    low delay in spite of losses";

const TUNNEL_EXAMPLES: &str = "\
Examples:
  downpour tunnel -L 8080:localhost:80 far.example     http://localhost:8080/ is far.example's port 80
  downpour tunnel -D 1080 far.example                  a SOCKS proxy for browsers, curl -x socks5h://localhost:1080
  downpour tunnel -R 2222:localhost:22 far.example     port 2222 of far.example is this machine's ssh";

const PROXY_EXAMPLES: &str = "\
Examples:
  ssh -o ProxyCommand='downpour proxy --persist 10m %r@%n %p' far.example
  In ~/.ssh/config:
      Host far.example
          ProxyCommand downpour proxy --persist 10m %r@%n %p";

const BOOTSTRAP_EXAMPLES: &str = "\
Examples:
  downpour bootstrap far.example
  downpour bootstrap --to /opt/bin/downpour root@far.example
  downpour bootstrap --from ./downpour-aarch64 pi.example";

const CLEAN_EXAMPLES: &str = "\
Examples:
  downpour clean incoming
  downpour clean -r --older-than 30d --remove ~";

const STATUS_EXAMPLES: &str = "\
Examples:
  downpour status
  downpour status --json 4711
  kill -USR1 4711        has the transfer itself print how far it is";

const PROFILE_EXAMPLES: &str = "\
Examples:
  downpour profile show arq > mine.toml      save a profile, for --profile ./mine.toml
  downpour profile diff auto ./mine.toml
  downpour cp --set congestion.beta=0.5 huge.tar far:";

const REMOTE_EXAMPLES: &str = "\
Examples, each one line of ~/.ssh/authorized_keys:
  command=\"downpour remote --only /srv/in --write-only\",restrict ssh-ed25519 AAAA... uploads
  command=\"downpour remote --only /srv/out --read-only\",restrict ssh-ed25519 AAAA... downloads";

const MAN_EXAMPLES: &str = "\
Examples:
  downpour man cp
  downpour man --write ~/.local/share/man/man1";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  downpour completions bash > ~/.local/share/bash-completion/completions/downpour
  downpour completions zsh  > \"${fpath[1]}/_downpour\"
  downpour completions fish > ~/.config/fish/completions/downpour.fish";

/// A login that may find no downpour.
pub(crate) struct Login<'a> {
    pub(crate) args: &'a SshArgs,
    pub(crate) ssh: SshOptions,
    pub(crate) family: Family,
    /// There may be somebody to ask.
    pub(crate) may_ask: bool,
}

impl Command {
    /// What it shows.
    pub(crate) fn shown(&self) -> OutputArgs {
        match self {
            Self::Cp(args) => args.shared.output,
            Self::Sync(args) => args.shared.output,
            Self::Send(args) => args.output,
            Self::Recv(args) => args.output,
            Self::Verify(args) => args.output,
            Self::Doctor(args) => args.output,
            Self::Pipe(args) => args.reach.shown(),
            Self::Tunnel(args) => OutputArgs { json: args.json, ..args.reach.shown() },
            Self::Proxy(args) => args.reach.shown(),
            Self::Bootstrap(args) => OutputArgs { quiet: args.quiet, ..OutputArgs::default() },
            Self::Clean(args) => OutputArgs { json: args.json, ..OutputArgs::default() },
            Self::Status(args) => OutputArgs { json: args.json, ..OutputArgs::default() },
            Self::Demo(args) => args.output,
            Self::Profile(_) | Self::Completions(_) | Self::Man(_) | Self::Complete(_) | Self::Remote(_) => {
                OutputArgs::default()
            }
        }
    }

    /// Returns the rules to which the configuration adds, if the command has any.
    pub(crate) fn rules_mut(&mut self) -> Option<&mut Rules> {
        match self {
            Self::Cp(args) => Some(&mut args.selection.rules),
            Self::Sync(args) => Some(&mut args.selection.rules),
            Self::Send(args) => Some(&mut args.selection.rules),
            Self::Verify(args) => Some(&mut args.selection.rules),
            Self::Recv(_)
            | Self::Doctor(_)
            | Self::Pipe(_)
            | Self::Tunnel(_)
            | Self::Proxy(_)
            | Self::Bootstrap(_)
            | Self::Clean(_)
            | Self::Status(_)
            | Self::Demo(_)
            | Self::Profile(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Complete(_)
            | Self::Remote(_) => None,
        }
    }

    /// Returns what may be done if the other side lacks downpour: how ssh is called, the IP versions that may be used, and
    /// whether there may be somebody to ask. `None` if the command could not run again.
    pub(crate) fn login(&self) -> Option<Login<'_>> {
        let of =
            |args, network, may_ask| Login { args, ssh: options::ssh(args), family: options::family(network), may_ask };
        // The names or rules have been read by then.
        let is_read = |selection: &SelectionArgs| {
            selection.rules.from_pipe || selection.files_from.as_deref() == Some(Path::new("-"))
        };
        Some(match self {
            Self::Cp(args) if !is_read(&args.selection) => {
                of(&args.shared.ssh, &args.shared.connection.network, !args.shared.output.json)
            }
            Self::Sync(args) if !is_read(&args.selection) => {
                of(&args.shared.ssh, &args.shared.connection.network, !args.shared.output.json)
            }
            Self::Verify(args) if !is_read(&args.selection) => {
                of(&args.ssh, &args.connection.network, !args.output.json)
            }
            Self::Doctor(args) => of(&args.ssh, &args.network, !args.output.json),
            Self::Tunnel(args) => of(&args.reach.ssh, &args.reach.network, !args.json && !args.in_background),
            // Their stdin is data.
            Self::Pipe(args) => of(&args.reach.ssh, &args.reach.network, false),
            Self::Proxy(args) => {
                let ssh = options::direct_ssh(&args.reach.ssh, args.server_port);
                Login { ssh, ..of(&args.reach.ssh, &args.reach.network, false) }
            }
            _ => return None,
        })
    }

    /// The machine that it reaches through ssh, as it was typed: `[user@]host`.
    pub(crate) fn host(&self) -> Option<&str> {
        let locations: Vec<&Location> = match self {
            Self::Cp(args) => args.paths.all().collect(),
            Self::Sync(args) => args.paths.all().collect(),
            Self::Verify(args) => vec![&args.a, &args.b],
            Self::Doctor(args) => return Some(&args.host),
            Self::Pipe(args) => return Some(&args.host),
            Self::Tunnel(args) => return args.host.as_deref(),
            Self::Proxy(args) => return Some(&args.host),
            Self::Bootstrap(args) => return Some(&args.host),
            Self::Send(_)
            | Self::Recv(_)
            | Self::Clean(_)
            | Self::Status(_)
            | Self::Demo(_)
            | Self::Profile(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Complete(_)
            | Self::Remote(_) => {
                return None;
            }
        };
        locations.into_iter().find_map(|location| match location {
            Location::Remote { host, .. } => Some(host.as_str()),
            Location::Local(_) => None,
        })
    }
}
