//! Several transfers at once over one topology, and what came of each.

use crate::case::{self, Ending};
use crate::host::{Host, HostConfig};
use crate::storage::Received;
use netsim::topology::{HostPair, Links, Topology};
use netsim::{LinkStats, Network, NetworkError, NodeId};
use std::time::Duration;
use transport::{EndpointConfig, Profile};

/// A transfer of one object between every pair of a topology, all at once.
#[derive(Clone, Debug)]
pub struct SharedCase {
    /// The hosts, the links, and the pairs.
    pub topology: Topology,
    /// Bytes of each object.
    pub size: u64,
    /// How each sender sends.
    pub profile: Profile,
    /// When to give up.
    pub limit: Duration,
}

/// What came of a run of a [`SharedCase`].
#[derive(Clone, Debug, PartialEq)]
pub struct SharedOutcome {
    /// How it ended.
    pub ending: Ending,
    /// One for each pair, in their order.
    pub transfers: Vec<SharedTransfer>,
    /// The counts of each link at the end, in their order: there and back.
    pub links: Vec<[LinkStats; 2]>,
}

/// One transfer of a [`SharedOutcome`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedTransfer {
    /// Who sent to whom.
    pub pair: HostPair,
    /// From the sender's first datagram to the receiver's last byte; `None` if that did not come.
    pub completed: Option<Duration>,
    /// The object arrived, once and right.
    pub is_identical: bool,
}

/// A topology whose transfers cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SharedError {
    /// There is nothing to do.
    #[error("the topology has no pairs: write who sends to whom, as [[pairs]] with from and to")]
    NoPairs,
    /// A host in two pairs.
    #[error("{0} is in two pairs: give each pair hosts of its own")]
    Busy(String),
    /// A link that makes no sense.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

impl SharedCase {
    /// 10 MB each by `auto`, which is told nothing.
    pub fn new(topology: Topology) -> Self {
        Self { topology, size: 10_000_000, profile: Profile::auto(), limit: Duration::from_secs(120) }
    }

    /// Runs the transfers, which all begin at once, with this seed.
    ///
    /// # Errors
    /// No pairs, a host in two of them, or a trace that is not loaded.
    pub fn run(&self, seed: u64) -> Result<SharedOutcome, SharedError> {
        let pairs = self.topology.pairs();
        self.check()?;
        let topology = self.topology.sibling(seed);
        let make = |id: NodeId, _: &str| Host::new(id, self.host(id, seed));
        let (mut network, links) = topology.build_network(make)?;
        let busy: Vec<usize> = pairs.iter().flat_map(|pair| [pair.from.index(), pair.to.index()]).collect();
        let over = |nodes: &[Host]| busy.iter().all(|&index| nodes[index].is_over());
        let ended = network.run_while(|nodes| !over(nodes), netsim::Time::ZERO + self.limit);
        let ending = match ended {
            Err(_) => Ending::Stalled,
            Ok(_) if over(network.nodes()) => Ending::Closed,
            Ok(_) => Ending::TimeUp,
        };
        let transfers = pairs.iter().map(|&pair| transfer(&network, pair)).collect();
        let links = links.iter().map(|ids| link_stats(&network, *ids)).collect();
        Ok(SharedOutcome { ending, transfers, links })
    }

    fn check(&self) -> Result<(), SharedError> {
        let pairs = self.topology.pairs();
        if pairs.is_empty() {
            return Err(SharedError::NoPairs);
        }
        let mut busy = Vec::new();
        for id in pairs.iter().flat_map(|pair| [pair.from, pair.to]) {
            if busy.contains(&id) {
                return Err(SharedError::Busy(self.topology.name(id).unwrap_or_default().to_owned()));
            }
            busy.push(id);
        }
        Ok(())
    }

    /// A sender, which connects, a receiver, or one that does nothing.
    fn host(&self, id: NodeId, seed: u64) -> HostConfig {
        let peer = self.topology.pairs().iter().find(|pair| pair.from == id).map(|pair| pair.to);
        let endpoint = EndpointConfig::default();
        case::host_config(self.profile.clone(), endpoint, peer.map(|_| self.size), peer, seed)
    }
}

fn transfer(network: &Network<Host>, pair: HostPair) -> SharedTransfer {
    let tally = network.node(pair.to).and_then(|host| host.tallies().next());
    let complete_at = tally.and_then(|tally| tally.complete_at);
    let first = network.node(pair.from).and_then(Host::first_sent).unwrap_or(netsim::Time::ZERO);
    SharedTransfer {
        pair,
        completed: complete_at.and_then(|at| at.checked_since(first)),
        is_identical: tally.and_then(|tally| tally.received.values().next()).is_some_and(Received::is_identical),
    }
}

fn link_stats(network: &Network<Host>, ids: Links) -> [LinkStats; 2] {
    [ids.forward, ids.backward].map(|id| network.link(id).map(|link| *link.stats()).unwrap_or_default())
}
