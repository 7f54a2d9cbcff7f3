//! Ends of a network that only load it: traffic with which others share links.

use std::time::Duration;

use crate::time::picos;
use crate::{Ecn, Node, NodeId, Packet, Rate, Time};

/// Bytes of IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// Packets of one size at a constant bit rate, sent whatever their outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantRate {
    /// IP bits per second, headers included; not zero.
    pub rate: Rate,
    /// IP bytes of each packet; at least the 28 of its headers are sent.
    pub packet: u32,
    /// When the first packet is sent.
    pub start: Time,
    /// When sending stops; `Time::MAX` for traffic that never ends.
    pub stop: Time,
}

/// A node that sends at a constant rate to another, or discards received packets.
#[derive(Debug)]
pub struct Filler {
    own: NodeId,
    sends: Option<(NodeId, ConstantRate)>,
    /// Packets sent.
    sent: u64,
    /// When the next packet is sent, and the fraction of a picosecond left over.
    next: Time,
    remainder: u64,
    /// IP bytes received.
    received: u64,
    buffers: Vec<Vec<u8>>,
}

impl Filler {
    /// Creates node `own` of its network, which sends to `peer`.
    pub fn source(own: NodeId, peer: NodeId, traffic: ConstantRate) -> Self {
        Self { next: traffic.start, sends: Some((peer, traffic)), ..Self::sink(own) }
    }

    /// Creates node `own` of its network, which discards received packets.
    pub const fn sink(own: NodeId) -> Self {
        Self { own, sends: None, sent: 0, next: Time::MAX, remainder: 0, received: 0, buffers: Vec::new() }
    }

    /// Returns the packets sent so far.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the IP bytes received so far.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Returns when the next packet is sent, if any.
    fn due(&self) -> Option<Time> {
        let (_, traffic) = self.sends?;
        (self.next < traffic.stop).then_some(self.next)
    }
}

impl Node for Filler {
    fn handle_packet(&mut self, _now: Time, packet: Packet) {
        self.received += u64::from(packet.ip_bytes());
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let (destination, traffic) = self.sends?;
        self.due().filter(|due| *due <= now)?;
        let size = traffic.packet.max(HEADERS);
        let gap = traffic.rate.picos_for_work(Rate::work(size.into()), &mut self.remainder);
        // An unbounded rate would send without end at one instant.
        self.next = self.next.plus_picos(gap.max(picos(Duration::from_nanos(1))));
        self.sent += 1;
        let mut payload = self.buffers.pop().unwrap_or_default();
        payload.resize((size - HEADERS) as usize, 0);
        Some(Packet { source: self.own, destination, ecn: Ecn::NotEct, overhead: HEADERS, payload })
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.due()
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        self.buffers.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::pair;

    #[test]
    fn the_rate_is_kept_to_the_packet() {
        let [own, peer] = [0, 1].map(NodeId::from_index);
        let second = Duration::from_secs(1);
        // ttp III-A: 1 Mbit/s in ns-2's default packets of 210 bytes.
        let traffic = ConstantRate {
            rate: Rate::from_megabits_per_second(1),
            packet: 210,
            start: Time::ZERO + second,
            stop: Time::ZERO + second * 11,
        };
        let (mut network, _) =
            pair(Filler::source(own, peer, traffic), Filler::sink(peer), &"delay=5ms".parse().unwrap()).unwrap();
        network.run_until(Time::ZERO + second).unwrap();
        assert_eq!(network.nodes()[0].sent(), 1, "the first at the start");
        network.run_until(Time::ZERO + second * 2).unwrap();
        assert_eq!(network.nodes()[0].sent(), 596, "595.2 packets of 1680 bits a second, and the first");
        network.run_until(Time::ZERO + second * 60).unwrap();
        assert_eq!(network.nodes()[0].sent(), 5_953, "none after the end");
        assert_eq!(network.nodes()[1].received(), 5_953 * 210);
    }

    #[test]
    fn a_source_of_the_maximum_rate_lets_time_pass() {
        let [own, peer] = [0, 1].map(NodeId::from_index);
        let rate = Rate::from_bits_per_second(u64::MAX);
        let traffic = ConstantRate { rate, packet: 0, start: Time::ZERO, stop: Time::from_nanos(1_000) };
        let link = "rate=1G,queue-packets=2".parse().unwrap();
        let (mut network, _) = pair(Filler::source(own, peer, traffic), Filler::sink(peer), &link).unwrap();
        network.run_until(Time::from_nanos(1_000_000)).unwrap();
        assert_eq!(network.nodes()[0].sent(), 1_000);
        // 28 bytes take 224 ns: two in the queue at any time.
        assert_eq!(network.nodes()[1].received(), 28 * 6);
    }
}
