//! Why a transfer is stopped.

use crate::error::Error;

/// The reason why the user ends a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C or similar.
    Cancelled,
    /// The system, or the process that started this program, ends it.
    Terminated,
}

impl From<Stop> for Error {
    fn from(why: Stop) -> Self {
        match why {
            Stop::Cancelled => Self::Cancelled,
            Stop::Terminated => Self::Terminated,
        }
    }
}
