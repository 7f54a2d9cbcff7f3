//! Why a stream was not passed on whole.

use std::io;
use std::path::PathBuf;

use crate::files::ErrorKind;

/// Why a stream was not passed on whole.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The input cannot be read to its end.
    #[error("cannot read stdin: {0}; the stream has no end, and the receiver keeps nothing of it")]
    Input(io::Error),
    /// The output takes no more.
    #[error("cannot write to stdout: {0}; the stream is not whole there")]
    Output(io::Error),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Target {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// Something has the name of the stream.
    #[error("{} is already there, and not overwritten", .0.display())]
    Exists(PathBuf),
    /// The name of the stream is one that staging directories have.
    #[error("{} has a name that is reserved for what downpour stages", .0.display())]
    Reserved(PathBuf),
    /// It is longer than what this side accepts.
    #[error("the stream has more than the {0} bytes that are accepted; nothing of it is kept")]
    TooLong(u64),
    /// It broke off.
    #[error("the stream broke off after {0} bytes, and cannot be resumed")]
    BrokenOff(u64),
    /// Its digest is another.
    #[error("what arrived is not what was sent: nothing of it is kept")]
    Damaged,
}

impl StreamError {
    /// What kind of failure it is.
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
