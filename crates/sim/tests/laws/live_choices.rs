//! Schedules and blocks that change while an object is under way leave it whole.

use crate::support::{Censored, Plan, at_seconds, is_done, is_over};
use netsim::{Network, NodeId};
use transport::{Profile, Rate};

const SENDER: NodeId = NodeId::from_index(0);

fn set(network: &mut Network<Censored>, key: &str, value: &str) {
    let now = transport::Time::from_nanos(network.now().as_nanos());
    let endpoint = network.node_mut(SENDER).expect("the sender").host.endpoint();
    let Some(handle) = endpoint.handles().next() else { return };
    endpoint.connection(handle).expect("still open").set(now, key, value).expect("a choice that there is");
}

/// From source to repair alone and back, blocks of other sizes and codes each time.
#[test]
fn schedule_and_blocks_change_on_the_way() {
    let rate = Rate::from_bits_per_second(20_000_000);
    for profile in [Profile::auto(), Profile::rc_udp(), Profile::tornado_transfer()] {
        let plan = Plan::new("rate=20M,delay=20ms,queue=256KB,loss=5%", profile.with_told_rate(rate), vec![8_000_000]);
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
            let until = netsim::Time::ZERO + std::time::Duration::from_millis(300 * at);
            network.run_until(until).expect("time passes");
            set(&mut network, key, value);
        }
        let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(60));
        assert_eq!(done, Ok(true), "by {:?}", plan.profile.name);
        assert_eq!(network.run_while(|nodes| !is_over(nodes), at_seconds(200)), Ok(true), "not closed");
        let received = network.nodes()[1].host.tallies().next().and_then(|tally| tally.received.values().next());
        assert!(received.is_some_and(sim::Received::is_identical), "by {:?}", plan.profile.name);
    }
}
