//! Options that a program may set for a connection, and the errors of doing so.

use crate::flow::{BadPlan, FlowLimits};
use crate::wire::{Credit, StreamLimits};
use std::time::Duration;

/// The limits of this side, and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// The credit of the peer before the path is known: blocks of its objects, in source symbols, and bytes of its
    /// control stream.
    pub credit: Credit,
    /// The most source symbols of objects that are buffered in each direction. Granted credit and reading ahead follow
    /// the need of the path, from 6,000 symbols up to this. An endpoint's connections share it equally, but each may
    /// use the symbols of two of the largest blocks.
    pub most_symbols: u64,
    /// The shape that flows may have.
    pub flows: FlowLimits,
    /// The peer's streams. Besides the credit, at most `count x window + shared` symbols of them are buffered. A stream
    /// with a window code keeps five eighths of its window again, and w^2 bytes of coefficients where the code's window
    /// has w symbols: at most a quarter of `window`, and half of it once the stream continues in smaller symbols.
    pub streams: StreamLimits,
    /// A connection ends when no authentic packet has arrived for this long, or none of the symbols sent has arrived
    /// for this long.
    pub dead_after: Duration,
    /// An idle connection sends a PING this often (RFC 8085 section 3.5: not under 15 s).
    pub keep_alive: Duration,
}

impl ConnectionConfig {
    /// Returns the credit of the handshake.
    pub(crate) fn first_credit(&self) -> Credit {
        Credit { symbols: self.credit.symbols.min(self.most_symbols), ..self.credit }
    }
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            // 48,000 symbols of 1408 bytes are 68 MB: a round trip of 600 ms at 900 Mbit/s.
            credit: Credit { symbols: 48_000, control: 1 << 20 },
            // 2 GiB: three round trips of 120 ms at 40 Gbit/s, or of 600 ms at 9 Gbit/s.
            most_symbols: (2 << 30) / 1_408,
            flows: FlowLimits { largest_k: 8_192, largest_symbol: 1_408, most_per_packet: 64 },
            // 185 MB if all are full, and 23 MB more: a single stream may use a round trip of 600 ms at 150 Mbit/s.
            streams: StreamLimits { count: 1_024, window: 128, shared: 16_000 },
            dead_after: Duration::from_secs(30),
            keep_alive: Duration::from_secs(15),
        }
    }
}

/// An object to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectOptions {
    /// Length in bytes.
    pub length: u64,
    /// The program's name for it; the peer sees it.
    pub tag: u64,
    /// Whether to compute the digest of each block after it is first read.
    pub digest: bool,
}

/// The reason why an object or a stream cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// The connection is not open yet, or no longer.
    #[error("the connection is not open")]
    NotConnected,
    /// All 65,535 flow numbers are used.
    #[error("no flow number is left")]
    Exhausted,
    /// The peer accepts none of the profile's symbol sizes.
    #[error(
        "the peer accepts symbols of at most {most} bytes, the profile has at least {smallest}: choose symbols={most}"
    )]
    SymbolsTooLarge {
        /// The profile's smallest, in bytes.
        smallest: u16,
        /// The peer's limit, in bytes.
        most: u16,
    },
    /// The profile's blocks do not fit the object or the peer's limits.
    #[error("the object cannot be cut into blocks that the peer accepts")]
    Unsendable,
    /// The peer accepts no streams.
    #[error("the peer accepts no streams")]
    NoStreams,
    /// The stream is finished, reset or unknown.
    #[error("the stream is unknown, finished or reset")]
    UnknownStream,
}

impl From<BadPlan> for FlowError {
    fn from(_: BadPlan) -> Self {
        Self::Unsendable
    }
}
