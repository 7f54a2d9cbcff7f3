//! Choices of the profile that change on the way: what was sent before arrives, and what comes after follows the new ones.

use crate::support::{Censored, Plan, at_seconds, is_done};
use netsim::{Network, NodeId};
use std::time::Duration;
use transport::{Connection, Profile, Rate};

const SENDER: NodeId = NodeId::from_index(0);

/// Does something to the sender's connection, at this moment of its time.
fn with_sender<R>(network: &mut Network<Censored>, act: impl FnOnce(transport::Time, &mut Connection) -> R) -> R {
    let now = transport::Time::from_nanos(network.now().as_nanos());
    let endpoint = network.node_mut(SENDER).expect("the sender").host.endpoint();
    let handle = endpoint.handles().next().expect("still open");
    act(now, endpoint.connection(handle).expect("still open"))
}

#[test]
fn every_choice_changes_on_the_way() {
    let changes = [
        ("congestion", "told:8M"),
        ("congestion", "cubic:beta=0.5"),
        ("estimator", "ewma:alpha=0.6"),
        ("detection", "threshold:packets=10"),
        ("timeout.max", "2s"),
        ("rtt.alpha", "0.5"),
        ("rtt", "median:samples=9"),
        ("rtt", "per-round:beta=0.5"),
        ("schedule", "arq"),
        ("schedule", "windowed:tail-failure=1%"),
        ("blocks", "fixed:k=100,code=raptor"),
        ("limit", "9M"),
    ];
    for name in Profile::NAMES {
        let profile = Profile::named(name).expect("listed").with_limit(Rate::from_bits_per_second(10_000_000));
        let plan = Plan::new("rate=10M,delay=20ms,queue=64KB,loss=2%", profile, vec![6_000_000]);
        let mut network = plan.network([Vec::new(), Vec::new()]);
        for (nth, (key, value)) in changes.into_iter().enumerate() {
            let at = netsim::Time::ZERO + Duration::from_millis(250 * (1 + nth as u64));
            network.run_until(at).expect("time passes");
            let set = with_sender(&mut network, |now, connection| connection.set(now, key, value));
            assert_eq!(set, Ok(()), "{name}: {key}={value}");
        }
        let settled =
            with_sender(&mut network, |now, connection| connection.set(now, "feedback.timing", "every-packet"));
        assert!(settled.is_err_and(|error| error.to_string().contains("when a connection begins")));
        let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(60));
        assert_eq!(done, Ok(true), "{name} does not come to its end");
    }
}
