//! One connection: ties wire, secure, recovery and flow together.
//!
//! [`Connection`] is the list of calls of a driver, and the order in which the components handle events: the handshake,
//! packet protection, path validation, path MTU discovery, liveness, recovery, and the sending and receiving halves of
//! the flows. A component owns its state and its deadlines, knows no other, and is tested without a connection. It
//! receives events (`on_packet`, `on_report`, `on_timer`, ...) and is polled for packets (`poll_...`) and times
//! (`..._deadline`). `transmit` and `receive` hold the calls in the order of packets, `timeouts` in the order of time,
//! `migration` those of a new path.

mod batch;
mod closing;
mod control;
mod crypto;
mod event;
mod feedback;
mod feedback_acks;
mod handshake;
mod liveness;
mod migration;
mod options;
mod path_mtu;
mod path_validator;
mod receive;
mod reconfigure;
mod recv_flows;
mod send_flows;
mod send_wait;
mod stats;
mod streams;
mod symbol_log;
#[cfg(test)]
mod tests;
mod timeouts;
mod timer;
mod transmit;

pub use batch::Batch;
pub use event::{CloseCode, ConnectionError, Event};
pub use feedback::ReceivedEcn;
pub use options::{ConnectionConfig, FlowError, ObjectOptions};
pub use reconfigure::ReconfigureError;
pub use stats::{
    CongestionStats, ConnectionStats, ObjectStats, PacketStats, PathStats, SendLimit, SymbolStats, TimerStats,
};
pub use streams::{Priority, StreamOptions};
pub use symbol_log::SymbolPacket;

use crate::flow::{Direction, PartialBlock, PathEstimate, SendFlow, WorkReply, WorkRequest};
use crate::profile::Profile;
use crate::recovery::{EcnState, Recovery, SavedPath};
use crate::secure::Secrets;
use crate::time::{Rate, Time};
use crate::trace::{Trace, TraceEvent};
use crate::wire::{Announcement, FlowId, Parameters, RejectCounts};
use closing::Closing;
use control::{ControlStream, ReliableFrame};
use crypto::Crypto;
use feedback::Feedback;
use feedback_acks::SeenFeedback;
use liveness::Liveness;
use path_mtu::PathMtu;
use path_validator::PathValidator;
use recv_flows::{RecvError, RecvFlows, Violation};
use send_flows::SendFlows;
use send_wait::SendWait;
use stats::Counters;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use symbol_log::SymbolPackets;

/// Source symbols that may be open at once on any path: 8 MB.
const OPEN_SYMBOLS: f64 = 6_000.0;

/// Source symbols in a block of ordinary size (docs/design/block-sizes.md).
const USUAL_BLOCK: f64 = 1_500.0;

/// Round trips from sending a symbol until it is sent again after its loss: the loss must be detected.
const ROUND: f64 = 1.25;

/// The state of a connection.
#[derive(Debug)]
enum ConnectionState {
    /// This side has sent its first message; the keys are not agreed on.
    Handshake(Box<Initiation>),
    /// Data flows in both directions.
    Open,
    /// The close is being sent to the peer, or was received from it.
    Closing(Closing),
    /// Nothing is left to do.
    Drained,
}

/// A secured association of two endpoints that carries flows in both directions.
///
/// Each component owns its state and receives events; none reads another's fields. This type is the list of those
/// calls.
#[derive(Debug)]
pub struct Connection {
    phase: ConnectionState,
    profile: Profile,
    /// The peer's parameters, once the handshake has delivered them.
    peer: Option<Parameters>,
    crypto: Crypto,
    paths: PathValidator,
    mtu: PathMtu,
    liveness: Liveness,
    recovery: Recovery,
    send_flows: SendFlows,
    recv_flows: RecvFlows,
    feedback: Feedback,
    control: ControlStream,
    seen: SeenFeedback,
    pause: SendWait,
    /// The most source symbols of each kind of flow that may be open.
    most_symbols: u64,
    next_flow: u16,
    events: VecDeque<Event>,
    requests: VecDeque<WorkRequest>,
    counters: Counters,
    symbol_packets: SymbolPackets,
    trace: Trace,
}

