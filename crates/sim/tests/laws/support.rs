//! Two hosts; a test may drop their packets.

use downpour_sim::{Coding, Host, HostConfig, ReadScript, StreamScript};
use netsim::{Duplex, Ecn, Network, Node, NodeId, Packet, topology};
use std::time::Duration;
use transport::{Connection, EndpointConfig, Profile, Rate};

/// A host some of whose packets are dropped.
#[derive(Debug)]
pub(crate) struct Censored {
    pub(crate) host: Host,
    /// Number of packets sent so far, including dropped ones.
    pub(crate) sent: u64,
    /// Numbers of the packets to drop, counted from 1.
    pub(crate) dropped: Vec<u64>,
    /// Whether its packets lose their ECN field.
    pub(crate) bleaches: bool,
    /// Departure time and IP bytes of each packet.
    pub(crate) log: Vec<(netsim::Time, u64)>,
}

impl Node for Censored {
    fn handle_packet(&mut self, now: netsim::Time, packet: Packet) {
        self.host.handle_packet(now, packet);
    }

    fn handle_timeout(&mut self, now: netsim::Time) {
        self.host.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: netsim::Time) -> Option<Packet> {
        loop {
            let mut packet = self.host.poll_transmit(now)?;
            if self.bleaches {
                packet.ecn = Ecn::NotEct;
            }
            self.sent += 1;
            if !self.dropped.contains(&self.sent) {
                self.log.push((now, packet.ip_bytes().into()));
                return Some(packet);
            }
            self.host.recycle(packet.payload);
        }
    }

    fn poll_timeout(&self) -> Option<netsim::Time> {
        self.host.poll_timeout()
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        self.host.recycle(buffer);
    }
}

/// The configuration of both hosts.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) link: String,
    pub(crate) profile: Profile,
    pub(crate) endpoint: EndpointConfig,
    /// The most symbols that sender and receiver may buffer, where they have bounds of their own.
    pub(crate) bounds: [Option<u64>; 2],
    pub(crate) objects: Vec<u64>,
    pub(crate) streams: Vec<StreamScript>,
    pub(crate) reads: ReadScript,
    pub(crate) control: u64,
    pub(crate) compute_delay: Duration,
    pub(crate) storage_delay: Duration,
    pub(crate) read_rate: Option<Rate>,
    pub(crate) write_rate: Option<Rate>,
    pub(crate) sender_connects: bool,
    /// Otherwise the sender closes as soon as it knows that every block has arrived, written or not.
    pub(crate) receiver_closes: bool,
}

impl Plan {
    pub(crate) fn new(link: impl Into<String>, profile: Profile, objects: Vec<u64>) -> Self {
        Self {
            link: link.into(),
            profile,
            endpoint: EndpointConfig::default(),
            bounds: [None; 2],
            objects,
            streams: Vec::new(),
            reads: ReadScript::default(),
            control: 0,
            compute_delay: Duration::ZERO,
            storage_delay: Duration::ZERO,
            read_rate: None,
            write_rate: None,
            sender_connects: true,
            receiver_closes: false,
        }
    }

    /// Creates sender and receiver; the packets with the numbers `dropped` of each are lost.
    pub(crate) fn network(&self, dropped: [Vec<u64>; 2]) -> Network<Censored> {
        let link: Duplex = self.link.parse().expect("a link");
        let [first, second] = [0, 1].map(NodeId::from_index);
        let host = |id: NodeId, peer: NodeId, sends: bool| {
            let mut endpoint = self.endpoint.clone();
            let limits = &mut endpoint.limits;
            limits.most_symbols = self.bounds[usize::from(!sends)].unwrap_or(limits.most_symbols);
            let config = HostConfig {
                endpoint,
                connect_to: if sends == self.sender_connects { vec![peer] } else { Vec::new() },
                objects: if sends { self.objects.clone() } else { Vec::new() },
                streams: if sends { self.streams.clone() } else { Vec::new() },
                reads: self.reads,
                expects_streams: if sends { 0 } else { self.streams.len() },
                expects: if sends { 0 } else { self.objects.len() },
                control: if sends { self.control } else { 0 },
                expects_control: if sends { 0 } else { self.control },
                closes: sends != self.receiver_closes,
                coding: Coding::each(self.compute_delay),
                storage_delay: self.storage_delay,
                read_rate: self.read_rate,
                write_rate: self.write_rate,
                ..HostConfig::idle(self.profile.clone(), 1)
            };
            Host::new(id, config)
        };
        let [to_first, to_second] = dropped;
        let node = |host, dropped| Censored { host, sent: 0, dropped, bleaches: false, log: Vec::new() };
        let sender = node(host(first, second, true), to_first);
        let receiver = node(host(second, first, false), to_second);
        topology::pair(sender, receiver, &link).expect("a link that makes sense").0
    }
}

/// Runs `act` on the sender's connection at the current time; `None` if the connection has ended.
pub(crate) fn with_sender<R>(
    network: &mut Network<Censored>,
    act: impl FnOnce(transport::Time, &mut Connection) -> R,
) -> Option<R> {
    let now = transport::Time::from_nanos(network.now().as_nanos());
    let endpoint = network.node_mut(NodeId::from_index(0)).expect("the sender").host.endpoint();
    let handle = endpoint.handles().next()?;
    endpoint.connection(handle).map(|connection| act(now, connection))
}

/// Returns whether the closing side has finished.
pub(crate) fn is_done(nodes: &[Censored], plan: &Plan) -> bool {
    nodes[usize::from(plan.receiver_closes)].host.tallies().any(|tally| tally.content_at.is_some())
}

/// Returns whether both sides have forgotten the connection.
pub(crate) fn is_over(nodes: &[Censored]) -> bool {
    nodes.iter().all(|node| node.host.is_over())
}

pub(crate) fn at_seconds(seconds: u64) -> netsim::Time {
    netsim::Time::ZERO + Duration::from_secs(seconds)
}
