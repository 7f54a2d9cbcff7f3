//! The configuration of a host, and its observations.

use crate::bursts::OnOff;
use crate::coding::Coding;
use crate::mean::TimeMean;
use crate::storage::Received;
use crate::streams::{ReadScript, StreamScript, Streams};
use netsim::NodeId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transport::congestion::{ControllerState, SavedPath};
use transport::{ConnectionError, ConnectionStats, EndpointConfig, FlowId, Profile, Rate};

/// How a host behaves.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// How it sends.
    pub profile: Profile,
    /// The measurements of an earlier connection, for those that it begins.
    pub memory: Option<SavedPath>,
    /// The engine's limits.
    pub endpoint: EndpointConfig,
    /// Hosts to connect to.
    pub connect_to: Vec<NodeId>,
    /// When it connects.
    pub starts_at: Duration,
    /// When it closes all connections, finished or not; `None`: not before it is done.
    pub stops_at: Option<Duration>,
    /// Connections to each of them, at least one: every object is cut into as many equal parts, one for each.
    pub connections: u32,
    /// Objects it sends to each peer, as soon as they are connected: lengths in bytes.
    pub objects: Vec<u64>,
    /// The bytes of every object that it sends, and expects of its peers; `None`: they follow from the seed.
    pub carries: Option<Arc<[u8]>>,
    /// Objects it sends with pauses between them, without end, on its first connection.
    pub bursts: Option<OnOff>,
    /// Streams it opens to each peer, as soon as they are connected.
    pub streams: Vec<StreamScript>,
    /// How it reads the streams of its peers.
    pub reads: ReadScript,
    /// Streams it expects from each peer before it is done, read or stopped; without reset ones.
    pub expects_streams: usize,
    /// Objects it expects from each peer before it is done.
    pub expects: usize,
    /// Whether it closes once done: all objects sent and received.
    pub closes: bool,
    /// Bytes it writes to the control stream of each peer, as soon as they are connected.
    pub control: u64,
    /// Bytes of each peer's control stream it expects before it is done.
    pub expects_control: u64,
    /// How long requests for computation take.
    pub coding: Coding,
    /// How long each read and each write takes.
    pub storage_delay: Duration,
    /// Reads are sequential at this rate; without one they run in parallel.
    pub read_rate: Option<Rate>,
    /// The same of writes.
    pub write_rate: Option<Rate>,
    /// Length of the spans in which arriving bytes are counted and the state of connections is recorded; enables the
    /// observation of loss estimates.
    pub count_every: Option<Duration>,
    /// Whether the connections that it begins are traced.
    pub qlog: bool,
    /// Whether it records the events of symbols, for [`Host::take_seen`](super::Host::take_seen).
    pub watches: bool,
    /// Determines ids, keys and contents.
    pub seed: u64,
}

impl HostConfig {
    /// Creates a host that waits for others and expects nothing of them.
    pub fn idle(profile: Profile, seed: u64) -> Self {
        Self {
            profile,
            memory: None,
            endpoint: EndpointConfig::default(),
            connect_to: Vec::new(),
            starts_at: Duration::ZERO,
            stops_at: None,
            connections: 1,
            objects: Vec::new(),
            carries: None,
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
            read_rate: None,
            write_rate: None,
            count_every: None,
            qlog: false,
            watches: false,
            seed,
        }
    }

    /// Returns the part of an object of this length that connection number `index` carries.
    pub(super) fn share(&self, length: u64, index: u64) -> u64 {
        let parts = u64::from(self.connections.max(1));
        length / parts + u64::from(index < length % parts)
    }
}

/// A host's observations of one connection.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Its index among several connections to one peer, on the side that connects.
    pub index: u64,
    /// When the peer was authenticated.
    pub connected_at: Option<netsim::Time>,
    /// Objects received, by flow.
    pub received: BTreeMap<FlowId, Received>,
    /// Objects that the peer has completely.
    pub sent: usize,
    /// Its streams.
    pub streams: Streams,
    /// Bytes of the peer's control stream that arrived.
    pub control: u64,
    /// Reads of the control stream that returned other bytes than were written.
    pub control_wrong: u64,
    /// Bytes of blocks submitted to be written and not written yet.
    pub storing: u64,
    /// The maximum of these bytes.
    pub storing_peak: u64,
    /// Blocks read for sending, by flow and number: their offsets.
    pub read: BTreeMap<(FlowId, u32), u64>,
    /// Blocks written, likewise.
    pub written: BTreeMap<(FlowId, u32), u64>,
    /// Blocks read or written a second time.
    pub repeated: u64,
    /// When the last object became complete at this host.
    pub complete_at: Option<netsim::Time>,
    /// When everything expected had arrived and everything sent was confirmed.
    pub content_at: Option<netsim::Time>,
    /// The loss estimate, from the peer's authentication to [`Tally::content_at`]; observed with
    /// [`HostConfig::count_every`].
    pub loss: TimeMean,
    /// Requests for repair symbols.
    pub encodes: u64,
    /// Requests to recover blocks.
    pub decodes: u64,
    /// How it ended.
    pub closed: Option<ConnectionError>,
    /// For how long before its end fewer than four packets arrived.
    pub silence: Duration,
    /// The engine's statistics when the connection ended.
    pub last_stats: ConnectionStats,
    /// The trace of a connection that has ended (qlog, JSON-SEQ).
    pub qlog: Vec<u8>,
}

/// The state of a host's open connections at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Bits per second that they may send, together; 0 if they are not paced.
    pub rate: u64,
    /// The mean of their estimates of loss before repair, 0 to 1.
    pub loss: f64,
    /// The estimates of the path by the controller of the first of them.
    pub controller: Option<ControllerState>,
}

impl Moment {
    pub(super) fn of(stats: &[ConnectionStats]) -> Self {
        let rates = stats.iter().filter_map(|stats| stats.congestion.pacing_rate);
        Self {
            rate: rates.map(|rate| rate.bits_per_second()).sum(),
            loss: stats.iter().map(|stats| stats.path.loss).sum::<f64>() / stats.len().max(1) as f64,
            controller: stats.iter().find_map(|stats| stats.congestion.controller),
        }
    }
}

/// Returns the limits of an endpoint that accepts symbols of every size that a profile may choose: the links decide
/// whether they pass.
pub(crate) fn endpoint_for(profile: &Profile) -> EndpointConfig {
    let mut endpoint = EndpointConfig::default();
    let flows = &mut endpoint.limits.flows;
    flows.largest_symbol = flows.largest_symbol.max(profile.symbols.largest());
    endpoint
}
