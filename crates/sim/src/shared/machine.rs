//! Either kind of node of a network with background traffic.

use crate::host::{Host, HostConfig};
use netsim::{Filler, Node, NodeId, Packet, Time};

/// A host with an endpoint, or an end of background traffic.
#[derive(Debug)]
pub(super) enum Machine {
    Host(Box<Host>),
    Filler(Filler),
}

impl Machine {
    pub(super) fn host(id: NodeId, config: HostConfig) -> Self {
        Self::Host(Box::new(Host::new(id, config)))
    }

    pub(super) fn as_host(&self) -> Option<&Host> {
        match self {
            Self::Host(host) => Some(host),
            Self::Filler(_) => None,
        }
    }

    pub(super) fn as_host_mut(&mut self) -> Option<&mut Host> {
        match self {
            Self::Host(host) => Some(host),
            Self::Filler(_) => None,
        }
    }

    /// See [`Host::is_over`].
    pub(super) fn is_over(&self) -> bool {
        self.as_host().is_some_and(Host::is_over)
    }
}

impl Node for Machine {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        match self {
            Self::Host(host) => host.handle_packet(now, packet),
            Self::Filler(filler) => filler.handle_packet(now, packet),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        match self {
            Self::Host(host) => host.handle_timeout(now),
            Self::Filler(filler) => filler.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        match self {
            Self::Host(host) => host.poll_transmit(now),
            Self::Filler(filler) => filler.poll_transmit(now),
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match self {
            Self::Host(host) => host.poll_timeout(),
            Self::Filler(filler) => filler.poll_timeout(),
        }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        match self {
            Self::Host(host) => host.recycle(buffer),
            Self::Filler(filler) => filler.recycle(buffer),
        }
    }
}
