//! Connections that carry little for long: their cost, and their state when they are needed again.

use crate::support::{Plan, at_seconds, is_done};
use downpour_sim::StreamScript;
use netsim::NodeId;
use std::time::Duration;

const HOUR: u64 = 3_600;

/// A stream of single bytes, written so often.
fn bytes(count: u64, every: Duration) -> StreamScript {
    StreamScript { length: count, write: 1, every, reset_at: None, stop_at: None }
}

/// Runs the stream to its end, over a round trip of 600 ms, with the patience that a tunnel has by default. Returns the seconds
/// at which each byte was written and read, and the IP bytes that both hosts have sent.
fn run(link: &str, script: StreamScript) -> (Vec<(f64, f64)>, u64) {
    let mut plan = Plan::new(format!("rate=20M,delay=300ms,queue=256KiB{link}"), systems::auto(), Vec::new());
    plan.endpoint.limits.dead_after = Duration::from_secs(24 * HOUR);
    plan.streams = vec![script];
    let mut network = plan.network([Vec::new(), Vec::new()]);
    let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(48 * HOUR));
    assert_eq!(done, Ok(true), "no end: {plan:?}");
    let [here, there] = [0, 1].map(|side| network.nodes()[side].host.tallies().next().expect("they met"));
    let writing = here.streams.writing.values().next().expect("one stream");
    let reading = there.streams.reading.values().next().expect("one stream");
    assert_eq!((reading.read, reading.wrong), (script.length, 0));
    let read = |count: u64| reading.log.iter().find(|(read, _)| *read >= count).expect("read to its end").1;
    let seconds = |at: transport::Time| at.since(transport::Time::ZERO).as_secs_f64();
    let times = writing.log.iter().map(|(count, at)| (seconds(*at), seconds(read(*count)))).collect();
    let stats = [0, 1].map(|side| network.node_mut(NodeId::from_index(side)).expect("a host").host.all_stats());
    (times, stats.concat().iter().map(|stats| stats.packets.bytes_sent).sum())
}

/// 100 kB an hour do not matter to a phone on a metered connection. Measured: 63 kB.
#[test]
fn an_idle_connection_costs_little() {
    for loss in ["", ",loss=5%"] {
        let (_, bytes) = run(loss, bytes(11, Duration::from_secs(HOUR / 2)));
        assert!(bytes < 5 * 100_000, "{bytes} bytes in five hours{loss}");
    }
}

/// Bytes written before the outage, within it and after it arrive; the path is found again within seconds.
#[test]
fn an_outage_of_a_day_is_survived() {
    let outage = ",loss-step=60s:100%+82800s:0%";
    let (times, _) = run(outage, bytes(3, Duration::from_secs(45 * HOUR / 2)));
    let [before, within, after] = times[..] else { panic!("{times:?}") };
    assert!(before.1 - before.0 < 1.0, "{before:?}");
    assert!((82_800.0..82_805.0).contains(&within.1), "{within:?}");
    assert!(after.1 - after.0 < 1.0, "{after:?}");
}