/// The inputs from which initiator and responder are made.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) now: Time,
    pub(crate) profile: Profile,
    pub(crate) limits: ConnectionConfig,
    pub(crate) path: AddressPair,
    /// The source of all the connection's randomness.
    pub(crate) seed: [u8; 32],
    pub(crate) qlog: bool,
}

pub(crate) use handshake::Initiation;
pub(crate) use path_validator::AddressPair;

impl Connection {
    fn new(parts: Parts, phase: ConnectionState) -> Self {
        let Parts { now, profile, limits, path, seed, qlog } = parts;
        let mut recovery = Recovery::new(&profile.recovery, now, path.datagram_overhead());
        recovery.set_limit(profile.limit);
        let crypto = Crypto::new(seed);
        let mut send_flows = SendFlows::new();
        send_flows.bound_repair(profile.streams.overhead());
        recovery.set_salt(crypto.salt());
        // The peer's choice of feedback arrives with its parameters; none is sent before.
        Self {
            phase,
            peer: None,
            crypto,
            paths: PathValidator::new(now, path),
            mtu: PathMtu::new(profile.symbols.clone(), path.datagram_overhead()),
            liveness: Liveness::new(now, &limits),
            recovery,
            send_flows,
            recv_flows: RecvFlows::new(&limits, profile.feedback.blocks),
            feedback: Feedback::new(profile.feedback, true),
            control: ControlStream::new(limits.credit.control),
            seen: SeenFeedback::default(),
            pause: SendWait::default(),
            most_symbols: limits.most_symbols,
            next_flow: 1,
            events: VecDeque::new(),
            requests: VecDeque::new(),
            counters: Counters::default(),
            symbol_packets: SymbolPackets::default(),
            trace: if qlog { Trace::qlog(now) } else { Trace::off() },
            profile,
        }
    }

    pub(crate) fn initiate(parts: Parts, initiation: Initiation) -> Self {
        Self::new(parts, ConnectionState::Handshake(Box::new(initiation)))
    }

    /// Creates a connection to an answered `peer` whose first packet, of `payload` bytes, is handled next. Copies of
    /// its first message may have come from `alternative`, too.
    pub(crate) fn respond(
        parts: Parts,
        secrets: &Secrets,
        peer: Parameters,
        alternative: Option<SocketAddr>,
        payload: usize,
    ) -> Self {
        let mut connection = Self::new(parts, ConnectionState::Open);
        connection.establish(secrets, peer);
        alternative.iter().for_each(|remote| connection.paths.on_first_message(*remote));
        // The peer's first packet has the size that it knows to pass in both directions.
        connection.on_first_payload(payload);
        connection.events.push_back(Event::Connected);
        connection
    }

    fn establish(&mut self, secrets: &Secrets, peer: Parameters) {
        self.crypto.on_handshake(secrets, &peer);
        self.mtu.on_parameters(&peer);
        self.send_flows.grant(peer.credit.symbols);
        self.control.grant(peer.credit.control);
        self.send_flows.allow_streams(peer.streams, peer.short_symbols);
        self.recv_flows.set_block_feedback(peer.feedback.blocks);
        self.feedback = Feedback::new(peer.feedback, peer.counts_on);
        self.peer = Some(peer);
    }

    /// Notes that datagrams of `payload` bytes are known to pass.
    fn on_first_payload(&mut self, payload: usize) {
        self.mtu.on_handshake(payload, self.datagram_overhead());
        self.recovery.set_max_packet(self.mtu.full_packet());
    }

    /// Returns the bytes that IP and UDP add to a payload on the path in use.
    fn datagram_overhead(&self) -> u32 {
        self.paths.active().datagram_overhead()
    }

