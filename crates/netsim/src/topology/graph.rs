//! Routers and the links between them, to which hosts are joined: read from a file, or drawn at random.

use std::collections::VecDeque;

use super::file::{File, HostPair, PlannedLink, Side, Topology, TopologyError};
use crate::{Duplex, NodeId};

/// Routers and the links between them. Without hosts, nothing is sent yet: [`Graph::join`] makes a [`Topology`] of it.
///
/// ```
/// use downpour_netsim::topology::{Graph, Side};
///
/// let graph = Graph::random(50, 140, &"rate=5M,queue-packets=100".parse()?, 7)?;
/// let topology = graph.join(&Side::alike(1, &"perfect".parse()?), &[[3, 41]])?;
/// assert_eq!((topology.routers().len(), topology.links().len()), (50, 140 + 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    routers: Vec<String>,
    links: Vec<Edge>,
}

/// A link between two routers, with the random streams of its text: [`Graph::join`] gives it its own.
#[derive(Clone, Debug, PartialEq)]
struct Edge {
    /// The routers by their numbers; the forward direction leads from the first to the second.
    between: [usize; 2],
    link: Duplex,
}

/// A graph that cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// Too few routers for a pair, or too many to draw.
    #[error("a random graph has from 2 to {MOST_NODES} nodes")]
    Nodes,
    /// More links than pairs of routers.
    #[error("{nodes} nodes have room for {most} links, one between each two of them")]
    TooMany {
        /// The number of routers.
        nodes: u32,
        /// The most links.
        most: u64,
    },
    /// No draw was connected.
    #[error("{links} links rarely connect {nodes} nodes, and did not in {TRIES} draws: write more links")]
    Apart {
        /// The number of routers.
        nodes: u32,
        /// The number of links.
        links: u32,
    },
}

/// The most routers of a random graph: routes are kept for every two.
const MOST_NODES: u32 = 1_000;
/// Draws before the search for a connected graph is abandoned.
const TRIES: u32 = 10_000;

impl Graph {
    /// Reads the form of a [`Topology`] without hosts. `complete` turns the text of each link into that of the built
    /// link: it may add parts that the file omits.
    ///
    /// # Errors
    /// Those of a topology, hosts, and routers to which no path leads.
    pub fn read(text: &str, complete: impl Fn(&str) -> String) -> Result<Self, TopologyError> {
        let File { hosts, routers, links, pairs } = File::read(text)?;
        if !hosts.is_empty() || !pairs.is_empty() {
            return Err(TopologyError::Inhabited);
        }
        if routers.len() < 2 {
            return Err(TopologyError::TooFewRouters);
        }
        let mut topology = Topology::empty(hosts, routers)?;
        for link in links {
            let [from, to] = &link.between;
            topology.add_link(from, to, &complete(&link.link))?;
        }
        let edge = |PlannedLink { from, to, link }| Edge { between: [from, to].map(NodeId::index), link };
        let (routers, links) = topology.into_routers_and_links();
        let graph = Self { routers, links: links.into_iter().map(edge).collect() };
        match graph.unreached() {
            Some(router) => Err(TopologyError::Apart(graph.routers[router].clone())),
            None => Ok(graph),
        }
    }

    /// Draws one of all connected graphs with so many routers and links, each with the same probability: Erdős and Rényi's
    /// G(n, M), drawn again until it is connected (Erdos 1959). All links are alike.
    ///
    /// # Errors
    /// Numbers for which no such graph, or hardly one, exists.
    pub fn random(nodes: u32, links: u32, link: &Duplex, seed: u64) -> Result<Self, GraphError> {
        if !(2..=MOST_NODES).contains(&nodes) {
            return Err(GraphError::Nodes);
        }
        let mut pairs: Vec<[usize; 2]> =
            (0..nodes as usize).flat_map(|to| (0..to).map(move |from| [from, to])).collect();
        let wanted = links as usize;
        if wanted > pairs.len() {
            return Err(GraphError::TooMany { nodes, most: pairs.len() as u64 });
        }
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..TRIES {
            // The first of a shuffle are a sample without repetition, in an order that prefers no router where paths are
            // equally long.
            for at in 0..wanted {
                let other = random.usize(at..pairs.len());
                pairs.swap(at, other);
            }
            let edges = pairs[..wanted].iter().map(|between| Edge { between: *between, link: link.clone() });
            let graph =
                Self { routers: (1..=nodes).map(|number| format!("n{number}")).collect(), links: edges.collect() };
            if graph.unreached().is_none() {
                return Ok(graph);
            }
        }
        Err(GraphError::Apart { nodes, links })
    }

