//! A window driven by ECN marks (lt-tcp §1.1) on paths that clear the ECN field or lose the packets that validate it:
//! losses drive the window until validation succeeds (RFC 9000 section 13.4.2.2), so that it never floods a queue.

use crate::support::{Plan, at_seconds, is_done, is_over};
use netsim::NodeId;
use std::time::Duration;
use transport::ConnectionStats;

const SIZE: u64 = 8_000_000;

/// Runs lt-tcp over 20 Mbit/s with a queue of 40 ms that marks from 10 ms on. The packets with the numbers `dropped`
/// are lost before the link, and those sent in the period `bleached`, in milliseconds, lose their ECN field.
fn run(dropped: Vec<u64>, bleached: std::ops::Range<u64>) -> ConnectionStats {
    let plan = Plan::new("rate=20M,delay=10ms,queue=100KB,mark-above=25KB", systems::lt_tcp::profile(), vec![SIZE]);
    let mut network = plan.network([dropped, Vec::new()]);
    for (at, bleaches) in [(bleached.start, true), (bleached.end, false)] {
        network.run_until(netsim::Time::ZERO + Duration::from_millis(at)).expect("time passes");
        network.node_mut(NodeId::from_index(0)).expect("the sender").bleaches = bleaches;
    }
    let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(60));
    assert_eq!(done, Ok(true), "no end");
    assert_eq!(network.run_while(|nodes| !is_over(nodes), at_seconds(200)), Ok(true), "not closed");
    let [sender, receiver] = [0, 1].map(|side| network.nodes()[side].host.tallies().next().expect("they met"));
    assert!(receiver.received.values().all(downpour_sim::Received::is_identical));
    sender.last_stats
}

/// Returns the IP bytes sent per byte.
fn cost(stats: &ConnectionStats) -> f64 {
    stats.packets.bytes_sent as f64 / SIZE as f64
}

#[test]
fn a_path_that_clears_marks_from_some_time_on_is_not_flooded() {
    let [clean, bleached] = [run(vec![], 0..0), run(vec![], 1_000..60_000)];
    assert_eq!((clean.path.ecn, clean.packets.lost), (Some(true), 0));
    assert!(cost(&clean) < 1.15, "{clean:?}");
    assert!(bleached.path.ecn != Some(true) && cost(&bleached) < 1.25, "{:.2}: {bleached:?}", cost(&bleached));
}

#[test]
fn a_path_that_clears_marks_for_a_while_is_governed_by_marks_again() {
    let stats = run(vec![], 500..1_000);
    assert!(stats.path.ecn == Some(true) && cost(&stats) < 1.25, "{:.2}: {stats:?}", cost(&stats));
}

/// A burst of losses that includes the first marked packets looks like a path that drops marked packets.
#[test]
fn a_burst_that_takes_the_first_marked_packets_does_not_end_marking() {
    for last in [12, 20, 40] {
        let stats = run((3..=last).collect(), 0..0);
        assert!(stats.path.ecn == Some(true) && cost(&stats) < 1.25, "{last}: {:.2}: {stats:?}", cost(&stats));
    }
}
