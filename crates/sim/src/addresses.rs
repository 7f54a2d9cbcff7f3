//! Hosts that move: each has several addresses, one of which it sends from at a time, and an on-path attacker may send
//! copies of observed packets from an address of its own.
//!
//! An address is a [`AddressForwarder`]: a node that forwards packets sent to it while it is open. A host that moves sends from
//! another door; if the old one closes, it has left that network for good.

use crate::host::{Host, HostConfig};
use netsim::{Duplex, LinkConfig, LinkId, Network, NetworkError, Node, NodeId, NodeStalled, Packet};
use std::collections::VecDeque;
use std::time::Duration;

/// Addresses of each host.
pub const DOORS: usize = 3;

/// One address.
#[derive(Debug)]
pub struct AddressForwarder {
    leads_to: Option<NodeId>,
    /// The source address of relayed packets; `None` leaves it unchanged.
    relays_as: Option<NodeId>,
    passing: VecDeque<Packet>,
    /// IP bytes sent to it.
    bytes: u64,
}

/// A node of the network.
#[derive(Debug)]
pub enum Machine {
    /// One of the two hosts.
    Host(Box<Host>),
    /// One of their addresses, or the attacker's.
    Door(AddressForwarder),
}

impl Node for Machine {
    fn handle_packet(&mut self, now: netsim::Time, packet: Packet) {
        match self {
            Self::Host(host) => host.handle_packet(now, packet),
            Self::Door(door) => {
                door.bytes += u64::from(packet.ip_bytes());
                let source = door.relays_as.unwrap_or(packet.source);
                let onward = door.leads_to.map(|destination| Packet { source, destination, ..packet });
                door.passing.extend(onward);
            }
        }
    }

    fn handle_timeout(&mut self, now: netsim::Time) {
        if let Self::Host(host) = self {
            host.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: netsim::Time) -> Option<Packet> {
        match self {
            Self::Host(host) => host.poll_transmit(now),
            Self::Door(door) => door.passing.pop_front(),
        }
    }

    fn poll_timeout(&self) -> Option<netsim::Time> {
        if let Self::Host(host) = self { host.poll_timeout() } else { None }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if let Self::Host(host) = self {
            host.recycle(buffer);
        }
    }
}

/// Two hosts with their addresses, and an attacker.
#[derive(Debug)]
pub struct Roaming {
    /// The network in which they run.
    pub network: Network<Machine>,
    /// The link from each host into the network, with its original configuration.
    ways: Vec<(LinkId, LinkConfig)>,
}

/// Returns host `side`, which is 0 or 1.
const fn host(side: usize) -> NodeId {
    NodeId::from_index(side as u32)
}

impl Roaming {
    /// Returns address number `nth` of host `side`, which begins at number 0.
    pub const fn door(side: usize, nth: usize) -> NodeId {
        NodeId::from_index((2 + side * DOORS + nth) as u32)
    }

    /// The attacker's address.
    pub const STRANGER: NodeId = NodeId::from_index((2 + 2 * DOORS) as u32);

    /// Creates hosts with these settings; `connect_to` names [`Roaming::door`]s.
    ///
    /// # Errors
    /// An invalid link.
    pub fn new(configs: [HostConfig; 2], link: &Duplex) -> Result<Self, NetworkError> {
        let mut network = Network::new();
        for (side, config) in configs.into_iter().enumerate() {
            let mut machine = Host::new(host(side), config);
            machine.move_to(Self::door(side, 0));
            network.add_node(Machine::Host(Box::new(machine)));
        }
        let door = |leads_to| {
            Machine::Door(AddressForwarder { leads_to, relays_as: None, passing: VecDeque::new(), bytes: 0 })
        };
        for side in [0, 1] {
            for _ in 0..DOORS {
                network.add_node(door(Some(host(side))));
            }
        }
        network.add_node(door(None));
        let mut ways = Vec::new();
        for (side, config) in [(0, &link.forward), (1, &link.backward)] {
            for nth in 0..DOORS {
                let config = config.sibling(nth as u64 * 4);
                let there = Self::door(1 - side, nth);
                ways.push((network.add_link(host(side), there, config.clone())?, config));
                network.add_link(there, host(1 - side), LinkConfig::default())?;
            }
            // The network's own copies are not the hosts' doing: the attacker's bytes are counted.
            let away = LinkConfig { duplicate: 0.0, ..config.sibling(1_000) };
            ways.push((network.add_link(host(side), Self::STRANGER, away.clone())?, away));
        }
        Ok(Self { network, ways })
    }

