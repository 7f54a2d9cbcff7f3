//! What the user is told of the connections that a tunnel carries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::grammar::{Forward, ForwardAddress};

/// What happens to a connection: it is wanted, perhaps open, and then refused or over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// A program wants one, to this place. Its first bytes are on their way.
    OpenRequested {
        /// The place, in the grammar of the forwards.
        to: String,
        /// The program is at the other end.
        is_from_there: bool,
    },
    /// The place takes it.
    Open {
        /// The time since it was wanted.
        after: Duration,
    },
    /// There is none.
    Refused {
        /// The reason, in the words of the end that tried.
        why: String,
    },
    /// It is over.
    Closed {
        /// Bytes that went to the other end.
        sent: u64,
        /// Bytes that came from there.
        received: u64,
        /// The time since it was wanted.
        after: Duration,
        /// It broke off: one of its ends is gone, or the tunnel.
        is_cut: bool,
    },
}

/// An event of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelEvent {
    /// A line for the user.
    Note(String),
    /// This one of the local forwards listens; at this port, where the system has chosen it.
    Listening(Forward, Option<u16>),
    /// This one of the remote forwards listens over there.
    ListeningThere(Forward),
    /// The figures are here; at this port, where the system has chosen it.
    Metrics(ForwardAddress, Option<u16>),
    /// The tunnel is open.
    Open,
    /// Something happens to the connection of this number.
    Connection(u64, ConnectionEvent),
}

/// Something for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A line.
    Line(String),
    /// What happens to the connection of this number.
    Connection(u64, ConnectionEvent),
}

/// Takes notes.
#[derive(Clone)]
pub(crate) struct Notes(pub(crate) Arc<dyn Fn(Note) + Send + Sync>);

impl Notes {
    pub(crate) fn line(&self, line: impl Into<String>) {
        (self.0)(Note::Line(line.into()));
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Notes")
    }
}
