//! Nodes, links and the virtual clock.

use std::collections::VecDeque;
use std::time::Duration;

use downpour_netsim::topology::{dumbbell, join, pair};
use downpour_netsim::{Duplex, Ecn, LinkConfig, Network, NetworkError, Node, NodeId, NodeStalled, Packet, Time};

/// Sends packets at given times and records events.
#[derive(Default)]
struct Script {
    plan: VecDeque<(Time, Packet)>,
    ready: VecDeque<Packet>,
    received: Vec<(Time, Packet)>,
    timeouts: Vec<Time>,
    recycled: Vec<Vec<u8>>,
    echo: bool,
}

impl Script {
    /// Sends `count` packets of `payload` bytes from `source` to `destination`, `gap` apart, numbered in their first
    /// four bytes.
    fn sending(source: u32, destination: u32, count: u32, gap: Duration, payload: usize) -> Self {
        let packet = |number: u32| {
            let mut packet = packet(source, destination, payload);
            packet.payload[..4].copy_from_slice(&number.to_be_bytes());
            (Time::from(gap * number), packet)
        };
        Self { plan: (0..count).map(packet).collect(), ..Self::default() }
    }

    fn numbers(&self) -> Vec<u32> {
        self.received
            .iter()
            .map(|(_, packet)| u32::from_be_bytes(packet.payload[..4].try_into().expect("four bytes")))
            .collect()
    }
}

impl Node for Script {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        if self.echo {
            let (source, destination) = (packet.destination, packet.source);
            self.ready.push_back(Packet { source, destination, ..packet.clone() });
        }
        self.received.push((now, packet));
    }

    fn handle_timeout(&mut self, now: Time) {
        self.timeouts.push(now);
        while let Some((_, packet)) = self.plan.pop_front_if(|(at, _)| *at <= now) {
            self.ready.push_back(packet);
        }
    }

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        self.ready.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.plan.front().map(|&(at, _)| at)
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        self.recycled.push(buffer);
    }
}

fn packet(source: u32, destination: u32, payload: usize) -> Packet {
    let (source, destination) = (NodeId::from_index(source), NodeId::from_index(destination));
    Packet { source, destination, ecn: Ecn::Ect0, overhead: 28, payload: vec![0; payload] }
}

fn millis(millis: u64) -> Time {
    Time::from(Duration::from_millis(millis))
}

fn one_way(text: &str, script: Script) -> Network<Script> {
    pair(script, Script::default(), &text.parse().expect("a good link")).expect("a good link").0
}

#[test]
fn a_packet_arrives_when_its_last_bit_does() {
    let script = Script::sending(0, 1, 3, Duration::from_millis(10), 972);
    let mut network = one_way("rate=8M,delay=5ms", script);
    network.run_until(millis(25)).unwrap();
    let arrivals: Vec<Time> = network.nodes()[1].received.iter().map(|&(at, _)| at).collect();
    assert_eq!(arrivals, [millis(6), millis(16)]);
    assert_eq!(network.now(), millis(25));
    assert_eq!(network.next_event(), Some(millis(26)));
    assert!(network.step().unwrap());
    assert_eq!(network.now(), millis(26));
    assert!(!network.step().unwrap());
    assert_eq!(network.nodes()[0].timeouts, [millis(0), millis(10), millis(20)]);
    let stats = network.stats();
    assert_eq!((stats.sent, stats.received, stats.timeouts, stats.unroutable), (3, 3, 3, 0));
}

#[test]
fn run_while_stops_at_the_condition_the_limit_or_the_end() {
    let script = Script::sending(0, 1, 3, Duration::from_millis(10), 100);
    let mut network = one_way("delay=5ms", script);
    let received = |count| move |nodes: &[Script]| nodes[1].received.len() < count;
    assert_eq!(network.run_while(received(1), millis(100)), Ok(true));
    assert_eq!(network.now(), millis(5));
    assert_eq!(network.run_while(received(3), millis(20)), Ok(false));
    assert_eq!((network.now(), network.nodes()[1].received.len()), (millis(20), 2));
    assert_eq!(network.run_while(received(4), millis(100)), Ok(false));
    assert_eq!((network.now(), network.next_event()), (millis(25), None), "nothing is left to happen");
}

#[test]
fn a_node_that_was_changed_is_asked_at_once() {
    let (mut network, ends) =
        pair(Script::default(), Script { echo: true, ..Script::default() }, &"delay=5ms".parse().unwrap()).unwrap();
    network.run_until(millis(100)).unwrap();
    network.node_mut(ends.a).unwrap().ready.push_back(packet(0, 1, 10));
    network.run_until(millis(200)).unwrap();
    assert_eq!(network.node(ends.b).unwrap().received[0].0, millis(105));
    assert_eq!(network.node(ends.a).unwrap().received[0].0, millis(110));
}

