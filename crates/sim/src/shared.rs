//! Several flows at once over one topology, beside traffic that only loads it, and the outcome of each.

mod machine;
mod outcome;

pub use outcome::{FlowOutcome, SharedOutcome, jain};

use crate::bursts::OnOff;
use crate::case::Ending;
use crate::coding::Coding;
use crate::host::HostConfig;
use machine::Machine;
use netsim::topology::{HostPair, Links, Topology};
use netsim::{ConstantRate, Filler, Network, NetworkError, NodeId, Waits};
use std::time::Duration;
use transport::Profile;
use transport::congestion::PathMemory;

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
    /// What links queue is counted from this time on.
    pub warm_up: Duration,
    /// When to give up.
    pub limit: Duration,
    /// Whether the senders are traced.
    pub qlog: bool,
}

/// The transfer of one object.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The sender and the receiver.
    pub pair: HostPair,
    /// The sender's profile.
    pub profile: Profile,
    /// Bytes of the object.
    pub size: u64,
    /// When the sender begins.
    pub start: Duration,
    /// Parallel connections, each of which carries an equal part of the object (ttp III-A: 8 parallel sockets).
    pub connections: u32,
    /// How long coding takes on both hosts.
    pub coding: Coding,
    /// What an earlier flow has learned of the path.
    pub memory: Option<PathMemory>,
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

/// Returns how long packets have waited at each link: forward and backward.
fn waits(network: &Network<Machine>, links: &[Links]) -> Vec<[Waits; 2]> {
    let of = |id| network.link(id).map(|link| link.waits().clone()).unwrap_or_default();
    links.iter().map(|ids| [ids.forward, ids.backward].map(of)).collect()
}

/// A case that cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SharedError {
    /// There is nothing to do.
    #[error("the topology has no pairs: write who sends to whom, as [[pairs]] with from and to")]
    NoPairs,
    /// A host with two roles.
    #[error("{0} is in two pairs: give each pair hosts of its own")]
    Busy(String),
    /// A pair that does not consist of two hosts of the topology.
    #[error("{0} is no host of the topology: a flow goes from host to host")]
    NoHost(NodeId),
    /// An invalid link.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl Flow {
    /// Creates a flow of `size` bytes over one connection, starting at once; coding takes no time.
    pub const fn new(pair: HostPair, profile: Profile, size: u64) -> Self {
        Self { pair, profile, size, start: Duration::ZERO, connections: 1, coding: Coding::NONE, memory: None }
    }
}

impl SharedCase {
    /// Creates a case of 10 MB with `auto`, without any given rate, between every pair of a topology, all at once.
    pub fn new(topology: Topology) -> Self {
        let flows = topology.pairs().iter().map(|pair| Flow::new(*pair, Profile::auto(), 10_000_000)).collect();
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

    /// Runs with this seed until every flow has ended, or to the limit.
    ///
    /// # Errors
    /// No flows, a host in two of them, or a trace that is not loaded.
    pub fn run(&self, seed: u64) -> Result<SharedOutcome, SharedError> {
        self.check()?;
        let topology = self.topology.sibling(seed);
        let (mut network, links) = topology.build_network(|id, _| self.machine(id, seed))?;
        let hosts: Vec<[usize; 2]> =
            self.flows.iter().map(|flow| [flow.pair.from, flow.pair.to].map(NodeId::index)).collect();
        let over = |nodes: &[Machine]| hosts.iter().flatten().all(|&index| nodes[index].is_over());
        let until = |span| netsim::Time::ZERO + span;
        let warmed = network.run_while(|nodes| !over(nodes), until(self.warm_up.min(self.limit)));
        let before = waits(&network, &links);
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
        links: &[Links],
        before: &[[Waits; 2]],
    ) -> SharedOutcome {
        let since = |(now, before): (&[Waits; 2], &[Waits; 2])| [now[0].since(&before[0]), now[1].since(&before[1])];
        let waits = waits(network, links).iter().zip(before).map(since).collect();
        let flows = self.flows.iter().map(|flow| FlowOutcome::of(flow, network)).collect();
        let links = links.iter().map(|ids| {
            [ids.forward, ids.backward].map(|id| network.link(id).map(|link| *link.stats()).unwrap_or_default())
        });
        SharedOutcome { ending, flows, links: links.collect(), waits, packets: network.stats().sent }
    }

    fn pairs(&self) -> impl Iterator<Item = HostPair> {
        self.flows.iter().map(|flow| flow.pair).chain(self.background.iter().map(|background| background.pair))
    }

    fn check(&self) -> Result<(), SharedError> {
        if self.flows.is_empty() {
            return Err(SharedError::NoPairs);
        }
        let mut busy = Vec::new();
        for id in self.pairs().flat_map(|pair| [pair.from, pair.to]) {
            if id.index() >= self.topology.hosts().len() {
                return Err(SharedError::NoHost(id));
            }
            if busy.contains(&id) {
                return Err(SharedError::Busy(self.topology.name(id).unwrap_or_default().to_owned()));
            }
            busy.push(id);
        }
        Ok(())
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

    /// Returns the configuration of a sender, which connects and closes, or of a receiver.
    fn flow_host(&self, flow: &Flow, sends: bool, seed: u64) -> HostConfig {
        let idle = HostConfig {
            connections: flow.connections,
            coding: flow.coding,
            memory: flow.memory,
            count_every: Some(self.count_every),
            ..HostConfig::idle(flow.profile.clone(), seed)
        };
        if !sends {
            return HostConfig { expects: 1, ..idle };
        }
        HostConfig {
            connect_to: vec![flow.pair.to],
            starts_at: flow.start,
            objects: vec![flow.size],
            closes: true,
            qlog: self.qlog,
            ..idle
        }
    }
}