    /// Returns the symbol size of flows that begin now, if the peer accepts it.
    fn acceptable_symbol_size(&self, peer: &Parameters) -> Result<u16, FlowError> {
        let (size, most) = (self.mtu.symbol_size(), peer.max_symbol_size);
        if size > most { Err(FlowError::SymbolsTooLarge { smallest: size, most }) } else { Ok(size) }
    }

    /// Returns the next event, in order.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the next piece of work for the caller, which answers with [`Connection::handle_reply`], in any order.
    pub fn poll_request(&mut self) -> Option<WorkRequest> {
        self.requests.pop_front()
    }

    /// Handles the answer to a request.
    pub fn handle_reply(&mut self, now: Time, reply: WorkReply) {
        if !matches!(self.phase, ConnectionState::Open) {
            return;
        }
        match &reply {
            WorkReply::Read { .. } | WorkReply::Encoded(_) => self.requests.extend(self.send_flows.on_reply(reply)),
            WorkReply::Digested { key, .. } if key.direction == Direction::Sending => {
                self.requests.extend(self.send_flows.on_reply(reply));
            }
            WorkReply::Written { flow, block } => {
                self.trace.record(now, TraceEvent::BlockStored { flow: *flow, block: *block });
                self.recv_flows.on_reply(reply);
            }
            _ => self.recv_flows.on_reply(reply),
        }
        self.settle(now);
    }

    /// Follows up on anything that moves flows: opens blocks, collects requests, and reports finished flows.
    fn settle(&mut self, now: Time) {
        self.settle_sending(now);
        self.settle_receiving(now);
    }

    fn settle_sending(&mut self, now: Time) {
        self.open_blocks(now);
        for event in self.send_flows.take_events(&mut self.control) {
            self.push_flow_event(now, event);
        }
    }

    fn settle_receiving(&mut self, now: Time) {
        let Self { recv_flows, control, requests, .. } = self;
        recv_flows.collect(requests, |flow, symbols| control.push(ReliableFrame::StreamRead(flow, symbols)));
        self.feedback.on_progress(self.recv_flows.take_progress());
        self.move_recv_events(now);
        match self.recv_flows.take_broken() {
            Some(RecvError::Violation(Violation(what))) => self.violation(now, what),
            Some(RecvError::Undecodable) => self.close_undecodable(now, "an acknowledged block cannot be decoded"),
            None => {}
        }
    }

    /// Opens a flow that sends an object. Objects are sent in the order they were opened.
    ///
    /// # Errors
    /// [`FlowError::NotConnected`] before [`Event::Connected`] and after the end, [`FlowError::Exhausted`], and
    /// [`FlowError::SymbolsTooLarge`] or [`FlowError::Unsendable`] when the profile's blocks do not fit the peer's
    /// limits.
    pub fn send_object(&mut self, now: Time, options: ObjectOptions) -> Result<FlowId, FlowError> {
        let Some(peer) = self.peer.as_ref().filter(|_| matches!(self.phase, ConnectionState::Open)) else {
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
            symbols_per_packet: self.mtu.wanted_per_packet(),
            tag: options.tag,
            plan: plans[0],
        };
        let mut flow = SendFlow::object(announcement, &plans[1..], self.profile.schedule.build(), options.digest)?;
        flow.set_sizer(self.profile.blocks.sizer(symbol_size), largest_k);
        self.next_flow = self.next_flow.checked_add(1).ok_or(FlowError::Exhausted)?;
        self.trace.record(now, TraceEvent::FlowOpened { flow: id, length: options.length });
        self.send_flows.open_object(flow, &mut self.control);
        self.begin_mtu_search();
        self.settle(now);
        Ok(id)
    }

    /// Sends a PING: a live peer answers within about a round trip.
    pub fn ping(&mut self) {
        self.control.push(ReliableFrame::Ping);
    }

    /// Accepts an announced flow: from now on its blocks are written, and digested if `digest` is set.
    pub fn accept_flow(&mut self, now: Time, flow: FlowId, digest: bool) {
        self.recv_flows.accept(flow, digest);
        self.settle(now);
    }

    /// Appends to the control stream.
    pub fn write_control(&mut self, bytes: &[u8]) {
        self.control.write(bytes);
    }

