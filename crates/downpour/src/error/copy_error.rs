//! Sources and destinations that cannot be combined.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::files::{ErrorKind, OutputKind, lossy};

/// Why a copy is impossible as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CopyError {
    /// There are no sources.
    #[error("nothing to copy")]
    NoSource,
    /// The sources are on different hosts.
    #[error("all sources must be on one host")]
    SeveralMachines,
    /// The target is in the source.
    #[error("cannot copy {} into itself", .0.display())]
    IntoItself(#[serde(with = "lossy")] PathBuf),
    /// Wildcards with `..` behind them.
    #[error("{host}:{path}: `..` after a wildcard")]
    ParentOfMatches {
        /// The host of the source.
        host: String,
        /// The source.
        path: String,
    },
    /// Output was requested for a copy between two remote hosts.
    #[error("cannot write {kind} of a copy between two remote hosts")]
    #[serde(rename = "OutputElsewhere")]
    OutputOfRelay {
        /// The kind of output.
        kind: OutputKind,
        /// The sending host.
        from: String,
        /// The receiving host.
        to: String,
    },
    /// The sender cannot reach the receiver, and no other path was allowed.
    #[error("{why}; relaying needs ssh")]
    NoDirectPath {
        /// Why the sender cannot reach it.
        why: String,
    },
    /// The sender's downpour does not copy to another host.
    #[error("downpour on {0} is too old to copy to another host")]
    NoForwarding(String),
    /// A request of this many bytes.
    #[error("request too large: {}", units::bytes(*.0))]
    TooLarge(u64),
    /// The text is no host name.
    #[error("invalid host name: {0:?}")]
    NotAHost(String),
}

impl CopyError {
    /// Returns the kind of failure.
    pub(crate) const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDirectPath { .. } => ErrorKind::Unreachable,
            Self::NoSource
            | Self::SeveralMachines
            | Self::IntoItself(_)
            | Self::ParentOfMatches { .. }
            | Self::OutputOfRelay { .. }
            | Self::NoForwarding(_)
            | Self::TooLarge(_)
            | Self::NotAHost(_) => ErrorKind::Usage,
        }
    }
}
