//! Transfers that share a topology.

use downpour_sim::{
    Background, Case, Coding, Ending, Flow, FlowOutcome, Handshake, OnOff, SharedCase, SharedError, Traffic, jain,
};
use netsim::topology::{Side, Topology};
use netsim::{ConstantRate, NodeId};
use std::time::Duration;
use transport::{Profile, Rate};

/// Creates two pairs over one bottleneck of 20 Mbit/s, and a bystander.
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

fn fixed(megabits: u64) -> Profile {
    systems::auto().with_fixed_rate(Rate::from_bits_per_second(megabits * 1_000_000))
}

#[test]
fn every_pair_of_a_topology_gets_its_object_across() {
    let topology = dumbbell("rate=20M,delay=18ms,queue=100KB,loss=1%");
    let flows = topology.pairs().iter().map(|pair| Flow::new(*pair, fixed(20), 2_000_000)).collect();
    let case = SharedCase { flows, ..SharedCase::new(topology.clone()) };
    let outcome = case.run(1).expect("runs");
    assert_eq!(outcome.ending, Ending::Closed);
    assert_eq!(outcome.flows.iter().map(|flow| flow.pair).collect::<Vec<_>>(), topology.pairs());
    // In opposite directions each has the link to itself, as on a single link of the same rate and round trip.
    let alone =
        Case { size: 2_000_000, ..Case::new("rate=20M,delay=20ms,queue=100KB,loss=1%".parse().expect("a link")) };
    let floor = alone.floor();
    for flow in &outcome.flows {
        let took = flow.completed.expect("complete");
        assert!(flow.is_identical && took >= floor && took < floor.mul_f64(1.3), "{took:?} of {floor:?}");
    }
    let [forward, back] = outcome.links[0];
    assert!(forward.delivered.bytes > 2_000_000 && back.delivered.bytes > 2_000_000, "{forward:?} {back:?}");
    assert!(forward.dropped_random.packets > 5 && back.dropped_random.packets > 5, "{forward:?} {back:?}");
    assert_eq!(outcome.links[1][0].offered, outcome.links[1][0].delivered, "access links lose nothing");
    let [data, feedback] = outcome.links[1].map(|stats| stats.delivered.bytes);
    assert!(data > 2_000_000 && feedback < 200_000, "{data} and {feedback} bytes at a1");
    assert_eq!(outcome.links[5][0].offered.packets + outcome.links[5][1].offered.packets, 0, "no flow goes to c");
    assert_eq!(case.run(1).expect("runs"), outcome, "same seed");
    assert_ne!(case.run(2).expect("runs").links, outcome.links, "another seed");
}

#[test]
fn a_transfer_that_does_not_finish_is_none() {
    let case = SharedCase { limit: Duration::from_secs(1), ..SharedCase::new(dumbbell("rate=1M,delay=18ms")) };
    let outcome = case.run(1).expect("runs");
    assert_eq!(outcome.ending, Ending::TimeUp);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_none() && !flow.is_identical));
    assert!(outcome.links[0][0].delivered.packets > 50);
}