    /// Creates the two routers of a dumbbell, and the link between them.
    pub(super) fn dumbbell(bottleneck: &Duplex) -> Self {
        let bottleneck = Edge { between: [0, 1], link: bottleneck.clone() };
        Self { routers: ["left", "right"].map(str::to_owned).to_vec(), links: vec![bottleneck] }
    }

    /// Returns the number of routers.
    pub fn routers(&self) -> usize {
        self.routers.len()
    }

    /// Iterates over the links, to change them.
    pub fn links_mut(&mut self) -> impl ExactSizeIterator<Item = &mut Duplex> {
        self.links.iter_mut().map(|edge| &mut edge.link)
    }

    /// Joins pairs of hosts to routers, whose numbers are given: the sender's and the receiver's of each pair. The
    /// links of the graph are first, then two for each pair, to the sender and to the receiver. The forward direction
    /// of those is that of the data. Sender `i` is host `2 i`, its receiver the next.
    ///
    /// # Errors
    /// Invalid or duplicate names, no pair, or a router that does not exist.
    pub fn join(&self, sides: &[Side], places: &[[usize; 2]]) -> Result<Topology, TopologyError> {
        let hosts = sides.iter().flat_map(|side| ["sender", "receiver"].map(|role| format!("{}-{role}", side.name)));
        let hosts: Vec<String> = hosts.collect();
        let router = |number: usize| match number < self.routers.len() {
            true => Ok(NodeId::from_index((hosts.len() + number) as u32)),
            false => Err(TopologyError::Unknown { name: format!("router {number}") }),
        };
        let mut links = Vec::new();
        for Edge { between: [from, to], link } in &self.links {
            links.push(PlannedLink { from: router(*from)?, to: router(*to)?, link: link.clone() });
        }
        let mut pairs = Vec::new();
        for ((number, side), [left, right]) in (0..).zip(sides).zip(places) {
            let [from, to] = [2 * number, 2 * number + 1].map(NodeId::from_index);
            links.push(PlannedLink { from, to: router(*left)?, link: side.sender.clone() });
            links.push(PlannedLink { from: router(*right)?, to, link: side.receiver.clone() });
            pairs.push(HostPair { from, to });
        }
        Topology::empty(hosts, self.routers.clone())?.with(links, pairs)
    }