    /// Returns one of the hosts.
    ///
    /// # Panics
    /// Never: the first two nodes are hosts.
    pub fn host(&mut self, side: usize) -> &mut Host {
        match self.network.node_mut(host(side)) {
            Some(Machine::Host(host)) => host,
            _ => unreachable!("the first two nodes are hosts"),
        }
    }

    /// Returns host `side`, read-only.
    ///
    /// # Panics
    /// Never: the first two nodes are hosts.
    pub fn seen(nodes: &[Machine], side: usize) -> &Host {
        match &nodes[side] {
            Machine::Host(host) => host,
            Machine::Door(_) => unreachable!("the first two nodes are hosts"),
        }
    }

    /// Makes host `side` send from its address number `nth` from now on. Unless `keep`, nothing reaches it at the
    /// others any more.
    pub fn move_to(&mut self, side: usize, nth: usize, keep: bool) {
        self.host(side).move_to(Self::door(side, nth));
        for at in 0..DOORS {
            let open = at == nth || (keep && self.leads_to(Self::door(side, at)).is_some());
            self.set_door(Self::door(side, at), open.then_some(host(side)));
        }
    }

    /// Returns whether they are connected, and each knows the other's address.
    pub fn is_settled(&mut self) -> bool {
        if [0, 1].iter().any(|side| !self.host(*side).tallies().any(|tally| tally.connected_at.is_some())) {
            return false;
        }
        let addresses = [0, 1].map(|side| self.host(side).address());
        let peers = [0, 1].map(|side| self.host(side).peer());
        peers[0] == Some(addresses[1]) && peers[1] == Some(addresses[0])
    }

    /// Sets the host to which the attacker relays packets sent to it, either `spoofed` with the original source address
    /// or with the attacker's own address.
    pub fn pass_on(&mut self, to: Option<usize>, spoofed: bool) -> Result<(), NetworkError> {
        if let Some(side) = to {
            self.network.add_link(Self::STRANGER, host(side), LinkConfig::default())?;
        }
        self.set_door(Self::STRANGER, to.map(host));
        if let Some(Machine::Door(door)) = self.network.node_mut(Self::STRANGER) {
            door.relays_as = (!spoofed).then_some(Self::STRANGER);
        }
        Ok(())
    }

    /// Returns the IP bytes sent to the attacker.
    pub fn stranger_bytes(&mut self) -> u64 {
        let Some(Machine::Door(door)) = self.network.node_mut(Self::STRANGER) else { return 0 };
        door.bytes
    }

    fn leads_to(&mut self, id: NodeId) -> Option<NodeId> {
        let Some(Machine::Door(door)) = self.network.node_mut(id) else { return None };
        door.leads_to
    }

    fn set_door(&mut self, id: NodeId, leads_to: Option<NodeId>) {
        if let Some(Machine::Door(door)) = self.network.node_mut(id) {
            door.leads_to = leads_to;
        }
    }

    /// Changes every link into the network for packets sent from now on.
    ///
    /// # Errors
    /// An invalid link.
    pub fn change_links(&mut self, change: impl Fn(LinkConfig) -> LinkConfig) -> Result<(), NetworkError> {
        self.ways.iter().try_for_each(|(link, config)| self.network.set_link(*link, change(config.clone())))
    }

    /// Runs until `over` or `until`.
    ///
    /// # Errors
    /// A host that does not let time pass.
    pub fn run(&mut self, until: Duration, over: impl Fn([&Host; 2]) -> bool) -> Result<bool, NodeStalled> {
        let hosts = |nodes: &[Machine]| over([0, 1].map(|side| Self::seen(nodes, side)));
        self.network.run_while(|nodes| !hosts(nodes), netsim::Time::ZERO + until)
    }
}
