//! Kinds of failures.

use serde::{Deserialize, Serialize};

/// The kind of a failure, which determines the exit code, the report to the peer, and whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is invalid.
    Usage,
    /// A source does not exist, or the remote host has no downpour.
    NotFound,
    /// A ticket is damaged, expired or not accepted, or a login is refused.
    Authentication,
    /// Both peers send, or both receive.
    WrongRole,
    /// The peer does not answer.
    Unreachable,
    /// The received data differs from the sent data.
    Integrity,
    /// A block cannot be decoded, and no more of it is sent.
    Undecodable,
    /// The sender announced something that was not requested.
    NotRequested,
    /// No space: bytes, inodes or a quota; or more than this user accepts.
    NoSpace,
    /// No permission to read or write.
    Permission,
    /// Any other failure to read or write.
    Storage,
    /// A name at the target exists.
    Exists,
    /// Another process or peer uses the resource; it may become free.
    Busy,
    /// The user declined the offer.
    Declined,
    /// The peer sent nothing for too long.
    Timeout,
    /// The user stopped the operation.
    Cancelled,
    /// A signal stopped the operation.
    Terminated,
    /// The peer broke the protocol.
    Protocol,
    /// A sequence number of the connection is exhausted, or its keys have reached a usage limit.
    Exhausted,
    /// Any other failure.
    Other,
}
