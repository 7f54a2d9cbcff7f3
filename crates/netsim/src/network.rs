//! Nodes joined by links, driven by a virtual clock.

use std::collections::VecDeque;

use crate::deadline_tree::DeadlineTree;
use crate::fabric::FabricEvent;
use crate::{
    Arrival, Fabric, Header, Link, LinkConfig, LinkId, NetworkError, Node, NodeId, Packet, Refusal, Time, Undelivered,
    corrupt,
};

/// How often one node's deadline may be due at one instant before the run is aborted.
const TIMEOUTS_AT_ONE_INSTANT: u32 = 1_000;
/// How many packets one node may send and receive at one instant before the run is aborted.
const PACKETS_AT_ONE_INSTANT: u32 = 1_000_000;

/// A node that keeps the network busy without letting time pass; the run cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeStalled {
    /// Its deadline stayed due.
    #[error("{node} is stalled at {at}: its deadline did not move in {TIMEOUTS_AT_ONE_INSTANT} timeouts")]
    Timeouts {
        /// The node.
        node: NodeId,
        /// The instant.
        at: Time,
    },
    /// It sends or receives packets without end.
    #[error("{node} is stalled at {at}: it sent and received {PACKETS_AT_ONE_INSTANT} packets at one instant")]
    Packets {
        /// The node.
        node: NodeId,
        /// The instant.
        at: Time,
    },
}

/// The network's counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkStats {
    /// Packets taken from nodes.
    pub sent: u64,
    /// Packets handed to nodes.
    pub received: u64,
    /// Packets that reached a router, once for each router.
    pub forwarded: u64,
    /// Packets dropped because no path leads to their destination.
    pub unroutable: u64,
    /// Calls of [`Node::handle_timeout`].
    pub timeouts: u64,
}

/// The network's record of a node.
#[derive(Debug)]
struct Guard {
    id: NodeId,
    /// The instant to which the two counts belong.
    instant: Time,
    timeouts: u32,
    packets: u32,
}

/// Nodes, routers, directed links and the virtual clock.
///
/// Deterministic: at one instant packets arrive before deadlines are due, each in the order in which links and nodes
/// were added.
#[derive(Debug)]
pub struct Network<N> {
    now: Time,
    nodes: Vec<N>,
    /// Parallel to `nodes`.
    guards: Vec<Guard>,
    /// By `NodeId`: the index in `nodes`, `None` for a router.
    vertices: Vec<Option<usize>>,
    fabric: Fabric<Packet>,
    deadlines: DeadlineTree,
    /// Nodes to ask for packets and deadlines before time advances.
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
            fabric: Fabric::new(),
            deadlines: DeadlineTree::default(),
            touched: VecDeque::new(),
            stats: NetworkStats::default(),
        }
    }
}

impl<N: Node> Network<N> {
    /// Creates an empty network at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node. Only routers forward the packets of others.
    pub fn add_node(&mut self, node: N) -> NodeId {
        let index = self.nodes.len();
        let id = self.fabric.add_host();
        self.guards.push(Guard { id, instant: Time::ZERO, timeouts: 0, packets: 0 });
        self.nodes.push(node);
        self.deadlines.push();
        self.touched.push_back(index);
        self.vertices.push(Some(index));
        id
    }

    /// Adds a router: it forwards packets at once, and its queues are those of the links that leave it.
    pub fn add_router(&mut self) -> NodeId {
        self.vertices.push(None);
        self.fabric.add_router()
    }

    /// Adds a link in one direction. Packets take the path of the fewest links; of equal ones, the one added first.
    ///
    /// # Errors
    /// A node that does not exist, or an invalid link.
    pub fn add_link(&mut self, from: NodeId, to: NodeId, config: LinkConfig) -> Result<LinkId, NetworkError> {
        self.fabric.add_link(from, to, config)
    }

    /// Returns the virtual clock.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns all nodes, without the routers, in the order they were added.
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// Returns a node; `None` for a router and for an unknown id.
    pub fn node(&self, id: NodeId) -> Option<&N> {
        self.nodes.get((*self.vertices.get(id.index())?)?)
    }

    /// Returns a node to act on: it is polled for packets and its deadline before time advances.
    pub fn node_mut(&mut self, id: NodeId) -> Option<&mut N> {
        let index = (*self.vertices.get(id.index())?)?;
        self.touched.push_back(index);
        self.nodes.get_mut(index)
    }

    /// Returns a link with its statistics.
    pub fn link(&self, id: LinkId) -> Option<&Link> {
        self.fabric.link(id)
    }

    /// Changes a link for packets sent from now on; see [`Link::set_config`].
    ///
    /// # Errors
    /// A link that does not exist, or that would be invalid.
    pub fn set_link(&mut self, id: LinkId, config: LinkConfig) -> Result<(), NetworkError> {
        self.fabric.set_link(id, config)
    }

    /// Returns the network's counts so far.
    pub fn stats(&self) -> &NetworkStats {
        &self.stats
    }

    /// Runs up to and including `until`, to which the clock is then set.
    ///
    /// # Errors
    /// A node that does not let time pass.
    pub fn run_until(&mut self, until: Time) -> Result<(), NodeStalled> {
        while self.step_by(until)? {}
        self.now = self.now.max(until);
        Ok(())
    }

