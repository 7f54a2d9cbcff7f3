//! The outcome of a run with several flows.

use super::machine::Machine;
use super::{Flow, Handshake};
use crate::case::Ending;
use crate::host::Moment;
use crate::storage::Received;
use netsim::topology::HostPair;
use netsim::{LinkStats, Network, QueueDelays};
use std::time::Duration;
use transport::congestion::SavedPath;
use transport::{ConnectionError, ConnectionStats};

/// The outcome of a run of a [`super::SharedCase`].
#[derive(Clone, Debug, PartialEq)]
pub struct SharedOutcome {
    /// How it ended.
    pub ending: Ending,
    /// One for each flow, in their order.
    pub flows: Vec<FlowOutcome>,
    /// The counts of each link of the topology at the end, in order: forward and backward.
    pub links: Vec<[LinkStats; 2]>,
    /// How long packets waited at each link after [`super::SharedCase::warm_up`]: forward and backward.
    pub waits: Vec<[QueueDelays; 2]>,
    /// Packets that all nodes sent.
    pub packets: u64,
}

/// The outcome of one flow of a [`SharedOutcome`].
#[derive(Clone, Debug, PartialEq)]
pub struct FlowOutcome {
    /// The sender and the receiver.
    pub pair: HostPair,
    /// From the sender's first datagram, or the end of its handshake ([`super::Flow::handshake`]), to the receiver's last
    /// byte; `None` if that did not arrive, as of a flow without end.
    pub completed: Option<Duration>,
    /// The time of completion, since the start of the run.
    pub completed_at: Option<Duration>,
    /// A connection of the sender ended, and neither side closed it because it was done.
    pub gave_up: bool,
    /// The object arrived, once and correct.
    pub is_identical: bool,
    /// Bytes of the object that the receiver had written at the end.
    pub written: u64,
    /// IP bits per second that arrived at the receiver from [`super::SharedCase::warm_up`] to the end of the run.
    pub throughput: f64,
    /// IP bytes that both sides sent.
    pub wire_bytes: u64,
    /// Packets that the sender sent.
    pub packets_sent: u64,
    /// Packets that the sender declared lost.
    pub packets_lost: u64,
    /// The sender's loss estimate, 0 to 1: its mean over the time in which it sent, and over the connections; `None` if
    /// none sent.
    pub loss_estimate: Option<f64>,
    /// Bytes of the symbols that the sender sent, of every kind.
    pub symbol_bytes: u64,
    /// The most bytes of symbols that the receiver buffered at once for incomplete blocks; the sum of the connections'
    /// maxima.
    pub most_held: u64,
    /// IP bytes that arrived at the receiver, by spans of [`super::SharedCase::count_every`] from the start of the run
    /// on. The last one may not be over.
    pub arrived: Vec<u64>,
    /// The state of the sender in each of these spans.
    pub course: Vec<Moment>,
    /// Time that encoding took at the sender, and decoding at the receiver.
    pub coding: [Duration; 2],
    /// The sender's measurements of the path.
    pub memory: Option<SavedPath>,
    /// The sender's trace (qlog, JSON-SEQ), if [`super::SharedCase::qlog`] is set.
    pub qlog: Vec<u8>,
}

impl FlowOutcome {
    pub(super) fn of(flow: &Flow, throughput: f64, network: &mut Network<Machine>) -> Self {
        let HostPair { from, to } = flow.pair;
        let [(sender, qlog), (receiver, _)] = [from, to].map(|id| {
            let host = network.node_mut(id).and_then(Machine::as_host_mut).expect("flows are between hosts");
            (host.all_stats(), host.qlog())
        });
        let host = |id| network.node(id).and_then(Machine::as_host).expect("flows are between hosts");
        let complete: Vec<_> = host(to).tallies().filter_map(|tally| tally.complete_at).collect();
        let is_complete = complete.len() == flow.connections as usize;
        let last = complete.into_iter().max().filter(|_| is_complete);
        let received: Vec<&Received> = host(to).tallies().flat_map(|tally| tally.received.values()).collect();
        let estimates: Vec<f64> = host(from).tallies().filter_map(|tally| tally.loss.mean()).collect();
        let first = match flow.handshake {
            Handshake::Counted => host(from).first_sent(),
            Handshake::Done => host(from).tallies().filter_map(|tally| tally.connected_at).min(),
        };
        let first = first.unwrap_or(netsim::Time::ZERO);
        Self {
            pair: flow.pair,
            completed: last.and_then(|at| at.checked_since(first)),
            completed_at: last.map(|at| at - netsim::Time::ZERO),
            gave_up: host(from).tallies().filter_map(|tally| tally.closed.as_ref()).any(is_failure),
            is_identical: is_complete && received.iter().all(|received| received.is_identical()),
            written: received.iter().map(|received| received.written()).sum(),
            throughput,
            wire_bytes: sender.iter().chain(&receiver).map(|stats| stats.packets.bytes_sent).sum(),
            packets_sent: sender.iter().map(|stats| stats.packets.sent).sum(),
            packets_lost: sender.iter().map(|stats| stats.packets.lost).sum(),
            loss_estimate: (!estimates.is_empty()).then(|| estimates.iter().sum::<f64>() / estimates.len() as f64),
            memory: sender.iter().find_map(|stats| stats.congestion.memory),
            symbol_bytes: sender.iter().map(symbol_bytes).sum(),
            most_held: receiver.iter().map(|stats| stats.symbols.most_held).sum(),
            arrived: host(to).arrived().to_vec(),
            course: host(from).course().to_vec(),
            coding: [from, to].map(|id| host(id).coding_time()),
            qlog,
        }
    }
}

/// Returns whether a connection did not end because one of its sides was done.
const fn is_failure(closed: &ConnectionError) -> bool {
    !matches!(closed, ConnectionError::LocallyClosed | ConnectionError::ClosedByPeer { code: 0, .. })
}

fn symbol_bytes(stats: &ConnectionStats) -> u64 {
    (stats.symbols.source + stats.symbols.resent + stats.symbols.repair) * u64::from(stats.path.symbol_size)
}

/// Returns Jain's index of fairness of some shares (Jain 1984; arq §3.2.2): 1 if all are equal, one over their number
/// if one has everything.
pub fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    sum * sum / (shares.len() as f64 * squares)
}
