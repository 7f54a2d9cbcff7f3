//! Where or when a failure came about.

use std::fmt::{self, Display as _};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::files::{ErrorKind, lossy};
use crate::ticket::Role;

/// Where or when a failure came about.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Context {
    /// At the peer, which closed the connection because of it.
    Peer {
        /// What it does.
        role: Role,
        /// It was found by a ticket, so that it has a user of its own.
        by_ticket: bool,
    },
    /// On another machine, before a transfer began there; its name for ssh, where that is known.
    Host(Option<String>),
    /// At the receiver, which keeps what has arrived.
    Kept {
        /// The staging directory.
        #[serde(with = "lossy")]
        staging: PathBuf,
        /// The peer was found by a ticket, which may be good no longer.
        by_ticket: bool,
    },
    /// In the last of several transfers by one ticket, none of which was complete in its time.
    NoneComplete {
        /// For how long the ticket was good.
        after: Duration,
    },
}

impl Context {
    /// Returns the kind of a failure of this kind in this context. Another machine's user is not this one's, and what
    /// its program lacks says nothing of what is there or was asked here.
    pub(super) const fn kind(&self, of: ErrorKind) -> ErrorKind {
        match self {
            Self::Kept { .. } | Self::NoneComplete { .. } => of,
            Self::Peer { .. } => match of {
                ErrorKind::NoSpace
                | ErrorKind::Permission
                | ErrorKind::Storage
                | ErrorKind::Integrity
                | ErrorKind::Undecodable
                | ErrorKind::WrongRole => of,
                _ => ErrorKind::Other,
            },
            Self::Host(_) => match of {
                ErrorKind::Cancelled => ErrorKind::Other,
                of => of,
            },
        }
    }

    /// Whether the failure is another machine's.
    #[must_use]
    pub const fn is_elsewhere(&self) -> bool {
        match self {
            Self::Peer { .. } | Self::Host(_) => true,
            Self::Kept { .. } | Self::NoneComplete { .. } => false,
        }
    }

    /// Returns the text of an error in this context.
    pub(super) fn around<'a>(&'a self, error: &'a Error) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            Self::Peer { role, .. } => write!(f, "the {} said: {}", noun(*role), error.seen_from_elsewhere()),
            Self::Host(Some(host)) => write!(f, "on {host}: {}", error.seen_from_elsewhere()),
            Self::Host(None) => write!(f, "on the other machine: {}", error.seen_from_elsewhere()),
            Self::Kept { staging, .. } => write!(f, "{error}; what has arrived is kept in {}", staging.display()),
            Self::NoneComplete { after } => write!(
                f,
                "the ticket's time ({} s) is over and no transfer was complete; the last one: {error}",
                after.as_secs()
            ),
        })
    }
}

impl Error {
    /// Returns the text of this side's error for another machine: its user is not that one's.
    pub(super) fn seen_from_elsewhere(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| match self {
            Self::Cancelled => f.write_str("interrupted by its user"),
            Self::Terminated => f.write_str("stopped by a signal"),
            Self::Declined => f.write_str("declined by its user"),
            Self::Stalled(time) => write!(f, "no progress for {} s", time.as_secs()),
            Self::Within { context: Context::Kept { staging, .. }, source } => {
                write!(f, "{}; what has arrived is kept in {}", source.seen_from_elsewhere(), staging.display())
            }
            other => other.fmt(f),
        })
    }
}

const fn noun(role: Role) -> &'static str {
    match role {
        Role::Sender | Role::Streams => "sender",
        Role::Receiver => "receiver",
        Role::Tunnel => "other end",
    }
}
