//! Which packets carry which symbols, for a program that watches them.

use crate::flow::Direction;
use crate::wire::SymbolRun;

/// A packet with symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolPacket {
    /// The direction of the flow.
    pub direction: Direction,
    /// The packet's number.
    pub number: u64,
    /// Its symbols. Of a packet that arrives before its flow is known, only the first.
    pub symbols: SymbolRun,
}

/// Packets with symbols in the order in which they were sent and received; nothing unless the program wants them.
#[derive(Debug, Default)]
pub(super) struct SymbolPackets(Option<Vec<SymbolPacket>>);

impl SymbolPackets {
    /// Lists packets from now on.
    pub(super) fn begin(&mut self) {
        self.0.get_or_insert_default();
    }

    pub(super) fn add(&mut self, direction: Direction, number: u64, symbols: SymbolRun) {
        if let Some(packets) = &mut self.0 {
            packets.push(SymbolPacket { direction, number, symbols });
        }
    }

    /// Moves those listed so far to the end of `out`.
    pub(super) fn take(&mut self, out: &mut Vec<SymbolPacket>) {
        if let Some(packets) = &mut self.0 {
            out.append(packets);
        }
    }
}
