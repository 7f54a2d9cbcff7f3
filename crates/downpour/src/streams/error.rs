//! Why a stream is incomplete.

use std::io;
use std::path::PathBuf;

use crate::files::ErrorKind;

/// Why a stream is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The input cannot be read to its end.
    #[error("cannot read stdin: {0}; stream incomplete, the receiver discards it")]
    Input(io::Error),
    /// The output is closed.
    #[error("cannot write to stdout: {0}; output truncated")]
    Output(io::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Target {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file with the name of the stream exists.
    #[error("{} exists and is not replaced", .0.display())]
    Exists(PathBuf),
    /// The name of the stream is reserved for staging directories.
    #[error("{} is a name reserved for staging directories", .0.display())]
    Reserved(PathBuf),
    /// It is longer than this side accepts.
    #[error("stream discarded: longer than the accepted {0} bytes")]
    TooLong(u64),
    /// The connection was lost.
    #[error("stream interrupted after {0} bytes; it cannot be resumed")]
    BrokenOff(u64),
    /// Its digest differs.
    #[error("stream discarded: received data differs from sent data")]
    Damaged,
}

impl StreamError {
    /// Returns the kind of failure.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Input(_) | Self::Output(_) => ErrorKind::Storage,
            Self::Target { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::NoSpace,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Permission,
                _ => ErrorKind::Storage,
            },
            Self::TooLong(_) => ErrorKind::NoSpace,
            Self::Exists(_) => ErrorKind::Exists,
            Self::Reserved(_) => ErrorKind::Other,
            Self::BrokenOff(_) => ErrorKind::Timeout,
            Self::Damaged => ErrorKind::Integrity,
        }
    }
}
