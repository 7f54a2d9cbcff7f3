//! The ends of a network and what they send each other.

use std::fmt;

use crate::{Ecn, Time};

/// A node or a router of a [`crate::Network`]. They are numbered from zero in the order they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The node that was, or will be, added as number `index`: nodes can know each other before there is a network.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// The number of this node; its place in [`crate::Network::nodes`] where no router was added before it.
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
    /// Who sent it, and gets its buffer back if it is dropped.
    pub source: NodeId,
    /// Who is to get it.
    pub destination: NodeId,
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Bytes of IP and UDP headers: 28, or 48 over IPv6. They take their share of the rate and are not stored.
    pub overhead: u32,
    /// The UDP payload.
    pub payload: Vec<u8>,
}

impl Packet {
    /// IP header, UDP header and payload.
    pub fn ip_bytes(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(u32::MAX).saturating_add(self.overhead)
    }
}

/// An end of the network: something that sends, receives and waits. It owns no clock; all times are the network's.
pub trait Node {
    /// A packet arrives.
    fn handle_packet(&mut self, now: Time, packet: Packet);
    /// The time that [`Node::poll_timeout`] named has come.
    fn handle_timeout(&mut self, now: Time);
    /// A packet to send now. Asked until there is none, after every call of the other two.
    fn poll_transmit(&mut self, now: Time) -> Option<Packet>;
    /// When to call [`Node::handle_timeout`]. A time in the past is now.
    fn poll_timeout(&self) -> Option<Time>;
    /// Takes back the buffer of a packet of this node that was dropped, to use it again.
    fn recycle(&mut self, _buffer: Vec<u8>) {}
}
