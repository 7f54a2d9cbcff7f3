//! FlowQueue-CoDel (RFC 8290): which flows are served and dropped, and when.

use std::time::Duration;

use downpour_netsim::{Arrival, DropReason, Ecn, Fabric, Header, LinkId, LinkStats, NodeId, Refusal, Time};

/// Two hosts and a link between them.
struct Pair {
    fabric: Fabric<u64>,
    a: NodeId,
    b: NodeId,
    link: LinkId,
}

/// Packets that one flow sends, whatever becomes of them: one each `gap`, from `start` on. Each carries its time.
#[derive(Clone, Copy)]
struct Flow {
    ip_bytes: u32,
    start: Duration,
    gap: Duration,
    ecn: Ecn,
}

impl Flow {
    /// Returns a flow of packets of this size at a rate in Mbit/s.
    fn new(ip_bytes: u32, megabits: f64) -> Self {
        let gap = Duration::from_secs_f64(f64::from(ip_bytes) * 8e-6 / megabits);
        Self { ip_bytes, start: gap.mul_f64(0.37), gap, ecn: Ecn::NotEct }
    }
}

/// The outcome of a flow.
#[derive(Debug, Default)]
struct Outcome {
    sent: u64,
    received: u64,
    bytes: u64,
    longest: Duration,
    marked: u64,
}

impl Pair {
    fn new(text: &str) -> Self {
        let mut fabric = Fabric::new();
        let (a, b) = (fabric.add_host(), fabric.add_host());
        let link = fabric.add_link(a, b, text.parse().expect("a link")).expect("two hosts");
        Self { fabric, a, b, link }
    }

    fn offer(&mut self, now: Time, flow: u64, ip_bytes: u32, ecn: Ecn, item: u64) {
        let header = Header { ip_bytes, ecn, flow };
        let offered = self.fabric.offer(now, self.a, self.b, header, item);
        assert!(offered.is_ok() || self.stats().dropped_down.packets > 0, "{offered:?}");
    }

    fn pop(&mut self, now: Time) -> Vec<Arrival<u64>> {
        std::iter::from_fn(|| self.fabric.pop(now)).collect()
    }

    fn rest(&mut self) -> Vec<u64> {
        self.pop(Time::MAX).iter().map(|arrival| arrival.item).collect()
    }

    fn stats(&self) -> LinkStats {
        *self.fabric.link(self.link).expect("a link").stats()
    }

    /// Lets flows send for ten seconds, until their packets have arrived.
    fn run(&mut self, flows: &[Flow]) -> Vec<Outcome> {
        let end = Duration::from_secs(10);
        let mut outcomes: Vec<Outcome> = flows.iter().map(|_| Outcome::default()).collect();
        let mut next: Vec<Duration> = flows.iter().map(|flow| flow.start).collect();
        let mut sent: Vec<(usize, Time)> = Vec::new();
        loop {
            let (number, due) = (0..).zip(next.iter().copied()).min_by_key(|&(_, due)| due).expect("a flow");
            let now = if due < end { Time::from(due) } else { Time::MAX };
            for Arrival { at, ecn, item, .. } in self.pop(now) {
                let (flow, came) = sent[item as usize];
                let outcome = &mut outcomes[flow];
                outcome.received += 1;
                outcome.bytes += u64::from(flows[flow].ip_bytes);
                outcome.longest = outcome.longest.max(at - came);
                outcome.marked += u64::from(ecn == Ecn::Ce);
            }
            if now == Time::MAX {
                return outcomes;
            }
            let Flow { ip_bytes, gap, ecn, .. } = flows[number];
            self.offer(now, number as u64, ip_bytes, ecn, sent.len() as u64);
            sent.push((number, now));
            outcomes[number].sent += 1;
            next[number] += gap;
        }
    }
}

#[test]
fn a_sparse_flow_passes_greedy_ones() {
    let flows = [Flow::new(1_500, 40.0), Flow::new(1_400, 30.0), Flow::new(200, 0.08)];
    let mut pair = Pair::new("rate=20M,queue=250KB,fq-codel=5ms:100ms");
    let [greedy, other, sparse] = pair.run(&flows).try_into().expect("three flows");
    // It waits for the packet being sent, 0.6 ms, and takes 0.08 ms.
    assert_eq!((sparse.sent, sparse.received), (500, 500));
    assert!(sparse.longest <= Duration::from_micros(680), "{sparse:?}");
    // The link is busy all the time: 20 Mbit/s less 0.08 for ten seconds, and then the rest of the queue.
    assert!((24_900_000..25_200_000).contains(&(greedy.bytes + other.bytes)), "{greedy:?} {other:?}");
    let stats = pair.stats();
    assert_eq!(stats.dropped(), greedy.sent - greedy.received + other.sent - other.received);
    assert_eq!(stats.dropped(), stats.dropped_codel.packets + stats.dropped_queue_full.packets);
}

