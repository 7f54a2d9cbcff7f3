//! A link of a network, with its place and the packets that travel on it.

use crate::{Fate, Link, Packet, Time, Transit, corrupt};

/// A link of a [`crate::Network`] and what is under way on it.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) link: Link,
    /// The vertex it starts at.
    pub(crate) from: usize,
    /// The vertex it leads to.
    pub(crate) to: usize,
    pub(crate) transit: Transit<Packet>,
}

impl Pipe {
    pub(crate) fn new(link: Link, from: usize, to: usize) -> Self {
        Self { link, from, to, transit: Transit::new() }
    }

    /// When the next packet arrives; `Time::MAX` if none is under way.
    pub(crate) fn next_arrival(&self) -> Time {
        self.transit.next_arrival().unwrap_or(Time::MAX)
    }

    /// Sends a packet; gives it back if it is dropped.
    pub(crate) fn send(&mut self, now: Time, mut packet: Packet) -> Option<Packet> {
        let deliveries = match self.link.offer(now, packet.ip_bytes(), packet.ecn) {
            Fate::Dropped(_) => return Some(packet),
            Fate::Delivered(deliveries) => deliveries,
        };
        packet.ecn = deliveries.first.ecn;
        let copy = deliveries.duplicate.map(|delivery| (delivery, packet.clone()));
        if let Some(entropy) = deliveries.first.corrupt {
            corrupt(&mut packet.payload, entropy);
        }
        self.transit.push(&deliveries.first, packet);
        if let Some((delivery, packet)) = copy {
            self.transit.push(&delivery, packet);
        }
        None
    }
}
