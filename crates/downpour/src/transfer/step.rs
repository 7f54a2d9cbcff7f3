//! What goes into a session and what comes out of it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use transport::{FlowId, Rate};

use crate::driver::{BlockDigest, LinkEvent};
use crate::error::Error;
use crate::messages::Message;
use crate::ticket::Role;

/// What a session's thread is told.
pub(super) enum Input {
    /// From the network.
    Link(LinkEvent),
    /// The scan has a batch ready, or is at its end.
    Scanned,
    /// A file stands in the staging folder, every byte of it verified.
    Verified { path: String, bytes: u64 },
    /// So many requests to settle files are dealt with.
    Settled(Result<usize, Error>),
    /// The user takes what is offered.
    Accept,
    /// The user does not want it.
    Refuse,
    /// The user stops everything.
    Cancel,
}

/// What is left of the inputs for one side to deal with.
#[derive(Debug)]
pub(super) enum Step {
    Connected,
    Message(Message),
    ControlAcknowledged,
    Announced {
        flow: FlowId,
        length: u64,
        tag: u64,
    },
    Digest(BlockDigest),
    Received {
        tag: u64,
    },
    Sent {
        tag: u64,
    },
    Scanned,
    Verified {
        path: String,
        bytes: u64,
    },
    Settled(usize),
    Accept,
    Refuse,
    /// Figures are new: time to report progress.
    Stats,
}

/// How the connection of a session came to be.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// We tried these addresses, for so long.
    Connected { addresses: Vec<SocketAddr>, timeout: Duration },
    /// The peer came to us.
    Accepted,
}

/// Fixed facts of a session.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) role: Role,
    pub(super) origin: Origin,
    pub(super) told: Option<Rate>,
    pub(super) trace: Option<PathBuf>,
}

/// How far one side is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) bytes_done: u64,
    pub(super) bytes_known: u64,
    pub(super) total_is_final: bool,
    pub(super) files_done: u64,
}

/// What a side has to show at the end.
#[derive(Debug, Default)]
pub(super) struct Yield {
    pub(super) into: Option<PathBuf>,
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) symlinks: u64,
    pub(super) bytes: u64,
    pub(super) failed: Vec<(String, String)>,
}
