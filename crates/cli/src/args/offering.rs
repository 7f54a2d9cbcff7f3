//! `send` and `recv`: two machines that connect with a ticket.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::groups::{MemoryArgs, OutputArgs, SelectionArgs, SpeedArgs, TicketArgs, TraceArgs, WhenExisting};
use super::values;

/// `downpour send`.
#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    /// Files and folders to send; with a slash at the end, what is in a folder. - alone is stdin
    #[arg(required = true, value_name = "PATH", value_parser = values::path())]
    pub(crate) paths: Vec<PathBuf>,
    /// Name of the stream that `send -` reads from stdin [default: stdin]
    ///
    /// The receiver stores it under this name once it is whole, or writes it to stdout: `downpour recv -`. It is read
    /// once, by one receiver, and cannot be resumed.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<OsString>,
    /// Connect to a `downpour recv --listen`; asks for its ticket
    ///
    /// The ticket is read from --ticket-file, from DOWNPOUR_TICKET, or from the prompt. --to=TICKET works too, but
    /// other users of this machine can read the arguments of running programs.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "TICKET", conflicts_with_all = ["listen", "keep"])]
    #[arg(help_heading = "The other side")]
    pub(crate) to: Option<Option<String>>,
    /// Address to listen on [default: a free port on all addresses]
    #[arg(long, value_name = "ADDR:PORT", value_parser = values::listen_address, help_heading = "The other side")]
    pub(crate) listen: Option<SocketAddr>,
    /// Accept more than one receiver, until Ctrl-C or until the ticket expires after an hour
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
    /// The ticket; safer at the prompt, in --ticket-file or in DOWNPOUR_TICKET. - writes what comes to stdout
    ///
    /// With -, one file or the stream of a `downpour send -` is written to stdout without a question. A stream is
    /// written as it arrives: it is whole only if this command succeeds.
    ///
    /// Other users of this machine can read the arguments of running programs.
    #[arg(value_name = "TICKET", conflicts_with = "listen")]
    pub(crate) given: Vec<String>,
    /// Folder to receive into
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = "At the target", value_parser = values::directory())]
    pub(crate) into: PathBuf,
    /// Accept without asking
    #[arg(short, long, help_heading = "At the target")]
    pub(crate) yes: bool,
    /// How to handle files that already exist
    #[arg(long, value_enum, value_name = "WHAT", default_value = "refuse", help_heading = "At the target")]
    pub(crate) existing: WhenExisting,
    /// Accept at most this many bytes of files, such as 10GB
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "At the target")]
    pub(crate) quota: Option<u64>,
    /// Accept at most N files, folders and links
    #[arg(long, value_name = "N", help_heading = "At the target")]
    pub(crate) max_files: Option<u64>,
    /// Skip symbolic links that point out of the received tree
    #[arg(long, help_heading = "At the target")]
    pub(crate) safe_links: bool,
    /// Compare files of the same size by content instead of mtime; needs a sender with --checksums
    #[arg(long, help_heading = "At the target")]
    pub(crate) checksum: bool,
    /// Use what an interrupted run has left without reading and comparing it; the summary then does not say "verified"
    #[arg(long, help_heading = "At the target")]
    pub(crate) trust_staging: bool,
    /// Listen for a `downpour send --to` and print a ticket for it
    #[arg(long, num_args = 0..=1, value_name = "ADDR:PORT", value_parser = values::listen_address)]
    #[arg(help_heading = "The other side")]
    pub(crate) listen: Option<Option<SocketAddr>>,
    #[command(flatten)]
    pub(crate) ticket: TicketArgs,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) trace: TraceArgs,
}