#[test]
fn jitter_keeps_the_order_and_reordering_changes_it() {
    let run = |text: &str| {
        let mut network = one_way(text, Script::sending(0, 1, 2_000, Duration::from_micros(100), 100));
        network.run_until(millis(1_000)).unwrap();
        network.nodes()[1].numbers()
    };
    let in_order: Vec<u32> = (0..2_000).collect();
    assert_eq!(run("delay=5ms,jitter=20ms,seed=4"), in_order);
    let reordered = run("delay=5ms,reorder=10%:2ms,seed=4");
    let overtaken = reordered.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((120..280).contains(&overtaken), "{overtaken} of 2000 overtaken, seed 4");
    let mut sorted = reordered;
    sorted.sort_unstable();
    assert_eq!(sorted, in_order, "seed 4");
}

#[test]
fn copies_and_corruption_reach_the_node() {
    let mut network = one_way("duplicate=100%,corrupt=100%", Script::sending(0, 1, 50, Duration::from_millis(1), 64));
    network.run_until(millis(100)).unwrap();
    let received = &network.nodes()[1].received;
    assert_eq!(received.len(), 100);
    for (number, copies) in (0_u32..).zip(received.chunks(2)) {
        let mut sent = packet(0, 1, 64).payload;
        sent[..4].copy_from_slice(&number.to_be_bytes());
        let wrong = copies[0].1.payload.iter().zip(&sent).filter(|(got, sent)| got != sent).count();
        assert_eq!(wrong, 1, "packet {number}");
        assert_eq!(copies[1].1.payload, sent, "the copy of packet {number}");
    }
}

