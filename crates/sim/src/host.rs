//! One machine of the simulation: an endpoint, and a program that sends and receives objects.

mod carried;
mod config;
mod packets;
mod requests;
mod seen;

use carried::Carried;
pub(crate) use config::endpoint_for;
pub use config::{HostConfig, Moment, Tally};
pub use seen::SymbolEvent;

use crate::bursts::Bursts;
use crate::coding::Workers;
use crate::storage::{Content, Pattern};
use crate::streams::Streams;
use netsim::{Ecn, Node, NodeId, Packet};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use transport::{
    AcceptOptions, Batch, ConnectOptions, ConnectionHandle, ConnectionStats, Endpoint, Event, FlowId, ObjectOptions,
    ReceivedEcn, Time, WorkRequest,
};

/// The key that all simulated hosts share.
const KEY: [u8; 32] = [7; 32];

/// A [`Node`] with an endpoint.
#[derive(Debug)]
pub struct Host {
    config: HostConfig,
    endpoint: Endpoint,
    /// By connection; kept after its end.
    tallies: BTreeMap<ConnectionHandle, Tally>,
    batch: Batch,
    /// Bytes of the batch that have been passed to the network.
    handed: usize,
    buffers: Vec<Vec<u8>>,
    /// Buffer for a list of the connections.
    handles: Vec<ConnectionHandle>,
    /// Requests in progress, by their completion time; the number keeps them in order.
    working: BTreeMap<(Time, u64), (ConnectionHandle, WorkRequest)>,
    requests: u64,
    workers: Workers,
    bursts: Option<Bursts>,
    /// When it connects; `None` once it has.
    starts: Option<Time>,
    /// When it closes all connections; `None` once it has.
    stops: Option<Time>,
    /// IP bytes that arrived, by spans of [`HostConfig::count_every`].
    arrived: Vec<u64>,
    /// The state of its connections at its first action in each of these spans.
    course: Vec<Moment>,
    /// When the last sequential read or write will be completed.
    disk_free: Time,
    first_sent: Option<netsim::Time>,
    carried: Carried,
    /// The address from which it sends.
    address: NodeId,
    /// The node that sends copies of its packets just ahead of them, and of one in how many.
    copied_by: Option<(NodeId, u64)>,
    /// Selects those packets.
    random: fastrand::Rng,
    /// The packet that follows its copy.
    original: Option<Packet>,
    copied_bytes: u64,
    seen: Vec<SymbolEvent>,
}

/// The control stream's number among the flows.
const CONTROL: FlowId = FlowId(0);

/// Returns a node's address.
fn address(id: NodeId) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, (id.index() >> 8) as u8, id.index() as u8), 4000))
}

fn node(address: SocketAddr) -> NodeId {
    let SocketAddr::V4(v4) = address else { return NodeId::from_index(0) };
    let [_, _, high, low] = v4.ip().octets();
    NodeId::from_index((u32::from(high) << 8) | u32::from(low))
}

const fn engine_time(time: netsim::Time) -> Time {
    Time::from_nanos(time.as_nanos())
}

/// Converts the engine's nanoseconds to the network's picoseconds: a deadline is due when the network's clock, rounded
/// down, has reached it.
const fn network_time(time: Time) -> netsim::Time {
    netsim::Time::from_nanos(time.as_nanos())
}

/// Returns the bytes of flow `flow` of a host with this seed.
pub(crate) const fn object(seed: u64, flow: FlowId) -> Pattern {
    Pattern(seed.wrapping_mul(65_537).wrapping_add(flow.0 as u64))
}

