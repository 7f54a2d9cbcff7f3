//! CoDel on a link, against the algorithm as RFC 8289 writes it: a queue that decides when packets leave it.

use std::collections::VecDeque;

use downpour_netsim::{DropReason, Ecn, Fabric, Header, Link, OfferOutcome, Time};

/// One millisecond for a packet of 1000 bytes.
const LINK: &str = "rate=8M,codel=5ms:100ms";
const PACKET: u32 = 1_000;
const MICROS_PER_PACKET: u64 = 1_000;
const TARGET: u64 = 5_000;
const INTERVAL: u64 = 100_000;

fn offer(link: &mut Link, micros: u64, ecn: Ecn) -> OfferOutcome {
    link.offer(Time::from_nanos(micros * 1_000), PACKET, ecn)
}

/// The pseudocode of RFC 8289 section 5, in microseconds, over a queue of equal packets. Packets are numbered.
#[derive(Default)]
struct Reference {
    /// Whether a packet is spared for at most a packet behind it when it leaves, or else ahead of it when it arrives.
    looks_behind: bool,
    /// When each waiting packet arrived, and whether at most a packet was ahead of it.
    queue: VecDeque<(usize, u64, bool)>,
    first_above: u64,
    dropping: bool,
    drop_next: f64,
    count: u64,
    last_count: u64,
    dropped: Vec<usize>,
}

impl Reference {
    fn take(&mut self, now: u64) -> Option<(usize, bool)> {
        let Some((number, came, was_short)) = self.queue.pop_front() else {
            self.first_above = 0;
            return None;
        };
        let is_short = if self.looks_behind { self.queue.len() <= 1 } else { was_short };
        if now - came < TARGET || is_short {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now + INTERVAL;
        } else {
            return Some((number, now >= self.first_above));
        }
        Some((number, false))
    }

    fn law(&self, time: f64) -> f64 {
        time + INTERVAL as f64 / (self.count as f64).sqrt()
    }

    /// Returns the packet to send.
    fn dequeue(&mut self, now: u64) -> Option<usize> {
        let (mut number, mut ok) = self.take(now)?;
        if self.dropping {
            self.dropping = ok;
            while self.dropping && now as f64 >= self.drop_next {
                self.dropped.push(number);
                self.count += 1;
                (number, ok) = self.take(now)?;
                self.dropping = ok;
                self.drop_next = self.law(self.drop_next);
            }
        } else if ok {
            self.dropped.push(number);
            let next = self.take(now);
            self.dropping = true;
            let delta = self.count - self.last_count;
            let is_recent = now as f64 - self.drop_next < 16.0 * INTERVAL as f64;
            self.count = if delta > 1 && is_recent { delta } else { 1 };
            self.drop_next = self.law(now as f64);
            self.last_count = self.count;
            number = next?.0;
        }
        Some(number)
    }
}

/// Returns the packets that the pseudocode drops, and when each of the others has left, of packets that arrive at these
/// times.
fn reference(arrivals: &[u64], looks_behind: bool) -> (Vec<usize>, Vec<(usize, u64)>) {
    let mut codel = Reference { looks_behind, ..Reference::default() };
    let mut sent = Vec::new();
    let mut free_at = 0;
    let mut next = arrivals.iter().copied().enumerate().peekable();
    loop {
        // Those that have arrived by the time the link is free wait already.
        while let Some((number, came)) = next.next_if(|&(_, came)| came <= free_at) {
            // The packet being sent, if it is, and those that wait.
            let ahead = codel.queue.len() + usize::from(came < free_at);
            codel.queue.push_back((number, came, ahead <= 1));
        }
        if codel.queue.is_empty() {
            let Some(&(_, came)) = next.peek() else { return (codel.dropped, sent) };
            free_at = came;
            continue;
        }
        if let Some(number) = codel.dequeue(free_at) {
            free_at += MICROS_PER_PACKET;
            sent.push((number, free_at));
        }
    }
}

/// Returns when packets arrive: loads of .7 to 1.5 for 400 packets each, so that queues build up and drain. Odd times,
/// so that no two events coincide.
fn arrivals(seed: u64) -> Vec<u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut now = 0;
    let next = |number: u64| {
        let mean = 1_400 - 200 * (number / 400 % 5);
        now += 1 + 2 * random.u64(0..mean);
        now
    };
    (0..8_000).map(next).collect()
}

