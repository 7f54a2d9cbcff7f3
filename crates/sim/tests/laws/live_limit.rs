//! A limit that changes during a transfer applies from then on, with any controller.

use crate::support::{Censored, Plan, at_seconds, is_done, with_sender};
use netsim::Network;
use transport::Rate;

const fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000)
}

/// Returns the IP bits per second sent in the two seconds before `until`.
fn rate_before(network: &Network<Censored>, until: u64) -> f64 {
    let span = at_seconds(until - 2)..at_seconds(until);
    let bytes: u64 = network.nodes()[0].log.iter().filter(|(at, _)| span.contains(at)).map(|(_, bytes)| bytes).sum();
    bytes as f64 * 8.0 / 2.0
}

#[test]
fn a_limit_changes_on_the_way() {
    for profile in [systems::auto().with_fixed_rate(mbit(40)), systems::auto(), systems::arq::profile()] {
        let plan = Plan::new("rate=50M,delay=20ms,queue=256KB", profile.with_limit(mbit(20)), vec![40_000_000]);
        let mut network = plan.network([Vec::new(), Vec::new()]);
        let mut rates = Vec::new();
        for (until, next) in [(4, Some(mbit(10))), (8, Some(mbit(20))), (12, None)] {
            network.run_until(at_seconds(until)).expect("time passes");
            rates.push(rate_before(&network, until) / 1e6);
            with_sender(&mut network, |now, connection| connection.set_limit(now, next)).expect("still open");
        }
        for (rate, expected) in rates.iter().zip([20.0, 10.0, 20.0]) {
            assert!((expected * 0.97..expected * 1.01).contains(rate), "{rates:?} by {:?}", plan.profile);
        }
        let done = network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(25));
        assert_eq!(done, Ok(true), "without a limit the rest is quick: {:?}", plan.profile);
    }
}
