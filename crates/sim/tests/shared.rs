//! Transfers that share a topology.

use netsim::topology::Topology;
use sim::{Case, Ending, SharedCase, SharedError};
use std::time::Duration;
use transport::{Profile, Rate};

/// Two pairs over one bottleneck of 20 Mbit/s, and a bystander.
fn dumbbell(bottleneck: &str) -> Topology {
    let access = |host: &str, router: &str| {
        format!("[[links]]\nbetween = [\"{host}\", \"{router}\"]\nlink = \"rate=1G,delay=1ms\"\n")
    };
    let text = format!(
        "hosts = [\"a1\", \"a2\", \"b1\", \"b2\", \"c\"]\nrouters = [\"left\", \"right\"]\n\
         [[links]]\nbetween = [\"left\", \"right\"]\nlink = \"{bottleneck}\"\n{}{}{}{}{}\
         [[pairs]]\nfrom = \"a1\"\nto = \"b1\"\n[[pairs]]\nfrom = \"b2\"\nto = \"a2\"\n",
        access("a1", "left"),
        access("a2", "left"),
        access("right", "b1"),
        access("right", "b2"),
        access("c", "left")
    );
    text.parse().expect("a good topology")
}

fn told(megabits: u64) -> Profile {
    Profile::auto().with_told_rate(Rate::from_bits_per_second(megabits * 1_000_000))
}

#[test]
fn every_pair_of_a_topology_gets_its_object_across() {
    let topology = dumbbell("rate=20M,delay=18ms,queue=100KB,loss=1%");
    let case = SharedCase { size: 2_000_000, profile: told(20), ..SharedCase::new(topology.clone()) };
    let outcome = case.run(1).expect("runs");
    assert_eq!(outcome.ending, Ending::Closed);
    assert_eq!(outcome.transfers.iter().map(|transfer| transfer.pair).collect::<Vec<_>>(), topology.pairs());
    // Against each other's direction they are alone, as over one link of the same rate and round trip.
    let alone =
        Case { size: 2_000_000, ..Case::new("rate=20M,delay=20ms,queue=100KB,loss=1%".parse().expect("a link")) };
    let floor = alone.floor();
    for transfer in &outcome.transfers {
        let took = transfer.completed.expect("complete");
        assert!(transfer.is_identical && took >= floor && took < floor.mul_f64(1.3), "{took:?} of {floor:?}");
    }
    let [there, back] = outcome.links[0];
    assert!(there.delivered.bytes > 2_000_000 && back.delivered.bytes > 2_000_000, "{there:?} {back:?}");
    assert!(there.dropped_random.packets > 5 && back.dropped_random.packets > 5, "{there:?} {back:?}");
    assert_eq!(outcome.links[1][0].offered, outcome.links[1][0].delivered, "access links lose nothing");
    let [data, feedback] = outcome.links[1].map(|stats| stats.delivered.bytes);
    assert!(data > 2_000_000 && feedback < 200_000, "{data} and {feedback} bytes at a1");
    assert_eq!(outcome.links[5][0].offered.packets + outcome.links[5][1].offered.packets, 0, "nobody speaks to c");
    assert_eq!(case.run(1).expect("runs"), outcome, "same seed");
    assert_ne!(case.run(2).expect("runs").links, outcome.links, "another seed");
}

#[test]
fn a_transfer_that_does_not_finish_is_none() {
    let case = SharedCase { limit: Duration::from_secs(1), ..SharedCase::new(dumbbell("rate=1M,delay=18ms")) };
    let outcome = case.run(1).expect("runs");
    assert_eq!(outcome.ending, Ending::TimeUp);
    assert!(outcome.transfers.iter().all(|transfer| transfer.completed.is_none() && !transfer.is_identical));
    assert!(outcome.links[0][0].delivered.packets > 50);
}

#[test]
fn pairs_need_hosts_of_their_own() {
    let text = "hosts = [\"a\", \"b\"]\nlinks = [{ between = [\"a\", \"b\"], link = \"perfect\" }]\n";
    let run = |text: &str| SharedCase::new(text.parse().expect("a topology")).run(1).expect_err("cannot run");
    assert_eq!(run(text), SharedError::NoPairs);
    let pair = |from: &str, to: &str| format!("[[pairs]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let busy = run(&format!("{text}{}{}", pair("a", "b"), pair("b", "a")));
    assert_eq!(busy.to_string(), "b is in two pairs: give each pair hosts of its own");
    let trace = text.replace("perfect", "trace=x") + &pair("a", "b");
    assert!(matches!(run(&trace), SharedError::Network(_)));
}
