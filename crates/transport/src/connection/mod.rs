//! One connection: ties wire, secure, recovery and flow together. Each half is a struct of its own; what is here is the
//! short list of calls that a driver makes.

mod arrivals;
mod batch;
mod closing;
mod crypto;
mod event;
mod growing;
mod incoming;
mod migration;
mod opening;
mod options;
mod outbox;
mod outgoing;
mod path_validator;
mod receive;
mod reconfiguring;
mod resizing;
mod stats;
mod streams;
mod timing;
mod transmit;
mod turns;

pub use arrivals::ReceivedEcn;
pub use batch::Batch;
pub use event::{CloseCode, Closed, Event};
pub use options::{FlowError, Limits, ObjectOptions};
pub use reconfiguring::SetError;
pub use stats::{ConnectionStats, LimitedBy};
pub use streams::StreamOptions;

use crate::flow::{Direction, ObjectSender, PathEstimate, Reply, Request};
use crate::profile::Profile;
use crate::recovery::{EcnState, Recovery};
use crate::secure::Secrets;
use crate::time::{Rate, Time};
use crate::trace::{Trace, TraceEvent};
use crate::wire::{Announcement, FlowId, Parameters, RefusedCounts};
use closing::Closing;
use crypto::Crypto;
use growing::Growth;
use incoming::{Broken, Change, Incoming, Violation};
use opening::Opening;
use outbox::Piece;
use outgoing::Outgoing;
use path_validator::PathValidator;
use resizing::Search;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Source symbols that are open at once on any path: 8 MB.
const OPEN_SYMBOLS: f64 = 6_000.0;

/// Where a connection stands.
#[derive(Debug)]
enum Phase {
    /// The first message is out.
    Opening(Box<Opening>),
    /// The second message is out; nothing is sent until the peer has proved that it holds the key and its address.
    Answered { until: Time },
    /// Both ways open.
    Open,
    /// The end is being told to the peer, or has been told by it.
    Closing(Closing),
    /// Nothing is left to do.
    Drained,
}

/// A secured association of two endpoints; carries flows both ways.
#[derive(Debug)]
pub struct Connection {
    phase: Phase,
    profile: Profile,
    limits: Limits,
    crypto: Crypto,
    paths: PathValidator,
    recovery: Recovery,
    outgoing: Outgoing,
    incoming: Incoming,
    peer: Option<Parameters>,
    /// Payload bytes of the largest datagram the path is known to carry.
    payload: usize,
    /// Symbols that a packet may have on this path; more than one may need more than `payload`.
    per_packet: u8,
    next_flow: u16,
    /// The path may not carry `payload` any more.
    search: Option<Search>,
    /// The path may carry more symbols per packet.
    growth: Option<Growth>,
    /// Whether it does was found out, or is.
    grown: bool,
    /// A small packet is to go out now, whatever the window says.
    measure_at_once: bool,
    /// Our packets still have to prove to the peer what size the path carries: control packets are padded to it.
    proving: bool,
    /// Probe packets that are to go out whatever the window says.
    probes: u8,
    /// Questions asked in a row while nothing was in flight and no answer came.
    questions: u32,
    /// Pings sent in a row while something of the peer's was unfinished and nothing came.
    listen_pings: u32,
    /// The peer's feedback was seen up to this number, and it has not been told yet.
    seen: Option<u32>,
    seen_told_at: Option<Time>,
    last_heard: Time,
    last_asked: Time,
    /// When the peer was last asked for a sign although a timeout was still to come.
    signed_at: Time,
    /// When the network last said that nobody is there; void once something was heard since.
    doubted: Option<Time>,
    wake: Option<Time>,
    limited_by: LimitedBy,
    events: VecDeque<Event>,
    requests: VecDeque<Request>,
    refused: RefusedCounts,
    packets_received: u64,
    bytes_received: u64,
    undecodable_blocks: u64,
    trace: Trace,
}

/// What both kinds of connection are made from.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) now: Time,
    pub(crate) profile: Profile,
    pub(crate) limits: Limits,
    pub(crate) path: AddressPair,
    /// Of all randomness of the connection.
    pub(crate) seed: [u8; 32],
    pub(crate) qlog: bool,
}

pub(crate) use opening::Opening as HandshakeOpening;
pub(crate) use path_validator::AddressPair;

