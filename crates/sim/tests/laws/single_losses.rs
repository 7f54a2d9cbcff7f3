//! Laws 3 and 7: no single lost packet stalls a transfer, in either direction, whatever it contained.

use crate::support::{Plan, at_seconds, is_done, is_over};
use std::time::Duration;
use transport::{ConnectionConfig, EndpointConfig, Profile, Rate, wire::Credit};

const LINK: &str = "rate=20M,delay=20ms,queue=256KB";
const RTT: Duration = Duration::from_millis(40);

fn fixed() -> Profile {
    systems::auto().with_fixed_rate(Rate::from_bits_per_second(20_000_000))
}

/// Returns the time until the closing side is done, and the number of packets that each side had sent by then.
fn run(plan: &Plan, dropped: [Vec<u64>; 2]) -> (Duration, [u64; 2]) {
    let what = format!("without packets {dropped:?} of {plan:?}");
    let mut network = plan.network(dropped);
    let done = network.run_while(|nodes| !is_done(nodes, plan), at_seconds(60)).expect("time passes");
    assert!(done, "no end in a minute {what}");
    let took = network.now().checked_since(netsim::Time::ZERO).expect("after the start");
    let sent = [network.nodes()[0].sent, network.nodes()[1].sent];
    assert_eq!(network.run_while(|nodes| !is_over(nodes), at_seconds(200)), Ok(true), "not closed {what}");
    (took, sent)
}

/// Drops every packet in turn, one per run, up to the 300th of each side.
fn each_loss_costs_at_most(extra: Duration, plan: &Plan) {
    each_further_loss_costs_at_most(extra, plan, &[]);
}

/// Same, where the sender's packets `lost` are dropped in every run.
fn each_further_loss_costs_at_most(extra: Duration, plan: &Plan, lost: &[u64]) {
    let (least, sent) = run(plan, [lost.to_vec(), Vec::new()]);
    let mut worst = (Duration::ZERO, 0, 0);
    for side in [0, 1] {
        for number in 1..=(sent[side] + 5).min(300) {
            let mut dropped = [lost.to_vec(), Vec::new()];
            dropped[side].push(number);
            let (took, _) = run(plan, dropped);
            worst = worst.max((took.saturating_sub(least), side, number));
        }
    }
    let (longer, side, number) = worst;
    assert!(
        longer <= extra,
        "without packet {number} of side {side} it takes {longer:?} more than {least:?}: {plan:?}"
    );
}

#[test]
fn no_single_loss_stalls_a_transfer() {
    each_loss_costs_at_most(3 * RTT, &Plan::new(LINK, fixed(), vec![150_000]));
}

#[test]
fn no_single_loss_stalls_a_fetch() {
    let plan = Plan::new(LINK, fixed(), vec![100_000]);
    each_loss_costs_at_most(3 * RTT, &Plan { sender_connects: false, ..plan });
}

#[test]
fn no_single_loss_stalls_arq() {
    // CUBIC takes the loss for congestion; the greatest cost is the end of slow start at a window of four packets, from
    // which the other sixty go out in ten round trips.
    each_loss_costs_at_most(12 * RTT, &Plan::new(LINK, systems::arq::profile(), vec![100_000]));
}

/// rc-udp §IV-B: five blocks, each acknowledged before the next. tornado-transfer §2.1: eight blocks whose symbols are
/// never sent again.
#[test]
fn no_single_loss_stalls_the_documents_systems() {
    let mut block_at_a_time = systems::rc_udp::profile().with_fixed_rate(Rate::from_bits_per_second(20_000_000));
    block_at_a_time.set("blocks.bytes", "20000").expect("a size");
    each_loss_costs_at_most(5 * RTT, &Plan::new(LINK, block_at_a_time, vec![100_000]));
    let interleaved = systems::tornado_transfer::profile().with_fixed_rate(Rate::from_bits_per_second(20_000_000));
    each_loss_costs_at_most(3 * RTT, &Plan::new(LINK, interleaved, vec![100_000]));
}

#[test]
fn no_single_loss_stalls_many_small_objects() {
    each_loss_costs_at_most(4 * RTT, &Plan::new(LINK, fixed(), vec![0, 1, 1_408, 3_000, 0, 20_000]));
}

#[test]
fn no_single_loss_stalls_the_control_stream() {
    let plan = Plan::new(LINK, fixed(), vec![]);
    each_loss_costs_at_most(4 * RTT, &Plan { control: 20_000, ..plan });
}

/// A block is reported done by feedback sent when nothing else is in flight: on a long path, repair was sent ahead of
/// the two losses, and decoding ends after the last packet was acknowledged.
#[test]
fn no_single_loss_stalls_while_coding_takes_time() {
    let plan = Plan::new("rate=20M,delay=300ms,queue=256KB", fixed(), vec![100_000]);
    let plan = Plan { compute_delay: Duration::from_millis(250), ..plan };
    each_further_loss_costs_at_most(Duration::from_millis(2_500), &plan, &[30, 40]);
}

/// The credit for the next block arrives when this one is written and nothing else is in flight.
#[test]
fn no_single_loss_stalls_while_credit_is_awaited() {
    let mut plan = Plan::new(LINK, fixed(), vec![100_000]);
    plan.profile.set("blocks.k", "16").expect("blocks of one size");
    let limits = ConnectionConfig { credit: Credit { symbols: 16, control: 1_000 }, ..ConnectionConfig::default() };
    plan.endpoint = EndpointConfig { limits, ..EndpointConfig::default() };
    let plan = Plan { storage_delay: Duration::from_millis(200), receiver_closes: true, ..plan };
    each_loss_costs_at_most(15 * RTT, &plan);
}
