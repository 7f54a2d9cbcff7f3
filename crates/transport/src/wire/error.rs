//! The reasons why bytes do not conform to this version of the wire.

use thiserror::Error;

/// Bytes that do not parse. Their packet is rejected as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes end inside a field.
    #[error("the bytes end inside a field")]
    Truncated,
    /// A frame type that this version does not know.
    #[error("unknown frame type {0:#04x}")]
    UnknownFrame(u8),
    /// A field with a value that its definition does not allow; the text names the field.
    #[error("invalid value: {0}")]
    Malformed(&'static str),
    /// More of something than its limit in [`limits`](super::limits) allows; the text names it.
    #[error("too many or too long: {0}")]
    Limit(&'static str),
    /// A parameter that must be present is missing; the text names it.
    #[error("missing parameter: {0}")]
    Missing(&'static str),
}
