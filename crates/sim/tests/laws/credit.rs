//! The receiver's credit follows the path: a slow disk does not increase the data buffered for writing and costs no
//! packet, and no path is slowed down, except by a bound on memory.

use crate::support::{Plan, at_seconds, is_done};
use std::time::Duration;
use transport::{ConnectingSide, Rate, SendLimit};

const fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000)
}

/// The result of a transfer of one object.
#[derive(Debug)]
struct Run {
    /// In floors.
    took: f64,
    /// The most source symbols buffered for writing: overall, and after the first third was written.
    peak: u64,
    settled: u64,
}

fn run(link: &str, rate: u64, size: u64, change: impl Fn(&mut Plan)) -> Run {
    let mut plan = Plan::new(link, systems::auto().with_fixed_rate(mbit(rate)), vec![size]);
    plan.receiver_closes = true;
    change(&mut plan);
    let mut network = plan.network([Vec::new(), Vec::new()]);
    let mut settled = 0;
    let mut at = at_seconds(0);
    while !is_done(network.nodes(), &plan) {
        at = at.checked_add(Duration::from_millis(1)).expect("within years");
        network.run_until(at).expect("time passes");
        assert!(at < at_seconds(100), "no end: {plan:?}");
        let Some(stats) = network.node_mut(netsim::NodeId::from_index(1)).and_then(|node| node.host.stats().pop())
        else {
            continue;
        };
        if stats.objects.written * 3 > size {
            settled = settled.max(network.nodes()[1].host.tallies().map(|tally| tally.storing).sum());
        }
    }
    let tally = network.nodes()[1].host.tallies().next().expect("they met");
    let config: netsim::Duplex = plan.link.parse().expect("a link");
    let rtt = config.forward.delay + config.backward.delay;
    let floor = transport::transfer_floor(size, mbit(rate), rtt, config.forward.loss.mean(), ConnectingSide::Sender);
    let took = tally.complete_at.expect("complete").as_secs_f64() / floor.as_secs_f64();
    // In full symbols, the unit of credit.
    Run { took, peak: tally.storing_peak / 1_408, settled: settled / 1_408 }
}

#[test]
fn no_path_is_slowed() {
    for (link, rate, size, most) in [
        ("rate=1G,delay=100us,queue=2MB", 1_000, 100_000_000, 1.02),
        ("rate=1G,delay=100us,queue=2MB,loss=1%", 1_000, 100_000_000, 1.05),
        ("rate=1G,delay=25ms,queue=4MB,loss=1%", 1_000, 200_000_000, 1.05),
        ("rate=400M,delay=150ms,queue=4MB,loss=1%", 400, 200_000_000, 1.05),
        ("rate=100M,delay=300ms,queue=1MB,loss=2%", 100, 60_000_000, 1.05),
        ("rate=200M,delay=300ms,queue=4MB", 200, 200_000_000, 1.05),
        ("rate=500M,delay=50ms,queue=6MB,loss=5%", 500, 200_000_000, 1.05),
        ("rate=1G,delay=300ms,queue=70MB,loss=0.1%", 1_000, 500_000_000, 1.08),
    ] {
        for (storage_delay, slack) in [(0, 0.0), (10, 0.05)] {
            let run = run(link, rate, size, |plan| plan.storage_delay = Duration::from_millis(storage_delay));
            println!("{link}, {storage_delay} ms: {run:?}");
            assert!(run.took < most + slack, "{run:?} over {link}, writes take {storage_delay} ms");
        }
    }
}

/// At once, since slow writes would be the limit.
#[test]
fn a_path_of_ten_gigabits_is_not_slowed() {
    let run = run("rate=10G,delay=60ms,queue=140MB", 10_000, 1_000_000_000, |_| ());
    assert!(run.took < 1.12, "{run:?}");
}

#[test]
fn a_slow_disk_does_not_make_memory_grow() {
    for (link, rate, size, disk) in [
        ("rate=1G,delay=100us,queue=2MB", 1_000, 200_000_000, 400),
        ("rate=1G,delay=5ms,queue=2MB,loss=1%", 1_000, 200_000_000, 400),
        ("rate=1G,delay=5ms,queue=2MB", 1_000, 200_000_000, 100),
        ("rate=1G,delay=50ms,queue=2MB", 1_000, 200_000_000, 100),
    ] {
        let run = run(link, rate, size, |plan| plan.write_rate = Some(mbit(disk)));
        println!("{link}, {disk} Mbit/s: {run:?}");
        assert!(
            run.peak <= 50_000 && run.settled <= 8_000,
            "{run:?} symbols wait for a disk of {disk} Mbit/s over {link}"
        );
        let disk_floors = run.took * disk as f64 / rate as f64;
        assert!(disk_floors < 1.1, "the disk was kept waiting: {disk_floors:.3}, {run:?} over {link}");
    }
}

/// The states of a transfer every 10 ms, from half a second on and until its last second.
#[derive(Debug, Default)]
struct Seen {
    seconds: f64,
    /// Packets lost after the start.
    lost: u64,
    ticks: u32,
    /// Ticks at which the sender was limited by its receiver, and by its source.
    by_receiver: u32,
    by_source: u32,
    /// Ticks at which the bound on memory was reached, at the sender and at the receiver.
    bound: [u32; 2],
    /// The most symbols in flight, and being written.
    in_flight: u64,
    storing: u64,
}

