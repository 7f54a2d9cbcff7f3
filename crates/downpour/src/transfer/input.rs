//! The inputs and outputs of a session.

use net::{Event, Rate};

use crate::error::Error;
use crate::messages::Message;

/// Called when a session has received from its peer again.
pub(super) type OnAlive = Box<dyn FnOnce() + Send>;

/// An input of a session's thread.
pub(super) enum Input {
    /// An input of the sender or receiver, unless it is a network event that concerns the session.
    Step(SideInput),
    /// Another peer requests the place of this one, which may have been killed.
    Takeover(OnAlive),
    /// The session ends: the user stops it, the peer's program has exited without closing, or a thread of the session
    /// has failed.
    End(Error),
}

impl Input {
    /// Returns whether this input ends the session.
    pub(super) const fn is_end(&self) -> bool {
        matches!(self, Self::End(_) | Self::Step(SideInput::Network(Event::ObjectFailed(_) | Event::Closed(_))))
    }
}

/// An input of the sender or receiver.
#[derive(Debug)]
pub(super) enum SideInput {
    /// The next message of the peer.
    Message(Message),
    /// A network event.
    Network(Event),
    /// A thread of the sender has a batch or chunks of a file ready, or its scan has ended.
    Ready,
    /// Published files, every byte of them verified: path and length.
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