#[test]
fn greedy_flows_share_by_bytes() {
    let flows = [Flow::new(1_500, 40.0), Flow::new(500, 15.0), Flow::new(1_000, 4.0)];
    let mut pair = Pair::new("rate=20M,queue=250KB,fq-codel=5ms:100ms");
    let [large, small, modest] = pair.run(&flows).try_into().expect("three flows");
    assert_eq!(modest.sent, modest.received, "it asks for less than its share");
    let ratio = large.bytes as f64 / small.bytes as f64;
    assert!((0.98..1.02).contains(&ratio), "{ratio}: {large:?} {small:?}");
}

#[test]
fn the_longest_queue_makes_room() {
    let mut pair = Pair::new("rate=12M,queue=7500B,fq-codel=5ms:100ms");
    for item in 0..6 {
        pair.offer(Time::ZERO, 0, 1_500, Ecn::NotEct, item);
    }
    assert_eq!(pair.stats().dropped_queue_full.packets, 1, "five fit");
    pair.offer(Time::ZERO, 1, 1_500, Ecn::NotEct, 10);
    pair.offer(Time::ZERO, 2, 100, Ecn::NotEct, 20);
    assert_eq!(pair.fabric.under_way(), 5);
    // The oldest were dropped, 0 to 2. A flow's first turn is before the second ones of the others.
    assert_eq!(pair.rest(), [3, 10, 20, 4, 5]);
    let stats = pair.stats();
    assert_eq!((stats.dropped_queue_full.packets, stats.dropped_queue_full.bytes), (3, 4_500));
    assert_eq!((stats.offered.packets, stats.delivered.packets), (8, 5));
    // Nor is a flow that keeps to its share dropped when another overflows all the time.
    let flows = [Flow::new(1_500, 100.0), Flow::new(1_500, 5.0)];
    let mut pair = Pair::new("rate=12M,queue=15KB,fq-codel=50ms:100ms");
    let [greedy, modest] = pair.run(&flows).try_into().expect("two flows");
    assert_eq!((modest.sent, modest.received), (4_167, 4_167));
    assert_eq!(pair.stats().dropped_queue_full.packets, greedy.sent - greedy.received);
    let mut pair = Pair::new("rate=12M,queue-packets=2,fq-codel=5ms:100ms");
    (0..5).for_each(|item| pair.offer(Time::ZERO, 0, 100, Ecn::NotEct, item));
    assert_eq!(pair.rest(), [3, 4]);
}

#[test]
fn a_packet_above_the_bound_is_dropped() {
    let mut pair = Pair::new("rate=12M,queue=1000B,fq-codel=5ms:100ms");
    pair.offer(Time::ZERO, 0, 1_500, Ecn::NotEct, 0);
    assert_eq!((pair.fabric.next_event(), pair.fabric.under_way()), (None, 0));
    pair.offer(Time::from_nanos(1), 0, 1_000, Ecn::NotEct, 1);
    assert_eq!(pair.rest(), [1]);
}

#[test]
fn fq_codel_returning_flow_is_not_new_at_once() {
    // Flow 1 sends its next packet when the last has left, with bytes of its turn to spare. Were it new each time, it
    // would have a turn after each one of the others.
    let mut pair = Pair::new("rate=12M,fq-codel=50ms:100ms");
    (0..4).for_each(|item| pair.offer(Time::ZERO, 0, 1_500, Ecn::NotEct, item));
    (20..24).for_each(|item| pair.offer(Time::ZERO, 2, 1_500, Ecn::NotEct, item));
    let mut received = Vec::new();
    pair.offer(Time::ZERO, 1, 1_000, Ecn::NotEct, 10);
    for item in 11..14 {
        while received.last() != Some(&(item - 1)) {
            let arrival = pair.fabric.pop(Time::MAX).expect("a packet");
            received.push(arrival.item);
            if arrival.item == item - 1 {
                pair.offer(arrival.at, 1, 1_000, Ecn::NotEct, item);
            }
        }
    }
    received.extend(pair.rest());
    assert_eq!(received, [0, 20, 10, 1, 21, 11, 2, 22, 12, 3, 23, 13]);
}

#[test]
fn packets_that_allow_it_are_marked() {
    let flows = [Flow { ecn: Ecn::Ect0, ..Flow::new(1_500, 22.0) }, Flow::new(1_500, 4.0)];
    let mut pair = Pair::new("rate=20M,fq-codel=5ms:100ms");
    let [marked, modest] = pair.run(&flows).try_into().expect("two flows");
    assert_eq!((marked.sent, modest.sent), (marked.received, modest.received));
    assert!(marked.marked > 100 && modest.marked == 0, "{marked:?} {modest:?}");
    assert_eq!((pair.stats().marked.packets, pair.stats().dropped_codel.packets), (marked.marked, 0));
}