    /// Returns the bytes of the control stream that the peer is not known to have. A program that writes ahead bounds
    /// this.
    pub fn control_backlog(&self) -> usize {
        self.control.backlog()
    }

    /// Appends received bytes of the peer's control stream to `out`, and gives the peer credit for as many again.
    /// Returns the number of bytes read.
    pub fn read_control(&mut self, out: &mut Vec<u8>) -> usize {
        let read = self.control.read(out);
        if read > 0 {
            self.feedback.note();
        }
        read
    }

    /// Notes that the program has nothing left to send or to receive, and only waits for the peer to close. The peer is
    /// then probed after two round trips of silence, and [`Connection::on_port_unreachable`] takes effect sooner.
    pub const fn expect_close(&mut self) {
        self.liveness.expect_close();
    }

    /// Ends the connection. The close is repeated until the peer answers.
    pub fn close(&mut self, now: Time, code: u32, reason: &str) {
        self.close_as(now, code, reason, ConnectionError::LocallyClosed);
    }

    /// Ends the connection normally, for a peer that also learns by other means that this side has left: the program
    /// may leave as soon as one packet with the close is sent.
    pub fn close_unconfirmed(&mut self, now: Time) {
        let closing = Closing::brief(now, self.known_rtt());
        self.end_with(now, ConnectionError::LocallyClosed, closing);
    }

    fn close_as(&mut self, now: Time, code: u32, reason: &str, closed: ConnectionError) {
        let closing = Closing::local(now, self.known_rtt(), self.recovery.loss().loss(), code, reason);
        self.end_with(now, closed, closing);
    }

    fn end_with(&mut self, now: Time, closed: ConnectionError, closing: Closing) {
        match self.phase {
            ConnectionState::Open => {
                self.recovery.close(now);
                self.end(closed);
                self.phase = ConnectionState::Closing(closing);
            }
            ConnectionState::Handshake(_) => self.end(closed),
            ConnectionState::Closing(_) | ConnectionState::Drained => {}
        }
    }

    /// Returns the round-trip time, measured here or reported by the peer; before that, the assumed one.
    fn known_rtt(&self) -> Duration {
        self.measured_rtt().unwrap_or_else(|| self.recovery.rtt().smoothed())
    }

    /// Returns the round-trip time, measured here or reported by the peer.
    fn measured_rtt(&self) -> Option<Duration> {
        let (own, reported) = (self.recovery.rtt(), self.feedback.peer_rtt());
        let own = own.has_sample().then(|| own.smoothed());
        own.or_else(|| Some(reported).filter(|rtt| !rtt.is_zero()))
    }

    /// Drops all requests, and reports the reason in the last event.
    fn end(&mut self, closed: ConnectionError) {
        self.trace.record(self.liveness.last_received(), TraceEvent::Closed);
        self.phase = ConnectionState::Drained;
        self.requests.clear();
        self.pause.stop();
        self.events.push_back(Event::Closed(closed));
    }

    /// Limits the rate from now on, in IP bits per second, whatever the controller; `None` lifts the limit. A
    /// connection starts with the profile's limit.
    pub fn set_limit(&mut self, now: Time, limit: Option<Rate>) {
        self.profile.limit = limit;
        self.recovery.set_limit(limit);
        self.pause.on_rate_change(now);
    }

    /// Begins with the measurements of an earlier connection to the same address ([`CongestionStats::memory`]), which
    /// should be less than a day old and used by one connection at a time. Without effect once the controller has found
    /// the rate, and with controllers that do not search for it. A migration forgets it.
    pub fn restore_path(&mut self, memory: &SavedPath) {
        self.recovery.recall(memory);
    }

