//! Law 2: every packet is permitted by window and pacer. Law 6: congestion control sees a loss before it is repaired.

use crate::support::{Plan, at_seconds, is_done, is_over};
use netsim::NodeId;
use std::time::Duration;
use transport::Rate;

const SENDER: NodeId = NodeId::from_index(0);
const FULL_PACKET: u64 = 1_479;

/// Returns the most bytes in any span of this length that begins with a packet.
fn most_within(log: &[(netsim::Time, u64)], span: Duration) -> u64 {
    let (mut most, mut sum, mut end) = (0, 0, 0);
    for (start, (from, bytes)) in log.iter().enumerate() {
        while end < log.len() && log[end].0.checked_since(*from).is_some_and(|after| after < span) {
            sum += log[end].1;
            end += 1;
        }
        most = most.max(sum);
        if start < end {
            sum -= bytes;
        }
    }
    most
}

#[test]
fn a_fixed_rate_is_never_exceeded() {
    for (bits, link) in [
        (100_000_000, "rate=1G,delay=20ms,loss=2%"),
        (100_000_000, "rate=100M,delay=20ms,queue=256KB"),
        (3_000_000, "rate=1G,delay=20ms,loss=2%"),
    ] {
        let rate = Rate::from_bits_per_second(bits);
        let plan = Plan::new(link, systems::auto().with_fixed_rate(rate), vec![4_000_000]);
        let mut network = plan.network([Vec::new(), Vec::new()]);
        network.run_while(|nodes| !is_over(nodes), at_seconds(60)).expect("time passes");
        let log = &network.nodes()[0].log;
        // The pacer's depth is 4 ms. Handshake, close and confirmations of feedback are not paced.
        let burst = rate.bytes_in(Duration::from_millis(4)).max(2 * FULL_PACKET) + 8 * FULL_PACKET;
        for span in [10, 100, 1_000].map(Duration::from_millis) {
            let (most, allowed) = (most_within(log, span), rate.bytes_in(span) + burst);
            assert!(most <= allowed, "{most} bytes in {span:?} with {allowed} allowed, fixed rate {rate} over {link}");
        }
        let second = most_within(log, Duration::from_secs(1));
        assert!(
            second * 10 >= rate.bytes_in(Duration::from_secs(1)).min(4_000_000) * 9,
            "{second}: is it kept at all?"
        );
    }
}

#[test]
fn nothing_is_sent_beyond_the_window() {
    let fixed = systems::auto().with_fixed_rate(Rate::from_bits_per_second(100_000_000));
    // Fast retransmissions ignore the window (RFC 5681 section 3.2). Feedback by ranges has none.
    let mut arq = systems::arq::profile();
    for (key, value) in [("feedback.packets", "ranges"), ("detection", "threshold")] {
        arq.set(key, value).expect("a choice");
    }
    for profile in [fixed, systems::auto(), arq] {
        for link in ["rate=50M,delay=20ms,queue=64KB", "rate=50M,delay=20ms,queue=64KB,loss=1%"] {
            let plan = Plan::new(link, profile.clone(), vec![8_000_000]);
            let mut network = plan.network([Vec::new(), Vec::new()]);
            let (mut before, mut rose) = (0, 0);
            while network.step().expect("time passes") && !is_over(network.nodes()) {
                let Some(stats) = network.node_mut(SENDER).and_then(|node| node.host.stats().pop()) else { continue };
                if stats.congestion.in_flight > before {
                    rose += 1;
                    // One packet may be sent while any room is left, and a probe of two packets is not limited.
                    let most = stats.congestion.window + 3 * FULL_PACKET;
                    assert!(stats.congestion.in_flight <= most, "{stats:?} by {} over {link}", profile.name);
                }
                before = stats.congestion.in_flight;
            }
            assert!(rose > 100, "in flight rose {rose} times: is it watched at all?");
        }
    }
}

#[test]
fn loss_is_seen_before_decoding_repairs_it() {
    let profile = systems::auto().with_fixed_rate(Rate::from_bits_per_second(100_000_000));
    // Everything is sent within one round trip: repair is sent ahead, and no symbol is sent again.
    let plan = Plan::new("rate=100M,delay=200ms,loss=5%", profile, vec![3_000_000]);
    let mut network = plan.network([Vec::new(), Vec::new()]);
    network.run_while(|nodes| !is_done(nodes, &plan), at_seconds(60)).expect("time passes");
    let before = network.node_mut(SENDER).and_then(|node| node.host.stats().pop()).expect("just closing");
    network.run_while(|nodes| !is_over(nodes), at_seconds(60)).expect("time passes");
    let tally = |side: usize| network.nodes()[side].host.tallies().next().expect("they met");
    let (sender, receiver) = (tally(0), tally(1));
    assert!(receiver.decodes > 0, "something was repaired");
    let (sent, lost) = (before.packets.sent as f64, before.path.loss);
    assert!((0.035..0.065).contains(&lost), "{lost:.3} of {sent} packets are known lost where 5 % are");
    assert_eq!(sender.last_stats.congestion.in_flight, 0);
    assert_eq!(receiver.last_stats.congestion.in_flight, 0);
}
