//! Settings of the profile that change during a transfer: everything sent before arrives, and everything after follows
//! the new settings.

use crate::support::{Plan, at_seconds, is_done, is_over, with_sender};
use std::time::Duration;
use transport::Rate;

#[test]
fn every_choice_changes_on_the_way() {
    let changes = [
        ("congestion", "fixed-rate:8M"),
        ("congestion", "cubic:beta=0.5"),
        ("estimator", "ewma:alpha=0.6"),
        ("detection", "threshold:packets=10"),
        ("timeout.max", "2s"),
        ("rtt.alpha", "0.5"),
        ("rtt", "median:samples=9"),
        ("rtt", "per-round:beta=0.5"),
        ("in-flight", "counter"),
        ("rtt", "overestimated:factor=3"),
        ("schedule", "proactive:idle=10"),
        ("in-flight", "packets"),
        ("schedule", "arq"),
        ("schedule", "windowed:tail-failure=1%"),
        ("blocks", "fixed:k=100,code=raptor"),
        ("limit", "9M"),
    ];
    for name in systems::registry().profile_names() {
        let profile = systems::profile(name).expect("listed").with_limit(Rate::from_bits_per_second(10_000_000));
        let plan = Plan::new("rate=10M,delay=20ms,queue=64KB,loss=2%", profile, vec![6_000_000]);
        let mut network = plan.network([Vec::new(), Vec::new()]);
        for (nth, (key, value)) in changes.into_iter().enumerate() {
            let at = netsim::Time::ZERO + Duration::from_millis(250 * (1 + nth as u64));
            network.run_until(at).expect("time passes");
            let set = with_sender(&mut network, |now, connection| connection.set(now, key, value));
            assert_eq!(set, Some(Ok(())), "{name}: {key}={value}");
        }
        let settled =
            with_sender(&mut network, |now, connection| connection.set(now, "feedback.timing", "every-packet"));
        let settled = settled.expect("still open");
        assert!(settled.is_err_and(|error| error.to_string().contains("once a connection has begun")));
        let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(60));
        assert_eq!(done, Ok(true), "{name} does not end");
    }
}

/// Changes from source symbols to repair symbols only and back, with other block sizes and codes each time.
#[test]
fn schedule_and_blocks_change_on_the_way() {
    let rate = Rate::from_bits_per_second(20_000_000);
    for profile in [systems::auto(), systems::rc_udp::profile(), systems::tornado_transfer::profile()] {
        let plan = Plan::new("rate=20M,delay=20ms,queue=256KB,loss=5%", profile.with_fixed_rate(rate), vec![8_000_000]);
        let mut network = plan.network([Vec::new(), Vec::new()]);
        let choices = [
            ("schedule", "block-at-a-time"),
            ("blocks", "fixed:k=100,code=precoded-lt"),
            ("schedule", "windowed"),
            ("schedule", "interleaved:repair-every=20"),
            ("blocks", "partition"),
            ("schedule", "block-at-a-time:blocks=3"),
            ("schedule", "arq"),
        ];
        for (at, (key, value)) in (1..).zip(choices) {
            let until = netsim::Time::ZERO + Duration::from_millis(300 * at);
            network.run_until(until).expect("time passes");
            if let Some(set) = with_sender(&mut network, |now, connection| connection.set(now, key, value)) {
                set.expect("a valid choice");
            }
        }
        let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(60));
        assert_eq!(done, Ok(true), "by {:?}", plan.profile.name);
        assert_eq!(network.run_while(|nodes| !is_over(nodes), at_seconds(200)), Ok(true), "not closed");
        let received = network.nodes()[1].host.tallies().next().and_then(|tally| tally.received.values().next());
        assert!(received.is_some_and(downpour_sim::Received::is_identical), "by {:?}", plan.profile.name);
    }
}
