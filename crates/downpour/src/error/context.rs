//! Where or when a failure occurred.

use std::fmt::{self, Display as _};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Error;
use crate::files::{ErrorKind, lossy};
use crate::ticket::Role;

/// Where or when a failure occurred.
#[derive(Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Context {
    /// At the peer, which closed the connection because of it.
    Peer {
        /// Its role.
        role: Role,
        /// It was found by a ticket, and has a user of its own.
        by_ticket: bool,
    },
    /// On a remote host, before a transfer began; its name for ssh, where known.
    Host(Option<String>),
    /// At the receiver, which keeps the partial data.
    Kept {
        /// The staging directory.
        #[serde(with = "lossy")]
        staging: PathBuf,
        /// The peer was found by a ticket, which may have expired.
        by_ticket: bool,
    },
    /// In the last of several transfers with one ticket, none of which was complete before it expired.
    NoneComplete {
        /// How long the ticket was valid.
        after: Duration,
    },
}

impl Context {
    /// Returns the kind of a failure of this kind in this context. Another host's user is not this one's, and a defect
    /// of its program does not concern this one's.
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

    /// Returns whether the failure occurred on another host.
    #[must_use]
    pub const fn is_remote(&self) -> bool {
        match self {
            Self::Peer { .. } | Self::Host(_) => true,
            Self::Kept { .. } | Self::NoneComplete { .. } => false,
        }
    }

    /// Returns the text of an error in this context.
    pub(super) fn around<'a>(&'a self, error: &'a Error) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| match self {
            Self::Peer { role, .. } => write!(f, "error from the {}: {}", noun(*role), error.for_remote_user()),
            Self::Host(Some(host)) => write!(f, "{host}: {}", error.for_remote_user()),
            Self::Host(None) => write!(f, "remote host: {}", error.for_remote_user()),
            Self::Kept { staging, .. } => write!(f, "{error}; partial data kept in {}", staging.display()),
            Self::NoneComplete { after } => {
                write!(f, "ticket expired after {} s without a complete transfer; last error: {error}", after.as_secs())
            }
        })
    }
}

impl Error {
    /// Returns the text of a local error for a remote host: its user is another one.
    pub(super) fn for_remote_user(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| match self {
            Self::Cancelled => f.write_str("interrupted by its user"),
            Self::Terminated => f.write_str("stopped by a signal"),
            Self::Declined => f.write_str("declined by its user"),
            Self::Stalled(time) => write!(f, "no progress for {} s", time.as_secs()),
            Self::Within { context: Context::Kept { staging, .. }, source } => {
                write!(f, "{}; partial data kept in {}", source.for_remote_user(), staging.display())
            }
            other => other.fmt(f),
        })
    }
}

const fn noun(role: Role) -> &'static str {
    match role {
        Role::Sender | Role::Streams => "sender",
        Role::Receiver => "receiver",
        Role::Tunnel => "peer",
    }
}
