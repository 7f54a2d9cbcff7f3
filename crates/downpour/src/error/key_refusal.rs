//! Why a restricted key refuses a request.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::files::lossy;

/// Why a restricted key ([`KeyRestriction`](crate::remote::KeyRestriction)) refuses a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum KeyRefusal {
    /// The path is outside the directory.
    #[error("{} is outside the directory, or reached by a symbolic link that leaves it", .0.display())]
    Outside(#[serde(with = "lossy")] PathBuf),
    /// The path begins with `~` and a name.
    #[error("{} is in the home of another user", .0.display())]
    OtherHome(#[serde(with = "lossy")] PathBuf),
    /// Commands.
    #[error("commands are not allowed")]
    NoCommands,
    /// Connections to other addresses, and listening.
    #[error("connections are not allowed")]
    NoConnections,
    /// Following links in directories.
    #[error("following symbolic links in directories is not allowed")]
    NoFollowing,
    /// Hard links to files of other trees.
    #[error("hard links to files of other trees are not allowed")]
    NoLinking,
    /// Creating parent directories of the destination.
    #[error("creating parent directories of the destination is not allowed")]
    NoPath,
    /// Sending from a key that only receives.
    #[error("only receiving is allowed")]
    OnlyReceives,
    /// Receiving with a key that only sends.
    #[error("only sending is allowed")]
    OnlySends,
    /// Removing sources.
    #[error("removing sources is not allowed")]
    NoRemoving,
    /// Removing a source that was named through a symbolic link.
    #[error("cannot remove a source through a symbolic link")]
    NoRemovingBehindLinks,
    /// Measuring a disk.
    #[error("testing the disk is not allowed: it writes a file")]
    NoTrial,
    /// Attributes that root alone can set.
    #[error("setting owners, attributes or special files as root is not allowed")]
    NoAttributes,
    /// A request of this many bytes.
    #[error("request too large: {}", units::bytes(*.0))]
    TooLarge(u64),
    /// The kernel cannot keep a path within a directory.
    #[error("the remote kernel lacks openat2 (Linux 5.6)")]
    NoOpenat2,
    /// The kernel does not report the path of an open file.
    #[error("the remote kernel does not report the path of an open file: {0}")]
    Untraceable(String),
}