#[test]
fn fq_codel_one_flow_equals_fifo() {
    for text in [
        "rate=8M,delay=5ms",
        "rate=8M,step=300ms:16M+600ms:5M,delay-step=500ms:1ms",
        "rate=8M,bucket=6KB,delay=1ms",
        "rate=20M,jitter=3ms,loss=10%,burst=3,reorder=5%:4ms,duplicate=5%,corrupt=5%,mark=5%,seed=4",
        "rate=20M,scatter=3ms,slot=10ms,mark-above=3KB,mtu=1400B,down=100ms..200ms,police=10M:20KB",
        "trace=x,delay=5ms",
    ] {
        let run = |fair: bool| {
            let text = if fair { format!("{text},fq-codel=100s:1000s") } else { text.to_owned() };
            let mut config: downpour_netsim::LinkConfig = text.parse().expect("a link");
            config.load_trace(|_| Ok("1\n1\n1\n2\n9\n".to_owned())).expect("a trace");
            let mut fabric = Fabric::new();
            let (a, b) = (fabric.add_host(), fabric.add_host());
            let link = fabric.add_link(a, b, config).expect("two hosts");
            let mut random = fastrand::Rng::with_seed(1);
            let (mut now, mut received) = (Time::ZERO, Vec::new());
            for number in 0..1_500 {
                // Bursts and pauses.
                now = now
                    + Duration::from_nanos(random.u64(1..if number / 200 % 2 == 0 { 1_000_001 } else { 3_000_001 }));
                received.extend(std::iter::from_fn(|| fabric.pop(now)));
                let _ = fabric.offer(now, a, b, Header::new(random.u32(28..1_500), Ecn::Ect0), number);
            }
            received.extend(std::iter::from_fn(|| fabric.pop(Time::MAX)));
            let link = fabric.link(link).expect("a link");
            (received, *link.stats(), link.waits().clone())
        };
        let (fair, plain) = (run(true), run(false));
        assert!(plain.0.len() > 800, "{text}: {}", plain.0.len());
        assert_eq!(fair.1, plain.1, "{text}");
        assert_eq!(fair.0, plain.0, "{text}");
        assert_eq!(fair.2, plain.2, "{text}");
    }
}

#[test]
fn fq_codel_set_link_keeps_queue() {
    let mut pair = Pair::new("rate=12M,fq-codel=50ms:100ms");
    let set = |pair: &mut Pair, text: &str| pair.fabric.set_link(pair.link, text.parse().expect("a link"));
    let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
    let times = |arrivals: Vec<Arrival<u64>>| -> Vec<(u64, u64)> {
        arrivals.iter().map(|arrival| (arrival.item, arrival.at.as_nanos() / 1_000)).collect()
    };
    (0..3).for_each(|item| pair.offer(at(0), 0, 1_500, Ecn::NotEct, item));
    assert_eq!(times(pair.pop(at(1))), [(0, 1_000)]);
    // The packet being sent leaves at the old rate, waiting ones at the new one.
    set(&mut pair, "rate=24M,fq-codel=50ms:100ms").expect("a link");
    assert_eq!(times(pair.pop(at(9))), [(1, 2_000), (2, 2_500)]);
    // Without the fair queue waiting packets leave as before, and new ones are behind them.
    (3..5).for_each(|item| pair.offer(at(10), 0, 1_500, Ecn::NotEct, item));
    pair.offer(at(10), 1, 1_500, Ecn::NotEct, 13);
    set(&mut pair, "rate=12M").expect("a link");
    pair.offer(at(10), 2, 1_500, Ecn::NotEct, 23);
    assert_eq!(times(pair.pop(at(10))), []);
    set(&mut pair, "rate=12M,fq-codel=50ms:100ms").expect("a link");
    pair.offer(at(10), 3, 1_500, Ecn::NotEct, 33);
    let expected = [(3, 10_500), (13, 11_000), (4, 11_500), (23, 12_500), (33, 13_500)];
    assert_eq!(times(pair.pop(Time::MAX)), expected);
    assert!(set(&mut pair, "rate=1M").is_ok() && pair.fabric.next_event().is_none());
}

#[test]
fn drops_before_the_queue_are_returned() {
    let mut pair = Pair::new("rate=12M,mtu=1000B,fq-codel=5ms:100ms");
    let refused = pair.fabric.offer(Time::ZERO, pair.a, pair.b, Header::new(1_001, Ecn::NotEct), 7).unwrap_err();
    assert_eq!((refused.item, refused.reason), (7, Refusal::Dropped(DropReason::TooLarge)));
    assert_eq!((pair.stats().offered.packets, pair.stats().dropped_too_large.packets), (1, 1));
}
