//! What was typed. What it means is decided in [`crate::options`].

mod copying;
mod demo;
mod groups;
mod offering;
mod other;
mod paths;
mod rules;
#[cfg(test)]
mod tests;
mod values;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use downpour::remote::Location;

use crate::{exit, version};
pub(crate) use copying::{CopyArgs, CpArgs, SyncArgs, VerifyArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use groups::{
    ConnectionArgs, HowShown, Links, NetworkArgs, OutputArgs, ProfileArgs, ProfileChoice, SelectionArgs, SpeedArgs,
    SshArgs, TraceArgs, Via,
};
pub(crate) use offering::{RecvArgs, SendArgs, WhenExisting};
pub(crate) use other::{CompletionsArgs, DoctorArgs, ManArgs, PipeArgs, ProfileCommand};
pub(crate) use paths::PathArgs;

/// Moves files fast over networks that lose packets: encrypted, checked end to end, over UDP with erasure codes.
#[derive(Debug, Parser)]
#[command(name = "downpour", version, long_version = version::long(), after_long_help = exit::HELP)]
#[command(
    after_help = "`downpour --help` explains exit codes, rates, patterns, the configuration and the environment."
)]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// The configuration to read; `none` for none [default: ~/.config/downpour/config.toml]
    #[arg(long, value_name = "FILE", global = true, help_heading = "What is shown", display_order = 1000)]
    pub(crate) config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy files and folders to a machine that ssh reaches, or from one
    ///
    /// As scp: the other side is started through your own ssh and ends with it. The data goes over UDP, or over ssh itself where UDP is
    /// closed. What broke off goes on where it stopped when the same command runs again. Without a host it copies on this machine.
    #[command(after_help = CP_EXAMPLES, override_usage = "downpour cp [OPTIONS] SRC... DST")]
    Cp(Box<CpArgs>),
    /// Make a folder the same as another: cp -r -p, and with --delete nothing else stays
    ///
    /// Files of the same size and time are taken as unchanged and cost nothing.
    #[command(after_help = SYNC_EXAMPLES, override_usage = "downpour sync [OPTIONS] SRC... DST")]
    Sync(Box<SyncArgs>),
    /// Send files and folders to whoever has the ticket
    ///
    /// Waits for a `downpour recv` and prints the ticket that one asks for. The ticket is good for one complete fetch and for one hour.
    /// With --to it is the other way round: the ticket comes from a `downpour recv --listen`.
    #[command(after_help = SEND_EXAMPLES)]
    Send(Box<SendArgs>),
    /// Receive files and folders with a ticket
    ///
    /// Asks for the ticket that `downpour send` prints, says what is coming and where it goes, and asks whether to take it. Answers are
    /// lines of stdin, from a pipe too; where that has ended nothing is taken without --yes. What exists already is not overwritten,
    /// unless --existing says so. With --listen it is the other way round: prints a ticket and waits for a `downpour send --to`.
    #[command(after_help = RECV_EXAMPLES)]
    Recv(Box<RecvArgs>),
    /// Compare two files or folders by content, here or over there
    ///
    /// Changes nothing. Names every difference; ends with 0 if there is none and with 1 if there is one.
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(Box<VerifyArgs>),
    /// Tell what stands between this machine and another, and what to change
    ///
    /// Starts the other side as `downpour cp` does. Looks whether UDP comes through, both ways and at which packet size; measures round
    /// trip, loss, rate and disks; says how long a transfer will take.
    Doctor(Box<DoctorArgs>),
    /// Run a command on another machine with this one's stdin as its own
    ///
    /// Ends with the exit code of the command. When the connection breaks the command is killed: it never takes a part of its input for
    /// the whole.
    #[command(after_help = PIPE_EXAMPLES)]
    Pipe(Box<PipeArgs>),
    /// Send a file through a bad network made up on this machine
    ///
    /// Two endpoints in this process talk real UDP through a relay that has the rate, the delay and the loss of --link. Shows the time the
    /// transfer takes, the least it could take, and what TCP's CUBIC with retransmission does on the same network.
    Demo(Box<DemoArgs>),
    /// Look at the ways of sending that there are, and at every number in them
    ///
    /// A profile says how a sender sends: code and blocks, which symbol goes next, congestion control, loss detection, feedback. --profile
    /// picks one, --set changes one choice or number of it.
    #[command(subcommand, after_help = PROFILE_EXAMPLES)]
    Profile(ProfileCommand),
    /// Print what a shell needs to complete commands and options
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command into a folder
    Man(ManArgs),
    /// The other side of cp, sync, verify, doctor and pipe; started through ssh
    #[command(hide = true)]
    Remote,
}

const CP_EXAMPLES: &str = "\
Examples:
  downpour cp -r results/ me@far.example:archive   the contents of results, into archive
  downpour cp -r far.example:archive/2024 .        the folder 2024, to here
  downpour cp --limit '08:00,200M 19:00,off' huge.tar far:   gentle by day
  downpour cp -rn --exclude '*.tmp' results far:   what would be done";

const SYNC_EXAMPLES: &str = "\
Examples:
  downpour sync results/ far.example:results/            a second run takes what has changed
  downpour sync --delete -n results/ far.example:results/   what would be deleted";

const SEND_EXAMPLES: &str = "\
Examples:
  downpour send photos/ notes.txt
  downpour send --rate 100M photos/        exactly this fast, through any loss
  downpour send photos/ --to --ticket-file t   to a `downpour recv --listen --ticket-file t`";

const RECV_EXAMPLES: &str = "\
Examples:
  downpour recv --into ~/incoming
  downpour recv -y --listen :4000 --ticket-file t";

const VERIFY_EXAMPLES: &str = "\
Example:
  downpour verify results/ far.example:archive/results/";

const PIPE_EXAMPLES: &str = "\
Examples:
  tar c results | downpour pipe far.example tar x -C archive
  downpour pipe --set streams=window far.example ./console    soon there, whatever the path loses";

const PROFILE_EXAMPLES: &str = "\
Examples:
  downpour profile show arq > mine.toml      a file to change, for --profile ./mine.toml
  downpour profile diff auto ./mine.toml
  downpour cp --set congestion.beta=0.5 huge.tar far:";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  downpour completions bash > ~/.local/share/bash-completion/completions/downpour
  downpour completions zsh  > \"${fpath[1]}/_downpour\"
  downpour completions fish > ~/.config/fish/completions/downpour.fish";

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
            Self::Pipe(args) => OutputArgs { quiet: args.quiet, ..OutputArgs::default() },
            Self::Demo(args) => args.output,
            Self::Profile(_) | Self::Completions(_) | Self::Man(_) | Self::Remote => OutputArgs::default(),
        }
    }

    /// The machine that it reaches through ssh, as it was typed: `[user@]host`.
    pub(crate) fn host(&self) -> Option<&str> {
        let locations: Vec<&Location> = match self {
            Self::Cp(args) => args.paths.all().collect(),
            Self::Sync(args) => args.paths.all().collect(),
            Self::Verify(args) => vec![&args.a, &args.b],
            Self::Doctor(args) => return Some(&args.host),
            Self::Pipe(args) => return Some(&args.host),
            Self::Send(_)
            | Self::Recv(_)
            | Self::Demo(_)
            | Self::Profile(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Remote => {
                return None;
            }
        };
        locations.into_iter().find_map(|location| match location {
            Location::Remote { host, .. } => Some(host.as_str()),
            Location::Local(_) => None,
        })
    }
}
