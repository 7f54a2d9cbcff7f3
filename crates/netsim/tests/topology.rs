//! Topologies described by a file.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use downpour_netsim::topology::{HostPair, Side, Topology};
use downpour_netsim::{Duplex, Ecn, Fabric, Header, LinkStats, Node, NodeId, Packet, Time};

const DUMBBELL: &str = r#"
hosts = ["a1", "a2", "b1", "b2"]
routers = ["left", "right"]

[[links]]
between = ["left", "right"]
link = "rate=20M,delay=20ms,queue=1bdp,loss=2%,burst=3,reorder=1%:2ms,seed=7"

[[links]]
between = ["a1", "left"]
link = "rate=1G,loss=1%,seed=7"

[[links]]
between = ["a2", "left"]
link = "rate=1G,loss=1%,seed=7"

[[links]]
between = ["right", "b1"]
link = "rate=1G,jitter=1ms / rate=10M"

[[links]]
between = ["right", "b2"]
link = "rate=1G,jitter=1ms / rate=10M"

[[pairs]]
from = "a1"
to = "b1"

[[pairs]]
from = "b2"
to = "a2"
"#;

fn dumbbell() -> Topology {
    DUMBBELL.parse().expect("a good topology")
}

/// Sends one numbered packet each millisecond to its peer and records which arrive.
struct Counter {
    own: NodeId,
    peer: Option<NodeId>,
    sent: u32,
    came: Vec<(Time, u32)>,
}

const PACKETS: u32 = 3_000;
const GAP: Duration = Duration::from_micros(700);

impl Node for Counter {
    fn handle_packet(&mut self, now: Time, packet: Packet) {
        self.came.push((now, u32::from_be_bytes(packet.payload[..4].try_into().expect("four bytes"))));
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let destination = self.peer?;
        if self.poll_timeout().is_none_or(|due| now < due) {
            return None;
        }
        let mut payload = vec![0; 1_172];
        payload[..4].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        Some(Packet { source: self.own, destination, ecn: Ecn::Ect0, overhead: 28, payload })
    }

    fn poll_timeout(&self) -> Option<Time> {
        (self.peer.is_some() && self.sent < PACKETS).then(|| Time::from(GAP * self.sent))
    }
}

type Arrivals = BTreeMap<NodeId, Vec<(Time, u32)>>;

fn in_a_network(topology: &Topology) -> (Arrivals, Vec<LinkStats>) {
    let peer = |own: NodeId| topology.pairs().iter().find(|pair| pair.from == own).map(|pair| pair.to);
    let make_node = |own, _: &str| Counter { own, peer: peer(own), sent: 0, came: Vec::new() };
    let (mut network, links) = topology.build_network(make_node).expect("no traces");
    network.run_until(Time::from_nanos(60_000_000_000)).expect("time passes");
    let stats = links.iter().flat_map(|ids| [ids.forward, ids.backward]);
    let stats = stats.map(|id| *network.link(id).expect("built").stats()).collect();
    (network.nodes().iter().map(|node| (node.own, node.came.clone())).collect(), stats)
}

fn in_a_fabric(topology: &Topology) -> (Arrivals, Vec<LinkStats>) {
    let (mut fabric, links) = topology.build_fabric().expect("no traces");
    let mut came: Arrivals =
        (0..topology.hosts().len() as u32).map(|index| (NodeId::from_index(index), vec![])).collect();
    let mut pop = |fabric: &mut Fabric<u32>, now| {
        while let Some(arrival) = fabric.pop(now) {
            came.entry(arrival.host).or_default().push((arrival.at, arrival.item));
        }
    };
    for number in 0..PACKETS {
        let now = Time::from(GAP * number);
        pop(&mut fabric, now);
        for pair in topology.pairs() {
            let _ = fabric.offer(now, pair.from, pair.to, Header::new(1_200, Ecn::Ect0), number);
        }
    }
    pop(&mut fabric, Time::MAX);
    let stats = links.iter().flat_map(|ids| [ids.forward, ids.backward]);
    let stats = stats.map(|id| *fabric.link(id).expect("built").stats()).collect();
    (came, stats)
}