#[test]
fn codel_drops_and_sends_as_the_pseudocode() {
    let mut total = 0;
    for seed in 0..20 {
        let arrivals = arrivals(seed);
        let (dropped, sent) = reference(&arrivals, false);
        let mut link = Link::new(LINK.parse().expect("a link")).expect("a link that makes sense");
        let mut fates = (Vec::new(), Vec::new());
        for (number, came) in arrivals.iter().enumerate() {
            match offer(&mut link, *came, Ecn::NotEct) {
                OfferOutcome::Dropped(DropReason::Codel) => fates.0.push(number),
                OfferOutcome::Dropped(reason) => panic!("{reason:?}"),
                OfferOutcome::Delivered(deliveries) => fates.1.push((number, deliveries.first.at.as_nanos() / 1_000)),
            }
        }
        assert_eq!(fates.0, dropped, "seed {seed}");
        assert_eq!(fates.1, sent, "seed {seed}");
        assert_eq!(link.stats().dropped_codel.packets, dropped.len() as u64);
        total += dropped.len();
    }
    assert!(total > 500, "{total} drops");
}

#[test]
fn fq_codel_one_flow_drops_and_sends_as_the_pseudocode() {
    for seed in 0..20 {
        let arrivals = arrivals(seed);
        let (dropped, sent) = reference(&arrivals, true);
        let mut fabric = Fabric::new();
        let (a, b) = (fabric.add_host(), fabric.add_host());
        let link = LINK.replace("codel", "fq-codel").parse().expect("a link");
        let id = fabric.add_link(a, b, link).expect("two hosts");
        let mut received = Vec::new();
        for (number, &came) in arrivals.iter().enumerate() {
            let now = Time::from_nanos(came * 1_000);
            received.extend(std::iter::from_fn(|| fabric.pop(now)));
            fabric.offer(now, a, b, Header::new(PACKET, Ecn::NotEct), number).expect("nothing is dropped at once");
        }
        received.extend(std::iter::from_fn(|| fabric.pop(Time::MAX)));
        let received: Vec<_> = received.iter().map(|arrival| (arrival.item, arrival.at.as_nanos() / 1_000)).collect();
        assert_eq!(received, sent, "seed {seed}");
        let stats = fabric.link(id).expect("a link").stats();
        assert_eq!(stats.dropped_codel.packets, dropped.len() as u64, "seed {seed}");
        assert!(!dropped.is_empty(), "seed {seed}");
    }
}

#[test]
fn packets_that_allow_it_are_marked_and_take_their_time() {
    // Twice the rate: the queue grows to 100 ms within 200 ms.
    let mut link = Link::new(LINK.parse().expect("a link")).expect("a link that makes sense");
    let mut marked = Vec::new();
    for number in 0..600 {
        let ecn = if number % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
        let OfferOutcome::Delivered(deliveries) = offer(&mut link, number * 500, ecn) else { panic!("dropped") };
        assert_eq!(deliveries.first.at, Time::from_nanos((number + 1) * 1_000_000), "packet {number}");
        if deliveries.first.ecn == Ecn::Ce {
            marked.push(number);
        } else {
            assert_eq!(deliveries.first.ecn, ecn);
        }
    }
    // Packet 10 is the first that has waited for 5 ms when it leaves after 10 ms. An interval later marking begins; the
    // next ones follow after 100, 71, 58 and 50 ms.
    assert_eq!(marked, [110, 210, 281, 339, 389, 434, 474, 512, 548, 581]);
    assert_eq!((link.stats().marked.packets, link.stats().dropped_codel.packets), (10, 0));
    // A marked packet stays marked, and is not counted.
    let mut other = Link::new(LINK.parse().expect("a link")).expect("a link that makes sense");
    for number in 0..120 {
        assert!(matches!(offer(&mut other, number * 500, Ecn::Ce), OfferOutcome::Delivered(_)), "packet {number}");
    }
    assert_eq!(other.stats().marked.packets, 0);
}

#[test]
fn one_packet_behind_another_is_no_queue() {
    // A packet takes 100 ms, and one arrives every 100 ms while another is being sent.
    let mut link = Link::new("rate=80k,codel=5ms:100ms".parse().expect("a link")).expect("a link that makes sense");
    for number in 0..100 {
        assert!(
            matches!(offer(&mut link, number * 100_000, Ecn::NotEct), OfferOutcome::Delivered(_)),
            "packet {number}"
        );
        if number == 0 {
            assert!(matches!(offer(&mut link, 50_000, Ecn::NotEct), OfferOutcome::Delivered(_)));
        }
    }
}

#[test]
fn packets_behind_a_trace_are_judged_when_it_sends_them() {
    // Eleven opportunities a second: no packet waits for less than 5 ms, but no queue persists.
    let mut config: downpour_netsim::LinkConfig = "trace=x,codel=20ms:100ms".parse().expect("a link");
    config.load_trace(|_| Ok("100\n".to_owned())).expect("a trace");
    let mut link = Link::new(config.clone()).expect("a link that makes sense");
    let drops = |link: &mut Link, every: u64| {
        let is_dropped = |number: &u64| matches!(offer(link, number * every, Ecn::NotEct), OfferOutcome::Dropped(_));
        (0..200).filter(is_dropped).count()
    };
    assert_eq!(drops(&mut link, 100_000), 0);
    let mut link = Link::new(config).expect("a link that makes sense");
    assert!(drops(&mut link, 30_000) > 10);
}
