//! Nodes joined by links, driven by a virtual clock.

use std::collections::VecDeque;

use crate::agenda::Agenda;
use crate::pipe::Pipe;
use crate::routes::Routes;
use crate::{Link, LinkConfig, LinkError, Node, NodeId, Packet, Time};

/// How often one node's deadline may come due at one instant before the run is given up.
const TIMEOUTS_AT_ONE_INSTANT: u32 = 1_000;
/// How many packets one node may send and receive at one instant before the run is given up.
const PACKETS_AT_ONE_INSTANT: u32 = 1_000_000;

/// A directed link of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

/// A network that cannot be built as asked.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NetworkError {
    /// A link that makes no sense.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A link from or to a node that was not added.
    #[error("there is no {0}: add nodes before their links")]
    UnknownNode(NodeId),
    /// A change to a link that was not added.
    #[error("there is no link {}", .0.0)]
    UnknownLink(LinkId),
}

/// A node that keeps the network busy without letting time pass; the run cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stalled {
    /// Its deadline stayed due.
    #[error("{node} is stalled at {at}: its deadline did not move in {TIMEOUTS_AT_ONE_INSTANT} timeouts")]
    Timeouts {
        /// The node.
        node: NodeId,
        /// The instant.
        at: Time,
    },
    /// It sends or is sent packets without end.
    #[error("{node} is stalled at {at}: it sent and received {PACKETS_AT_ONE_INSTANT} packets at one instant")]
    Packets {
        /// The node.
        node: NodeId,
        /// The instant.
        at: Time,
    },
}

/// What a network did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkStats {
    /// Packets taken from nodes.
    pub sent: u64,
    /// Packets handed to nodes.
    pub received: u64,
    /// Packets that came to a router, once for each router.
    pub forwarded: u64,
    /// Packets dropped because no path leads to their destination.
    pub unroutable: u64,
    /// Calls of [`Node::handle_timeout`].
    pub timeouts: u64,
}

/// What the network keeps about a node.
#[derive(Debug)]
struct Guard {
    vertex: usize,
    /// The instant the two counts are about.
    instant: Time,
    timeouts: u32,
    packets: u32,
}

/// Nodes, routers, directed links and the virtual clock.
///
/// Deterministic: at one instant packets arrive before deadlines come due, each in the order links and nodes were added.
#[derive(Debug)]
pub struct Network<N> {
    now: Time,
    nodes: Vec<N>,
    /// Beside `nodes`.
    guards: Vec<Guard>,
    /// By `NodeId`: the place in `nodes`, `None` for a router.
    vertices: Vec<Option<usize>>,
    pipes: Vec<Pipe>,
    routes: Option<Routes>,
    arrivals: Agenda,
    deadlines: Agenda,
    /// Nodes to ask for packets and deadlines before time goes on.
    touched: VecDeque<usize>,
    stats: NetworkStats,
}

impl<N> Default for Network<N> {
    fn default() -> Self {
        Self {
            now: Time::ZERO,
            nodes: Vec::new(),
            guards: Vec::new(),
            vertices: Vec::new(),
            pipes: Vec::new(),
            routes: None,
            arrivals: Agenda::default(),
            deadlines: Agenda::default(),
            touched: VecDeque::new(),
            stats: NetworkStats::default(),
        }
    }
}

impl<N: Node> Network<N> {
    /// An empty network at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node. Only routers pass on the packets of others.
    pub fn add_node(&mut self, node: N) -> NodeId {
        let index = self.nodes.len();
        self.guards.push(Guard { vertex: self.vertices.len(), instant: Time::ZERO, timeouts: 0, packets: 0 });
        self.nodes.push(node);
        self.deadlines.push();
        self.touched.push_back(index);
        self.add_vertex(Some(index))
    }

    /// Adds a router: it passes packets on at once, and its queues are those of the links that leave it.
    pub fn add_router(&mut self) -> NodeId {
        self.add_vertex(None)
    }

