//! `send` and `recv`: two machines that find each other by a ticket.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::groups::{OutputArgs, SelectionArgs, SpeedArgs, TicketArgs, TraceArgs};
use super::values;

/// `downpour send`.
#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    /// Files and folders to send
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Connect to a `downpour recv --listen`; asks for its ticket
    ///
    /// The ticket comes from --ticket-file, from DOWNPOUR_TICKET, or from the prompt. --to=TICKET works too, but everybody on this
    /// machine can read the arguments of a program while it runs.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "TICKET", conflicts_with_all = ["listen", "keep"])]
    #[arg(help_heading = "The other side")]
    pub(crate) to: Option<Option<String>>,
    /// Where to wait for the receiver [default: a free port of every address]
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::listen_address, help_heading = "The other side")]
    pub(crate) listen: Option<SocketAddr>,
    /// Keep the ticket good for more than one fetch, until Ctrl-C or the end of its hour
    #[arg(long, help_heading = "The other side")]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) ticket: TicketArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// `downpour recv`.
#[derive(Args, Debug)]
pub(crate) struct RecvArgs {
    /// The ticket; better given at the prompt, by --ticket-file or by DOWNPOUR_TICKET
    ///
    /// Everybody on this machine can read the arguments of a program while it runs.
    #[arg(value_name = "TICKET", conflicts_with = "listen")]
    pub(crate) given: Option<String>,
    /// The folder that what comes is put into
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "At the target")]
    pub(crate) into: PathBuf,
    /// Take what comes without asking
    #[arg(short, long, help_heading = "At the target")]
    pub(crate) yes: bool,
    /// What becomes of files that exist already
    #[arg(long, value_enum, value_name = "WHAT", default_value = "refuse", help_heading = "At the target")]
    pub(crate) existing: WhenExisting,
    /// Compare by content what has the same size, instead of by time; for senders with --checksums, who tell it
    #[arg(long, help_heading = "At the target")]
    pub(crate) checksum: bool,
    /// Wait for a `downpour send --to` and print the ticket it asks for
    #[arg(long, num_args = 0..=1, value_name = "ADDR:PORT", value_parser = values::listen_address)]
    #[arg(help_heading = "The other side")]
    pub(crate) listen: Option<Option<SocketAddr>>,
    #[command(flatten)]
    pub(crate) ticket: TicketArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}

/// What becomes of a file that exists at the target and is not the one that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenExisting {
    /// The new one takes its place when it is complete
    Replace,
    /// It stays, the others come
    Skip,
    /// Nothing comes
    Refuse,
}
