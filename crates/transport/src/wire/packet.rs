//! Headers of sealed packets: the unencrypted one of every packet, and the sealed one of a symbol packet.

use super::bytes::Reader;
use super::error::WireError;
use super::ids::{ConnectionId, FlowId, SymbolId};
use super::limits::{ESI_LIMIT, MAX_PACKET_NUMBER};

/// Bytes of the unencrypted header of a sealed packet: type 1, connection id 8, packet number 8.
pub const HEADER: usize = 17;

/// Bytes of the authentication tag that ends a sealed packet.
pub const TAG: usize = 16;

/// Bytes between the unencrypted header and the symbols of a symbol packet: flow 2, block 4, esi 3, plan 1.
pub const SYMBOL_HEADER: usize = 10;

/// Bytes by which a symbol packet is longer than its symbols.
pub const SYMBOL_OVERHEAD: usize = HEADER + SYMBOL_HEADER + TAG;

/// The kind of a sealed packet: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PacketKind {
    /// A [`SymbolHeader`] and one or more symbols of consecutive esi.
    Symbol = 0x10,
    /// Frames.
    Control = 0x11,
}

impl PacketKind {
    /// Returns the kind with this type byte.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            0x10 => Some(Self::Symbol),
            0x11 => Some(Self::Control),
            _ => None,
        }
    }

    /// Returns the type byte of this kind.
    pub const fn wire(self) -> u8 {
        self as u8
    }
}

/// The unencrypted header of a sealed packet; it is authenticated with the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// The packet's kind.
    pub kind: PacketKind,
    /// The connection id that the packet's receiver chose.
    pub connection: ConnectionId,
    /// The packet number, at most [`MAX_PACKET_NUMBER`].
    pub number: u64,
}

impl PacketHeader {
    /// Returns the header's bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        debug_assert!(self.number <= MAX_PACKET_NUMBER);
        let mut bytes = [0; HEADER];
        bytes[0] = self.kind.wire();
        bytes[1..9].copy_from_slice(&self.connection.0);
        bytes[9..].copy_from_slice(&self.number.to_be_bytes());
        bytes
    }

    /// Reads the header of a sealed packet.
    ///
    /// # Errors
    ///
    /// When the bytes are too few, the type is no [`PacketKind`], or the number is above [`MAX_PACKET_NUMBER`].
    pub fn decode(packet: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(packet);
        let kind = PacketKind::from_wire(reader.u8()?).ok_or(WireError::Malformed("packet type"))?;
        let connection = ConnectionId(reader.array()?);
        let number = reader.u64()?;
        if number > MAX_PACKET_NUMBER {
            return Err(WireError::Malformed("packet number"));
        }
        Ok(Self { kind, connection, number })
    }
}

/// The header before the symbols of a symbol packet, sealed with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolHeader {
    /// The packet's first symbol; the others have the esi after it, in order. Below 2^24.
    pub id: SymbolId,
    /// The flow's plan that applies to the block.
    pub plan: u8,
}

impl SymbolHeader {
    /// Returns the header's bytes.
    pub fn encode(&self) -> [u8; SYMBOL_HEADER] {
        debug_assert!(self.id.esi < ESI_LIMIT);
        let mut bytes = [0; SYMBOL_HEADER];
        bytes[..2].copy_from_slice(&self.id.flow.0.to_be_bytes());
        bytes[2..6].copy_from_slice(&self.id.block.to_be_bytes());
        bytes[6..9].copy_from_slice(&self.id.esi.to_be_bytes()[1..]);
        bytes[9] = self.plan;
        bytes
    }

    /// Reads the plaintext of a symbol packet: the header, and the symbols after it (possibly none, and of any length:
    /// only the flow knows its symbol size).
    ///
    /// # Errors
    ///
    /// When the bytes are too few, or the flow is 0, which carries no symbols.
    pub fn decode(plaintext: &[u8]) -> Result<(Self, &[u8]), WireError> {
        let mut reader = Reader::new(plaintext);
        let flow = FlowId(reader.u16()?);
        let (block, esi, plan) = (reader.u32()?, reader.u24()?, reader.u8()?);
        if flow.0 == 0 {
            return Err(WireError::Malformed("flow of a symbol"));
        }
        Ok((Self { id: SymbolId { flow, block, esi }, plan }, reader.rest()))
    }
}
