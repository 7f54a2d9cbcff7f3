//! Failures between a transfer and the file system.
//!
//! A failure is a kind with values, which its text states and a program may explain. As JSON it is sent to the peer,
//! unless a variant states otherwise.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use request::{ErrorKind, NameError, OutputKind, lossy};
use rustix::fs::statvfs;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::messages::MessageError;

/// A failure of scanning, reading or receiving files.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FilesError {
    /// A source named by the user does not exist.
    #[error("{} does not exist", path.display())]
    SourceAbsent {
        /// As the user named it.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// A source named by the user cannot be sent at all.
    #[error("cannot send {}: {reason}", path.display())]
    SourceUnusable {
        /// As the user named it.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// Why, in words.
        reason: String,
    },
    /// A source named by the user is a directory, and directories were not requested.
    #[error("{} is a directory", path.display())]
    NotRecursive {
        /// As the user named it.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// Two sources would be copied to one name.
    #[error("name clash: {} and {} would both be copied to {}", first.display(), second.display(), shown(name))]
    SameName {
        /// The name.
        #[serde(with = "lossy")]
        name: Vec<u8>,
        /// The source named first.
        #[serde(with = "lossy")]
        first: PathBuf,
        /// The source named later.
        #[serde(with = "lossy")]
        second: PathBuf,
    },
    /// One of several directories whose contents are sent is empty, so that its earlier copy would be deleted at the
    /// target.
    #[error("source {} is empty (not mounted?): its copy would be deleted", path.display())]
    SourceEmpty {
        /// As the user named it.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// A store does not support a part of the request. Nothing was changed.
    #[serde(skip)]
    #[error("{store} does not support {feature}")]
    NotSupported {
        /// The kind of store.
        #[serde(skip)]
        store: &'static str,
        /// The part of the request, in words.
        #[serde(skip)]
        feature: &'static str,
    },
    /// Received names exist at the target. Nothing was overwritten.
    #[error("already exists at the destination: {}", join(names))]
    TargetExists {
        /// Every existing name.
        #[serde(with = "lossy")]
        names: Vec<PathBuf>,
    },
    /// Another process receives the same transfer into the same directory.
    #[error("{} is in use by another process", path.display())]
    Busy {
        /// The staging directory.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The target lies outside of [`ReceiveRequest::within`](super::ReceiveRequest::within), because of a symbolic
    /// link.
    #[error("{} is outside the directory of this restricted key", path.display())]
    TargetOutside {
        /// The target.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The target is not a directory and cannot become one.
    #[error("{} is not a directory", path.display())]
    #[serde(rename = "TargetNotAFolder")]
    TargetNotADirectory {
        /// The target.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The parent directory of a new target does not exist.
    #[error("{} does not exist", path.display())]
    ParentAbsent {
        /// That directory.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The target is, or is a link to, a special file.
    #[error("{} is a device, FIFO or socket: it cannot be replaced or written to", path.display())]
    TargetSpecial {
        /// The target.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// A source or target is a file that the program writes about the transfer.
    #[error("{} is part of the transfer: {kind} would overwrite it", path.display())]
    IsOutput {
        /// The source or target.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// The kind of that file.
        kind: OutputKind,
    },
    /// The disk is full (`ENOSPC`).
    #[error("disk full while writing {}", path.display())]
    DiskFull {
        /// The path being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The file system has no free inodes, although it has room (`ENOSPC`).
    #[error("cannot create {}: no free inodes; delete some files", path.display())]
    OutOfInodes {
        /// The path being created.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The file system may not be written (`EROFS`).
    #[error("{} is on a read-only file system", path.display())]
    ReadOnly {
        /// The path being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The user's quota is used up (`EDQUOT`).
    #[error("disk quota exceeded while writing {}", path.display())]
    Quota {
        /// The path being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// A file is larger than this process may write, or than the file system holds (`EFBIG`).
    #[error("file too large: {} exceeds the limit of its file system or of this process (ulimit -f)", path.display())]
    TooLarge {
        /// The path being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// Permission is missing (`EACCES`, `EPERM`).
    #[error("{}: {}", path.display(), without_number(source))]
    Permission {
        /// The path of the failed call.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// The system's message.
        #[serde(with = "lossy")]
        source: io::Error,
    },
    /// Any other failure of the system.
    #[error("{}: {}", path.display(), without_number(source))]
    Io {
        /// The path of the failed call.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// The system's message.
        #[serde(with = "lossy")]
        source: io::Error,
    },
    /// A received name is rejected.
    #[serde(skip)]
    #[error("invalid name from the peer: {}: {reason}", shown(name))]
    BadName {
        /// The name; the first 200 bytes of a longer one.
        #[serde(with = "lossy")]
        name: Vec<u8>,
        /// Which rule it breaks.
        reason: NameError,
    },
    /// The sender announced an entry that was not requested, or that exceeds a limit.
    #[error("sender offered {}: {reason}", shown(name))]
    NotPermitted {
        /// The name; the first 200 bytes of a longer one.
        #[serde(with = "lossy")]
        name: Vec<u8>,
        /// Why it is rejected.
        reason: NotAllowed,
    },
    /// The peer's messages contradict each other.
    #[serde(skip)]
    #[error("protocol error by the peer in batch {batch}: {reason}")]
    Protocol {
        /// The batch that it concerns.
        batch: u32,
        /// Which rule was broken.
        #[serde(skip)]
        reason: &'static str,
    },
    /// A message could not be encoded or decoded.
    #[serde(skip)]
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A received block differs from the bytes that the sender read.
    #[error("checksum mismatch{} (batch {batch}, block {block})", of_file(path.as_deref()))]
    Integrity {
        /// Batch.
        batch: u32,
        /// Block.
        block: u32,
        /// The first file the block touches.
        #[serde(with = "lossy")]
        path: Option<Vec<u8>>,
    },
    /// The root over manifests and digests differs: a message was lost or changed in transit.
    #[error("transfer digest mismatch: received data differs from sent data")]
    Root,
    /// The transfer ended before everything was verified.
    #[error("transfer ended early: {unverified} batches not verified")]
    Incomplete {
        /// Their number.
        unverified: u64,
    },
    /// The transfer has ended and accepts no more messages.
    #[error("the transfer has ended")]
    Over,
}

/// The part of a request that an announced entry violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NotAllowed {
    /// No such item was requested.
    #[error("not requested")]
    Item,
    /// The peer chose the item's name, and the name exists.
    #[error("exists, and a name chosen by the sender must be new")]
    Chosen,
    /// The filter excludes it.
    #[error("excluded by the filter")]
    Filtered,
    /// The list of names does not contain it.
    #[error("not in the list of names")]
    Unlisted,
    /// More entries than the limit.
    #[error("exceeds the allowed number of files")]
    Entries,
    /// More bytes than the limit.
    #[error("exceeds the allowed number of bytes")]
    Bytes,
}

impl FilesError {
    /// Returns the kind of this failure.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::SourceAbsent { .. } | Self::SourceUnusable { .. } => ErrorKind::NotFound,
            Self::NotRecursive { .. }
            | Self::SameName { .. }
            | Self::SourceEmpty { .. }
            | Self::TargetSpecial { .. }
            | Self::NotSupported { .. }
            | Self::IsOutput { .. } => ErrorKind::Usage,
            Self::TargetExists { .. } => ErrorKind::Exists,
            Self::Busy { .. } => ErrorKind::Busy,
            Self::DiskFull { .. } | Self::OutOfInodes { .. } | Self::Quota { .. } | Self::TooLarge { .. } => {
                ErrorKind::NoSpace
            }
            Self::Permission { .. } | Self::ReadOnly { .. } | Self::TargetOutside { .. } => ErrorKind::Permission,
            Self::BadName { .. } | Self::Protocol { .. } | Self::Message(_) => ErrorKind::Protocol,
            Self::Integrity { .. } | Self::Root => ErrorKind::Integrity,
            Self::NotPermitted { reason: NotAllowed::Entries | NotAllowed::Bytes, .. } => ErrorKind::NoSpace,
            Self::NotPermitted { .. } => ErrorKind::NotRequested,
            Self::TargetNotADirectory { .. }
            | Self::ParentAbsent { .. }
            | Self::Io { .. }
            | Self::Incomplete { .. }
            | Self::Over => ErrorKind::Other,
        }
    }

    /// A name, which may be of any length, that breaks a rule.
    pub(super) fn bad_name(name: &[u8], reason: NameError) -> Self {
        Self::BadName { name: abridged(name), reason }
    }

    /// Returns the error for a name that the sender may not announce.
    pub(super) fn not_permitted(name: &[u8], reason: NotAllowed) -> Self {
        Self::NotPermitted { name: abridged(name), reason }
    }

    /// Sorts a system error at `path` into the kinds that the program distinguishes.
    pub fn system(path: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.as_ref().to_path_buf(), source.into());
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC) if has_no_inodes(&path) => Self::OutOfInodes { path },
            Some(Errno::NOSPC) => Self::DiskFull { path },
            Some(Errno::ROFS) => Self::ReadOnly { path },
            Some(Errno::DQUOT) => Self::Quota { path },
            Some(Errno::FBIG) => Self::TooLarge { path },
            Some(Errno::ACCESS | Errno::PERM) => Self::Permission { path, source },
            _ => Self::Io { path, source },
        }
    }
}

/// Whether the file system of `path`, or of its nearest existing parent, has no inodes left. Some file systems report
/// no number of inodes.
fn has_no_inodes(path: &Path) -> bool {
    let status = |path: &Path| statvfs(if path.as_os_str().is_empty() { Path::new(".") } else { path }).ok();
    path.ancestors().find_map(status).is_some_and(|found| found.f_files > 0 && found.f_favail == 0)
}

/// Returns the first bytes of a name; a hostile one may have megabytes.
fn abridged(name: &[u8]) -> Vec<u8> {
    name[..name.len().min(200)].to_vec()
}

fn join(names: &[PathBuf]) -> String {
    /// More names than this do not help a reader.
    const SHOWN: usize = 10;
    let mut text = names.iter().take(SHOWN).map(|n| n.display().to_string()).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

/// Returns the message of a system error without its number.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    text.rfind(" (os error ").map_or_else(|| text.clone(), |at| text[..at].to_owned())
}

fn of_file(path: Option<&[u8]>) -> String {
    path.map(|path| format!(" in {}", shown(path))).unwrap_or_default()
}

/// A name in a message, which a program escapes before it shows it.
fn shown(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_name_of_10_mb_is_abridged() {
        let text = FilesError::bad_name(&vec![b'\x1b'; 10 << 20], NameError::TooLong).to_string();
        assert!(text.len() < 2000, "{} bytes", text.len());
    }
}
