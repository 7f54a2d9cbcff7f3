//! The symbols that a host sends and receives, for observers of a transfer.

use super::Host;
use transport::{ConnectionHandle, FlowId, PartialBlock, SymbolPacket};

/// Something that happened to symbols at a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolEvent {
    /// A packet with symbols was sent, or has arrived.
    Symbols(SymbolPacket),
    /// A block of an object of the peer was written.
    Written {
        /// The block's number.
        block: u32,
        /// First byte in the object.
        offset: u64,
        /// Bytes of its symbols; the last may have fewer.
        symbol_size: usize,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

impl Host {
    /// Begins to watch a new connection, if the host is to.
    pub(super) fn watch(&mut self, handle: ConnectionHandle) {
        if let Some(connection) = self.endpoint.connection(handle).filter(|_| self.config.watches) {
            connection.list_symbols();
        }
    }

    /// Notes the packets with symbols since the last call. Called before blocks are written, so that a block's symbols are
    /// those that arrived before it.
    pub(super) fn see_symbols(&mut self) {
        if !self.config.watches {
            return;
        }
        let mut packets = Vec::new();
        self.for_each(|host, handle| {
            if let Some(connection) = host.endpoint.connection(handle) {
                connection.take_symbols(&mut packets);
            }
            true
        });
        self.seen.extend(packets.into_iter().map(SymbolEvent::Symbols));
    }

    /// Notes that a block is written.
    pub(super) fn see_written(&mut self, block: u32, offset: u64, symbol_size: usize, bytes: &[u8]) {
        if self.config.watches {
            self.seen.push(SymbolEvent::Written { block, offset, symbol_size, bytes: bytes.to_vec() });
        }
    }

    /// Returns the events of symbols since the last call, in order; none unless [`HostConfig::watches`] is set.
    ///
    /// [`HostConfig::watches`]: super::HostConfig::watches
    pub fn take_seen(&mut self) -> Vec<SymbolEvent> {
        self.see_symbols();
        std::mem::take(&mut self.seen)
    }

    /// Visits the received parts of the objects of its peers: the incomplete blocks that are not being decoded.
    pub fn visit_partial_blocks(&mut self, mut visit: impl FnMut(&PartialBlock<'_>)) {
        let Self { tallies, endpoint, .. } = self;
        for (handle, tally) in tallies {
            let Some(connection) = endpoint.connection(*handle) else { continue };
            let flows: Vec<FlowId> = tally.received.keys().copied().collect();
            flows.into_iter().for_each(|flow| connection.partial_blocks(flow).for_each(|block| visit(&block)));
        }
    }
}