#[test]
fn pairs_need_hosts_of_their_own() {
    let text = "hosts = [\"a\", \"b\"]\nlinks = [{ between = [\"a\", \"b\"], link = \"perfect\" }]\n";
    let run = |text: &str| SharedCase::new(text.parse().expect("a topology")).run(1).expect_err("cannot run");
    assert_eq!(run(text), SharedError::NoPairs);
    let pair = |from: &str, to: &str| format!("[[pairs]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let busy = run(&format!("{text}{}{}", pair("a", "b"), pair("b", "a")));
    assert_eq!(busy.to_string(), "b is in two pairs: give each pair its own hosts");
    let trace = text.replace("perfect", "trace=x") + &pair("a", "b");
    assert!(matches!(run(&trace), SharedError::Network(_)));
}

/// ttp III-A, figure 4: the "short-slim" network, with these pairs of hosts.
fn short_slim(names: &[&str], bottleneck: &str) -> Topology {
    let access = || "rate=10M,delay=2ms".parse().expect("a link");
    let side = |name: &&str| Side { name: (*name).to_owned(), sender: access(), receiver: access() };
    Topology::dumbbell(&bottleneck.parse().expect("a link"), &names.iter().map(side).collect::<Vec<_>>())
        .expect("names")
}

const BOTTLENECK: &str = "rate=50M,delay=25ms,queue-packets=10";

#[test]
fn parallel_connections_carry_equal_parts() {
    let topology = short_slim(&["test"], BOTTLENECK);
    let pair = topology.pairs()[0];
    let run = |connections: u32, size: u64| {
        let flows = vec![Flow { connections, ..Flow::new(pair, systems::arq::profile(), size) }];
        let outcome = SharedCase { flows, ..SharedCase::new(topology.clone()) }.run(3).expect("runs");
        assert_eq!(outcome.ending, Ending::Closed);
        outcome
    };
    // 2,000,003 = 8 x 250,000 + 3.
    let (one, eight) = (run(1, 2_000_003), run(8, 2_000_003));
    for outcome in [&one, &eight] {
        let flow = &outcome.flows[0];
        assert!(flow.is_identical && flow.written == 2_000_003, "{flow:?}");
    }
    // 10 Mbit/s take at least 1.6 s. Eight simultaneous slow starts are faster than one.
    let [one, eight] = [&one, &eight].map(|outcome| outcome.flows[0].completed.expect("complete").as_secs_f64());
    assert!(1.6 < eight && eight < one, "{eight} s with eight connections, {one} s with one");
    let few = run(8, 3);
    assert!(few.flows[0].is_identical && few.flows[0].written == 3, "five of the eight carry nothing");
}

#[test]
fn flows_start_at_their_times_and_are_counted_by_spans() {
    let topology = short_slim(&["first", "second"], "rate=8M,delay=5ms,queue=30KB");
    let start = Duration::from_secs(3);
    let [first, second] = [0, 1].map(|at| Flow::new(topology.pairs()[at], systems::arq::profile(), 5_000_000));
    let second = Flow { start, ..second };
    let case =
        SharedCase { flows: vec![first, second], count_every: Duration::from_secs(1), ..SharedCase::new(topology) };
    let outcome = case.run(1).expect("runs");
    let [first, second] = [&outcome.flows[0], &outcome.flows[1]];
    assert_eq!(second.arrived[..3], [0, 0, 0]);
    // Alone, the first flow gets the whole megabyte per second, except for its start.
    assert!((900_000..1_010_000).contains(&first.arrived[1]), "{first:?}");
    // Together they get no more than that, and keep the link busy.
    for second_of in 4..7 {
        let both = first.arrived[second_of] + second.arrived[second_of];
        assert!((900_000..1_010_000).contains(&both), "second {second_of}: {first:?}, {second:?}");
    }
    let took = second.completed.expect("complete");
    assert_eq!(second.completed_at, Some(took + start), "from its own first packet on");
    assert_eq!(case.run(1).expect("runs"), outcome, "same seed");
}

#[test]
fn background_traffic_takes_its_share() {
    let topology = short_slim(&["test", "constant", "pareto"], "rate=5M,delay=25ms,queue-packets=10");
    let pairs = topology.pairs().to_vec();
    let constant = ConstantRate {
        rate: netsim::Rate::from_megabits_per_second(2),
        packet: 210,
        start: netsim::Time::ZERO,
        stop: netsim::Time::MAX,
    };
    let constant = Background { pair: pairs[1], traffic: Traffic::Constant(constant) };
    let script = OnOff { burst: 100_000, idle: Duration::from_millis(200), shape: 1.5 };
    let on_off = Traffic::OnOff { script, profile: Box::new(systems::arq::profile()), start: Duration::ZERO };
    let on_off = Background { pair: pairs[2], traffic: on_off };
    let run = |background: &[Background], seed: u64| {
        let mut tcp = systems::auto();
        tcp.set("congestion", "cubic").expect("a valid choice");
        let flows = vec![Flow::new(pairs[0], tcp, 3_000_000)];
        let case = SharedCase { flows, background: background.to_vec(), ..SharedCase::new(topology.clone()) };
        let outcome = case.run(seed).expect("runs");
        assert!(outcome.flows[0].is_identical, "seed {seed}: {outcome:?}");
        outcome
    };
    let seconds = |outcome: &downpour_sim::SharedOutcome| outcome.flows[0].completed.expect("complete").as_secs_f64();
    let alone = run(&[], 1);
    let beside = run(std::slice::from_ref(&constant), 1);
    let beside_both = run(&[constant, on_off], 1);
    // 3 of 5 Mbit/s are left by the constant source, which never slows down.
    let ratio = seconds(&beside) / seconds(&alone);
    assert!((1.4..2.6).contains(&ratio), "{ratio}");
    assert!(seconds(&beside_both) > seconds(&beside) * 1.1, "{} s, {} s", seconds(&beside_both), seconds(&beside));
    // The constant source's own link carries 2 Mbit/s throughout the run.
    let sent = beside.links[3][0].offered.bytes as f64 * 8.0;
    let took = beside.flows[0].completed_at.expect("complete").as_secs_f64();
    assert!((sent / took / 2e6 - 1.0).abs() < 0.1, "{sent} bits in {took} s");
    assert!(beside_both.links[5][0].delivered.bytes > 300_000, "{:?}", beside_both.links[5]);
    assert!(beside.links[0][0].dropped_queue_full.packets > 0);
}

/// A host codes one block after the other: if coding is slower than the link, it determines the time of the transfer.
#[test]
fn coding_can_be_the_bottleneck() {
    // Everything is sent within a round trip, so repair is included and most of the 23 blocks need a decoder.
    let topology = short_slim(&["test"], "rate=50M,delay=300ms,loss=10% / rate=50M,delay=300ms");
    let pair = topology.pairs()[0];
    let mut profile = fixed(9);
    profile.set("blocks.k", "16").expect("blocks of one size");
    let run = |coding: &str| {
        let coding: Coding = coding.parse().expect("times");
        let flows = vec![Flow { coding, ..Flow::new(pair, profile.clone(), 500_000) }];
        let outcome = SharedCase { flows, ..SharedCase::new(topology.clone()) }.run(1).expect("runs");
        assert!(outcome.flows[0].is_identical, "{outcome:?}");
        (outcome.flows[0].completed.expect("complete").as_secs_f64(), outcome.flows[0].coding)
    };
    let (free, none) = run("none");
    assert_eq!(none, [Duration::ZERO; 2]);
    // 8 us per byte are 1 Mbit/s, a ninth of the link: 180 ms per block.
    let (slow, [encoding, decoding]) = run("encode=0,decode=8000");
    assert!(encoding.is_zero() && decoding > Duration::from_millis(2_000), "{encoding:?}, {decoding:?}");
    assert!(slow > decoding.as_secs_f64() && slow > free + 1.0, "{slow} s, {free} s without, {decoding:?} of decoding");
    // With a worker for each block, only the time of the last one is added.
    let (many, [_, decoding]) = run("encode=0,decode=8000,workers=64");
    assert!(decoding > Duration::from_millis(2_000) && many < free + 0.4, "{many} s, {free} s without");
    // The sender waits for its repair symbols, but sends source symbols meanwhile.
    let (encoded, [encoding, decoding]) = run("encode=8000,decode=0");
    assert!(encoding > Duration::from_millis(2_000) && decoding.is_zero(), "{encoding:?}, {decoding:?}");
    assert!(encoded > free, "{encoded} s, {free} s without");
}

/// Runs a profile's transfer of `size` bytes alone over a link.
fn alone(link: &str, profile: Profile, size: u64, change: impl FnOnce(&mut Flow)) -> FlowOutcome {
    alone_with(1, link, profile, size, change)
}

fn alone_with(seed: u64, link: &str, profile: Profile, size: u64, change: impl FnOnce(&mut Flow)) -> FlowOutcome {
    let text = format!(
        "hosts = [\"a\", \"b\"]\nlinks = [{{ between = [\"a\", \"b\"], link = \"{link}\" }}]\n\
         pairs = [{{ from = \"a\", to = \"b\" }}]\n"
    );
    let topology: Topology = text.parse().expect("a topology");
    let mut flow = Flow::new(topology.pairs()[0], profile, size);
    change(&mut flow);
    let outcome = SharedCase { flows: vec![flow], ..SharedCase::new(topology) }.run(seed).expect("runs");
    let [flow] = &outcome.flows[..] else { panic!("one flow") };
    assert!(flow.is_identical, "seed {seed}: {outcome:?}");
    flow.clone()
}

/// rc-udp asks for a round trip before its data: 1.5 in all where the handshake's is not counted.
#[test]
fn the_handshake_counts_unless_it_is_done() {
    let round_trips = |handshake| {
        let flow = alone("delay=50ms", systems::rc_udp::profile(), 1_000, |flow| flow.handshake = handshake);
        assert!(flow.completed_at.is_some_and(|at| at.as_millis() == 250), "{flow:?}");
        flow.completed.expect("complete").as_millis() as f64 / 100.0
    };
    assert_eq!([Handshake::Counted, Handshake::Done].map(round_trips), [2.5, 1.5]);
}

/// Losses that begin when the handshake is over spare it: all of them take their one round trip, where else copies would
/// be lost (lt-tcp 2.1).
#[test]
fn losses_may_spare_the_handshake() {
    let handshakes = |start: Duration| -> Vec<u128> {
        let link = "rate=100M,delay=25ms,loss-step=0s:0%+1s:50%";
        let took = |seed| {
            let flow = alone_with(seed, link, systems::lt_tcp::profile(), 20_000, |flow| {
                (flow.start, flow.handshake) = (start, Handshake::Done);
            });
            let [end, took] = [flow.completed_at, flow.completed].map(|time| time.expect("complete"));
            (end - took - start).as_millis()
        };
        (1..=20).map(took).collect()
    };
    let spared = handshakes(Duration::from_micros(949_700));
    assert_eq!(spared, [50; 20]);
    let lost = handshakes(Duration::from_secs(1)).iter().filter(|millis| **millis > 60).count();
    assert!(lost >= 5, "{lost} of 20 first rounds lost with a probability of 3/4");
}

/// rc-udp's blocks of 977 symbols come one after the other: a receiver buffers one, and the symbols that a failed
/// attempt adds.
#[test]
fn a_receiver_of_one_block_at_a_time_holds_one_block() {
    let held = |blocks: &str| {
        let mut profile = systems::rc_udp::profile();
        profile.set_all([("schedule.blocks", blocks), ("congestion.rate", "50M")]).expect("choices of the profile");
        alone("rate=100M,delay=10ms,loss=3%", profile, 10_000_000, |_| ()).most_held as f64 / (977.0 * 1_024.0)
    };
    let [one, four] = ["1", "4"].map(held);
    assert!((1.0..1.03).contains(&one), "{one} blocks");
    assert!((1.5..4.03).contains(&four), "{four} blocks");
}

/// A block acknowledged before it is decoded arrives all the same if decoding takes longer than the reverse path.
#[test]
fn a_receiver_may_decode_an_acknowledged_block() {
    let mut profile = systems::rc_udp::profile();
    profile
        .set_all([("feedback.blocks", "received:0.05"), ("congestion.rate", "50M")])
        .expect("choices of the profile");
    let flow = alone("rate=100M,delay=10ms", profile, 2_000_000, |flow| flow.coding = Coding::per_byte(0.0, 100.0));
    // Of the second block of 1 MB the last symbol arrives about 0.4 s after the start, and takes 0.1 s to decode.
    let took = flow.completed.expect("complete").as_millis();
    assert!((450..600).contains(&took), "{took} ms");
}

/// Each symbol larger than the link's packets has seven fragments, and is lost with any of them.
#[test]
fn symbols_may_be_larger_than_a_link_that_fragments_carries() {
    let run = |link: &str| {
        let mut profile = systems::tornado_transfer::profile();
        profile.set("symbols", "8900").expect("a size");
        alone(link, profile, 4_000_000, |_| ())
    };
    let whole = run("rate=12M,delay=10ms,mtu=1500B,fragment=on");
    assert_eq!(whole.symbol_bytes % 8_900, 0, "no smaller ones");
    assert!((4_005_000..9_000_000).contains(&whole.symbol_bytes) && whole.packets_sent < 1_200, "{whole:?}");
    let lossy = run("rate=12M,delay=10ms,mtu=1500B,fragment=on,loss=2% / rate=12M,delay=10ms,mtu=1500B,fragment=on");
    let lost = lossy.packets_lost as f64 / lossy.packets_sent as f64;
    assert!((0.08..0.18).contains(&lost), "{lost} lost, 13.2 % expected");
}

#[test]
fn fairness_is_that_of_jain() {
    assert_eq!(jain(&[3.0, 3.0, 3.0]), 1.0);
    assert_eq!(jain(&[5.0, 0.0]), 0.5);
    assert_eq!(jain(&[2.0, 1.0]), 0.9);
}

#[test]
fn flows_go_from_host_to_host() {
    let topology = short_slim(&["test"], BOTTLENECK);
    let pair = netsim::topology::HostPair { to: NodeId::from_index(2), ..topology.pairs()[0] };
    let flows = vec![Flow::new(pair, systems::arq::profile(), 1)];
    let refused = SharedCase { flows, ..SharedCase::new(topology) }.run(1).expect_err("a router");
    assert_eq!(refused.to_string(), "node 2 is not a host of the topology: name two hosts for each flow");
}

/// One flow never ends, one stops, and one begins at a time that the seed determines.
#[test]
fn flows_without_end_stop_or_share_to_the_limit() {
    let seconds = Duration::from_secs;
    let topology = short_slim(&["endless", "stopped", "late"], "rate=8M,delay=5ms,queue=30KB");
    let pairs = topology.pairs();
    let flow = |at: usize| Flow::endless(pairs[at], systems::arq::profile());
    let endless = flow(0);
    let stopped = Flow { stop: Some(seconds(4)), ..flow(1) };
    let late = Flow { start: seconds(5), start_within: seconds(1), ..flow(2) };
    let case = SharedCase {
        flows: vec![endless.clone(), stopped, late],
        count_every: Duration::from_millis(10),
        warm_up: seconds(10),
        limit: seconds(20),
        ..SharedCase::new(topology.clone())
    };
    // A flow that stops leaves the link to the others.
    let outcome = case.run(1).expect("runs");
    assert_eq!(outcome.ending, Ending::TimeUp);
    let [_, second, _] = &outcome.flows[..] else { panic!("three flows") };
    let last = second.arrived.iter().rposition(|&bytes| bytes > 0).expect("something has arrived");
    assert!((395..440).contains(&last), "it stops soon after 4 s: {last}");
    assert!(second.completed.is_none() && second.written > 1_000_000, "{}", second.written);
    assert_eq!(second.throughput, 0.0, "over before the warm-up is");

    // Only packets after the warm-up count.
    let flows: Vec<Flow> = [0, 2].map(|at: usize| case.flows[at].clone()).into();
    let case = SharedCase { flows, ..case };
    let outcome = case.run(1).expect("runs");
    assert_eq!(outcome.ending, Ending::TimeUp);
    for flow in &outcome.flows {
        let counted: u64 = flow.arrived.iter().skip(1_000).sum();
        assert!((flow.throughput / (counted as f64 * 8.0 / 10.0) - 1.0).abs() < 0.01, "{} {counted}", flow.throughput);
    }
    let sum: f64 = outcome.flows.iter().map(|flow| flow.throughput).sum();
    assert!((7.5e6..8.01e6).contains(&sum), "the link is kept busy: {sum}");

    // Seeds decide when the last flow begins, between 5 and 6 s.
    let begins = |seed| {
        let outcome = SharedCase { limit: seconds(7), ..case.clone() }.run(seed).expect("runs");
        outcome.flows[1].arrived.iter().position(|&bytes| bytes > 0).expect("it has begun")
    };
    let starts: Vec<usize> = (1..=4).map(begins).collect();
    assert!(starts.iter().all(|start| (501..605).contains(start)), "{starts:?}");
    assert!(starts.windows(2).all(|pair| pair[0].abs_diff(pair[1]) > 2), "{starts:?}");

    let flows = vec![Flow { stop: Some(seconds(1)), start: seconds(1), ..endless }];
    let refused = SharedCase { flows, ..case }.run(1).expect_err("it cannot send");
    assert_eq!(refused.to_string(), "the flow from endless-sender stops before it starts: write a later stop");
}

/// Packets sent as acknowledgements arrive meet a full queue more often than paced ones.
#[test]
fn an_unpaced_neighbour_keeps_its_share_of_a_short_queue() {
    let link = "rate=20M,delay=10ms,queue=25KB".parse().expect("a link");
    let sides = Side::alike(2, &"rate=10G".parse().expect("a link"));
    let topology = Topology::dumbbell(&link, &sides).expect("names");
    let pairs = topology.pairs();
    let share = |theirs: Profile| {
        let theirs = Flow { start: Duration::from_millis(700), ..Flow::endless(pairs[1], theirs) };
        let flows = vec![Flow::endless(pairs[0], systems::auto()), theirs];
        let (warm_up, limit) = (Duration::from_secs(10), Duration::from_secs(30));
        let outcome = SharedCase { flows, warm_up, limit, ..SharedCase::new(topology.clone()) }.run(1).expect("runs");
        outcome.flows[1].throughput / 20e6
    };
    let mut paced = systems::auto();
    paced.set("congestion", "cubic").expect("a valid choice");
    let (paced, unpaced) = (share(paced), share(downpour_sim::linux_tcp()));
    assert!((0.4..0.6).contains(&unpaced) && (0.4..0.6).contains(&paced), "{unpaced}, {paced} if paced");
}
