//! Constants of a session.

use std::net::SocketAddr;
use std::time::Duration;

use net::Rate;

use crate::ticket::Role;
use crate::transfer::options::TransferOptions;
use crate::transfer::peer_progress::ProgressTimeouts;
use crate::transfer::trace::Trace;

/// How the connection of a session was established.
#[derive(Clone, Debug)]
pub(in crate::transfer) enum Origin {
    /// This side connected, trying these addresses for this long.
    Connected { addresses: Vec<SocketAddr>, timeout: Duration },
    /// The peer connected to this side.
    Accepted,
}

/// How the peer is known.
#[derive(Clone, Copy, Debug)]
pub(in crate::transfer) enum Acquaintance {
    /// By a ticket. A peer that connected to this side may make no progress for this long.
    Ticket(ProgressTimeouts),
    /// It is this user's own process, which a login has started; running the same command again finds it.
    Login,
}

/// Constants of a session.
#[derive(Clone, Debug)]
pub(in crate::transfer) struct SessionConfig {
    pub(in crate::transfer) role: Role,
    pub(in crate::transfer) origin: Origin,
    pub(in crate::transfer) options: TransferOptions,
    pub(in crate::transfer) trace: Option<Trace>,
    pub(in crate::transfer) acquaintance: Acquaintance,
}

impl SessionConfig {
    /// Returns whether this side sends the files.
    pub(super) fn sends(&self) -> bool {
        self.role == Role::Sender
    }

    /// Returns whether this side connected to the peer.
    pub(super) const fn has_connected(&self) -> bool {
        matches!(self.origin, Origin::Connected { .. })
    }

    /// Returns whether the peer was found by a ticket.
    pub(in crate::transfer) const fn by_ticket(&self) -> bool {
        matches!(self.acquaintance, Acquaintance::Ticket(_))
    }

    /// Returns how long the peer may make no progress; `None` for one that this side has chosen.
    pub(super) const fn patience(&self) -> Option<ProgressTimeouts> {
        match (&self.origin, self.acquaintance) {
            (Origin::Accepted, Acquaintance::Ticket(patience)) => Some(patience),
            (Origin::Connected { .. }, _) | (_, Acquaintance::Login) => None,
        }
    }

    /// Returns the fixed rate of the local user for the files.
    pub(super) fn fixed_rate(&self) -> Option<Rate> {
        self.options.engine.profile.fixed_rate()
    }
}
