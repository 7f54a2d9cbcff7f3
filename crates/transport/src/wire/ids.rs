//! Identifiers on the wire.

use std::fmt;

/// A connection's id, chosen by the receiver: every packet carries the id that its receiver chose.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub [u8; 8]);

/// Identifies a pre-shared key without revealing it: derived from the key, sent in the clear in message 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 8]);

/// One direction of bytes inside a connection. Each side numbers the flows it sends; 0 is the control stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u16);

/// A source block of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The flow.
    pub flow: FlowId,
    /// The block's number in its flow, from 0.
    pub block: u32,
}

/// A symbol of a block: source below `k`, repair from `k` on (RFC 5052 encoding symbol id).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId {
    /// The flow.
    pub flow: FlowId,
    /// The block's number in its flow.
    pub block: u32,
    /// Encoding symbol id, 24 bits.
    pub esi: u32,
}

/// Symbols of one block with consecutive esi: the content of a symbol packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolRun {
    /// The first.
    pub first: SymbolId,
    /// Their number, at least one.
    pub count: u8,
}

impl SymbolRun {
    /// Iterates over the symbols, in order.
    pub fn ids(self) -> impl Iterator<Item = SymbolId> {
        let Self { first, count } = self;
        (0..u32::from(count)).map(move |nth| SymbolId { esi: first.esi + nth, ..first })
    }

    /// Returns the last of them.
    pub const fn last(self) -> SymbolId {
        let esi = self.first.esi + self.count.saturating_sub(1) as u32;
        SymbolId { esi, ..self.first }
    }
}

impl From<SymbolId> for SymbolRun {
    fn from(first: SymbolId) -> Self {
        Self { first, count: 1 }
    }
}

fn hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hex(&self.0, f)
    }
}
