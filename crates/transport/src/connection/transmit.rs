//! Sending, in order of precedence: path probes, feedback, path MTU probes, probes, control frames and data.

use super::control::ReliableFrame;
use super::path_mtu::MtuProbe;
use super::path_validator::AddressPair;
use super::{Batch, Connection, ConnectionState, SendLimit};
use crate::flow::{Direction, PathEstimate, PickedSymbol};
use crate::recovery::{Content, EcnCodepoint, SendAllowance, SentPacket};
use crate::time::Time;
use crate::trace::TraceEvent;
use crate::wire::{Credit, Frame, HEADER, PacketHeader, PacketKind, SymbolHeader, SymbolRun, TAG};

/// Most packet numbers remembered, in addition to several round trips of packets in flight, before closing a connection
/// whose peer provokes feedback but never acknowledges other packets.
const MAX_REMEMBERED: u64 = 1 << 18;

/// Round trips for which packets in flight are remembered: lost ones are, for a while.
const REMEMBERED_ROUNDS: u64 = 8;

impl Connection {
    /// Fills `batch` with the next datagrams to one destination; returns false when nothing can be sent now. Their
    /// packet numbers are assigned and they count as sent: one that is not sealed and sent is later declared lost.
    pub fn poll_transmit(&mut self, now: Time, batch: &mut Batch) -> bool {
        self.pause.on_attempt();
        match &mut self.phase {
            ConnectionState::Handshake(handshake) => handshake.poll_transmit(now, batch),
            ConnectionState::Drained => false,
            ConnectionState::Closing(_) => self.transmit_close(now, batch),
            ConnectionState::Open => {
                self.transmit_path_probe(now, batch) || (self.paths.is_validated() && self.transmit_open(now, batch))
            }
        }
    }

    fn transmit_open(&mut self, now: Time, batch: &mut Batch) -> bool {
        if let Some(what) = self.exhausted() {
            self.close_exhausted(now, what);
            return self.transmit_close(now, batch);
        }
        if self.send_flows.has_failed() {
            self.close_undecodable(now, "too much of a block was lost, and lost symbols are not sent again");
            return self.transmit_close(now, batch);
        }
        self.transmit_feedback(now, batch)
            || self.transmit_mtu_probe(now, batch)
            || self.transmit_probe(now, batch)
            || self.transmit_paced(now, batch)
    }

