//! Sources and targets that make no sense together.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::files::{ErrorKind, OutputKind, lossy};

/// Why a copy cannot be what was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CopyError {
    /// There are no sources.
    #[error("nothing to copy")]
    NoSource,
    /// The sources are on different machines.
    #[error("all sources must be on one machine")]
    SeveralMachines,
    /// The target is in the source.
    #[error("{} cannot be copied into itself", .0.display())]
    IntoItself(#[serde(with = "lossy")] PathBuf),
    /// Wildcards with `..` behind them.
    #[error("{host}:{path} stands for the parent of every match")]
    ParentOfMatches {
        /// The machine of the source.
        host: String,
        /// The source.
        path: String,
    },
    /// Something is to be written about a copy of which neither end is here.
    #[error("{kind} cannot be written here: only an end of the copy knows it, and both are elsewhere")]
    OutputElsewhere {
        /// What was to be written.
        kind: OutputKind,
        /// The machine that sends.
        from: String,
        /// The machine that receives.
        to: String,
    },
    /// The sender cannot reach the receiver, and no other way was allowed.
    #[error("{why}, and through this machine the data goes by ssh")]
    NoDirectPath {
        /// Why the sender cannot reach it.
        why: String,
    },
    /// The sender's downpour does not copy to another machine.
    #[error("the downpour on {0} is too old to copy to another host")]
    NoForwarding(String),
    /// A request of this many bytes.
    #[error("a request of {} is too large", units::bytes(*.0))]
    TooLarge(u64),
    /// The name of a machine is needed.
    #[error("not a host: {0:?}")]
    NotAHost(String),
}

impl CopyError {
    /// What kind of failure it is.
    pub(crate) const fn kind(&self) -> ErrorKind {
        match self {
            Self::NoDirectPath { .. } => ErrorKind::Unreachable,
            Self::NoSource
            | Self::SeveralMachines
            | Self::IntoItself(_)
            | Self::ParentOfMatches { .. }
            | Self::OutputElsewhere { .. }
            | Self::NoForwarding(_)
            | Self::TooLarge(_)
            | Self::NotAHost(_) => ErrorKind::Usage,
        }
    }
}
