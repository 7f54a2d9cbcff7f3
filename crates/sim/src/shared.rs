//! Several flows at once over one topology, with traffic that only loads it, and the outcome of each.

mod counts;
mod machine;
mod outcome;

pub use outcome::{FlowOutcome, SharedOutcome, jain};

use crate::bursts::OnOff;
use crate::case::Ending;
use crate::coding::Coding;
use crate::host::{HostConfig, endpoint_for};
use counts::NetworkCounters;
use machine::Machine;
use netsim::topology::{HostPair, LinkPair, Topology};
use netsim::{ConstantRate, Filler, Network, NetworkError, NodeId};
use std::time::Duration;
use transport::Profile;
use transport::congestion::SavedPath;
use transport::wire::BlockFeedback;

/// The object of a flow that never ends, in bytes: 39 hours at 1 Gbit/s.
const ENDLESS: u64 = 1 << 44;

/// Flows over a topology, each between two hosts of its own.
#[derive(Clone, Debug)]
pub struct SharedCase {
    /// The hosts and the links; its pairs are ignored.
    pub topology: Topology,
    /// The measured flows.
    pub flows: Vec<Flow>,
    /// Traffic that shares the links with them.
    pub background: Vec<Background>,
    /// Length of the spans in which arriving bytes are counted.
    pub count_every: Duration,
    /// Throughput and queues of links are counted from this time on.
    pub warm_up: Duration,
    /// When to end a run that has not ended.
    pub limit: Duration,
    /// Whether the senders are traced.
    pub qlog: bool,
}

/// The transfer of one object, or of bytes without end.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The sender and the receiver.
    pub pair: HostPair,
    /// The sender's profile.
    pub profile: Profile,
    /// Bytes of the object; `None`: it never ends, and the run does not wait for it.
    pub size: Option<u64>,
    /// When the sender begins.
    pub start: Duration,
    /// Up to this much later, uniform, drawn from the seed: flows that begin at the same time, or at intervals that
    /// never change, may owe it to that how they share.
    pub start_within: Duration,
    /// When the sender closes its connections, finished or not; `None`: not before it is finished.
    pub stop: Option<Duration>,
    /// Parallel connections, each of which carries an equal part of the object (ttp III-A: 8 parallel sockets).
    pub connections: u32,
    /// How long coding takes on both hosts.
    pub coding: Coding,
    /// Whether the handshake counts.
    pub handshake: Handshake,
    /// The measurements of an earlier flow.
    pub memory: Option<SavedPath>,
}

/// Whether a flow's time includes the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Handshake {
    /// Its clock starts with the sender's first packet.
    #[default]
    Counted,
    /// Its clock starts when the sender has keys and a round-trip time and begins with the object, as if both ends had
    /// had them before.
    Done,
}

/// Background traffic.
#[derive(Clone, Debug)]
pub struct Background {
    /// The sender and the receiver.
    pub pair: HostPair,
    /// The kind of traffic.
    pub traffic: Traffic,
}

/// A kind of background traffic.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Packets at a constant bit rate, whatever the losses.
    Constant(ConstantRate),
    /// Objects of random size with random pauses, over a transport that responds to congestion.
    OnOff {
        /// Sizes and pauses.
        script: OnOff,
        /// The sender's profile.
        profile: Box<Profile>,
        /// When the first object is sent.
        start: Duration,
    },
}

/// A case that cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SharedError {
    /// The topology has no pairs.
    #[error("the topology has no pairs: write senders and receivers as [[pairs]] with from and to")]
    NoPairs,
    /// A host with two roles.
    #[error("{0} is in two pairs: give each pair its own hosts")]
    Busy(String),
    /// A pair that does not consist of two hosts of the topology.
    #[error("{0} is not a host of the topology: name two hosts for each flow")]
    NoHost(NodeId),
    /// A flow without a time to send.
    #[error("the flow from {0} stops before it starts: write a later stop")]
    StopsFirst(String),
    /// An invalid link.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl Flow {
    /// Creates a flow of `size` bytes over one connection, starting at once; coding takes no time.
    pub fn new(pair: HostPair, profile: Profile, size: u64) -> Self {
        Self { size: Some(size), ..Self::endless(pair, profile) }
    }

    /// Creates a flow that never ends over one connection, starting at once; coding takes no time.
    pub const fn endless(pair: HostPair, profile: Profile) -> Self {
        Self {
            pair,
            profile,
            size: None,
            start: Duration::ZERO,
            start_within: Duration::ZERO,
            stop: None,
            connections: 1,
            coding: Coding::NONE,
            handshake: Handshake::Counted,
            memory: None,
        }
    }

    /// Returns when the sender begins in a run with this seed.
    fn starts_at(&self, seed: u64) -> Duration {
        let mut random =
            fastrand::Rng::with_seed(seed.wrapping_mul(65_537).wrapping_add(self.pair.from.index() as u64));
        let most = u64::try_from(self.start_within.as_nanos()).unwrap_or(u64::MAX);
        self.start.saturating_add(Duration::from_nanos(random.u64(0..=most)))
    }
}

impl SharedCase {
    /// Creates a case of 10 MB with `auto`, without any given rate, between every pair of a topology, all at once.
    pub fn new(topology: Topology) -> Self {
        let flows = topology.pairs().iter().map(|pair| Flow::new(*pair, systems::auto(), 10_000_000)).collect();
        Self {
            topology,
            flows,
            background: Vec::new(),
            count_every: Duration::from_millis(100),
            warm_up: Duration::ZERO,
            limit: Duration::from_secs(120),
            qlog: false,
        }
    }

