//! Kinds of failures, for programs.

/// What kind of failure an error is, for programs that end with an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for makes no sense.
    Usage,
    /// A source does not exist, or the other machine has no downpour.
    NotFound,
    /// A ticket is damaged, expired or not accepted.
    Authentication,
    /// The other side does not answer.
    Unreachable,
    /// What arrived is not what was sent, or cannot be decoded.
    Integrity,
    /// A file or directory cannot be read or written.
    Storage,
    /// The other side fell silent.
    Timeout,
    /// The user stopped it.
    Cancelled,
    /// A signal stopped it.
    Terminated,
    /// Anything else.
    Other,
}