impl Connection {
    fn new(parts: Parts, phase: Phase) -> Self {
        let Parts { now, profile, limits, path, seed, qlog } = parts;
        let mut recovery = Recovery::new(&profile.recovery, now, path.datagram_overhead());
        recovery.set_limit(profile.limit);
        // What the peer wants is known with its parameters; until then no feedback is sent.
        let choice = profile.feedback;
        Self {
            phase,
            incoming: Incoming::new(&limits, choice),
            outgoing: Outgoing::new(),
            recovery,
            profile,
            limits,
            crypto: Crypto::new(seed),
            paths: PathValidator::new(now, path),
            peer: None,
            payload: crate::wire::limits::MIN_MESSAGE1,
            per_packet: 1,
            next_flow: 1,
            search: None,
            growth: None,
            grown: false,
            measure_at_once: false,
            proving: false,
            probes: 0,
            questions: 0,
            listen_pings: 0,
            seen: None,
            seen_told_at: None,
            last_heard: now,
            last_asked: now,
            signed_at: now,
            doubted: None,
            wake: None,
            limited_by: LimitedBy::Nothing,
            events: VecDeque::new(),
            requests: VecDeque::new(),
            refused: RefusedCounts::default(),
            packets_received: 0,
            bytes_received: 0,
            undecodable_blocks: 0,
            trace: if qlog { Trace::qlog(now) } else { Trace::off() },
        }
    }

    pub(crate) fn initiate(parts: Parts, opening: HandshakeOpening) -> Self {
        Self::new(parts, Phase::Opening(Box::new(opening)))
    }

    /// A connection that has answered `peer`'s first message.
    pub(crate) fn respond(parts: Parts, secrets: &Secrets, peer: Parameters, until: Time) -> Self {
        let mut connection = Self::new(parts, Phase::Answered { until });
        connection.establish(secrets, peer);
        connection
    }

    fn establish(&mut self, secrets: &Secrets, peer: Parameters) {
        self.crypto.on_handshake(secrets, &peer);
        self.outgoing.credit.grant(peer.credit.symbols);
        self.outgoing.control.grant(peer.credit.control);
        self.outgoing.allow_streams(peer.streams);
        self.incoming.set_choice(peer.feedback);
        self.peer = Some(peer);
    }

    fn set_payload(&mut self, payload: usize) {
        self.payload = payload.max(crate::wire::limits::MIN_MESSAGE1);
        self.set_per_packet(self.per_packet_within(self.payload));
    }

    /// The symbol size of flows that begin now.
    fn symbol_size(&self) -> u16 {
        self.symbol_size_for(self.payload)
    }

    /// The same, if the peer takes it.
    fn acceptable_symbol_size(&self, peer: &Parameters) -> Result<u16, FlowError> {
        let (size, most) = (self.symbol_size(), peer.max_symbol_size);
        if size > most { Err(FlowError::SymbolsTooLarge { smallest: size, most }) } else { Ok(size) }
    }

    /// The symbol size for a path that carries so many bytes of payload.
    fn symbol_size_for(&self, payload: usize) -> u16 {
        let accepted = self.peer.as_ref().map_or(usize::MAX, |peer| usize::from(peer.max_symbol_size));
        self.profile.symbols.for_payload(payload.min(accepted.saturating_add(crate::wire::SYMBOL_OVERHEAD)))
    }

    /// Something happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Work for the caller; the answer comes back through [`Connection::handle_reply`], in any order.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// A request has been answered.
    pub fn handle_reply(&mut self, now: Time, reply: Reply) {
        if !matches!(self.phase, Phase::Open) {
            return;
        }
        if let Reply::Digest { key, block, digest } = &reply {
            self.events.push_back(Event::Digest { key: *key, block: *block, digest: *digest });
        }
        match &reply {
            Reply::Read { .. } | Reply::Encoded(_) => self.requests.extend(self.outgoing.on_reply(reply)),
            Reply::Digest { key, .. } if key.direction == Direction::Sending => {
                self.requests.extend(self.outgoing.on_reply(reply));
            }
            _ => self.incoming.on_reply(reply),
        }
        self.settle(now);
    }

    /// After anything that moves flows: blocks opened, requests collected, ends told.
    fn settle(&mut self, now: Time) {
        self.outgoing.open_blocks(self.open_limit(), &self.path_estimate(), &mut self.requests);
        while let Some(flow) = self.outgoing.take_finished() {
            self.trace.record(now, TraceEvent::FlowSent { flow });
            self.events.push_back(Event::Sent { flow });
        }
        for change in self.incoming.collect(&mut self.requests) {
            self.on_change(now, change);
        }
        self.settle_streams(now);
        match self.incoming.take_broken() {
            Some(Broken::Violation(Violation(what))) => self.violation(now, what),
            Some(Broken::Undecodable) => self.close_undecodable(now, "a block was acknowledged and cannot be decoded"),
            None => {}
        }
    }

