//! Both ends of a stream close despite any losses, in each of the three ways of lt-tcp §3.2.

use crate::support::{Plan, at_seconds, is_over};
use downpour_sim::{StreamEnd, StreamScript};
use std::time::Duration;

/// All seeds must end over a path that loses half of all packets in each direction.
fn check(length: u64, write: u64, every: Duration) {
    let (mut met, seeds) = (0, 60);
    for seed in 0..seeds {
        let link = format!("rate=10M,delay=20ms,queue=100KB,loss=50%,seed={seed}");
        let mut plan = Plan::new(link, systems::lt_tcp::profile(), vec![]);
        plan.streams = vec![StreamScript { length, write, every, reset_at: None, stop_at: None }];
        let mut network = plan.network([Vec::new(), Vec::new()]);
        network.run_while(|nodes| !is_over(nodes), at_seconds(600)).expect("time passes");
        let ends = [0, 1].map(|side| network.nodes()[side].host.tallies().next().map(|tally| tally.closed.clone()));
        // The first messages and their answers may all be lost until the connector's timeout.
        let connected = network.nodes()[0].host.tallies().any(|tally| tally.connected_at.is_some());
        met += u64::from(connected);
        assert!(!connected || ends.iter().all(|end| matches!(end, Some(Some(_)))), "seed {seed}: {ends:?}");
        for tally in network.nodes()[1].host.tallies().filter(|_| connected) {
            let read: Vec<_> =
                tally.streams.reading.values().map(|stream| (stream.read, stream.end, stream.wrong)).collect();
            assert_eq!(read, [(length, StreamEnd::Whole, 0)], "seed {seed}");
        }
    }
    assert!(met * 10 >= seeds * 9, "only {met} of {seeds} met");
}

#[test]
fn when_bytes_wait_the_last_block_is_marked() {
    check(100_000, 100_000, Duration::ZERO);
}

#[test]
fn an_idle_stream_ends_with_an_empty_block() {
    check(0, 1, Duration::ZERO);
}

#[test]
fn when_a_block_is_on_its_way_an_empty_one_follows() {
    check(3_000, 1_000, Duration::from_millis(7));
}

/// Once a block has failed, nothing more is sent, whatever else is queued (ttp §I).
#[test]
fn a_failed_transfer_ends_at_once() {
    let mut profile = systems::ttp::profile();
    profile.set("schedule", "chunks:padding=document,mend=off").expect("a schedule");
    let plan = Plan::new("rate=20M,delay=5ms,queue=256KB,loss=10%", profile, vec![600_000, 20_000_000]);
    let mut network = plan.network([vec![], vec![]]);
    assert_eq!(network.run_while(|nodes| !is_over(nodes), at_seconds(200)), Ok(true));
    let closed = network.nodes()[0].host.tallies().next().and_then(|tally| tally.closed.clone());
    assert_eq!(closed, Some(transport::ConnectionError::Undecodable));
    // The first object is 430 packets, the second 14,000.
    assert!(network.nodes()[0].sent < 2_000, "{} packets", network.nodes()[0].sent);
}
