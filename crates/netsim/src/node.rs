//! The ends of a network and the packets they exchange.

use std::fmt;

use crate::{Ecn, Time};

/// A node or a router of a [`crate::Network`]. They are numbered from zero in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Returns the id of the node with the number `index`, added or not: nodes can know each other before the network
    /// exists.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Returns the number of this node, which is its index in [`crate::Network::nodes`] if no router was added before
    /// it.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A datagram between two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The sender, which gets its buffer back if it is dropped.
    pub source: NodeId,
    /// The receiver.
    pub destination: NodeId,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Bytes of IP and UDP headers: 28, or 48 over IPv6. They use their share of the rate and are not stored.
    pub overhead: u32,
    /// The UDP payload.
    pub payload: Vec<u8>,
}

impl Packet {
    /// Returns the bytes of IP header, UDP header and payload.
    pub fn ip_bytes(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX).saturating_add(self.overhead)
    }
}

/// An end of the network: something that sends, receives and waits. It owns no clock; all times are the network's.
pub trait Node {
    /// Handles an arrived packet.
    fn handle_packet(&mut self, now: Time, packet: Packet);
    /// Handles the timeout named by [`Node::poll_timeout`].
    fn handle_timeout(&mut self, now: Time);
    /// Returns a packet to send now. Called until it returns `None`, after every call of the other two.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;
    /// Returns when to call [`Node::handle_timeout`]. A time in the past means now.
    fn poll_timeout(&self) -> Option<Time>;
    /// Takes back the buffer of a dropped packet of this node, for reuse.
    fn recycle(&mut self, _buffer: Vec<u8>) {}
}