    fn on_change(&mut self, now: Time, change: Change) {
        match change {
            Change::Announced { flow, length, tag } => {
                self.trace.record(now, TraceEvent::FlowAnnounced { flow, length });
                self.events.push_back(Event::Announced { flow, length, tag });
            }
            Change::Received(flow) => {
                self.trace.record(now, TraceEvent::FlowReceived { flow });
                self.events.push_back(Event::Received { flow });
            }
        }
    }

    /// Opens a flow that sends an object. Objects go out in the order they were opened.
    ///
    /// # Errors
    /// Before [`Event::Connected`], after the end, or when the object cannot be carried.
    pub fn send_object(&mut self, now: Time, options: ObjectOptions) -> Result<FlowId, FlowError> {
        let Some(peer) = self.peer.as_ref().filter(|_| matches!(self.phase, Phase::Open)) else {
            return Err(FlowError::NotConnected);
        };
        let id = FlowId(self.next_flow);
        let symbol_size = self.acceptable_symbol_size(peer)?;
        let largest_k = peer.largest_block();
        let symbols = options.length.div_ceil(symbol_size.into());
        let plans = self.profile.blocks.plans(id, symbols, symbol_size, largest_k, &self.path_estimate());
        let announcement = Announcement {
            flow: id,
            length: options.length,
            symbol_size,
            symbols_per_packet: self.wanted_per_packet(),
            tag: options.tag,
            plan: plans[0],
        };
        let mut flow = ObjectSender::new(&announcement, &plans[1..], self.profile.schedule.build(), options.digest)?;
        flow.set_sizer(self.profile.blocks.sizer(symbol_size), largest_k);
        self.next_flow = self.next_flow.checked_add(1).ok_or(FlowError::Exhausted)?;
        self.trace.record(now, TraceEvent::FlowOpened { flow: id, length: options.length });
        self.outgoing.open(flow);
        self.begin_growth();
        self.settle(now);
        Ok(id)
    }

    /// Asks the peer for a sign of life: if it is there, something of it comes within about a round trip.
    pub fn ping(&mut self) {
        self.outgoing.outbox.push(Piece::Ping);
    }

    /// Takes an announced flow: its blocks are written from now on, and digested if wanted.
    pub fn accept_flow(&mut self, now: Time, flow: FlowId, digest: bool) {
        self.incoming.accept(flow, digest);
        self.settle(now);
    }

    /// Appends to the control stream.
    pub fn write_control(&mut self, bytes: &[u8]) {
        self.outgoing.control.write(bytes);
    }

    /// Bytes of the control stream that the peer is not known to have: what a program writes ahead stays here.
    pub fn control_backlog(&self) -> usize {
        self.outgoing.control.backlog()
    }

    /// Appends what came of the peer's control stream to `out`; the room for it is the peer's again.
    pub fn read_control(&mut self, out: &mut Vec<u8>) -> usize {
        let read = self.incoming.control.read(out);
        if read > 0 {
            self.incoming.clock.note();
        }
        read
    }

    /// Ends the connection: the peer is told until it answers.
    pub fn close(&mut self, now: Time, code: u32, reason: &str) {
        match self.phase {
            Phase::Open => {
                self.recovery.close(now);
                self.end(Closed::ByUs);
                self.phase = Phase::Closing(Closing::ours(now, self.known_rtt(), code, reason));
            }
            Phase::Opening(_) | Phase::Answered { .. } => self.end(Closed::ByUs),
            Phase::Closing(_) | Phase::Drained => {}
        }
    }

    /// The round-trip time, measured here or told by the peer.
    fn known_rtt(&self) -> Duration {
        let own = self.recovery.rtt();
        let told = self.incoming.clock.rtt();
        if own.has_sample() || told.is_zero() { own.smoothed() } else { told }
    }

    /// The last event; nothing is in flight, nothing is asked for any more.
    fn end(&mut self, closed: Closed) {
        self.trace.record(self.last_heard, TraceEvent::Closed);
        self.phase = Phase::Drained;
        self.requests.clear();
        self.wake = None;
        self.events.push_back(Event::Closed(closed));
    }