    /// Returns which number is exhausted, if any.
    const fn exhausted(&self) -> Option<&'static str> {
        if self.crypto.is_exhausted() {
            Some("no packet numbers left")
        } else if self.feedback.is_exhausted() {
            Some("the peer's version cannot number more feedback")
        } else if self.send_flows.is_exhausted() {
            Some("no block numbers left in a stream")
        } else {
            None
        }
    }

    /// Returns when feedback is due.
    pub(super) fn feedback_due(&self) -> Option<Time> {
        self.feedback.deadline(|| self.recv_flows.awaits_more())
    }

    /// Sends feedback, and the number of the newest feedback seen. Neither window nor pacer counts it.
    fn transmit_feedback(&mut self, now: Time, batch: &mut Batch) -> bool {
        let feedback_due = self.feedback_due().is_some_and(|at| at <= now);
        let seen_due = self.seen.deadline(self.recovery.rtt().smoothed()).is_some_and(|at| at <= now);
        if !feedback_due && !seen_due {
            return false;
        }
        let in_flight = self.recovery.bytes_in_flight() / u64::from(self.recovery.max_packet());
        if self.recovery.remembered() as u64 > MAX_REMEMBERED + REMEMBERED_ROUNDS * in_flight {
            self.violation(now, "requested packets and acknowledged none");
            return self.transmit_close(now, batch);
        }
        let mut frames = Vec::new();
        if let Some(number) = self.seen.take(now) {
            let rtt = self.recovery.rtt().smoothed().as_micros();
            let rtt_micros = u32::try_from(rtt).unwrap_or(u32::MAX);
            Frame::FeedbackSeen { number, rtt_micros }.encode(&mut frames);
        }
        if feedback_due {
            if let Some(rtt) = self.measured_rtt() {
                self.recv_flows.follow(now, rtt);
            }
            let (number, mut feedback) = self.feedback.frame(now, |flow| self.recv_flows.gap(flow));
            (feedback.flows, feedback.masks) = self.recv_flows.statuses(number);
            feedback.credit = Credit { symbols: self.recv_flows.granted(), control: self.control.granted() };
            feedback.encode_within(self.mtu.safe_frame_room() - frames.len(), &mut frames);
        }
        self.begin_batch(batch, EcnCodepoint::NotEct);
        let (number, bytes) = self.push_frames(batch, &frames);
        self.recovery.on_untracked(number, bytes);
        if feedback_due {
            self.feedback.on_sent(now, bytes);
        }
        self.trace.record(now, TraceEvent::PacketSent { number, bytes, kind: "feedback" });
        true
    }

    /// Sends a packet that tests which sizes the path carries. Neither window nor pacer is consulted.
    fn transmit_mtu_probe(&mut self, now: Time, batch: &mut Batch) -> bool {
        let times = self.probe_times();
        let Self { mtu, crypto, .. } = self;
        let Some(probe) = mtu.poll_probe(now, times, || crypto.random_bytes()) else { return false };
        let (frame, payload, ecn) = match probe {
            MtuProbe::Ping { payload } => (Frame::Ping, payload, self.recovery.ecn_codepoint()),
            MtuProbe::Challenge { payload, data } => (Frame::PathChallenge { data }, payload, EcnCodepoint::NotEct),
        };
        let mut frames = Vec::new();
        frame.encode(&mut frames);
        frames.resize(frames.len().max(payload.saturating_sub(HEADER + TAG)), 0);
        self.begin_batch(batch, ecn);
        let header = self.next_header(PacketKind::Control);
        batch.push_packet(header, [&frames, &[]]);
        let (number, bytes) = (header.number, (HEADER + frames.len() + TAG) as u32 + self.datagram_overhead());
        match probe {
            MtuProbe::Ping { payload } => {
                self.on_packet_sent(SentPacket { number, time: now, bytes, content: Content::Nothing }, true);
                self.mtu.on_probe_sent(number, payload);
            }
            MtuProbe::Challenge { .. } => self.recovery.on_untracked(number, bytes),
        }
        self.trace.record(now, TraceEvent::PacketSent { number, bytes, kind: "size" });
        true
    }

    /// Sends probes after a silence: packets that request feedback, and carry the frames that the peer most likely
    /// lacks (RFC 9002 section 6.2.4).
    fn transmit_probe(&mut self, now: Time, batch: &mut Batch) -> bool {
        let Some(first) = self.liveness.next_probe() else { return false };
        self.begin_batch(batch, self.recovery.ecn_codepoint());
        // Unacknowledged control frames are the likelier cause of the silence. But the second probe carries a symbol:
        // until one of many copies is answered a control frame always remains to be repeated.
        if first {
            self.control.repeat(self.mtu.frame_room());
        }
        let reliable = self.control.is_ready();
        let picked = if first && reliable { None } else { self.send_flows.probe() };
        if let Some(picked) = picked {
            let path = self.path_estimate();
            self.push_symbols(now, batch, (picked, 1), &path, true);
        } else {
            if !reliable {
                self.control.push(ReliableFrame::Ping);
            }
            self.push_control(now, batch, true);
        }
        true
    }

    /// Sends control frames and data, as far as window and pacer allow.
    fn transmit_paced(&mut self, now: Time, batch: &mut Batch) -> bool {
        self.open_blocks(now);
        if !self.send_flows.has_source() && self.recovery.loss().loss() > 0.0 {
            self.control.double();
        }
        if !self.send_flows.has_unfinished() && !self.control.is_ready() {
            self.pause.on_blocked(SendLimit::Nothing);
            return false;
        }
        if self.mtu.holds_data() || self.paths.is_in_doubt(now, self.known_rtt()) {
            self.pause.on_blocked(SendLimit::Window);
            return false;
        }
        let budget = match self.recovery.send_allowance(now) {
            SendAllowance::Bytes(bytes) => bytes,
            SendAllowance::Wait(until) => {
                self.pause.on_paced(until);
                return false;
            }
            SendAllowance::Blocked => {
                self.pause.on_blocked(SendLimit::Window);
                return false;
            }
        };
        self.begin_batch(batch, self.recovery.ecn_codepoint());
        // Data asks for feedback too: where the window has room for one packet, PINGs in its place would end the
        // transfer.
        if self.control.has_only_pings() {
            if self.fill_with_data(now, batch, budget) {
                return true;
            }
            if !matches!(self.phase, ConnectionState::Open) || !self.control.is_ready() {
                return false;
            }
        }
        self.push_control(now, batch, false);
        true
    }

    fn fill_with_data(&mut self, now: Time, batch: &mut Batch, mut budget: u64) -> bool {
        let path = self.path_estimate();
        // All flows of a connection have one symbol size, so that the segments of a batch are equal. Streams have one
        // symbol per packet.
        let most = if self.send_flows.has_objects() { self.mtu.per_packet() } else { 1 };
        let size = self.mtu.payload_of(most);
        let bytes = u64::from(size as u32 + self.datagram_overhead());
        while batch.has_room(size) && (budget >= bytes || batch.segments() == 0) {
            let Some(picked) = self.send_flows.next_symbol(now, &path, &mut self.requests) else {
                break;
            };
            let pushed = self.push_symbols(now, batch, (picked, most), &path, false);
            budget = budget.saturating_sub(bytes);
            // Only the last segment may be shorter.
            if pushed < size {
                break;
            }
        }
        if batch.segments() == 0 {
            if self.send_flows.has_failed() {
                return self.transmit_open(now, batch);
            }
            self.on_idle();
            return false;
        }
        self.control.on_batch();
        true
    }

    /// Notes that the schedules had nothing to send although window and pacer would have allowed it.
    fn on_idle(&mut self) {
        self.recovery.set_app_limited();
        let limited_by = if self.send_flows.is_credit_limited() || self.send_flows.is_full(self.open_limit()) {
            SendLimit::Receiver
        } else if self.send_flows.has_source() {
            SendLimit::Source
        } else {
            SendLimit::Nothing
        };
        self.pause.on_idle(limited_by, self.send_flows.deadline());
    }

    fn push_control(&mut self, now: Time, batch: &mut Batch, probe: bool) {
        let mut frames = Vec::new();
        let flows = &self.send_flows;
        let carried = self.control.take_frames(self.mtu.frame_room(), &mut frames, |frame| flows.frame(frame));
        if frames.is_empty() {
            // Everything pending belonged to flows that have ended; a packet is due all the same.
            Frame::Ping.encode(&mut frames);
        }
        let (number, bytes) = self.push_frames(batch, &frames);
        let content = carried.map_or(Content::Nothing, Content::Control);
        self.on_packet_sent(SentPacket { number, time: now, bytes, content }, probe);
        self.trace.record(now, TraceEvent::PacketSent { number, bytes, kind: "control" });
    }

    /// Appends a packet with a symbol and those that follow it, at most `most` and no more than were announced. Returns
    /// its UDP payload.
    fn push_symbols(
        &mut self,
        now: Time,
        batch: &mut Batch,
        (picked, most): (PickedSymbol, u8),
        path: &PathEstimate,
        probe: bool,
    ) -> usize {
        let PickedSymbol { id: first, plan, kind } = picked;
        let header = self.next_header(PacketKind::Symbol);
        let most = if most > 1 { most.min(self.send_flows.symbols_per_packet(first.flow)) } else { 1 };
        let mut symbols = SymbolRun::from(first);
        let Self { send_flows, requests, .. } = self;
        let size = batch.fill_packet(header, |out| {
            out.extend_from_slice(&SymbolHeader { id: first, plan }.encode());
            out.extend_from_slice(send_flows.take_symbol(now, &picked));
            while symbols.count < most
                && let Some(picked) = send_flows.next_in_packet(now, path, symbols.last(), requests)
            {
                out.extend_from_slice(send_flows.take_symbol(now, &picked));
                symbols.count += 1;
            }
        });
        let (number, bytes) = (header.number, size as u32 + self.datagram_overhead());
        self.symbol_packets.add(Direction::Sending, number, symbols);
        let content = Content::Symbols(symbols);
        self.on_packet_sent(SentPacket { number, time: now, bytes, content }, probe);
        self.trace.record(now, TraceEvent::SymbolsSent { number, bytes, symbols, kind });
        size
    }

    /// Appends a control packet. Returns its number and IP bytes.
    fn push_frames(&mut self, batch: &mut Batch, frames: &[u8]) -> (u64, u32) {
        let header = self.next_header(PacketKind::Control);
        // Until the peer has received a packet, ours have to prove the size that the path carries. A close proves
        // nothing, and a shrunken path would drop every copy of it.
        let is_padded = self.liveness.is_unconfirmed() && matches!(self.phase, ConnectionState::Open);
        let padding = if is_padded { self.mtu.frame_room().saturating_sub(frames.len()) } else { 0 };
        batch.push_packet(header, [frames, &vec![0; padding]]);
        let bytes = (HEADER + frames.len() + padding + TAG) as u32 + self.datagram_overhead();
        (header.number, bytes)
    }

    /// Begins a batch of packets to the peer.
    pub(super) fn begin_batch(&self, batch: &mut Batch, ecn: EcnCodepoint) {
        self.begin_batch_to(batch, self.paths.active(), ecn);
    }

    /// Begins a batch of packets to an address that need not be the one in use.
    pub(super) fn begin_batch_to(&self, batch: &mut Batch, path: AddressPair, ecn: EcnCodepoint) {
        batch.begin(path.remote, path.local, ecn, self.crypto.sealer());
    }

    pub(super) fn next_header(&mut self, kind: PacketKind) -> PacketHeader {
        let (header, skipped) = self.crypto.next_header(kind);
        if let Some(number) = skipped {
            self.recovery.on_skipped(number);
        }
        header
    }

    /// Notes that a packet was sent that asks for feedback. A `probe` was not admitted by window and pacer, but counts
    /// in flight all the same.
    fn on_packet_sent(&mut self, sent: SentPacket, probe: bool) {
        self.mtu.on_packet_sent(&sent);
        self.liveness.on_packet_sent(sent.time);
        self.recovery.on_sent(sent, probe);
    }

    fn transmit_close(&mut self, now: Time, batch: &mut Batch) -> bool {
        let ConnectionState::Closing(closing) = &mut self.phase else { return false };
        let Some(frame) = closing.poll(now) else { return false };
        let mut frames = Vec::new();
        frame.encode(&mut frames);
        self.begin_batch(batch, EcnCodepoint::NotEct);
        let (number, bytes) = self.push_frames(batch, &frames);
        self.recovery.on_untracked(number, bytes);
        true
    }
}