    fn add_vertex(&mut self, node: Option<usize>) -> NodeId {
        self.routes = None;
        self.vertices.push(node);
        NodeId(u32::try_from(self.vertices.len() - 1).expect("memory ends before 2^32 nodes"))
    }

    /// Adds a link in one direction. Packets take the path of the fewest links, of equal ones the one added first.
    ///
    /// # Errors
    /// A node that does not exist, or a link that makes no sense.
    pub fn add_link(&mut self, from: NodeId, to: NodeId, config: LinkConfig) -> Result<LinkId, NetworkError> {
        for node in [from, to] {
            if node.index() >= self.vertices.len() {
                return Err(NetworkError::UnknownNode(node));
            }
        }
        self.pipes.push(Pipe::new(Link::new(config)?, from.index(), to.index()));
        self.arrivals.push();
        self.routes = None;
        Ok(LinkId(u32::try_from(self.pipes.len() - 1).expect("memory ends before 2^32 links")))
    }

    /// The virtual clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// All nodes, without the routers, in the order they were added.
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// A node; `None` for a router and what was not added.
    pub fn node(&self, id: NodeId) -> Option<&N> {
        self.nodes.get((*self.vertices.get(id.index())?)?)
    }

    /// A node, to give it something to do: it is asked for packets and its deadline before time goes on.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut N> {
        let index = (*self.vertices.get(id.index())?)?;
        self.touched.push_back(index);
        self.nodes.get_mut(index)
    }

    /// A link and its statistics.
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        self.pipes.get(id.0 as usize).map(|pipe| &pipe.link)
    }

    /// Changes a link for packets sent from now on; see [`Link::set_config`].
    ///
    /// # Errors
    /// A link that does not exist, or that would make no sense.
    pub fn set_link(&mut self, id: LinkId, config: LinkConfig) -> Result<(), NetworkError> {
        let pipe = self.pipes.get_mut(id.0 as usize).ok_or(NetworkError::UnknownLink(id))?;
        Ok(pipe.link.set_config(config)?)
    }

    /// What the network did so far.
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }

    /// Runs up to and including `until`, where the clock then stands.
    ///
    /// # Errors
    /// A node that does not let time pass.
    pub fn run_until(&mut self, until: Time) -> Result<(), Stalled> {
        while self.step_by(until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Runs while `condition` holds, at most up to and including `limit`. True once it no longer holds; false if it still does at
    /// `limit`, where the clock then stands, or when nothing is left to happen, and then the clock stands at the last event.
    ///
    /// # Errors
    /// A node that does not let time pass.
    pub fn run_while(&mut self, mut condition: impl FnMut(&[N]) -> bool, limit: Time) -> Result<bool, Stalled> {
        while condition(&self.nodes) {
            if !self.step_by(limit)? {
                if self.next_event().is_some() {
                    self.now = self.now.max(limit);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does what is due next: one packet arrives, or one deadline comes due. False if nothing is left to happen.
    ///
    /// # Errors
    /// A node that does not let time pass.
    pub fn step(&mut self) -> Result<bool, Stalled> {
        self.step_by(Time::MAX)
    }

    /// When the next packet arrives or the next deadline comes due, as far as nodes have been asked.
    pub fn next_event(&self) -> Option<Time> {
        let arrival = self.arrivals.first().map(|(at, _)| at);
        let deadline = self.deadlines.first().map(|(at, _)| at);
        arrival.into_iter().chain(deadline).min()
    }

    fn step_by(&mut self, limit: Time) -> Result<bool, Stalled> {
        while let Some(index) = self.touched.pop_front() {
            self.serve(index)?;
        }
        let arrival = self.arrivals.first();
        let deadline = self.deadlines.first();
        match (arrival, deadline) {
            (Some((at, pipe)), _) if at <= limit && deadline.is_none_or(|(due, _)| at <= due) => {
                self.now = self.now.max(at);
                self.arrive(pipe)?;
            }
            (_, Some((due, index))) if due <= limit => {
                self.now = self.now.max(due);
                self.time_out(index)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the next packet off a link and hands it to the node or router there.
    fn arrive(&mut self, number: usize) -> Result<(), Stalled> {
        let pipe = &mut self.pipes[number];
        let Some((_, packet)) = pipe.transit.pop(self.now) else {
            return Ok(());
        };
        let vertex = pipe.to;
        self.arrivals.set(number, pipe.next_arrival());
        match self.vertices[vertex] {
            Some(index) if vertex == packet.destination.index() => {
                self.count_packet(index)?;
                self.stats.received += 1;
                self.nodes[index].handle_packet(self.now, packet);
                self.serve(index)
            }
            _ => {
                self.stats.forwarded += 1;
                self.forward(vertex, packet);
                Ok(())
            }
        }
    }

    fn time_out(&mut self, index: usize) -> Result<(), Stalled> {
        let guard = self.guard(index);
        guard.timeouts += 1;
        if guard.timeouts > TIMEOUTS_AT_ONE_INSTANT {
            return Err(Stalled::Timeouts { node: self.id_of(index), at: self.now });
        }
        self.stats.timeouts += 1;
        self.nodes[index].handle_timeout(self.now);
        self.serve(index)
    }

    /// Asks a node for its packets and its deadline.
    fn serve(&mut self, index: usize) -> Result<(), Stalled> {
        while let Some(packet) = self.nodes[index].poll_transmit(self.now) {
            self.count_packet(index)?;
            self.stats.sent += 1;
            self.forward(self.guards[index].vertex, packet);
        }
        let deadline = self.nodes[index].poll_timeout();
        // Not before now: among deadlines that are due the order is that of the nodes, not of how late they are.
        self.deadlines.set(index, deadline.map_or(Time::MAX, |deadline| deadline.max(self.now)));
        Ok(())
    }

    /// Puts a packet on the next link of its path; its sender gets the buffer back if that drops it.
    fn forward(&mut self, vertex: usize, packet: Packet) {
        let routes = self.routes.get_or_insert_with(|| {
            let forwards: Vec<bool> = self.vertices.iter().map(Option::is_none).collect();
            let links: Vec<(usize, usize)> = self.pipes.iter().map(|pipe| (pipe.from, pipe.to)).collect();
            Routes::new(&forwards, &links)
        });
        let Some(number) = routes.next(vertex, packet.destination.index()) else {
            self.stats.unroutable += 1;
            self.recycle(packet);
            return;
        };
        let pipe = &mut self.pipes[number];
        match pipe.send(self.now, packet) {
            None => self.arrivals.set(number, pipe.next_arrival()),
            Some(dropped) => self.recycle(dropped),
        }
    }

    fn recycle(&mut self, packet: Packet) {
        if let Some(&Some(index)) = self.vertices.get(packet.source.index()) {
            self.nodes[index].recycle(packet.payload);
        }
    }

    fn count_packet(&mut self, index: usize) -> Result<(), Stalled> {
        let guard = self.guard(index);
        guard.packets += 1;
        if guard.packets > PACKETS_AT_ONE_INSTANT {
            return Err(Stalled::Packets { node: self.id_of(index), at: self.now });
        }
        Ok(())
    }

    /// The counts of a node at this instant.
    fn guard(&mut self, index: usize) -> &mut Guard {
        let guard = &mut self.guards[index];
        if guard.instant != self.now {
            guard.instant = self.now;
            guard.timeouts = 0;
            guard.packets = 0;
        }
        guard
    }

    fn id_of(&self, index: usize) -> NodeId {
        let vertex = self.guards[index].vertex;
        NodeId(u32::try_from(vertex).expect("a vertex got its number as a NodeId"))
    }
}
