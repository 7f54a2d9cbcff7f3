//! Counters for runs with several flows: the traffic of each host, span by span, and the queues.

use std::time::Duration;

use netsim::{Fabric, QueueDelays, Time};

use super::Packet;

/// The times of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measuring {
    /// Length of the spans in which arrivals are counted.
    pub span: Duration,
    /// The time from the beginning to the first count of queues.
    pub warm_up: Duration,
}

/// The traffic of one host since the measurement began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostTraffic {
    /// Packets that it sent.
    pub packets_sent: u64,
    /// Their IP bytes.
    pub bytes_sent: u64,
    /// The arrivals in each span, up to that of the last arrival, which may be incomplete.
    pub arrived: Vec<SpanTraffic>,
}

/// The arrivals at a host in one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanTraffic {
    /// Packets.
    pub packets: u64,
    /// Their IP bytes.
    pub bytes: u64,
    /// The sum of their transit times in the model.
    pub transit: Duration,
}

/// Counts from a moment on.
#[derive(Debug)]
pub(super) struct Meter {
    begun: Time,
    how: Measuring,
    /// The waits at each link when the warm-up was over; `None` before.
    warm: Option<Vec<QueueDelays>>,
    hosts: Vec<HostTraffic>,
}

impl Meter {
    pub(super) fn new(begun: Time, how: Measuring, hosts: usize) -> Self {
        Self { begun, how, warm: None, hosts: vec![HostTraffic::default(); hosts] }
    }

    /// Counts a packet that a host sends.
    pub(super) fn sent(&mut self, host: usize, at: Time, ip_bytes: u32) {
        if at >= self.begun {
            self.hosts[host].packets_sent += 1;
            self.hosts[host].bytes_sent += u64::from(ip_bytes);
        }
    }

    /// Counts a packet that reaches a host.
    pub(super) fn arrived(&mut self, host: usize, at: Time, packet: &Packet) {
        let Some(since) = at.checked_since(self.begun) else { return };
        let index = (since.as_nanos() / self.how.span.as_nanos().max(1)) as usize;
        let arrived = &mut self.hosts[host].arrived;
        if arrived.len() <= index {
            arrived.resize(index + 1, SpanTraffic::default());
        }
        arrived[index].packets += 1;
        arrived[index].bytes += u64::from(packet.segment.packet.ip_bytes(packet.segment.index));
        arrived[index].transit += at - packet.offered;
    }

    /// Checks whether the warm-up is over.
    pub(super) fn check_warm_up(&mut self, now: Time, fabric: &Fabric<Packet>) {
        if self.warm.is_none() && now >= self.begun + self.how.warm_up {
            self.warm = Some(waits(fabric));
        }
    }

    /// Returns the traffic of each host, and the waits at each link after the warm-up.
    pub(super) fn result(self, fabric: &Fabric<Packet>) -> (Vec<HostTraffic>, Vec<QueueDelays>) {
        let after =
            |warm: Vec<QueueDelays>| waits(fabric).iter().zip(&warm).map(|(now, then)| now.since(then)).collect();
        (self.hosts, self.warm.map_or_else(Vec::new, after))
    }
}

fn waits(fabric: &Fabric<Packet>) -> Vec<QueueDelays> {
    fabric.links().map(|(_, link)| link.waits().clone()).collect()
}

#[cfg(test)]
mod tests {
    use netsim::{Ecn, Header};

    use super::super::segments::SuperPacket;
    use super::*;

    /// Returns an IPv4 packet of 28 bytes.
    fn packet(offered: Time) -> Packet {
        let mut bytes = [0; 28];
        (bytes[0], bytes[3]) = (0x45, 28);
        let segment = SuperPacket::plain(&bytes).expect("a packet").split().next().expect("one segment");
        Packet { segment, offered }
    }

    #[test]
    fn meter_counts_arrivals_by_span_and_queues_after_warm_up() {
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let mut fabric = Fabric::new();
        let (a, b) = (fabric.add_host(), fabric.add_host());
        // 28 bytes take 56 ms.
        fabric.add_link(a, b, "rate=4k".parse().expect("a link")).expect("two hosts");
        let how = Measuring { span: Duration::from_millis(100), warm_up: Duration::from_millis(300) };
        let mut meter = Meter::new(at(100), how, 2);
        for (millis, count) in [(50, 1), (200, 1), (500, 4)] {
            meter.check_warm_up(at(millis), &fabric);
            for _ in 0..count {
                fabric.offer(at(millis), a, b, Header::new(28, Ecn::NotEct), packet(at(millis))).expect("room");
                meter.sent(0, at(millis), 28);
            }
        }
        while let Some(arrival) = fabric.pop(Time::MAX) {
            meter.arrived(1, arrival.at, &arrival.item);
        }
        let (hosts, waits) = meter.result(&fabric);
        assert_eq!((hosts[0].packets_sent, hosts[0].bytes_sent), (5, 140), "one was before");
        let spans: Vec<(u64, u64, u128)> =
            hosts[1].arrived.iter().map(|span| (span.packets, span.bytes, span.transit.as_millis())).collect();
        let expected = [(1, 28, 56), (1, 28, 56), (0, 0, 0), (0, 0, 0), (1, 28, 56), (2, 56, 112 + 168), (1, 28, 224)];
        assert_eq!(spans, expected);
        // 56, 112, 168 and 224 ms; those before the end of the warm-up are not counted.
        let median = waits[0].quantile(0.5).expect("packets").as_millis();
        assert!((112..123).contains(&median), "{median}");
    }
}
