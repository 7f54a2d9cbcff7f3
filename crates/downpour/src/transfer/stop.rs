//! Why a transfer is stopped.

use crate::error::Error;

/// The reason why the user ends a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Ctrl-C or similar.
    Cancelled,
    /// The system, or the process that started this program, stops it.
    Terminated,
}

impl From<StopReason> for Error {
    fn from(why: StopReason) -> Self {
        match why {
            StopReason::Cancelled => Self::Cancelled,
            StopReason::Terminated => Self::Terminated,
        }
    }
}
