//! Laws 3 and 7 with every form of feedback: no single lost packet stalls a transfer, and no loss stops one.

use crate::support::{Plan, at_seconds, is_done, is_over};
use netsim::Network;
use std::time::Duration;
use transport::{Profile, Rate};

const LINK: &str = "rate=20M,delay=20ms,queue=256KB";
const RTT: Duration = Duration::from_millis(40);

/// Feedback on packets, on blocks, and its timing.
const CHOICES: [[&str; 3]; 9] = [
    ["in-order", "needs", "every-packet"],
    ["in-order", "done", "on-blocks"],
    ["count", "needs", "every-packet"],
    ["last:64", "needs", "every:packets=64"],
    ["last", "done:1%", "every"],
    ["ranges", "mask", "on-blocks"],
    ["ranges", "mask", "spaced"],
    ["ranges", "received:5%", "on-blocks:heartbeat=100ms"],
    ["ranges", "received", "every:packets=16,factor=4"],
];

fn profile([packets, blocks, timing]: [&str; 3]) -> Profile {
    let mut profile = systems::auto().with_fixed_rate(Rate::from_bits_per_second(20_000_000));
    for (key, value) in [("packets", packets), ("blocks", blocks), ("timing", timing)] {
        profile.set(&format!("feedback.{key}"), value).expect("a choice of feedback");
    }
    profile
}

/// Returns the time until the closing side is done, and the number of packets that each side had sent by then.
fn run(plan: &Plan, dropped: [Vec<u64>; 2]) -> (Duration, [u64; 2]) {
    let what = format!("without packets {dropped:?} of {plan:?}");
    let mut network: Network<_> = plan.network(dropped);
    let done = network.run_while(|nodes| !is_done(nodes, plan), at_seconds(60)).expect("time passes");
    assert!(done, "no end in a minute {what}");
    let took = network.now().checked_since(netsim::Time::ZERO).expect("after the start");
    let sent = [network.nodes()[0].sent, network.nodes()[1].sent];
    assert_eq!(network.run_while(|nodes| !is_over(nodes), at_seconds(200)), Ok(true), "not closed {what}");
    (took, sent)
}

#[test]
fn no_single_loss_stalls_a_transfer_with_any_feedback() {
    for choice in CHOICES {
        let plan = Plan::new(LINK, profile(choice), vec![60_000, 3_000]);
        let (least, sent) = run(&plan, [vec![], vec![]]);
        for side in [0, 1] {
            for number in 1..=(sent[side] + 5).min(100) {
                let mut dropped = [vec![], vec![]];
                dropped[side].push(number);
                let (took, _) = run(&plan, dropped);
                let longer = took.saturating_sub(least);
                assert!(
                    longer <= 4 * RTT,
                    "without packet {number} of side {side} {longer:?} more than {least:?}: {choice:?}"
                );
            }
        }
    }
}

#[test]
fn no_pattern_of_loss_stops_a_transfer_with_any_feedback() {
    for choice in CHOICES {
        for loss in ["loss=10%", "loss=3%,burst=5"] {
            let plan = Plan::new(format!("{LINK},{loss}"), profile(choice), vec![2_000_000]);
            run(&plan, [vec![], vec![]]);
        }
    }
}

/// A sender that only learns how many packets arrived, not which, may take a lost one for delivered. A sender that only
/// learns of completed blocks does not know that one needs more than k symbols. The transfer completes nevertheless.
#[test]
fn wrong_guesses_stop_no_transfer() {
    let guesses: [(&str, &[(&str, &str)]); 6] = [
        ("arq", &[("feedback.packets", "count")]),
        ("arq", &[("feedback.packets", "count"), ("feedback.blocks", "done")]),
        ("auto", &[("feedback.packets", "count"), ("schedule.repair-from-rtt", "1s")]),
        ("ttp", &[("feedback.packets", "count"), ("schedule.padding", "document")]),
        ("ttp", &[("feedback.blocks", "done"), ("schedule.padding", "document")]),
        ("lt-tcp", &[("feedback.blocks", "mask"), ("blocks.code", "tornado:32")]),
    ];
    for (name, choices) in guesses {
        let mut profile = systems::profile(name).expect("listed");
        for (key, value) in choices {
            profile.set(key, value).unwrap_or_else(|error| panic!("{name} {key}={value}: {error}"));
        }
        for loss in ["loss=0%", "loss=1%", "loss=10%", "loss=3%,burst=5"] {
            let plan = Plan::new(format!("{LINK},{loss}"), profile.clone(), vec![600_000, 3_000]);
            run(&plan, [vec![], vec![]]);
        }
    }
}