#[test]
fn dropped_buffers_go_back_to_their_sender() {
    let mut network = one_way("rate=8M,queue=3000B", Script::sending(0, 1, 10, Duration::ZERO, 972));
    network.run_until(millis(100)).unwrap();
    assert_eq!(network.nodes()[1].numbers(), [0, 1, 2]);
    let recycled: Vec<u8> = network.nodes()[0].recycled.iter().map(|buffer| buffer[3]).collect();
    assert_eq!(recycled, [3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn a_packet_without_a_path_is_counted_and_recycled() {
    let mut network = Network::new();
    let a = network.add_node(Script::default());
    let b = network.add_node(Script::default());
    let far = network.add_node(Script::default());
    join(&mut network, a, b, &Duplex::default()).unwrap();
    join(&mut network, b, far, &Duplex::default()).unwrap();
    for destination in [2, 0, 99] {
        network.node_mut(a).unwrap().ready.push_back(packet(0, destination, 10));
    }
    network.run_until(millis(1)).unwrap();
    assert_eq!(network.stats().unroutable, 3, "only routers forward, no node sends to itself, and node 99 is unknown");
    assert_eq!(network.nodes()[0].recycled.len(), 3);
    let unknown = NodeId::from_index(7);
    assert_eq!(network.add_link(a, unknown, LinkConfig::default()), Err(NetworkError::UnknownNode(unknown)));
    assert!(network.node(unknown).is_none());
}

#[test]
fn a_dumbbell_shares_its_bottleneck() {
    let flows = 4;
    let gap = Duration::from_micros(500);
    let left = (0..flows).map(|own| Script::sending(own, flows + own, 4_000, gap, 972)).collect();
    let right = (0..flows).map(|_| Script::default()).collect();
    let (access, bottleneck): (Duplex, Duplex) =
        ("rate=1G,delay=1ms,jitter=1ms".parse().unwrap(), "rate=16M,delay=10ms,queue=50KB".parse().unwrap());
    let (mut network, ids) = dumbbell(left, right, &access, &bottleneck).unwrap();
    network.run_until(millis(2_000)).unwrap();
    let link = network.link(ids.bottleneck.forward).unwrap();
    // Four senders of 16 Mbit/s each share 16 Mbit/s: the link is never idle, and each gets about its share.
    let counts: Vec<usize> = ids.right.iter().map(|&id| network.node(id).unwrap().received.len()).collect();
    let total: usize = counts.iter().sum();
    assert!((3_960..=4_000).contains(&total), "{total} packets of 1000 bytes in 2 s, {counts:?}");
    assert!(counts.iter().all(|&count| (800..1_200).contains(&count)), "{counts:?}");
    assert_eq!(link.stats().offered.packets, link.stats().delivered.packets + link.stats().dropped_queue_full.packets);
    assert!(link.stats().dropped_queue_full.packets > 11_000);
    let backward = network.link(ids.bottleneck.backward).unwrap();
    assert_eq!(backward.stats().offered.packets, 0);
    assert!(network.stats().forwarded > 16_000, "over two routers");
}

#[test]
fn same_seed_same_trace() {
    let trace = |seed: u64| {
        let text = format!(
            "rate=8M,delay=5ms,jitter=3ms,queue=30KB,loss=10%,burst=3,reorder=5%:4ms,duplicate=5%,corrupt=5%,mark=5%,seed={seed}"
        );
        let script = Script { echo: true, ..Script::default() };
        let link = text.parse().unwrap();
        let (mut network, _) =
            pair(Script::sending(0, 1, 2_000, Duration::from_micros(900), 900), script, &link).unwrap();
        network.run_until(millis(5_000)).unwrap();
        (*network.stats(), network.nodes()[0].received.clone(), network.nodes()[1].received.clone())
    };
    assert!(trace(31) == trace(31), "seed 31");
    assert!(trace(31) != trace(32), "seeds 31 and 32");
}

#[test]
fn a_link_changes_while_it_runs() {
    let (mut network, ends) = pair(
        Script::sending(0, 1, 100, Duration::from_millis(1), 972),
        Script::default(),
        &"delay=20ms".parse().unwrap(),
    )
    .unwrap();
    network.run_until(Time::from_nanos(49_500_000)).unwrap();
    network.set_link(ends.links.forward, "loss=100%".parse().unwrap()).unwrap();
    network.run_until(millis(1_000)).unwrap();
    assert_eq!(network.nodes()[1].numbers(), (0..50).collect::<Vec<u32>>(), "packets in flight arrive");
    assert!(network.set_link(ends.links.forward, LinkConfig { duplicate: 2.0, ..LinkConfig::default() }).is_err());
}

/// A node that does not let time pass, in one of two ways.
#[derive(Default)]
struct Stuck {
    deadline: Option<Time>,
    endless: bool,
}

impl Node for Stuck {
    fn handle_packet(&mut self, _now: Time, _packet: Packet) {}

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, _now: Time) -> Option<Packet> {
        self.endless.then(|| packet(1, 0, 0))
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}

#[test]
fn a_node_that_lets_no_time_pass_ends_the_run() {
    let run = |stuck: Stuck| {
        pair(Stuck::default(), stuck, &"rate=1M,queue=1KB".parse().unwrap()).unwrap().0.run_until(millis(100))
    };
    let (node, at) = (NodeId::from_index(1), millis(7));
    let stalled = run(Stuck { deadline: Some(at), ..Stuck::default() }).unwrap_err();
    assert_eq!(stalled, NodeStalled::Timeouts { node, at });
    assert_eq!(
        stalled.to_string(),
        "node 1 is stalled at 0.007000000000 s: its deadline did not move in 1000 timeouts"
    );
    let endless = Stuck { endless: true, ..Stuck::default() };
    assert_eq!(run(endless), Err(NodeStalled::Packets { node, at: Time::ZERO }));
}

#[test]
fn two_nodes_that_answer_each_other_at_once_end_the_run() {
    let mut a = Script { echo: true, ..Script::default() };
    a.ready.push_back(packet(0, 1, 0));
    let (mut network, _) = pair(a, Script { echo: true, ..Script::default() }, &Duplex::default()).unwrap();
    assert!(matches!(network.run_until(millis(1)), Err(NodeStalled::Packets { at: Time::ZERO, .. })));
}

#[test]
fn at_one_instant_packets_come_first_and_then_nodes_in_their_order() {
    let (mut network, ends) = pair(Script::default(), Script::default(), &"delay=5ms".parse().unwrap()).unwrap();
    network.run_until(millis(5)).unwrap();
    network.node_mut(ends.a).unwrap().ready.push_back(packet(0, 1, 10));
    // One deadline is due when the packet arrives, the other is long past when it is first reported.
    network.node_mut(ends.a).unwrap().plan.push_back((millis(10), packet(0, 1, 10)));
    network.run_while(|nodes| nodes[1].received.is_empty(), millis(10)).unwrap();
    network.node_mut(ends.b).unwrap().plan.push_back((millis(3), packet(1, 0, 10)));
    let progress = |network: &Network<Script>| {
        let [a, b] = network.nodes() else { panic!("two nodes") };
        (b.received.len(), a.timeouts.clone(), b.timeouts.clone())
    };
    assert_eq!(progress(&network), (1, vec![], vec![]));
    network.step().unwrap();
    assert_eq!(progress(&network), (1, vec![millis(10)], vec![]));
    network.step().unwrap();
    assert_eq!(progress(&network), (1, vec![millis(10)], vec![millis(10)]));
}
