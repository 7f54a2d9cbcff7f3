//! What a host is to do, and what it has seen.

use crate::bursts::OnOff;
use crate::coding::Coding;
use crate::mean::TimeMean;
use crate::storage::Received;
use crate::streams::{ReadScript, StreamScript, Streams};
use netsim::NodeId;
use std::collections::BTreeMap;
use std::time::Duration;
use transport::{Closed, ConnectionStats, EndpointConfig, FlowId, Profile, Rate};

/// How a host behaves.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// How it sends.
    pub profile: Profile,
    /// The engine's limits.
    pub endpoint: EndpointConfig,
    /// Hosts to connect to.
    pub connect_to: Vec<NodeId>,
    /// When it does.
    pub starts_at: Duration,
    /// Connections to each of them, at least one: every object is cut into as many equal parts, one for each.
    pub connections: u32,
    /// Objects it sends to each peer, as soon as they are connected: lengths in bytes.
    pub objects: Vec<u64>,
    /// Objects it sends with pauses between them, without end, on its first connection.
    pub bursts: Option<OnOff>,
    /// Streams it opens to each peer, as soon as they are connected.
    pub streams: Vec<StreamScript>,
    /// How it reads the streams of its peers.
    pub reads: ReadScript,
    /// Streams it waits for from each peer before it is content, read or stopped; without those that are reset.
    pub expects_streams: usize,
    /// Objects it waits for from each peer before it is content.
    pub expects: usize,
    /// Whether it closes once content: all objects sent and received.
    pub closes: bool,
    /// Bytes it writes to the control stream of each peer, as soon as they are connected.
    pub control: u64,
    /// Bytes of each peer's control stream it waits for before it is content.
    pub expects_control: u64,
    /// How long requests for computation take.
    pub coding: Coding,
    /// How long each read and each write takes.
    pub storage_delay: Duration,
    /// Writes go one after the other at this rate; without one they do not wait for each other.
    pub write_rate: Option<Rate>,
    /// Counts the bytes that arrive, and notes how connections stand, for spans of this length, and watches the loss estimates.
    pub count_every: Option<Duration>,
    /// Whether its connections are traced, those that it begins.
    pub qlog: bool,
    /// Decides ids, keys and contents.
    pub seed: u64,
}

impl HostConfig {
    /// A host that waits for others and wants nothing of them.
    pub fn idle(profile: Profile, seed: u64) -> Self {
        Self {
            profile,
            endpoint: EndpointConfig::default(),
            connect_to: Vec::new(),
            starts_at: Duration::ZERO,
            connections: 1,
            objects: Vec::new(),
            bursts: None,
            streams: Vec::new(),
            reads: ReadScript::default(),
            expects_streams: 0,
            expects: 0,
            closes: false,
            control: 0,
            expects_control: 0,
            coding: Coding::NONE,
            storage_delay: Duration::ZERO,
            write_rate: None,
            count_every: None,
            qlog: false,
            seed,
        }
    }

    /// What connection number `index` carries of an object of this length.
    pub(super) fn share(&self, length: u64, index: u64) -> u64 {
        let parts = u64::from(self.connections.max(1));
        length / parts + u64::from(index < length % parts)
    }
}

/// What a host has seen of one connection.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Which of several connections to one peer it is, on the side that connects.
    pub index: u64,
    /// The peer has proved itself.
    pub connected: bool,
    /// Objects received, by flow.
    pub received: BTreeMap<FlowId, Received>,
    /// Objects that the peer has wholly.
    pub sent: usize,
    /// Its streams.
    pub streams: Streams,
    /// Bytes of the peer's control stream that came.
    pub control: u64,
    /// Reads of the control stream that brought other bytes than were written.
    pub control_wrong: u64,
    /// Bytes of blocks handed over to be written and not written yet.
    pub storing: u64,
    /// The most of them there ever were.
    pub storing_peak: u64,
    /// Blocks read to be sent, by flow and number: their places.
    pub read: BTreeMap<(FlowId, u32), u64>,
    /// Blocks written, likewise.
    pub written: BTreeMap<(FlowId, u32), u64>,
    /// Blocks that were read or written a second time.
    pub repeated: u64,
    /// When the last object became complete here.
    pub complete_at: Option<netsim::Time>,
    /// When everything expected was here and everything sent was known to be there.
    pub content_at: Option<netsim::Time>,
    /// The estimate of the loss, from the first proof of the peer to [`Tally::content_at`]; watched with [`HostConfig::count_every`].
    pub loss: TimeMean,
    /// Requests for repair symbols.
    pub encodes: u64,
    /// Requests to recover blocks.
    pub decodes: u64,
    /// How it ended.
    pub closed: Option<Closed>,
    /// The engine's view when the connection ended.
    pub last_stats: ConnectionStats,
    /// The trace of a connection that has ended (qlog, JSON-SEQ).
    pub qlog: Vec<u8>,
}

/// How a host's open connections stand at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Bits a second that they may send, together; 0 where no pacer holds them.
    pub rate: u64,
    /// Their estimate of loss before repair, 0 to 1: the mean.
    pub loss: f64,
}

impl Moment {
    pub(super) fn of(stats: &[ConnectionStats]) -> Self {
        let rates = stats.iter().filter_map(|stats| stats.pacing_rate);
        Self {
            rate: rates.map(|rate| rate.bits_per_second()).sum(),
            loss: stats.iter().map(|stats| stats.loss).sum::<f64>() / stats.len().max(1) as f64,
        }
    }
}