impl Seen {
    /// Returns whether something was so at four of five ticks.
    const fn mostly(&self, ticks: u32) -> bool {
        ticks * 5 >= self.ticks * 4
    }
}

fn watch(plan: Plan) -> Seen {
    let plan = &Plan { receiver_closes: true, ..plan };
    let mut network = plan.network([Vec::new(), Vec::new()]);
    let (mut seen, mut ticks, mut at) = (Seen::default(), Vec::new(), at_seconds(0));
    while !is_done(network.nodes(), plan) {
        at = at.checked_add(Duration::from_millis(10)).expect("within years");
        network.run_until(at).expect("time passes");
        assert!(at < at_seconds(200), "no end: {plan:?}");
        let mut stats = |node| {
            let node = network.node_mut(netsim::NodeId::from_index(node));
            node.and_then(|node| node.host.stats().pop())
        };
        let (Some(sender), Some(receiver)) = (stats(0), stats(1)) else { continue };
        seen.storing = seen.storing.max(network.nodes()[1].host.tallies().map(|tally| tally.storing).sum());
        ticks.push((sender, receiver));
    }
    let complete = network.nodes()[1].host.tallies().next().and_then(|tally| tally.complete_at);
    seen.seconds = complete.expect("complete").as_secs_f64();
    // The overflow of the start in the first half second is not caused by the disk.
    let settled = &ticks[50..ticks.len() - 100];
    let before = settled[0].0.packets.lost;
    for (sender, receiver) in settled {
        seen.ticks += 1;
        seen.lost = sender.packets.lost - before;
        seen.by_receiver += u32::from(sender.limited_by == SendLimit::Receiver);
        seen.by_source += u32::from(sender.limited_by == SendLimit::Source);
        seen.bound[0] += u32::from(sender.memory_binds);
        seen.bound[1] += u32::from(receiver.memory_binds);
        seen.in_flight = seen.in_flight.max(sender.congestion.in_flight / 1_448);
    }
    seen.storing /= 1_408;
    seen
}

const SHORT: &str = "rate=1G,delay=5ms,queue=2MB";
const SIZE: u64 = 100_000_000;

/// 100 Mbit/s are a tenth of the path: 8 s.
#[test]
fn a_disk_slower_than_the_path_holds_the_sender_back_by_credit_and_loses_nothing() {
    for profile in [systems::auto(), systems::auto().with_fixed_rate(mbit(1_000))] {
        let seen = watch(Plan { write_rate: Some(mbit(100)), ..Plan::new(SHORT, profile, vec![SIZE]) });
        assert!((8.0..8.3).contains(&seen.seconds) && seen.lost == 0, "{seen:?}");
        assert!(seen.mostly(seen.by_receiver) && seen.bound == [0, 0], "{seen:?}");
    }
}

#[test]
fn a_source_slower_than_the_path_is_named_and_loses_nothing() {
    for profile in [systems::auto(), systems::auto().with_fixed_rate(mbit(1_000))] {
        let seen = watch(Plan { read_rate: Some(mbit(100)), ..Plan::new(SHORT, profile, vec![SIZE]) });
        assert!((8.0..8.3).contains(&seen.seconds) && seen.lost == 0, "{seen:?}");
        assert!(seen.mostly(seen.by_source) && seen.bound == [0, 0], "{seen:?}");
    }
}

/// The path takes three times as many symbols in a round trip as one of the two sides may buffer.
#[test]
fn a_bound_on_memory_is_kept_and_named_by_the_side_that_has_it() {
    const MOST: u64 = 18_000;
    for bounded in [0, 1] {
        let profile = systems::auto().with_fixed_rate(mbit(1_000));
        let mut plan = Plan::new("rate=1G,delay=300ms,queue=70MB", profile, vec![SIZE]);
        plan.bounds[bounded] = Some(MOST);
        let seen = watch(plan);
        // In packets with their headers; the last opened block may exceed the bound.
        assert!(seen.in_flight * 10 <= MOST * 11 && seen.lost == 0, "{bounded}: {seen:?}");
        let mut expected = [0, 0];
        expected[bounded] = seen.bound[bounded];
        // A sender is not held back while it uses its credit, for a third of each round trip.
        assert!(seen.bound[bounded] * 2 > seen.ticks && seen.bound == expected, "{bounded}: {seen:?}");
        assert!(seen.by_receiver * 2 > seen.ticks, "{bounded}: {seen:?}");
    }
}

/// Blocks of 8,192 symbols on a path that only needs 6,000: credit for the next block must be granted nevertheless.
#[test]
fn blocks_larger_than_the_need_of_the_path_continue() {
    let run = run("rate=1G,delay=100us,queue=2MB,loss=1%", 1_000, 200_000_000, |plan| {
        plan.profile.set("blocks.k", "8192").expect("blocks of one size");
        plan.storage_delay = Duration::from_millis(10);
    });
    assert!(run.took < 1.3 && run.settled <= 2 * 8_192, "{run:?}");
}