#[test]
fn a_file_is_read_whole() {
    let topology = dumbbell();
    assert_eq!(topology.hosts(), ["a1", "a2", "b1", "b2"]);
    assert_eq!(topology.routers(), ["left", "right"]);
    let id = NodeId::from_index;
    assert_eq!(topology.pairs(), [HostPair { from: id(0), to: id(2) }, HostPair { from: id(3), to: id(1) }]);
    assert_eq!((topology.node("b2"), topology.node("right"), topology.node("c")), (Some(id(3)), Some(id(5)), None));
    assert_eq!((topology.name(id(1)), topology.name(id(4)), topology.name(id(6))), (Some("a2"), Some("left"), None));
    let ends: Vec<(NodeId, NodeId)> = topology.links().iter().map(|link| (link.from, link.to)).collect();
    assert_eq!(ends, [(id(4), id(5)), (id(0), id(4)), (id(1), id(4)), (id(5), id(2)), (id(5), id(3))]);
    let written: Duplex = "rate=1G,jitter=1ms / rate=10M".parse().unwrap();
    assert_eq!(topology.links()[4].link, written.sibling(4));
    assert_eq!(topology.links()[0].link.backward.queue_bytes, Some(100_000), "20 Mbit/s for 40 ms");
}

#[test]
fn no_two_links_share_a_stream() {
    let topology = dumbbell();
    let seeds = |topology: &Topology| -> Vec<u64> {
        topology.links().iter().flat_map(|planned| [planned.link.forward.seed, planned.link.backward.seed]).collect()
    };
    let mut all = seeds(&topology);
    for number in 1..100 {
        all.extend(seeds(&topology.sibling(number)));
    }
    // Includes links with the same seed in the file, and two links without one.
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
    assert_eq!(topology.sibling(0), topology);
}

#[test]
fn a_seed_loses_the_same_packets_in_a_network_and_a_fabric() {
    let topology = dumbbell();
    let (came, stats) = in_a_network(&topology);
    let counts: Vec<usize> = came.values().map(Vec::len).collect();
    // 1 % and 2 % are lost on the way to b1. The way to a2 starts at 10 Mbit/s with an unbounded queue; 13.7 Mbit/s are
    // offered.
    assert_eq!((counts[0], counts[3]), (0, 0));
    assert!((2_850..2_950).contains(&counts[1]) && (2_850..2_950).contains(&counts[2]), "{counts:?}");
    assert!(stats[0].dropped_random.packets > 30 && stats[0].reordered.packets > 10, "{:?}", stats[0]);
    assert!((came, stats.clone()) == in_a_fabric(&topology));
    let other = topology.sibling(1);
    assert_ne!(in_a_network(&other).1, stats);
    assert!(in_a_network(&other) == in_a_fabric(&other));
}

#[test]
fn traces_are_loaded_for_all_links() {
    let text = r#"
hosts = ["a", "b"]
links = [{ between = ["a", "b"], link = "trace=up / trace=down" }]
"#;
    let mut topology: Topology = text.parse().unwrap();
    assert!(topology.build_fabric::<()>().is_err());
    let missing = topology.load_traces(|name| Err(io::Error::other(format!("{name} is away")))).unwrap_err();
    assert_eq!(missing.to_string(), "cannot read the trace up: up is away");
    topology.load_traces(|name| Ok(if name == "up" { "1" } else { "5" }.to_owned())).unwrap();
    let (mut fabric, _) = topology.build_fabric().unwrap();
    let (a, b) = (NodeId::from_index(0), NodeId::from_index(1));
    fabric.offer(Time::ZERO, a, b, Header::new(1_504, Ecn::NotEct), "there").unwrap();
    fabric.offer(Time::ZERO, b, a, Header::new(1_504, Ecn::NotEct), "back").unwrap();
    let arrivals = std::iter::from_fn(|| fabric.pop(Time::MAX)).map(|arrival| (arrival.item, arrival.at.as_nanos()));
    assert_eq!(arrivals.collect::<Vec<_>>(), [("there", 1_000_000), ("back", 5_000_000)]);
}

