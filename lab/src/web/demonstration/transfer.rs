//! A system that carries the picture, as it is watched.

use std::time::Duration;

use netsim::Duplex;
use sim::{DeliveredBy, ObservedTransfer, OpenBlock, ReceivedRange, TransferPair, WatchedState};

/// How the receiver came by a byte; the numbers are those of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Sent once.
    First = 0,
    /// Sent again.
    Again = 1,
    /// Rebuilt by decoding.
    Repaired = 2,
    /// Nobody tells: the kernel's TCP hands over bytes in order, and no more.
    Unknown = 3,
}

impl Kind {
    /// How many there are.
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

/// What has happened since the last look, and the state now.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// Bytes that the receiver has got: the first one's place, how it came by them, and they themselves.
    pub(super) pieces: Vec<(u64, Kind, Vec<u8>)>,
    pub(super) open: Vec<OpenBlock>,
    pub(super) state: WatchedState,
    /// Whether the receiver has everything, or a side has given up.
    pub(super) is_over: bool,
}

impl Look {
    /// Looks at hosts with the engine.
    pub(super) fn at<E: TransferPair>(watched: &mut ObservedTransfer<E>) -> Self {
        let (pieces, open) = watched.look();
        let piece = |ReceivedRange { offset, bytes, came }| (offset, Kind::from(came), bytes);
        let pieces = pieces.into_iter().map(piece).collect();
        Self { pieces, open, state: watched.state(), is_over: watched.is_over() }
    }
}

/// A transfer of the picture.
pub(super) trait Transfer {
    /// Lets it run until so long after the start. One in real time runs by itself.
    ///
    /// # Errors
    /// An engine that does not let time pass.
    fn run_until(&mut self, now: Duration) -> Result<(), String>;

    /// Changes its link for packets sent from now on.
    ///
    /// # Errors
    /// A link that makes no sense.
    fn set_link(&mut self, link: &Duplex) -> Result<(), String>;

    /// Returns what the receiver has got since the last call, and the state.
    fn look(&mut self) -> Look;
}

impl Transfer for ObservedTransfer {
    fn run_until(&mut self, now: Duration) -> Result<(), String> {
        Self::run_until(self, now).map_err(|error| error.to_string())
    }

    fn set_link(&mut self, link: &Duplex) -> Result<(), String> {
        Self::set_link(self, link).map_err(|error| error.to_string())
    }

    fn look(&mut self) -> Look {
        Look::at(self)
    }
}
