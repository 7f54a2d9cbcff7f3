//! The inputs and outputs of a session.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use net::{Event, Rate};

use super::headway::Patience;
use super::options::TransferOptions;
use super::trace::Trace;
use crate::error::Error;
use crate::files::{FailReason, Failed};
use crate::messages::Message;
use crate::ticket::Role;

/// Maximum number of names listed as failed.
const MAX_FAILED: usize = 1000;

/// Called when a session has heard from its peer again.
pub(super) type Lives = Box<dyn FnOnce() + Send>;

/// An input of a session's thread.
pub(super) enum Input {
    /// What the side handles, unless it is a network event that concerns the session.
    Step(Step),
    /// Another peer wants the place of this one, which may have been killed.
    Rival(Lives),
    /// The session ends: the user stops it, the peer's program has ended without a goodbye, or a thread that works for the
    /// session has failed.
    End(Error),
}

impl Input {
    /// Whether this input ends the session.
    pub(super) const fn is_end(&self) -> bool {
        matches!(self, Self::End(_) | Self::Step(Step::Network(Event::Failed(_) | Event::Closed(_))))
    }
}

/// What one side handles next.
#[derive(Debug)]
pub(super) enum Step {
    /// The next message of the peer.
    Message(Message),
    /// A network event.
    Network(Event),
    /// A thread of the sender has a batch or chunks of a file ready, or its scan has ended.
    Ready,
    /// Files that have their final names, every byte of them verified: path and length.
    Verified(Vec<(Vec<u8>, u64)>),
    /// Number of requests to settle files that were processed.
    Settled(usize),
    /// The user accepts the offer.
    Accept,
    /// The user declines the offer.
    Refuse,
    /// The user caps the rate.
    Limit(Option<Rate>),
    /// Counters were updated: time to report progress.
    Tick,
}

/// How the connection of a session was established.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// We connected, trying these addresses for this long.
    Connected { addresses: Vec<SocketAddr>, timeout: Duration },
    /// The peer connected to us.
    Accepted,
}

/// How the peer is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acquaintance {
    /// By a ticket that was passed on. One that connected to this side may make no progress for this long.
    Ticket(Patience),
    /// It is this user's own process, which a login has started; running the same command again finds it.
    Login,
}

/// Constants of a session.
#[derive(Clone, Debug)]
pub(super) struct SessionConfig {
    pub(super) role: Role,
    pub(super) origin: Origin,
    pub(super) options: TransferOptions,
    pub(super) trace: Option<Trace>,
    pub(super) acquaintance: Acquaintance,
}

impl SessionConfig {
    /// Returns the rate at which this side's user wants the files sent.
    pub(super) fn fixed_rate(&self) -> Option<Rate> {
        self.options.engine.profile.fixed_rate()
    }
}

/// Progress of one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Bytes transferred.
    pub(super) bytes_done: u64,
    /// Bytes that were present before.
    pub(super) bytes_present: u64,
    pub(super) bytes_known: u64,
    pub(super) total_is_final: bool,
    /// Bytes that have arrived in blocks which are not done.
    pub(super) bytes_underway: u64,
    pub(super) files_done: u64,
    pub(super) files_known: u64,
    /// The file that is being read or written.
    pub(super) current: Option<Vec<u8>>,
}

/// Results of a side at the end.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) into: Option<PathBuf>,
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) symlinks: u64,
    pub(super) bytes: u64,
    /// Bytes that were present before.
    pub(super) present: u64,
    /// Bytes among them that an earlier run has left and that were not checked.
    pub(super) unchecked: u64,
    /// Bytes that an earlier run has left and that had changed (receiver only).
    pub(super) altered: Option<u64>,
    /// Links that were left out as requested.
    pub(super) links_left_out: u64,
    /// Files considered unchanged because size and modification time match.
    pub(super) unchanged: u64,
    /// Files of the target that were left alone.
    pub(super) kept: u64,
    /// Names of the target that were deleted.
    pub(super) deleted: u64,
    /// Names that were removed from the source.
    pub(super) removed: u64,
    /// Links among the sources that were followed (sender only).
    pub(super) links_followed: u64,
    /// The first [`MAX_FAILED`] names that failed, with the reason.
    pub(super) failed: Vec<Failed>,
    pub(super) failed_count: u64,
    /// Those among them that vanished at the sender.
    pub(super) vanished_count: u64,
}

impl Totals {
    /// Counts a name that was not transferred, and lists it while there is room.
    pub(super) fn fail(&mut self, path: &[u8], reason: FailReason) {
        self.failed_count += 1;
        self.vanished_count += u64::from(reason.has_vanished());
        if self.failed.len() < MAX_FAILED {
            self.failed.push(Failed { path: path.to_vec(), reason });
        }
    }
}
