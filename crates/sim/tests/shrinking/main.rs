//! Paths whose MTU decreases during a transfer.

#![cfg(test)]

mod dead;
mod streams;

use downpour_sim::property::mtu;
use downpour_sim::{Case, Host, HostConfig};
use netsim::{LinkConfig, NodeId, topology};
use std::time::Duration;
use transport::{Profile, Rate};

/// Number of seeds in every run of the tests.
const SEEDS: u64 = 1_000;

fn check_seeds(streams: bool) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("SEED") {
        println!("{:?}", mtu::check(seed, streams).expect("as it should be"));
        return;
    }
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let failures: Vec<String> = (0..seeds).filter_map(|seed| mtu::check(seed, streams).err()).collect();
    let shown = failures.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {seeds} seeds fail:\n{shown}", failures.len());
}

#[test]
fn seeds_of_objects() {
    check_seeds(false);
}

#[test]
fn seeds_with_streams() {
    check_seeds(true);
}

/// Paths that shrank behind a queue of seconds, which took longer to notice than the peer's timeout (five), and one on
/// which every probe of the search, or its report, was lost, and on which some outcomes were never reported.
#[test]
fn seeds_that_found_something() {
    let objects = [7_887, 8_927, 119_682, 345_308, 530_272, 854_558].map(|seed| (seed, false));
    for (seed, streams) in objects.into_iter().chain([(1_030, true)]) {
        mtu::check(seed, streams).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Configures a host that sends nothing yet; the first one connects and closes.
fn host_config(side: u32, fixed: bool, seed: u64) -> HostConfig {
    let profile = systems::auto();
    let rate = Rate::from_bits_per_second(100_000_000);
    let profile = if fixed { profile.with_fixed_rate(rate) } else { profile };
    HostConfig {
        connect_to: if side == 0 { vec![NodeId::from_index(1)] } else { Vec::new() },
        closes: side == 0,
        ..HostConfig::idle(profile, seed)
    }
}

/// The result of a transfer over a path whose MTU decreases.
struct Shrunk {
    /// Times from each decrease until the sender used smaller symbols.
    found: Vec<Duration>,
    sizes: Vec<u16>,
    completed: Duration,
    symbols: u64,
}

/// Sends objects over a path of 100 Mbit/s and 50 ms whose MTU changes at these times.
fn run(link: &str, fixed: bool, objects: &[u64], shrinks: &[(u64, u32)]) -> Shrunk {
    run_as(&host_config(0, fixed, 1).profile, link, objects, shrinks)
}

/// Same as [`run`], with another profile.
fn run_as(profile: &Profile, link: &str, objects: &[u64], shrinks: &[(u64, u32)]) -> Shrunk {
    let config = |side: u32| HostConfig {
        profile: profile.clone(),
        objects: if side == 0 { objects.to_vec() } else { Vec::new() },
        expects: if side == 0 { 0 } else { objects.len() },
        ..host_config(side, false, 1)
    };
    let link: netsim::Duplex = link.parse().expect("a link");
    let host = |side| Host::new(NodeId::from_index(side), config(side));
    let (mut network, pair) = topology::pair(host(0), host(1), &link).expect("a network");
    let mut shrunk = Shrunk { found: Vec::new(), sizes: Vec::new(), completed: Duration::ZERO, symbols: 0 };
    for (at, mtu) in shrinks {
        network.run_until(netsim::Time::ZERO + millis(*at)).expect("time passes");
        for (id, config) in [(pair.links.forward, &link.forward), (pair.links.backward, &link.backward)] {
            network.set_link(id, LinkConfig { mtu: Some(*mtu), ..config.clone() }).expect("a link");
        }
        while let Some(stats) = network.node_mut(pair.a).and_then(|host| host.stats().pop()) {
            let size = stats.path.symbol_size;
            if u32::from(size) + 43 + 28 <= *mtu {
                shrunk.found.push(network.now().checked_since(netsim::Time::ZERO + millis(*at)).expect("later"));
                shrunk.sizes.push(size);
                break;
            }
            let next = network.now().checked_add(millis(1)).expect("soon");
            network.run_until(next).expect("time passes");
            assert!(network.now() < netsim::Time::ZERO + millis(at + 20_000), "mtu {mtu} is not found out");
        }
    }
    let over = |nodes: &[Host]| nodes.iter().all(Host::is_over);
    network.run_while(|nodes| !over(nodes), netsim::Time::ZERO + millis(120_000)).expect("time passes");
    let tally = network.nodes()[1].tallies().next().expect("connected");
    assert_eq!(tally.received.len(), objects.len());
    assert!(tally.received.values().all(downpour_sim::Received::is_identical), "{:?}", tally.received);
    shrunk.completed = tally.complete_at.and_then(|at| at.checked_since(netsim::Time::ZERO)).expect("complete");
    let sent = network.nodes()[0].tallies().next().expect("connected");
    assert_eq!(sent.sent, objects.len(), "each object is sent once for the program");
    assert_eq!(sent.read, tally.written, "a block has one number and one place on both sides");
    let stats = sent.last_stats;
    assert_eq!(stats.congestion.in_flight, 0);
    shrunk.symbols = stats.symbols.source + stats.symbols.resent + stats.symbols.repair;
    shrunk
}

/// Time from a decrease until smaller symbols are sent: some silence, two small packets that get through, and the
/// search, each a few round trips.
const FOUND_WITHIN: Duration = millis(15 * 50);

/// The same where the rate has to be found again.
const FOUND_WITHIN_SEARCHING: Duration = millis(15 * 130);

#[test]
fn a_path_that_shrinks_is_found_out_and_the_object_arrives_once() {
    for (loss, fixed) in [("", true), (",loss=1%", true), (",loss=5%", true), ("", false), (",loss=0.1%", false)] {
        let link = format!("rate=100M,delay=25ms,queue=1MB{loss}");
        for (mtu, size) in [(1_479, 1_408), (1_478, 1_344), (1_400, 1_280), (1_300, 1_152), (1_223, 1_152)] {
            let Shrunk { found, sizes, completed, symbols } = run(&link, fixed, &[10_000_000], &[(400, mtu)]);
            println!(
                "{link} fixed {fixed} mtu {mtu}: {found:?}, T {sizes:?}, complete {completed:?}, {symbols} symbols"
            );
            assert_eq!(sizes, [size], "mtu {mtu}");
            // At 5 % loss, all probes of a size may occasionally be lost.
            assert!(found[0] <= FOUND_WITHIN, "{link} fixed {fixed} mtu {mtu}: {found:?}");
        }
    }
}

#[test]
fn a_path_that_shrinks_again_and_again_still_carries_everything() {
    let objects = [3_000_000, 1, 2_000_000, 0, 5_000_000];
    for (fixed, loss) in [(true, ""), (false, ""), (true, ",loss=3%")] {
        let link = format!("rate=100M,delay=25ms,queue=1MB{loss}");
        let shrinks = [(200, 1_430), (1_200, 1_360), (2_200, 1_240)];
        let objects: Vec<u64> = objects.iter().map(|length| length * 4).collect();
        let Shrunk { found, sizes, completed, .. } = run(&link, fixed, &objects, &shrinks);
        println!("{link} fixed {fixed}: {found:?} {completed:?}");
        assert_eq!(sizes, [1_344, 1_280, 1_152]);
        // CUBIC fills the queue, which adds 80 ms to the round trip.
        let within = if fixed { FOUND_WITHIN } else { FOUND_WITHIN_SEARCHING };
        assert!(found.iter().all(|found| *found <= within), "{found:?}");
    }
}

/// In-order feedback does not report packets behind a gap, and the gap is never filled if its packets are too large.
#[test]
fn feedback_in_order_hides_no_shrinking_path() {
    for (rtt, timeout) in [(50, "probe"), (50, "rto"), (720, "probe"), (720, "rto")] {
        let mut profile = systems::arq::profile();
        profile.set("timeout", timeout).expect("a timeout");
        let link = format!("rate=20M,delay={}ms,queue=100KB,loss=1%", rtt / 2);
        let Shrunk { found, sizes, completed, .. } = run_as(&profile, &link, &[300_000], &[(rtt * 4, 1_347)]);
        println!("{rtt} ms, {timeout}: {found:?}, complete {completed:?}");
        assert_eq!(sizes, [1_152]);
        assert!(found[0] <= millis(rtt) * 15, "{found:?} at {rtt} ms, {timeout}");
    }
}

/// A retransmission timeout without a minimum declares late packets lost (arq 2.1.1), including the probes of a search
/// for the MTU. That must not cause all data in flight to be sent again in smaller symbols.
#[test]
fn a_too_short_timeout_shrinks_no_path() {
    for (detection, loss) in [("duplicates", "4.5%"), ("duplicates:recovery=off", "3.5%")] {
        let mut profile = systems::arq::profile();
        for (key, value) in [("congestion", "fixed-window:segments=5"), ("timeout", "rto"), ("detection", detection)] {
            profile.set(key, value).expect("a valid choice");
        }
        let link = format!("rate=10M,delay=20ms,queue=256KB,jitter=10ms,loss={loss}").parse().expect("a link");
        let case = Case { profile, limit: Duration::from_secs(600), ..Case::new(link) };
        for seed in 1..=4 {
            let outcome = case.run(seed);
            let stats = outcome.sender;
            println!("{detection} {seed}: {:?}, {} sent again", outcome.completed, stats.symbols.resent);
            assert!(outcome.is_identical());
            assert_eq!(stats.symbols.source, case.size.div_ceil(1_400), "{detection} {seed}");
        }
    }
}

/// Only the few last symbols of an object can reveal the decrease.
#[test]
fn a_path_that_shrinks_in_the_tail_is_found_out() {
    for fixed in [true, false] {
        for at in [40, 51, 60, 75] {
            let shrunk = run("rate=100M,delay=25ms,queue=1MB", fixed, &[30_000], &[(at, 1_300)]);
            println!("fixed {fixed}, at {at} ms: {:?}", shrunk.found);
        }
    }
}