    /// Runs while `condition` holds, at most up to and including `limit`. Returns true once it no longer holds; false
    /// if it still does at `limit`, to which the clock is then set, or when nothing is left to happen, and the clock
    /// then stays at the last event.
    ///
    /// # Errors
    /// A node that does not let time pass.
    pub fn run_while(&mut self, mut condition: impl FnMut(&[N]) -> bool, limit: Time) -> Result<bool, NodeStalled> {
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

    /// Performs the next event: one packet arrives, or one deadline is due. Returns false if nothing is left to happen.
    ///
    /// # Errors
    /// A node that does not let time pass.
    pub fn step(&mut self) -> Result<bool, NodeStalled> {
        self.step_by(Time::MAX)
    }

    /// Returns when the next packet arrives or the next deadline is due, as far as nodes have been polled.
    pub fn next_event(&self) -> Option<Time> {
        let deadline = self.deadlines.first().map(|(at, _)| at);
        self.fabric.next_event().into_iter().chain(deadline).min()
    }

    fn step_by(&mut self, limit: Time) -> Result<bool, NodeStalled> {
        while let Some(index) = self.touched.pop_front() {
            self.serve(index)?;
        }
        let deadline = self.deadlines.first();
        match (self.fabric.next_event(), deadline) {
            (Some(at), _) if at <= limit && deadline.is_none_or(|(due, _)| at <= due) => {
                self.now = self.now.max(at);
                self.pass_on()?;
            }
            (_, Some((due, index))) if due <= limit => {
                self.now = self.now.max(due);
                self.time_out(index)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Delivers the next packet to a node or a router.
    fn pass_on(&mut self) -> Result<(), NodeStalled> {
        match self.fabric.step() {
            None | Some(FabricEvent::Taken) => {}
            Some(FabricEvent::Arrived(arrival)) => return self.arrive(arrival),
            Some(FabricEvent::Forwarded) => self.stats.forwarded += 1,
            Some(FabricEvent::Refused(refused)) => {
                self.stats.forwarded += 1;
                self.refuse(refused);
            }
        }
        Ok(())
    }

    /// Hands a packet to its node.
    fn arrive(&mut self, arrival: Arrival<Packet>) -> Result<(), NodeStalled> {
        let Arrival { host, ecn, corrupt: flips, item: mut packet, .. } = arrival;
        let Some(index) = self.vertices[host.index()] else { return Ok(()) };
        packet.ecn = ecn;
        if let Some(entropy) = flips {
            corrupt(&mut packet.payload, entropy);
        }
        self.count_packet(index)?;
        self.stats.received += 1;
        self.nodes[index].handle_packet(self.now, packet);
        self.serve(index)
    }

    fn time_out(&mut self, index: usize) -> Result<(), NodeStalled> {
        let guard = self.guard(index);
        guard.timeouts += 1;
        if guard.timeouts > TIMEOUTS_AT_ONE_INSTANT {
            return Err(NodeStalled::Timeouts { node: self.guards[index].id, at: self.now });
        }
        self.stats.timeouts += 1;
        self.nodes[index].handle_timeout(self.now);
        self.serve(index)
    }

    /// Asks a node for its packets and its deadline.
    fn serve(&mut self, index: usize) -> Result<(), NodeStalled> {
        while let Some(packet) = self.nodes[index].poll_transmit(self.now) {
            self.count_packet(index)?;
            self.stats.sent += 1;
            self.send(self.guards[index].id, packet);
        }
        let deadline = self.nodes[index].poll_timeout();
        // Not before now: due deadlines are handled in the order of the nodes, not of their lateness.
        self.deadlines.set(index, deadline.map_or(Time::MAX, |deadline| deadline.max(self.now)));
        Ok(())
    }

    fn send(&mut self, from: NodeId, packet: Packet) {
        let header = Header::new(packet.ip_bytes(), packet.ecn);
        let sent = self.fabric.offer(self.now, from, packet.destination, header, packet);
        if let Err(refused) = sent {
            self.refuse(refused);
        }
    }

    /// Returns its buffer to the sender of a packet that goes no further.
    fn refuse(&mut self, refused: Undelivered<Packet>) {
        self.stats.unroutable += u64::from(refused.reason == Refusal::Unroutable);
        let packet = refused.item;
        if let Some(&Some(index)) = self.vertices.get(packet.source.index()) {
            self.nodes[index].recycle(packet.payload);
        }
    }

    fn count_packet(&mut self, index: usize) -> Result<(), NodeStalled> {
        let guard = self.guard(index);
        guard.packets += 1;
        if guard.packets > PACKETS_AT_ONE_INSTANT {
            return Err(NodeStalled::Packets { node: self.guards[index].id, at: self.now });
        }
        Ok(())
    }

    /// Returns the counts of a node at this instant.
    fn guard(&mut self, index: usize) -> &mut Guard {
        let guard = &mut self.guards[index];
        if guard.instant != self.now {
            guard.instant = self.now;
            guard.timeouts = 0;
            guard.packets = 0;
        }
        guard
    }
}