    /// Caps the rate of whatever controls from now on, in IP bits per second; `None` takes the cap away. The profile's limit
    /// is where it starts.
    pub fn set_limit(&mut self, now: Time, limit: Option<Rate>) {
        self.profile.limit = limit;
        self.recovery.set_limit(limit);
        // Whoever waits for the pacer at its old rate asks again.
        self.wake = self.wake.map(|wake| wake.min(now));
    }

    /// Whether the program's side is over.
    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closing(_) | Phase::Drained)
    }

    /// Whether nothing is left to send or to wait for.
    pub const fn is_drained(&self) -> bool {
        matches!(self.phase, Phase::Drained)
    }

    /// The peer's address.
    pub const fn remote(&self) -> SocketAddr {
        self.paths.active().remote
    }

    /// The program's bytes in the peer's handshake.
    pub fn peer_application(&self) -> &[u8] {
        self.peer.as_ref().map_or(&[], |peer| &peer.application)
    }

    /// Bytes of packets in flight.
    pub fn bytes_in_flight(&self) -> u64 {
        self.recovery.bytes_in_flight()
    }

    /// Appends the qlog records made since the last call (JSON text sequence, RFC 7464).
    pub fn take_qlog(&mut self, out: &mut Vec<u8>) {
        self.trace.take(out);
    }

    /// Datagrams refused, by reason.
    pub const fn refused(&self) -> &RefusedCounts {
        &self.refused
    }

    /// Counts and estimates at this moment.
    pub fn stats(&self) -> ConnectionStats {
        let recovery = self.recovery.stats();
        let rtt = Some(self.recovery.rtt()).filter(|rtt| rtt.has_sample());
        let symbols = self.outgoing.counts;
        ConnectionStats {
            packets_sent: recovery.sent_packets + recovery.untracked_packets,
            bytes_sent: recovery.sent_bytes + recovery.untracked_bytes,
            packets_received: self.packets_received,
            bytes_received: self.bytes_received,
            packets_lost: recovery.lost_packets.saturating_sub(recovery.spurious_packets),
            source_symbols: symbols.source,
            resent_symbols: symbols.resent,
            repair_symbols: symbols.repair,
            surplus_symbols: self.incoming.surplus,
            undecodable_blocks: self.undecodable_blocks,
            bytes_written: self.incoming.bytes_written,
            bytes_acknowledged: self.outgoing.bytes_acknowledged,
            rtt: rtt.map(crate::recovery::RttEstimator::smoothed),
            min_rtt: rtt.map(crate::recovery::RttEstimator::min),
            loss: self.recovery.loss().loss(),
            path_changes: self.paths.migrations(),
            symbol_size: self.symbol_size(),
            per_packet: self.per_packet,
            window: self.recovery.window(),
            in_flight: self.recovery.bytes_in_flight(),
            pacing_rate: self.recovery.pacing_rate(),
            marked: recovery.marked_packets,
            ecn: match self.recovery.ecn().state() {
                EcnState::Testing => None,
                EcnState::Capable => Some(true),
                EcnState::Failed => Some(false),
            },
            datagram: self.payload.max(self.payload_of(self.per_packet)),
            refused: self.refused.total(),
            limited_by: self.limited_by,
        }
    }

    /// Source symbols that may be open at once: what a path can use, so that memory follows the path and neither the credit nor
    /// a window that fills queues. Three times what is on its way leaves room for a window that doubles and for blocks that
    /// wait for a lost symbol.
    fn open_limit(&self) -> u64 {
        let rtt = self.recovery.rtt();
        let queueless = rtt.min().as_secs_f64() / rtt.smoothed().as_secs_f64().max(1e-9);
        let on_the_way = self.recovery.bytes_in_flight() as f64 * queueless;
        (3.0 * on_the_way / f64::from(self.symbol_size())).max(OPEN_SYMBOLS) as u64
    }

    fn path_estimate(&self) -> PathEstimate {
        let rtt = self.recovery.rtt();
        PathEstimate {
            rtt: rtt.has_sample().then(|| rtt.smoothed()),
            loss: self.recovery.loss().loss(),
            burst: self.recovery.loss().mean_burst(),
            window: self.recovery.window() / u64::from(self.recovery.max_packet()) * u64::from(self.per_packet),
        }
    }

    /// Another copy of the first message came: the peer is still trying, so its proof may still come. Where copies come from
    /// several addresses, some may be anybody's.
    pub(crate) fn await_proof(&mut self, until: Time, from: SocketAddr) {
        self.paths.on_first_message(from);
        if let Phase::Answered { until: patience } = &mut self.phase {
            *patience = until;
        }
    }
}
