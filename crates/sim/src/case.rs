//! The transfer of one object over one link, and its outcome.

use crate::coding::Coding;
use crate::host::{Host, HostConfig};
use crate::storage::Received;
use netsim::{Duplex, NodeId, topology};
use std::time::Duration;
use transport::{ConnectingSide, ConnectionError, ConnectionStats, EndpointConfig, Profile, Rate};

/// A transfer of one object.
#[derive(Clone, Debug)]
pub struct Case {
    /// Bytes of the object.
    pub size: u64,
    /// The links, from the sender to the receiver and back.
    pub link: Duplex,
    /// How the sender sends.
    pub profile: Profile,
    /// The side that connects.
    pub connector: ConnectingSide,
    /// How long encoding and decoding take.
    pub coding: Coding,
    /// The time limit.
    pub limit: Duration,
    /// The engine's limits.
    pub endpoint: EndpointConfig,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Both sides have closed and drained.
    Closed,
    /// The limit was reached.
    TimeUp,
    /// A host kept the network busy without letting time pass.
    Stalled,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// From the first datagram to the receiver's last byte.
    pub completed: Option<Duration>,
    /// IP bytes that the sender of the object had sent by then.
    pub bytes_until_complete: u64,
    /// The sender's counts at the end.
    pub sender: ConnectionStats,
    /// The receiver's counts at the end.
    pub receiver: ConnectionStats,
    /// Why the sender's connection ended.
    pub sender_closed: Option<ConnectionError>,
    /// Why the receiver's connection ended.
    pub receiver_closed: Option<ConnectionError>,
    /// The received object.
    pub received: Option<Received>,
    /// Packets that the network carried.
    pub packets: u64,
}

const SENDER: NodeId = NodeId::from_index(0);
const RECEIVER: NodeId = NodeId::from_index(1);

impl Case {
    /// Creates the transfer of 10 MB over `link` with `auto`, given the link's rate; the sender connects.
    pub fn new(link: Duplex) -> Self {
        let profile = systems::auto();
        let profile = match link.forward.rate {
            Some(rate) => profile.with_fixed_rate(Rate::from_bits_per_second(rate.bits_per_second())),
            None => profile,
        };
        Self {
            size: 10_000_000,
            link,
            profile,
            connector: ConnectingSide::Sender,
            coding: Coding::NONE,
            limit: Duration::from_secs(120),
            endpoint: EndpointConfig::default(),
        }
    }

    /// Returns the least time that this transfer can take; without a rate, the round trips alone.
    pub fn floor(&self) -> Duration {
        let rtt = self.link.forward.delay + self.link.backward.delay;
        let loss = self.link.forward.loss.mean();
        let rate = self.link.forward.rate.map_or(u64::MAX, |rate| rate.bits_per_second());
        transport::transfer_floor(self.size, Rate::from_bits_per_second(rate), rtt, loss, self.connector)
    }

    /// Runs the transfer with this seed.
    ///
    /// # Panics
    /// When the link's numbers make no sense.
    pub fn run(&self, seed: u64) -> Outcome {
        let host = |size: Option<u64>, connects: bool, peer: NodeId| HostConfig {
            coding: self.coding,
            ..host_config(self.profile.clone(), self.endpoint.clone(), size, connects.then_some(peer), seed)
        };
        let sender = Host::new(SENDER, host(Some(self.size), self.connector == ConnectingSide::Sender, RECEIVER));
        let receiver = Host::new(RECEIVER, host(None, self.connector == ConnectingSide::Receiver, SENDER));
        let (mut network, _) =
            topology::pair(sender, receiver, &self.link.sibling(seed)).expect("a link that makes sense");
        let limit = netsim::Time::ZERO + self.limit;
        let complete = |nodes: &[Host]| nodes[1].tallies().any(|tally| tally.complete_at.is_some());
        let over = |nodes: &[Host]| nodes.iter().all(Host::is_over);
        let started = network.run_while(|nodes| !complete(nodes) && !over(nodes), limit);
        let at = |node: &Host| node.tallies().find_map(|tally| tally.complete_at);
        let first = network.nodes().iter().filter_map(Host::first_sent).min().unwrap_or(netsim::Time::ZERO);
        let completed = at(&network.nodes()[1]).map(|at| at.checked_since(first).unwrap_or_default());
        let bytes_until_complete = stats(&mut network, SENDER).packets.bytes_sent;
        let ended = network.run_while(|nodes| !over(nodes), limit);
        let ending = match (started, ended) {
            (Err(_), _) | (_, Err(_)) => Ending::Stalled,
            _ if over(network.nodes()) => Ending::Closed,
            _ => Ending::TimeUp,
        };
        let (sender, receiver) = (stats(&mut network, SENDER), stats(&mut network, RECEIVER));
        let tally = |at: usize| network.nodes()[at].tallies().next();
        Outcome {
            ending,
            completed,
            bytes_until_complete,
            sender,
            receiver,
            sender_closed: tally(0).and_then(|tally| tally.closed.clone()),
            receiver_closed: tally(1).and_then(|tally| tally.closed.clone()),
            received: tally(1).and_then(|tally| tally.received.values().next().cloned()),
            packets: network.stats().sent,
        }
    }
}

/// Returns a host that sends an object of this size, or waits for one, and connects to a peer, or waits for one to
/// connect.
pub(crate) fn host_config(
    profile: Profile,
    endpoint: EndpointConfig,
    sends: Option<u64>,
    connects_to: Option<NodeId>,
    seed: u64,
) -> HostConfig {
    HostConfig {
        endpoint,
        connect_to: connects_to.into_iter().collect(),
        objects: sends.into_iter().collect(),
        expects: usize::from(sends.is_none()),
        closes: sends.is_some(),
        ..HostConfig::idle(profile, seed)
    }
}

/// Returns the engine's counts of a host's only connection, open or over.
fn stats(network: &mut netsim::Network<Host>, id: NodeId) -> ConnectionStats {
    network.node_mut(id).and_then(|host| host.all_stats().pop()).unwrap_or_default()
}

impl Outcome {
    /// Returns whether the object arrived, once and correct.
    pub fn is_identical(&self) -> bool {
        self.received.as_ref().is_some_and(Received::is_identical)
    }

    /// Returns the seconds until the receiver's last byte; infinite if it never arrived.
    pub fn completed_secs(&self) -> f64 {
        self.completed.map_or(f64::INFINITY, |time| time.as_secs_f64())
    }
}