impl Host {
    /// Creates a host that will be node `id` of its network.
    pub fn new(id: NodeId, config: HostConfig) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&config.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&(id.index() as u64).to_le_bytes());
        let mut endpoint = Endpoint::new(config.endpoint.clone(), seed);
        let accept = AcceptOptions::default().profile(config.profile.clone());
        endpoint.add_key(KEY, None, accept);
        let mut host = Self {
            endpoint,
            tallies: BTreeMap::new(),
            batch: Batch::new(),
            handed: 0,
            buffers: Vec::new(),
            handles: Vec::new(),
            working: BTreeMap::new(),
            requests: 0,
            workers: Workers::new(config.coding),
            bursts: config.bursts.map(|script| Bursts::new(script, config.seed ^ id.index() as u64)),
            starts: Some(Time::ZERO + config.starts_at),
            stops: config.stops_at.map(|at| Time::ZERO + at),
            arrived: Vec::new(),
            course: Vec::new(),
            disk_free: Time::ZERO,
            first_sent: None,
            carried: Carried::default(),
            address: id,
            copied_by: None,
            random: fastrand::Rng::with_seed(config.seed),
            original: None,
            copied_bytes: 0,
            seen: Vec::new(),
            config,
        };
        host.start(Time::ZERO);
        host
    }

    /// Connects, if it is time to.
    fn start(&mut self, now: Time) {
        if self.starts.take_if(|starts| *starts <= now).is_none() {
            return;
        }
        for peer in self.config.connect_to.clone() {
            for index in 0..self.config.connections {
                self.connect(now, peer, index.into());
            }
        }
    }

    /// Closes all connections, if it is time to.
    fn stop(&mut self, now: Time) {
        if self.stops.take_if(|stops| *stops <= now).is_none() {
            return;
        }
        self.for_each(|host, handle| {
            if let Some(connection) = host.endpoint.connection(handle) {
                connection.close(now, 0, "");
            }
            true
        });
    }

    fn connect(&mut self, now: Time, peer: NodeId, index: u64) {
        let options = ConnectOptions::new(vec![address(peer)])
            .profile(self.config.profile.clone())
            .handshake_timeout(Duration::from_secs(30))
            .qlog(self.config.qlog);
        // The only errors are a missing address and too many connections, which no scenario has.
        if let Ok(handle) = self.endpoint.connect(now, KEY, options) {
            if let Some((connection, memory)) = self.endpoint.connection(handle).zip(self.config.memory) {
                connection.restore_path(&memory);
            }
            self.tallies.insert(handle, Tally { index, ..self.new_tally() });
            self.watch(handle);
        }
    }

    fn new_tally(&self) -> Tally {
        Tally { streams: Streams::new(self.config.seed, self.config.reads), ..Tally::default() }
    }

    /// Returns the object that flow `flow` carries.
    fn object(&self, flow: FlowId) -> Content {
        let pattern = || Content::Pattern(object(self.config.seed, flow));
        self.config.carries.clone().map_or_else(pattern, Content::Given)
    }

    /// Iterates over the observations of each connection.
    pub fn tallies(&self) -> impl Iterator<Item = &Tally> {
        self.tallies.values()
    }

    /// Returns the engine's statistics of each open connection.
    pub fn stats(&mut self) -> Vec<ConnectionStats> {
        let handles: Vec<ConnectionHandle> = self.endpoint.handles().collect();
        handles.into_iter().filter_map(|handle| self.endpoint.connection(handle).map(|c| c.stats())).collect()
    }

    /// Returns the engine's statistics of each connection so far: of a closed one, the last.
    pub fn all_stats(&mut self) -> Vec<ConnectionStats> {
        let Self { tallies, endpoint, .. } = self;
        let view = |(handle, tally): (&ConnectionHandle, &Tally)| {
            endpoint.connection(*handle).map_or(tally.last_stats, |connection| connection.stats())
        };
        tallies.iter().map(view).collect()
    }

    /// Returns the traces of all connections, one after the other, up to now; empty unless [`HostConfig::qlog`] is set.
    pub fn qlog(&mut self) -> Vec<u8> {
        let Self { tallies, endpoint, .. } = self;
        let mut all = Vec::new();
        for (handle, tally) in tallies {
            if let Some(connection) = endpoint.connection(*handle) {
                connection.take_qlog(&mut tally.qlog);
            }
            all.extend_from_slice(&tally.qlog);
        }
        all
    }

    /// Returns the IP bytes that arrived, by spans of [`HostConfig::count_every`]; the last span may not be over.
    pub fn arrived(&self) -> &[u64] {
        &self.arrived
    }

    /// Returns the state of its connections at its first action in each of these spans; without an action, that of the
    /// next span.
    pub fn course(&self) -> &[Moment] {
        &self.course
    }

    /// Counts bytes that arrive, and records the state where a span begins.
    fn count(&mut self, now: netsim::Time, bytes: u32) {
        let Some(every) = self.config.count_every else { return };
        let span = (u128::from(now.as_nanos()) / every.as_nanos().max(1)) as usize;
        if bytes > 0 {
            self.arrived.resize(self.arrived.len().max(span + 1), 0);
            self.arrived[span] += u64::from(bytes);
        }
        if self.course.len() <= span {
            let moment = Moment::of(&self.stats());
            self.course.resize(span + 1, moment);
        }
    }

    /// Returns the time that encoding and decoding took.
    pub const fn coding_time(&self) -> Duration {
        self.workers.busy()
    }

    /// Returns when the host's first datagram was sent.
    pub const fn first_sent(&self) -> Option<netsim::Time> {
        self.first_sent
    }

    /// Returns the packets that the network carried for it.
    pub(crate) const fn carried(&self) -> &Carried {
        &self.carried
    }

    /// Returns the endpoint.
    pub const fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Moves the host to another node's address. Packets sent to that node have to reach the host.
    pub const fn move_to(&mut self, address: NodeId) {
        self.address = address;
    }

    /// Returns the address from which it sends.
    pub const fn address(&self) -> NodeId {
        self.address
    }

    /// Makes a third party send a copy of about one in `every` packets from another node's address, just ahead of the
    /// packet.
    pub const fn copy_packets(&mut self, by: NodeId, every: u64) {
        self.copied_by = Some((by, every));
    }

    /// Returns the IP bytes of the copies.
    pub const fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Returns the peer's address on the first open connection, once it is validated and not in doubt.
    pub fn peer(&mut self) -> Option<NodeId> {
        let handle = self.endpoint.handles().next()?;
        let connection = self.endpoint.connection(handle).filter(|connection| !connection.is_validating())?;
        Some(node(connection.remote()))
    }

    /// Returns whether every connection is drained.
    pub fn is_over(&self) -> bool {
        self.endpoint.handles().next().is_none() && !self.tallies.is_empty()
    }

    /// Serves the engine's requests and handles its events.
    fn serve(&mut self, now: netsim::Time) {
        while let Some(transport::EndpointEvent::Accepted { handle, .. }) = self.endpoint.poll_event() {
            self.tallies.insert(handle, self.new_tally());
            self.watch(handle);
        }
        self.for_each(|host, handle| {
            host.serve_connection(now, handle);
            true
        });
    }

    /// Visits every connection until the visitor stops.
    fn for_each(&mut self, mut visit: impl FnMut(&mut Self, ConnectionHandle) -> bool) {
        let mut handles = std::mem::take(&mut self.handles);
        handles.extend(self.endpoint.handles());
        for handle in &handles {
            if !visit(self, *handle) {
                break;
            }
        }
        handles.clear();
        self.handles = handles;
    }

    fn serve_connection(&mut self, now: netsim::Time, handle: ConnectionHandle) {
        let time = engine_time(now);
        loop {
            let Some(connection) = self.endpoint.connection(handle) else { return };
            if let Some(request) = connection.poll_request() {
                self.dispatch(time, handle, request);
            } else if let Some(event) = connection.poll_event() {
                self.act(now, handle, event);
            } else {
                break;
            }
        }
        self.finish(time, handle);
    }

    fn act(&mut self, now: netsim::Time, handle: ConnectionHandle, event: Event) {
        let time = engine_time(now);
        let (Some(connection), Some(tally)) = (self.endpoint.connection(handle), self.tallies.get_mut(&handle)) else {
            return;
        };
        tally.streams.act(time, connection, &event);
        match event {
            Event::Connected => {
                tally.connected_at = Some(now);
                let mut control = vec![0; self.config.control as usize];
                object(self.config.seed, CONTROL).fill(0, &mut control);
                connection.write_control(&control);
                if let Some(bursts) = self.bursts.as_mut().filter(|_| tally.index == 0) {
                    bursts.begin(time, handle);
                }
                for (tag, length) in (0..).zip(&self.config.objects) {
                    let length = self.config.share(*length, tally.index);
                    let options = ObjectOptions { length, tag, digest: false };
                    if connection.send_object(time, options).is_err() {
                        connection.close(time, 0x100, "cannot send");
                    }
                }
                tally.streams.open(time, connection, &self.config.streams);
            }
            Event::ObjectAnnounced { flow, length, .. } => {
                tally.received.entry(flow).or_default().length = length;
                connection.accept_flow(time, flow, false);
            }
            Event::ObjectReceived { flow } => {
                tally.received.entry(flow).or_default().complete = true;
                tally.complete_at = Some(now);
            }
            Event::ObjectDelivered { .. } => {
                tally.sent += 1;
                if let Some(bursts) = &mut self.bursts {
                    bursts.pause(time, handle);
                }
            }
            Event::Closed(closed) => {
                tally.closed = Some(closed);
                tally.silence = self.carried.silence(now);
                tally.last_stats = connection.stats();
                connection.take_qlog(&mut tally.qlog);
            }
            Event::ControlReadable => {
                let mut bytes = Vec::new();
                connection.read_control(&mut bytes);
                tally.control_wrong += u64::from(!object(self.config.seed, CONTROL).matches(tally.control, &bytes));
                tally.control += bytes.len() as u64;
            }
            Event::StreamAnnounced { .. }
            | Event::StreamReadable { .. }
            | Event::StreamFinished { .. }
            | Event::StreamReset { .. }
            | Event::StreamWritable { .. }
            | Event::StreamDelivered { .. }
            | Event::StreamStopped { .. } => {}
        }
    }

    /// Closes a connection whose work is done, and removes a drained one.
    fn finish(&mut self, now: Time, handle: ConnectionHandle) {
        let (Some(connection), Some(tally)) = (self.endpoint.connection(handle), self.tallies.get_mut(&handle)) else {
            return;
        };
        if self.config.count_every.is_some() && tally.connected_at.is_some() && tally.content_at.is_none() {
            tally.loss.see(network_time(now), connection.stats().path.loss);
        }
        let received = tally.received.values().filter(|received| received.complete).count();
        let content = tally.sent == self.config.objects.len()
            && received == self.config.expects
            && tally.streams.all_sent()
            && tally.streams.received() == self.config.expects_streams
            && tally.control == self.config.expects_control
            && connection.control_backlog() == 0;
        if tally.connected_at.is_some() && content && !connection.is_closed() {
            tally.content_at.get_or_insert(network_time(now));
        }
        if self.config.closes && tally.content_at.is_some() && !connection.is_closed() {
            connection.close(now, 0, "");
            return self.serve_connection(network_time(now), handle);
        }
        if connection.is_drained() {
            self.endpoint.remove(handle);
        }
    }

    /// Sends the next object of a source with pauses, if it is time to.
    fn burst(&mut self, now: Time) {
        let Some((handle, length)) = self.bursts.as_mut().and_then(|bursts| bursts.take(now)) else { return };
        if let Some(connection) = self.endpoint.connection(handle) {
            // A closed connection sends no more.
            let _ = connection.send_object(now, ObjectOptions { length, tag: 0, digest: false });
        }
    }
}