    /// Runs with this seed until every flow that has a size is over, or to the limit; to the limit if none has one.
    ///
    /// # Errors
    /// No flows, a host in two of them, a flow that stops before it starts, or an unloaded trace.
    pub fn run(&self, seed: u64) -> Result<SharedOutcome, SharedError> {
        self.check()?;
        let topology = self.topology.sibling(seed);
        let (mut network, links) = topology.build_network(|id, _| self.machine(id, seed))?;
        let awaited = self.flows.iter().filter(|flow| flow.size.is_some());
        let awaited: Vec<[usize; 2]> = awaited.map(|flow| [flow.pair.from, flow.pair.to].map(NodeId::index)).collect();
        let over =
            |nodes: &[Machine]| !awaited.is_empty() && awaited.iter().flatten().all(|&index| nodes[index].is_over());
        let until = |span| netsim::Time::ZERO + span;
        let warmed = network.run_while(|nodes| !over(nodes), until(self.warm_up.min(self.limit)));
        let before = NetworkCounters::of(&self.flows, &network, &links);
        let ended = warmed.and_then(|_| network.run_while(|nodes| !over(nodes), until(self.limit)));
        let ending = match ended {
            Err(_) => Ending::Stalled,
            Ok(_) if over(network.nodes()) => Ending::Closed,
            Ok(_) => Ending::TimeUp,
        };
        Ok(self.outcome(ending, &mut network, &links, &before))
    }

    fn outcome(
        &self,
        ending: Ending,
        network: &mut Network<Machine>,
        links: &[LinkPair],
        before: &NetworkCounters,
    ) -> SharedOutcome {
        let counts = NetworkCounters::of(&self.flows, network, links);
        let flows = self.flows.iter().zip(counts.throughput_since(before));
        let flows = flows.map(|(flow, throughput)| FlowOutcome::of(flow, throughput, network)).collect();
        let links = links.iter().map(|ids| {
            [ids.forward, ids.backward].map(|id| network.link(id).map(|link| *link.stats()).unwrap_or_default())
        });
        SharedOutcome {
            ending,
            flows,
            links: links.collect(),
            waits: counts.waits_since(before),
            packets: network.stats().sent,
        }
    }

    fn pairs(&self) -> impl Iterator<Item = HostPair> {
        self.flows.iter().map(|flow| flow.pair).chain(self.background.iter().map(|background| background.pair))
    }

    /// Checks that the flows make sense: see [`SharedCase::run`].
    ///
    /// # Errors
    /// Those of [`SharedCase::run`], but for links.
    pub fn check(&self) -> Result<(), SharedError> {
        if self.flows.is_empty() {
            return Err(SharedError::NoPairs);
        }
        let mut busy = Vec::new();
        for id in self.pairs().flat_map(|pair| [pair.from, pair.to]) {
            if id.index() >= self.topology.hosts().len() {
                return Err(SharedError::NoHost(id));
            }
            if busy.contains(&id) {
                return Err(SharedError::Busy(self.name(id)));
            }
            busy.push(id);
        }
        let latest = |flow: &Flow| flow.start.saturating_add(flow.start_within);
        match self.flows.iter().find(|flow| flow.stop.is_some_and(|stop| stop <= latest(flow))) {
            Some(flow) => Err(SharedError::StopsFirst(self.name(flow.pair.from))),
            None => Ok(()),
        }
    }

    fn name(&self, host: NodeId) -> String {
        self.topology.name(host).unwrap_or_default().to_owned()
    }

    /// Returns the machine of host `id`.
    fn machine(&self, id: NodeId, seed: u64) -> Machine {
        let is_at = |pair: &HostPair| pair.from == id || pair.to == id;
        if let Some(flow) = self.flows.iter().find(|flow| is_at(&flow.pair)) {
            return Machine::host(id, self.flow_host(flow, flow.pair.from == id, seed));
        }
        let Some(Background { pair, traffic }) = self.background.iter().find(|background| is_at(&background.pair))
        else {
            return Machine::Filler(Filler::sink(id));
        };
        match (traffic, pair.from == id) {
            (Traffic::Constant(constant), true) => Machine::Filler(Filler::source(id, pair.to, *constant)),
            (Traffic::Constant(_), false) => Machine::Filler(Filler::sink(id)),
            (Traffic::OnOff { profile, .. }, false) => {
                Machine::host(id, HostConfig::idle(Profile::clone(profile), seed))
            }
            (Traffic::OnOff { script, profile, start }, true) => {
                let config = HostConfig {
                    bursts: Some(*script),
                    connect_to: vec![pair.to],
                    starts_at: *start,
                    ..HostConfig::idle(Profile::clone(profile), seed)
                };
                Machine::host(id, config)
            }
        }
    }

    /// Returns the configuration of a sender, which connects, or of a receiver. The sender closes, unless a block may
    /// be acknowledged before it is decoded: then the receiver does.
    fn flow_host(&self, flow: &Flow, sends: bool, seed: u64) -> HostConfig {
        let idle = HostConfig::idle(flow.profile.clone(), seed);
        let idle = HostConfig {
            endpoint: endpoint_for(&flow.profile),
            connections: flow.connections,
            coding: flow.coding,
            memory: flow.memory,
            count_every: Some(self.count_every),
            ..idle
        };
        let is_reported_early = matches!(flow.profile.feedback.blocks, Some(BlockFeedback::Received(_)));
        if !sends {
            return HostConfig { expects: 1, closes: is_reported_early, ..idle };
        }
        HostConfig {
            connect_to: vec![flow.pair.to],
            starts_at: flow.starts_at(seed),
            stops_at: flow.stop,
            objects: vec![flow.size.unwrap_or(ENDLESS)],
            closes: !is_reported_early,
            qlog: self.qlog,
            ..idle
        }
    }
}
