//! What can go wrong between a transfer and the file system.
//!
//! A failure is a kind with values, which its text states and which a program may explain. As JSON it crosses the wire,
//! except where a variant says that it does not.

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
    #[error("{} cannot be sent: {reason}", path.display())]
    SourceUnusable {
        /// As the user named it.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// Why, in words.
        reason: String,
    },
    /// A source named by the user is a directory, and directories were not asked for.
    #[error("{} is a directory", path.display())]
    NotRecursive {
        /// As the user named it.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// Two sources would arrive under one name.
    #[error("{} and {} would both arrive as {}", first.display(), second.display(), shown(name))]
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
    /// One of several directories whose contents are sent is empty, and what was there before would be deleted at the
    /// target.
    #[error("{} is empty: its disk may not be mounted, and what came from it would be deleted", path.display())]
    SourceEmpty {
        /// As the user named it.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// A store cannot do what was asked of it. Nothing was changed.
    #[serde(skip)]
    #[error("{store} cannot do what was asked: {what}")]
    NotSupported {
        /// The kind of store.
        #[serde(skip)]
        store: &'static str,
        /// The part of the request, in words.
        #[serde(skip)]
        what: &'static str,
    },
    /// Names that would arrive exist already. Nothing was overwritten.
    #[error("already there, and not overwritten: {}", join(names))]
    TargetExists {
        /// Every name that is in the way.
        #[serde(with = "lossy")]
        names: Vec<PathBuf>,
    },
    /// Another process receives the same transfer into the same directory.
    #[error("another process uses {}", path.display())]
    Busy {
        /// The staging directory.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The target lies outside of [`ReceiveRequest::within`](super::ReceiveRequest::within), because a symbolic link
    /// leads out of it.
    #[error("{} leads out of the directory that this login is limited to", path.display())]
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
    /// The directory that a new target would be in does not exist.
    #[error("{} does not exist", path.display())]
    ParentAbsent {
        /// That directory.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The target is, or is a link to, what is neither a file nor a directory.
    #[error("{} leads to a device, pipe or socket, which is neither replaced nor written to", path.display())]
    TargetSpecial {
        /// The target.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// A source or target is what is written about the transfer.
    #[error("{} is part of the transfer, and {kind} would overwrite it", path.display())]
    IsOutput {
        /// The source or target.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// What is written there.
        kind: OutputKind,
    },
    /// The disk is full (`ENOSPC`).
    #[error("disk full while writing {}", path.display())]
    DiskFull {
        /// What was being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The file system takes no further file, although it has room (`ENOSPC`).
    #[error("no further file fits on the disk (its inodes are used up) for {}", path.display())]
    OutOfInodes {
        /// What was being made.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The file system may not be written (`EROFS`).
    #[error("{} is on a file system that is mounted read-only", path.display())]
    ReadOnly {
        /// What was being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// The user's quota is used up (`EDQUOT`).
    #[error("quota used up while writing {}", path.display())]
    Quota {
        /// What was being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// A file is larger than this process may write, or than the file system holds (`EFBIG`).
    #[error("file too large: {} is beyond what this process may write (ulimit -f) or its file system holds", path.display())]
    TooLarge {
        /// What was being written.
        #[serde(with = "lossy")]
        path: PathBuf,
    },
    /// Permission is missing (`EACCES`, `EPERM`).
    #[error("no permission: {}: {source}", path.display())]
    Permission {
        /// What was touched.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// The system's own words.
        #[serde(with = "lossy")]
        source: io::Error,
    },
    /// Any other failure of the system.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was touched.
        #[serde(with = "lossy")]
        path: PathBuf,
        /// The system's own words.
        #[serde(with = "lossy")]
        source: io::Error,
    },
    /// A received name is refused.
    #[serde(skip)]
    #[error("the name {} is refused: {reason}", shown(name))]
    BadName {
        /// The name; the first 200 bytes of a longer one.
        #[serde(with = "lossy")]
        name: Vec<u8>,
        /// Which rule it breaks.
        reason: NameError,
    },
    /// The sender announced something that was not requested, or more than is permitted.
    #[error("the sender offers {}, {reason}", shown(name))]
    NotPermitted {
        /// The name; the first 200 bytes of a longer one.
        #[serde(with = "lossy")]
        name: Vec<u8>,
        /// Why it is refused.
        reason: NotAllowed,
    },
    /// The peer's messages contradict each other.
    #[serde(skip)]
    #[error("the peer broke the protocol in batch {batch}: {reason}")]
    Protocol {
        /// The batch it was about.
        batch: u32,
        /// Which rule was broken.
        #[serde(skip)]
        reason: &'static str,
    },
    /// A message could not be encoded or decoded.
    #[serde(skip)]
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A block is not what the sender read.
    #[error("block {block} of batch {batch} does not match its digest{}", of_file(path.as_deref()))]
    Integrity {
        /// Batch.
        batch: u32,
        /// Block.
        block: u32,
        /// The first file the block touches.
        #[serde(with = "lossy")]
        path: Option<Vec<u8>>,
    },
    /// The root over manifests and digests differs: something was left out or changed on the way.
    #[error("the transfer's root does not match: what arrived is not what was sent")]
    Root,
    /// The transfer was ended before everything was verified.
    #[error("{unverified} batches are not yet verified")]
    Incomplete {
        /// How many.
        unverified: u64,
    },
    /// The transfer is over; nothing more is accepted.
    #[error("the transfer is over")]
    Over,
}

/// The part of a request that an announced entry does not comply with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum NotAllowed {
    /// No such item was requested.
    #[error("which was not requested")]
    Item,
    /// The host chose the item's name, and the name exists.
    #[error("a name that it chose itself and that exists already")]
    Chosen,
    /// The filter excludes it.
    #[error("which the filter excludes")]
    Filtered,
    /// The list of names does not contain it.
    #[error("which is not in the list of names")]
    Unlisted,
    /// More entries than the limit.
    #[error("and with it more files than permitted")]
    Entries,
    /// More bytes than the limit.
    #[error("and with it more bytes than permitted")]
    Bytes,
}

impl FilesError {
    /// What kind of failure it is.
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

    /// A name that the sender may not announce.
    pub(super) fn not_permitted(name: &[u8], reason: NotAllowed) -> Self {
        Self::NotPermitted { name: abridged(name), reason }
    }

    /// Sorts a system error at `path` into the kinds that the program tells apart.
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

/// Whether the file system at `path`, or where that is to be, has no inodes left. Some have no fixed number, and tell
/// none.
fn has_no_inodes(path: &Path) -> bool {
    let here = |path: &Path| statvfs(if path.as_os_str().is_empty() { Path::new(".") } else { path }).ok();
    path.ancestors().find_map(here).is_some_and(|found| found.f_files > 0 && found.f_favail == 0)
}

/// Enough of a name to recognise it by; a hostile one may have megabytes.
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

fn of_file(path: Option<&[u8]>) -> String {
    path.map(|path| format!(" ({})", shown(path))).unwrap_or_default()
}

/// A name in a message, which a program escapes before it shows it.
fn shown(name: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_bad_name_makes_a_short_error() {
        let text = FilesError::bad_name(&vec![b'\x1b'; 10 << 20], NameError::TooLong).to_string();
        assert!(text.len() < 2000, "{} bytes", text.len());
    }
}
