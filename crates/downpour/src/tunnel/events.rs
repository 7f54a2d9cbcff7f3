//! The events that report the connections of a tunnel to the user.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::grammar::{Forward, ForwardAddress};

/// An event of a connection: it is requested, perhaps open, and then refused or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// A program requests a connection to this address. Its first bytes are in flight.
    OpenRequested {
        /// The address, in the grammar of the forwards.
        to: String,
        /// Whether the program is on the remote host.
        is_from_remote: bool,
    },
    /// The connection is open.
    Open {
        /// The time since the request.
        after: Duration,
    },
    /// The connection was refused.
    Refused {
        /// The reason, as the connecting side states it.
        why: String,
    },
    /// The connection is closed.
    Closed {
        /// Bytes sent to the remote host.
        sent: u64,
        /// Bytes received from the remote host.
        received: u64,
        /// The time since the request.
        after: Duration,
        /// Whether it was reset: one of its programs has exited, or the tunnel has ended.
        is_cut: bool,
    },
}

/// An event of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunnelEvent {
    /// A line for the user.
    Note(String),
    /// One of the local forwards listens, at this port if the system has chosen it.
    Listening(Forward, Option<u16>),
    /// One of the remote forwards listens on the remote host.
    ListeningRemotely(Forward),
    /// The metrics are served at this address, at this port if the system has chosen it.
    Metrics(ForwardAddress, Option<u16>),
    /// The tunnel is open.
    Open,
    /// An event of the connection of this number.
    Connection(u64, ConnectionEvent),
}

/// A note for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    /// A line.
    Line(String),
    /// An event of the connection of this number.
    Connection(u64, ConnectionEvent),
}

/// The receiver of notes.
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
