//! Why a stream was not passed on whole.

use std::io;
use std::path::PathBuf;

use crate::error::{CloseCode, ErrorKind};

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
    #[error("{} has a name that is reserved for what downpour stages: have it sent under another one (--name)", .0.display())]
    Reserved(PathBuf),
    /// It is longer than what this side accepts.
    #[error("the stream has more than the {0} bytes that are accepted; nothing of it is kept")]
    TooLong(u64),
    /// It broke off.
    #[error("the stream broke off after {0} bytes, and cannot be resumed: send it again")]
    BrokenOff(u64),
    /// Its digest is another.
    #[error("what arrived is not what was sent: nothing of it is kept; send it again")]
    Damaged,
}

impl StreamError {
    /// What kind of failure it is, for programs.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Input(_) | Self::Output(_) | Self::Target { .. } | Self::TooLong(_) => ErrorKind::Storage,
            Self::Exists(_) | Self::Reserved(_) => ErrorKind::Other,
            Self::BrokenOff(_) => ErrorKind::Timeout,
            Self::Damaged => ErrorKind::Integrity,
        }
    }

    pub(crate) fn close_code(&self) -> CloseCode {
        match self {
            Self::Input(_) | Self::Output(_) | Self::BrokenOff(_) | Self::Reserved(_) => CloseCode::Other,
            Self::Target { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => CloseCode::NoSpace,
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => CloseCode::Permission,
                _ => CloseCode::Other,
            },
            Self::Exists(_) => CloseCode::TargetExists,
            Self::TooLong(_) => CloseCode::NoSpace,
            Self::Damaged => CloseCode::Integrity,
        }
    }
}
