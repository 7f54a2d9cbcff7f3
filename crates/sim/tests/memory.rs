//! A second transfer, which begins with the measurements of the first (careful resume, RFC 9959).

use downpour_sim::{Flow, FlowOutcome, SharedCase};
use netsim::topology::Topology;
use std::time::Duration;
use transport::Rate;
use transport::congestion::SavedPath;

const SIZE: u64 = 10_000_000;

fn run(link: &str, memory: Option<SavedPath>, seed: u64) -> FlowOutcome {
    let text = format!(
        "hosts = [\"a\", \"b\"]\nlinks = [{{ between = [\"a\", \"b\"], link = \"{link}\" }}]\n\
         pairs = [{{ from = \"a\", to = \"b\" }}]\n"
    );
    let topology: Topology = text.parse().expect("a topology");
    let flows = vec![Flow { memory, ..Flow::new(topology.pairs()[0], systems::auto(), SIZE) }];
    let case = SharedCase { flows, limit: Duration::from_secs(60), ..SharedCase::new(topology) };
    let flow = case.run(seed).expect("runs").flows.remove(0);
    assert!(flow.is_identical, "seed {seed}");
    flow
}

/// Returns the mean time of five seeds in seconds, and the IP bytes per byte of the object.
fn mean(link: &str, memory: Option<SavedPath>) -> (f64, f64) {
    let flows: Vec<FlowOutcome> = (1..=5).map(|seed| run(link, memory, seed)).collect();
    let seconds: f64 = flows.iter().filter_map(|flow| flow.completed).map(|time| time.as_secs_f64()).sum();
    let bytes: u64 = flows.iter().map(|flow| flow.wire_bytes).sum();
    (seconds / 5.0, bytes as f64 / 5.0 / SIZE as f64)
}

fn memory(megabits: u64, base: Duration) -> Option<SavedPath> {
    Some(SavedPath { rate: Rate::from_bits_per_second(megabits * 1_000_000), base, baseline: Some(0.0), burst: 1.0 })
}

const LONG: &str = "rate=100M,delay=300ms,queue=256KB,loss=2%";
const LONG_RTT: Duration = Duration::from_millis(600);

#[test]
fn the_second_transfer_over_a_long_path_is_faster_than_the_first() {
    let learned = run(LONG, None, 1).memory.expect("something worth remembering");
    let rate = learned.rate.bits_per_second();
    assert!((70_000_000..=100_000_000).contains(&rate), "{learned:?}");
    assert!(learned.base.abs_diff(LONG_RTT) < Duration::from_millis(5), "{learned:?}");
    // It is over before the start is, which takes all loss for possible.
    assert_eq!(learned.baseline, None, "{learned:?}");
    let (first, second) = (mean(LONG, None), mean(LONG, Some(learned)));
    assert!(second.0 < first.0 - 0.2 && second.1 < first.1 + 0.06, "{second:?} after {first:?}");
}

#[test]
fn a_wrong_memory_costs_little() {
    for (link, rtt) in [(LONG, LONG_RTT), ("rate=20M,delay=25ms,queue=100KB", Duration::from_millis(50))] {
        let unknown = mean(link, None);
        for (megabits, base) in [(1_000, rtt), (2, rtt), (1_000, rtt * 3), (1_000, rtt / 11)] {
            let wrong = mean(link, memory(megabits, base));
            let is_dear = wrong.0 > 1.1 * unknown.0 || wrong.1 > unknown.1 + 0.12;
            assert!(!is_dear, "{megabits} Mbit/s, {base:?} over {link}: {wrong:?} instead of {unknown:?}");
        }
    }
}

#[test]
fn little_is_not_worth_remembering() {
    assert_eq!(
        run("rate=100M,delay=1ms,queue=256KB", None, 1).memory,
        None,
        "four initial windows do not fit the path"
    );
}