#[test]
fn errors_are_one_line_with_advice() {
    let link = |ends: &str, text: &str| format!("[[links]]\nbetween = {ends}\nlink = \"{text}\"\n");
    let hosts = "hosts = [\"a\", \"b\", \"c\"]\nrouters = [\"r\"]\n";
    let star = ["a", "b", "c"].map(|host| link(&format!("[\"{host}\", \"r\"]"), "perfect")).concat();
    let pair = |from: &str, to: &str| format!("{hosts}{star}[[pairs]]\nfrom = \"{from}\"\nto = \"{to}\"\n");
    assert!(pair("a", "c").parse::<Topology>().is_ok());
    for (text, error) in [
        (
            format!("{hosts}speed = 7"),
            "line 3: unknown field `speed`, expected one of `hosts`, `routers`, `links`, `pairs`",
        ),
        (
            format!("{hosts}[[links]]\nbetween = [\"a\", \"b\"]\nlink = \"perfect\"\nrate = 7"),
            "line 6: unknown field `rate`, expected `between` or `link`",
        ),
        (format!("{hosts}hosts = 7"), "line 3: duplicate key"),
        ("routers = [\"r\"]".to_owned(), "needs at least two hosts, such as hosts = [\"a\", \"b\"]"),
        ("hosts = [\"a\", \"\"]".to_owned(), "invalid name \"\": write letters, digits, - and _"),
        ("hosts = [\"a\", \"b c\"]".to_owned(), "invalid name \"b c\": write letters, digits, - and _"),
        ("hosts = [\"a\", \"b\"]\nrouters = [\"a\"]".to_owned(), "duplicate name a: give each host and router its own"),
        ("hosts = [\"a\"]\nrouters = [\"r\"]".to_owned(), "needs at least two hosts, such as hosts = [\"a\", \"b\"]"),
        (format!("{hosts}{}", link("[\"a\", \"x\"]", "perfect")), "x is unknown: add it to hosts or routers"),
        (format!("{hosts}{}", link("[\"a\", \"a\"]", "perfect")), "a link joins a to itself: name two nodes"),
        (
            format!("{hosts}{star}{}", link("[\"r\", \"b\"]", "perfect")),
            "r and b have two links, and the second is never used: omit one",
        ),
        (
            format!("{hosts}{}", link("[\"a\", \"r\"]", "loss=120%")),
            "the link between a and r: loss is 1.2: write a probability from 0% to 100%",
        ),
        (format!("{hosts}{}", link("[\"a\", \"r\"]", "perfect")), "b has no link: add one, or omit it"),
        (pair("a", "x"), "x is unknown: add it to hosts or routers"),
        (pair("r", "a"), "r is a router: pairs need hosts"),
        (pair("a", "a"), "no path from a to a: join them by links over routers"),
        (
            format!(
                "hosts = [\"a\", \"b\", \"c\"]\n{}{}[[pairs]]\nfrom = \"a\"\nto = \"c\"\n",
                link("[\"a\", \"b\"]", "perfect"),
                link("[\"b\", \"c\"]", "perfect")
            ),
            "no path from a to c: join them by links over routers",
        ),
    ] {
        assert_eq!(text.parse::<Topology>().unwrap_err().to_string(), error, "{text}");
    }
}

#[test]
fn a_dumbbell_joins_each_pair_over_the_bottleneck() {
    let link = |text: &str| text.parse().unwrap();
    let side = |name: &str, delay: &str| Side {
        name: name.to_owned(),
        sender: link("rate=10M,delay=2ms,loss=1%"),
        receiver: link(&format!("rate=10M,delay={delay},loss=1%")),
    };
    let bottleneck = link("rate=50M,delay=25ms,queue-packets=10");
    let topology = Topology::dumbbell(&bottleneck, &[side("near", "2ms"), side("far", "50ms")]).unwrap();
    assert_eq!(topology.hosts(), ["near-sender", "near-receiver", "far-sender", "far-receiver"]);
    let (mut fabric, links) = topology.build_fabric::<u32>().unwrap();
    let far = topology.pairs()[1];
    assert_eq!(topology.name(far.from), Some("far-sender"));
    assert_eq!(fabric.path(far.from, far.to).unwrap(), [links[3].forward, links[0].forward, links[4].forward]);
    assert_eq!(fabric.path(far.to, far.from).unwrap(), [links[4].backward, links[0].backward, links[3].backward]);
    let delays = topology.links().iter().map(|link| link.link.forward.delay.as_millis()).collect::<Vec<_>>();
    assert_eq!(delays, [25, 2, 2, 2, 50]);
    let seeds: std::collections::BTreeSet<u64> =
        topology.links().iter().flat_map(|link| [link.link.forward.seed, link.link.backward.seed]).collect();
    assert_eq!(seeds.len(), 10, "links with the same text do not lose the same packets");
    let twice = Topology::dumbbell(&bottleneck, &[side("a", "2ms"), side("a", "2ms")]).unwrap_err();
    assert_eq!(twice.to_string(), "duplicate name a-sender: give each host and router its own");
}
