//! A system that carries the picture, as seen by viewers.

use std::time::Duration;

use netsim::Duplex;
use sim::{DeliveredBy, ObservedTransfer, OpenBlock, ReceivedRange, TransferPair, WatchedState};

/// The kind of delivery of a byte; the page uses these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// First transmission.
    First = 0,
    /// Retransmission.
    Again = 1,
    /// Rebuilt by decoding.
    Repaired = 2,
    /// Unknown: the kernel's TCP delivers bytes in order without this information.
    Unknown = 3,
}

impl Kind {
    /// The number of kinds.
    pub(super) const COUNT: usize = 4;
}

impl From<DeliveredBy> for Kind {
    fn from(came: DeliveredBy) -> Self {
        match came {
            DeliveredBy::Source => Self::First,
            DeliveredBy::Retransmission => Self::Again,
            DeliveredBy::Decoding => Self::Repaired,
        }
    }
}

/// The changes since the last call, and the present state.
#[derive(Debug, Default)]
pub(super) struct TransferProgress {
    /// Bytes received: their offset, their kind, and their values.
    pub(super) pieces: Vec<(u64, Kind, Vec<u8>)>,
    pub(super) open: Vec<OpenBlock>,
    pub(super) state: WatchedState,
    /// Whether the receiver has all bytes, or a host has given up.
    pub(super) is_over: bool,
}

impl TransferProgress {
    /// Returns the state of hosts with the engine.
    pub(super) fn at<E: TransferPair>(watched: &mut ObservedTransfer<E>) -> Self {
        let (pieces, open) = watched.look();
        let piece = |ReceivedRange { offset, bytes, came }| (offset, Kind::from(came), bytes);
        let pieces = pieces.into_iter().map(piece).collect();
        Self { pieces, open, state: watched.state(), is_over: watched.is_over() }
    }
}

/// A transfer of the picture.
pub(super) trait Transfer {
    /// Runs it until this time after the start. A transfer in real time runs by itself.
    ///
    /// # Errors
    /// An engine that does not advance time.
    fn run_until(&mut self, now: Duration) -> Result<(), String>;

    /// Changes its link for packets sent from now on.
    ///
    /// # Errors
    /// An invalid link.
    fn set_link(&mut self, link: &Duplex) -> Result<(), String>;

    /// Returns the bytes received since the last call, and the state.
    fn take_progress(&mut self) -> TransferProgress;
}

impl Transfer for ObservedTransfer {
    fn run_until(&mut self, now: Duration) -> Result<(), String> {
        Self::run_until(self, now).map_err(|error| error.to_string())
    }

    fn set_link(&mut self, link: &Duplex) -> Result<(), String> {
        Self::set_link(self, link).map_err(|error| error.to_string())
    }

    fn take_progress(&mut self) -> TransferProgress {
        TransferProgress::at(self)
    }
}