    /// Returns a router to which no path leads from the first.
    fn unreached(&self) -> Option<usize> {
        let mut beside = vec![Vec::new(); self.routers.len()];
        for &Edge { between: [from, to], .. } in &self.links {
            beside[from].push(to);
            beside[to].push(from);
        }
        let mut reached = vec![false; self.routers.len()];
        let mut waiting = VecDeque::from([0]);
        while let Some(router) = waiting.pop_front() {
            if !std::mem::replace(&mut reached[router], true) {
                waiting.extend(&beside[router]);
            }
        }
        reached.iter().position(|reached| !reached)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn drawn(nodes: u32, links: u32, seed: u64) -> Result<Graph, GraphError> {
        Graph::random(nodes, links, &"rate=5M,delay=10ms,queue-packets=100".parse().expect("a link"), seed)
    }

    /// rc-udp, table I: 50 nodes and from 100 to 280 links.
    #[test]
    fn a_random_graph_is_connected_and_has_exactly_its_links() {
        for links in (100..=280).step_by(20) {
            for seed in 0..20 {
                let graph = drawn(50, links, seed).expect("it is dense enough");
                assert_eq!((graph.routers.len(), graph.links.len(), graph.unreached()), (50, links as usize, None));
                let pairs: BTreeSet<_> = graph.links.iter().map(|edge| edge.between).collect();
                assert_eq!(pairs.len(), links as usize, "no two routers have two links");
                assert!(pairs.iter().all(|[from, to]| from < to && *to < 50));
                assert_eq!(graph, drawn(50, links, seed).expect("as before"), "seed {seed}");
                assert_ne!(graph, drawn(50, links, seed + 1).expect("another"), "seed {seed}");
            }
        }
    }

    /// 4 named nodes have 16 trees, by Cayley's formula.
    #[test]
    fn all_connected_graphs_are_drawn_alike() {
        let mut counts = BTreeMap::new();
        for seed in 0..1_600 {
            let graph = drawn(4, 3, seed).expect("one of five draws is a tree");
            let edges: BTreeSet<_> = graph.links.iter().map(|edge| edge.between).collect();
            *counts.entry(edges).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.len(), 16);
        // 100 each, and four standard deviations.
        assert!(counts.values().all(|count| (60..=140).contains(count)), "{counts:?}");
    }

    #[test]
    fn graph_impossible_error() {
        for (nodes, links, said) in [
            (1, 0, "a random graph has from 2 to 1000 nodes"),
            (1_001, 5_000, "a random graph has from 2 to 1000 nodes"),
            (5, 11, "5 nodes have room for 10 links, one between each two of them"),
            (5, 3, "3 links rarely connect 5 nodes, and did not in 10000 draws: write more links"),
        ] {
            assert_eq!(drawn(nodes, links, 1).expect_err("no such graph").to_string(), said);
        }
    }

    const RING: &str = r#"
        routers = ["a", "b", "c", "d", "e"]
        links = [
          { between = ["a", "b"], link = "rate=1G" },
          { between = ["b", "c"], link = "rate=2G" },
          { between = ["c", "d"], link = "rate=3G" },
          { between = ["d", "e"], link = "rate=4G" },
          { between = ["e", "a"], link = "rate=5G" },
        ]
    "#;

    #[test]
    fn packets_take_the_path_of_the_fewest_links() {
        let graph = Graph::read(RING, |link| format!("{link},delay=1ms")).expect("a ring");
        let access = "rate=9G".parse().expect("a link");
        let topology = graph.join(&Side::alike(2, &access), &[[0, 2], [0, 3]]).expect("two pairs");
        assert_eq!(topology.name(topology.pairs()[1].to), Some("f1-receiver"));
        let rates = |pair: usize| {
            let path = topology.path(topology.pairs()[pair]).expect("a ring has paths");
            let rate = |link: &&crate::LinkConfig| link.rate.expect("a rate").bits_per_second() / 1_000_000_000;
            (path.iter().map(rate).collect::<Vec<_>>(), path.iter().filter(|link| !link.delay.is_zero()).count())
        };
        // a-b-c clockwise, a-e-d the other way around; access links have no delay.
        assert_eq!(rates(0), (vec![9, 1, 2, 9], 2));
        assert_eq!(rates(1), (vec![9, 5, 4, 9], 2));
        let streams: BTreeSet<u64> =
            topology.links().iter().flat_map(|link| [link.link.forward.seed, link.link.backward.seed]).collect();
        assert_eq!(streams.len(), 2 * (5 + 4), "each direction of each link has draws of its own");
    }

    #[test]
    fn a_graph_has_no_hosts_and_is_whole() {
        for (text, said) in [
            ("hosts = [\"x\"]\nrouters = [\"a\", \"b\"]", "the flows add their hosts: omit hosts and pairs"),
            (
                "routers = [\"a\", \"b\", \"c\"]\nlinks = [{ between = [\"a\", \"b\"], link = \"rate=1G\" }]",
                "no path to c: join it by links",
            ),
            ("routers = [\"a\"]", "needs at least two routers"),
            ("routers = [\"a\", \"c\"]\nlinks = [{ between = [\"a\", \"b\"], link = \"rate=1G\" }]", "b is unknown"),
            ("router = 1", "line 1: unknown field `router`"),
        ] {
            let refused = Graph::read(text, str::to_owned).expect_err(said).to_string();
            assert!(refused.starts_with(said), "{refused}");
        }
        let graph = Graph::read(RING, str::to_owned).expect("a ring");
        let sides = Side::alike(1, &"perfect".parse().expect("a link"));
        assert!(
            graph.join(&sides, &[[0, 5]]).expect_err("no sixth one").to_string().starts_with("router 5 is unknown")
        );
    }
}
