//! Why a limited login refuses a request.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::files::lossy;

/// Why a limited login ([`Limit`](super::KeyRestriction)) refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Limited {
    /// The path lies elsewhere.
    #[error("{} is outside, or a link on its way leads out", .0.display())]
    Outside(#[serde(with = "lossy")] PathBuf),
    /// The path begins with `~` and a name.
    #[error("{} is in another home", .0.display())]
    OtherHome(#[serde(with = "lossy")] PathBuf),
    /// Commands.
    #[error("it runs no commands")]
    NoCommands,
    /// Connections to other places, and listening.
    #[error("it opens no connections")]
    NoConnections,
    /// Links in directories are to be followed.
    #[error("it does not follow the links in directories")]
    NoFollowing,
    /// Files are to become names of those in other trees.
    #[error("it makes no names of files in other trees")]
    NoLinking,
    /// Directories on the way to the target are to be made.
    #[error("it makes no directories on the way to the target")]
    NoPath,
    /// It is for receiving.
    #[error("it only receives")]
    OnlyReceives,
    /// It is for sending.
    #[error("it only sends")]
    OnlySends,
    /// Sources are to be removed.
    #[error("it removes nothing")]
    NoRemoving,
    /// The file itself was not named whose source is to be removed.
    #[error("it does not remove what a link leads to")]
    NoRemovingBehindLinks,
    /// A disk is to be measured.
    #[error("it writes nothing, and a doctor tries the disk")]
    NoTrial,
    /// Attributes that root alone can set.
    #[error("as root it sets no owners, attributes or special files")]
    NoAttributes,
    /// A request of this many bytes.
    #[error("it takes no request as large as {}", units::bytes(*.0))]
    TooLarge(u64),
    /// The kernel cannot keep a path within a directory.
    #[error("the system there lacks openat2 (Linux 5.6)")]
    NoOpenat2,
    /// The kernel does not tell where an open file is.
    #[error("the system there does not tell where a file is: {0}")]
    Untraceable(String),
}
