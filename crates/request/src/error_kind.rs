//! Kinds of failures.

use serde::{Deserialize, Serialize};

/// What kind of failure an error is: for exit codes, for the other side, and for a decision whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for makes no sense.
    Usage,
    /// A source does not exist, or the other machine has no downpour.
    NotFound,
    /// A ticket is damaged, expired or not accepted, or a login is refused.
    Authentication,
    /// Both sides send, or both receive.
    WrongRole,
    /// The other side does not answer.
    Unreachable,
    /// What arrived is not what was sent.
    Integrity,
    /// A block cannot be decoded, and nothing more of it is sent.
    Undecodable,
    /// The sender announced something that was not requested.
    NotRequested,
    /// No room: bytes, inodes or a quota; or more than this user accepts.
    NoSpace,
    /// No right to read or write.
    Permission,
    /// Any other failure to read or write.
    Storage,
    /// A name at the target is taken.
    Exists,
    /// Another process or peer has the place; it may become free.
    Busy,
    /// The user refused what was offered.
    Declined,
    /// The other side fell silent.
    Timeout,
    /// The user stopped it.
    Cancelled,
    /// A signal stopped it.
    Terminated,
    /// The peer broke the protocol.
    Protocol,
    /// A sequence number of the connection is exhausted, or its keys have reached a usage limit.
    Exhausted,
    /// Anything else.
    Other,
}