impl Node for Host {
    fn handle_packet(&mut self, now: netsim::Time, packet: Packet) {
        self.count(now, packet.ip_bytes());
        self.carried.on_arrived(now);
        let Packet { source, ecn, mut payload, .. } = packet;
        let ecn = match ecn {
            Ecn::NotEct => ReceivedEcn::NotEct,
            Ecn::Ect0 => ReceivedEcn::Ect0,
            Ecn::Ect1 => ReceivedEcn::Ect1,
            Ecn::Ce => ReceivedEcn::Ce,
        };
        let stride = payload.len();
        self.endpoint.handle_datagrams(engine_time(now), address(source), None, ecn, &mut payload, stride);
        self.recycle(payload);
        self.see_symbols();
        self.serve(now);
    }

    fn handle_timeout(&mut self, now: netsim::Time) {
        self.count(now, 0);
        let time = engine_time(now);
        self.start(time);
        self.stop(time);
        self.burst(time);
        self.work(time);
        self.endpoint.handle_timeout(time);
        self.for_each(|host, handle| {
            if let Some(connection) = host.endpoint.connection(handle) {
                connection.handle_timeout(time);
            }
            true
        });
        self.serve(now);
    }

    fn poll_transmit(&mut self, now: netsim::Time) -> Option<Packet> {
        if let Some(original) = self.original.take() {
            return Some(original);
        }
        let packet = self.next_packet(now)?;
        self.carried.on_sent();
        Some(self.with_copy(packet))
    }

    fn poll_timeout(&self) -> Option<netsim::Time> {
        let work = self.working.first_key_value().map(|((due, _), _)| *due);
        let deadlines = self.endpoint.poll_timeout();
        let streams = self.tallies.values().filter_map(|tally| tally.streams.due()).min();
        let bursts = self.bursts.as_ref().and_then(Bursts::due);
        [work, deadlines, streams, bursts, self.starts, self.stops].into_iter().flatten().min().map(network_time)
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < 256 {
            self.buffers.push(buffer);
        }
    }
}