    /// Returns whether [`Event::Closed`] has been made.
    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, ConnectionState::Closing(_) | ConnectionState::Drained)
    }

    /// Returns whether the program has got the event that the connection is closed.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed() && self.events.is_empty()
    }

    /// Returns whether nothing is left to send or to wait for: the connection may be removed.
    pub const fn is_drained(&self) -> bool {
        matches!(self.phase, ConnectionState::Drained)
    }

    /// Returns whether the program may exit without making the peer fail or wait: after a normal close once the peer
    /// has very likely received it (several copies are sent, or the peer closed first and was answered), otherwise once
    /// the connection is drained. An endpoint that stays continues to answer until [`Connection::is_drained`].
    pub fn may_leave(&self) -> bool {
        match &self.phase {
            ConnectionState::Closing(closing) => closing.may_leave(),
            ConnectionState::Drained => true,
            ConnectionState::Handshake(_) | ConnectionState::Open => false,
        }
    }

    /// Returns the peer's address.
    pub const fn remote(&self) -> SocketAddr {
        self.paths.active().remote
    }

    /// Returns the application's bytes in the peer's handshake.
    pub fn peer_application(&self) -> &[u8] {
        self.peer.as_ref().map_or(&[], |peer| &peer.application)
    }

    /// Returns the IP bytes in flight.
    pub fn bytes_in_flight(&self) -> u64 {
        self.recovery.bytes_in_flight()
    }

    /// Appends the qlog records made since the last call (JSON text sequence, RFC 7464).
    pub fn take_qlog(&mut self, out: &mut Vec<u8>) {
        self.trace.take(out);
    }

    /// Lists the packets with symbols sent and received from now on ([`Connection::take_symbols`]).
    pub fn list_symbols(&mut self) {
        self.symbol_packets.begin();
    }

    /// Appends the packets with symbols sent and received since the last call, in order; none without
    /// [`Connection::list_symbols`].
    pub fn take_symbols(&mut self, out: &mut Vec<SymbolPacket>) {
        self.symbol_packets.take(out);
    }

    /// Iterates over the received parts of an object of the peer: its incomplete blocks that are not being decoded, in
    /// order. Other blocks are written by the program ([`WorkRequest::Write`]).
    pub fn partial_blocks(&self, flow: FlowId) -> impl Iterator<Item = PartialBlock<'_>> {
        self.recv_flows.partial_blocks(flow)
    }

    /// Returns the number of refused datagrams, by reason.
    pub const fn refused(&self) -> &RejectCounts {
        &self.counters.refused
    }

    /// Returns the present state and all counts.
    pub fn stats(&self) -> ConnectionStats {
        let recovery = self.recovery.stats();
        ConnectionStats {
            packets: PacketStats {
                sent: recovery.sent_packets + recovery.untracked_packets,
                bytes_sent: recovery.sent_bytes + recovery.untracked_bytes,
                received: self.counters.packets_received,
                bytes_received: self.counters.bytes_received,
                lost: recovery.lost_packets.saturating_sub(recovery.spurious_packets),
                marked: recovery.marked_packets,
                pings: self.liveness.pings(),
                mtu_probes: self.mtu.probes_sent(),
                refused: self.counters.refused.total(),
            },
            symbols: self.symbol_stats(),
            objects: ObjectStats {
                written: self.recv_flows.bytes_written(),
                acknowledged: self.send_flows.bytes_acknowledged(),
                arriving: self.recv_flows.bytes_arriving(),
                delivered: self.send_flows.bytes_delivered(),
                reading: self.send_flows.reading(),
            },
            path: self.path_stats(),
            congestion: self.congestion_stats(),
            timers: TimerStats {
                expired: self.counters.timers_expired,
                probe_timeouts: recovery.probe_timeouts,
                retransmission_timeouts: recovery.timeouts,
                counter_resets: recovery.counter_resets,
            },
            limited_by: self.pause.limited_by(),
            memory_binds: self.memory_binds(),
        }
    }

    fn symbol_stats(&self) -> SymbolStats {
        let sent = self.send_flows.counts();
        SymbolStats {
            source: sent.source,
            resent: sent.resent,
            repair: sent.repair,
            surplus: self.recv_flows.surplus(),
            undecodable_blocks: self.counters.undecodable_blocks,
            most_held: self.recv_flows.most_held(),
        }
    }

    fn path_stats(&self) -> PathStats {
        let rtt = Some(self.recovery.rtt()).filter(|rtt| rtt.has_sample());
        PathStats {
            rtt: rtt.map(crate::recovery::RttEstimator::smoothed),
            min_rtt: rtt.map(crate::recovery::RttEstimator::min),
            loss: self.recovery.loss().loss(),
            changes: self.paths.migrations(),
            ecn: match self.recovery.ecn().state() {
                EcnState::Testing => None,
                EcnState::Capable => Some(true),
                EcnState::Failed => Some(false),
            },
            datagram: self.mtu.max_datagram(),
            symbol_size: self.mtu.symbol_size(),
            per_packet: self.mtu.per_packet(),
        }
    }

    fn congestion_stats(&self) -> CongestionStats {
        CongestionStats {
            window: self.recovery.window(),
            in_flight: self.recovery.bytes_in_flight(),
            counter_drift: self.recovery.counter_drift(),
            pacing_rate: self.recovery.pacing_rate(),
            constraint: self.recovery.constraint(),
            controller: self.recovery.congestion().state(),
            memory: self.recovery.congestion().save_path(),
        }
    }

    /// Returns how many source symbols may be open at once: as many as the path can use, so that memory follows the
    /// path rather than the credit or a window that fills queues.
    fn open_limit(&self) -> u64 {
        self.usable_symbols().min(self.most_symbols)
    }

    /// Returns how many open source symbols the path can use. Besides the symbols in flight, a window may double, and
    /// blocks stay open for the rounds in which lost symbols are retransmitted.
    fn usable_symbols(&self) -> u64 {
        let rtt = self.recovery.rtt();
        let queueless = rtt.min().as_secs_f64() / rtt.smoothed().as_secs_f64().max(1e-9);
        let on_the_way = self.recovery.bytes_in_flight() as f64 * queueless / f64::from(self.mtu.symbol_size());
        let rounds = 2.0 + resend_rounds(self.recovery.expected_loss());
        (rounds * on_the_way).max(OPEN_SYMBOLS) as u64
    }

    /// Sets how many symbols of objects are buffered at most in each direction, from now on.
    pub(crate) fn set_most_symbols(&mut self, most: u64) {
        self.most_symbols = most;
        self.recv_flows.set_most_symbols(most);
    }

    /// Returns whether only the bound on memory keeps data from being sent, or credit from being granted.
    fn memory_binds(&self) -> bool {
        let most = self.most_symbols;
        let waits = self.pause.limited_by() == SendLimit::Receiver && most < self.usable_symbols();
        (waits && self.send_flows.is_full(most)) || self.recv_flows.is_capped()
    }

    fn path_estimate(&self) -> PathEstimate {
        let rtt = self.recovery.rtt();
        PathEstimate {
            rtt: rtt.has_sample().then(|| rtt.smoothed()),
            loss: self.recovery.expected_loss(),
            burst: self.recovery.loss().mean_burst(),
            window: self.recovery.window() / u64::from(self.recovery.max_packet()) * u64::from(self.mtu.per_packet()),
        }
    }
}

/// Returns the round trips after which fewer than one of a block's [`USUAL_BLOCK`] symbols is still missing: each is
/// lost with probability `loss` every time it is sent. At least one, at most eight.
fn resend_rounds(loss: f64) -> f64 {
    let once = 1.0 / loss.clamp(1e-9, 0.5);
    1.0 + (ROUND * USUAL_BLOCK.ln() / once.ln()).min(7.0)
}

#[cfg(test)]
mod open_limit_tests {
    use super::resend_rounds;

    #[test]
    fn blocks_wait_longer_where_more_is_lost() {
        let rounds = [0.0, 0.001, 0.01, 0.05, 0.2, 0.9].map(|loss| (resend_rounds(loss) * 10.0).round() / 10.0);
        assert_eq!(rounds, [1.4, 2.3, 3.0, 4.1, 6.7, 8.0]);
    }
}
