//! Codes with which a side closes a connection.

/// Why a side closes the connection: the code of the close frame. The engine keeps the numbers below 0x100 for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CloseCode {
    /// Everything is done.
    Done = 0,
    /// The peer's packets or messages are malformed or contradict each other.
    Protocol = 1,
    /// A block cannot be decoded, and nothing more of it is sent.
    Undecodable = 2,
    /// A sequence number of the connection is exhausted, or its keys have reached a usage limit.
    Exhausted = 3,
    /// The receiver's user said no.
    Declined = 0x100,
    /// A name exists at the receiver already.
    TargetExists = 0x101,
    /// Disk full, or over quota, be it the file system's or the receiver's user's.
    NoSpace = 0x102,
    /// No permission.
    Permission = 0x103,
    /// Bytes do not match their digest.
    Integrity = 0x104,
    /// The user interrupted.
    Interrupted = 0x105,
    /// Both sides send, or both receive.
    WrongRole = 0x106,
    /// The ticket is in use or used up.
    Busy = 0x107,
    /// Anything else.
    Other = 0x108,
    /// A signal stopped the program.
    Terminated = 0x109,
}

impl CloseCode {
    /// The code with this number; an unknown one is [`CloseCode::Other`].
    pub(crate) fn from_code(code: u32) -> Self {
        [
            Self::Done,
            Self::Declined,
            Self::TargetExists,
            Self::NoSpace,
            Self::Permission,
            Self::Protocol,
            Self::Undecodable,
            Self::Exhausted,
            Self::Integrity,
            Self::Interrupted,
            Self::WrongRole,
            Self::Busy,
            Self::Terminated,
        ]
        .into_iter()
        .find(|known| *known as u32 == code)
        .unwrap_or(Self::Other)
    }
}
