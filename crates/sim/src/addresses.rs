//! Hosts that move: each has several addresses and sends from one at a time, and an on-path attacker may send copies of
//! observed packets from its own address.
//!
//! An address is an [`AddressForwarder`]: a node that forwards packets sent to it while it is open. A host that moves
//! sends from another address; if the old one closes, it has left that network.

use crate::host::{Host, HostConfig};
use netsim::{Duplex, LinkConfig, LinkId, Network, NetworkError, Node, NodeId, NodeStalled, Packet};
use std::collections::VecDeque;
use std::time::Duration;

/// Addresses of each host.
pub const ADDRESSES_PER_HOST: usize = 3;

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
    Forwarder(AddressForwarder),
}

impl Node for Machine {
    fn handle_packet(&mut self, now: netsim::Time, packet: Packet) {
        match self {
            Self::Host(host) => host.handle_packet(now, packet),
            Self::Forwarder(forwarder) => {
                forwarder.bytes += u64::from(packet.ip_bytes());
                let source = forwarder.relays_as.unwrap_or(packet.source);
                let onward = forwarder.leads_to.map(|destination| Packet { source, destination, ..packet });
                forwarder.passing.extend(onward);
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
            Self::Forwarder(forwarder) => forwarder.passing.pop_front(),
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
    pub const fn address(side: usize, nth: usize) -> NodeId {
        NodeId::from_index((2 + side * ADDRESSES_PER_HOST + nth) as u32)
    }

    /// The attacker's address.
    pub const ATTACKER: NodeId = NodeId::from_index((2 + 2 * ADDRESSES_PER_HOST) as u32);

    /// Creates hosts with these settings; `connect_to` names [`Roaming::address`]s.
    ///
    /// # Errors
    /// An invalid link.
    pub fn new(configs: [HostConfig; 2], link: &Duplex) -> Result<Self, NetworkError> {
        let mut network = Network::new();
        for (side, config) in configs.into_iter().enumerate() {
            let mut machine = Host::new(host(side), config);
            machine.move_to(Self::address(side, 0));
            network.add_node(Machine::Host(Box::new(machine)));
        }
        let forwarder = |leads_to| {
            Machine::Forwarder(AddressForwarder { leads_to, relays_as: None, passing: VecDeque::new(), bytes: 0 })
        };
        for side in [0, 1] {
            for _ in 0..ADDRESSES_PER_HOST {
                network.add_node(forwarder(Some(host(side))));
            }
        }
        network.add_node(forwarder(None));
        let mut ways = Vec::new();
        for (side, config) in [(0, &link.forward), (1, &link.backward)] {
            for nth in 0..ADDRESSES_PER_HOST {
                let config = config.sibling(nth as u64 * 4);
                let peer = Self::address(1 - side, nth);
                ways.push((network.add_link(host(side), peer, config.clone())?, config));
                network.add_link(peer, host(1 - side), LinkConfig::default())?;
            }
            // The network's own copies are not the hosts' doing: the attacker's bytes are counted.
            let away = LinkConfig { duplicate: 0.0, ..config.sibling(1_000) };
            ways.push((network.add_link(host(side), Self::ATTACKER, away.clone())?, away));
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
            Machine::Forwarder(_) => unreachable!("the first two nodes are hosts"),
        }
    }

    /// Makes host `side` send from its address number `nth` from now on. Unless `keep`, nothing reaches it at the
    /// others any more.
    pub fn move_to(&mut self, side: usize, nth: usize, keep: bool) {
        self.host(side).move_to(Self::address(side, nth));
        for at in 0..ADDRESSES_PER_HOST {
            let open = at == nth || (keep && self.leads_to(Self::address(side, at)).is_some());
            self.set_forwarding(Self::address(side, at), open.then_some(host(side)));
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
            self.network.add_link(Self::ATTACKER, host(side), LinkConfig::default())?;
        }
        self.set_forwarding(Self::ATTACKER, to.map(host));
        if let Some(Machine::Forwarder(forwarder)) = self.network.node_mut(Self::ATTACKER) {
            forwarder.relays_as = (!spoofed).then_some(Self::ATTACKER);
        }
        Ok(())
    }

    /// Returns the IP bytes sent to the attacker.
    pub fn stranger_bytes(&mut self) -> u64 {
        let Some(Machine::Forwarder(forwarder)) = self.network.node_mut(Self::ATTACKER) else { return 0 };
        forwarder.bytes
    }

    fn leads_to(&mut self, id: NodeId) -> Option<NodeId> {
        let Some(Machine::Forwarder(forwarder)) = self.network.node_mut(id) else { return None };
        forwarder.leads_to
    }

    fn set_forwarding(&mut self, id: NodeId, leads_to: Option<NodeId>) {
        if let Some(Machine::Forwarder(forwarder)) = self.network.node_mut(id) {
            forwarder.leads_to = leads_to;
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
