//! Receiving: opened packets, their frames, and the consequences.

use super::closing::Closing;
use super::control::ReliableFrame;
use super::feedback::AcceptedPacket;
use super::path_mtu::Shrunk;
use super::path_validator::{AddressPair, ReceivedPacket};
use super::recv_flows::Violation;
use super::{CloseCode, Connection, ConnectionError, ConnectionState, Event, ReceivedEcn};
use crate::flow::{Direction, FlowAnnouncement};
use crate::recovery::AckInfo;
use crate::secure::{Cipher, OpenedPacket, Opener};
use crate::time::Time;
use crate::trace::{Sending, TraceEvent};
use crate::wire::{
    Feedback, Frame, Frames, HEADER, Message2, PacketFeedback, PacketKind, Parameters, RejectReason, StreamSuccessor,
    Successor, SymbolHeader, SymbolRun, TAG, VersionAnswer,
};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

impl Connection {
    /// Returns the opener of this connection's packets; `None` before the handshake is done and after the integrity
    /// limit of the cipher. It is pure and may be used on any thread.
    pub fn opener(&self) -> Option<Opener> {
        self.crypto.opener()
    }

    /// Processes opened packets that were received together, all with the same ECN mark.
    ///
    /// `from` is their source address, `local` the one to which they were sent, if known: answers are sent from it.
    pub fn handle_packets(
        &mut self,
        now: Time,
        from: SocketAddr,
        local: Option<IpAddr>,
        ecn: ReceivedEcn,
        packets: &mut [OpenedPacket<'_>],
    ) {
        let path = AddressPair { remote: from, local };
        for packet in packets {
            if !self.crypto.is_new(packet.number) {
                self.refuse(now, RejectReason::Replayed);
                continue;
            }
            self.liveness.on_packet(now);
            let bytes = self.ip_bytes(packet);
            self.counters.packets_received += 1;
            self.counters.bytes_received += u64::from(bytes);
            if !self.on_packet_path(now, ReceivedPacket { path, number: packet.number, ip_bytes: bytes.into() }) {
                continue;
            }
            match &mut self.phase {
                ConnectionState::Open => {}
                ConnectionState::Closing(closing) => {
                    if closing.on_packet(now, bytes, has_close(packet)) {
                        self.phase = ConnectionState::Drained;
                    }
                    continue;
                }
                ConnectionState::Handshake(_) | ConnectionState::Drained => continue,
            }
            if let Err(reason) = self.handle_packet(now, path, ecn, packet) {
                self.refuse(now, reason);
            }
        }
        if matches!(self.phase, ConnectionState::Open) {
            self.settle(now);
        }
    }

    /// Returns the IP bytes of the datagram that carried a packet.
    fn ip_bytes(&self, packet: &OpenedPacket<'_>) -> u32 {
        (HEADER + packet.plaintext.len() + TAG) as u32 + self.datagram_overhead()
    }

    /// Counts a refused datagram of this connection.
    pub(crate) fn refuse(&mut self, now: Time, reason: RejectReason) {
        self.counters.refused.add(reason);
        self.trace.record(now, TraceEvent::Refused { reason });
        if reason == RejectReason::AuthenticationFailed && self.crypto.on_forgery() {
            self.close_exhausted(now, "too many forged packets for its keys");
        }
    }

    fn handle_packet(
        &mut self,
        now: Time,
        path: AddressPair,
        ecn: ReceivedEcn,
        packet: &OpenedPacket<'_>,
    ) -> Result<(), RejectReason> {
        let number = packet.number;
        let bytes = self.ip_bytes(packet);
        let (asks, symbols) = match packet.kind {
            PacketKind::Symbol => {
                let (SymbolHeader { id, plan }, symbols) = SymbolHeader::decode(packet.plaintext)?;
                let symbols = self.recv_flows.on_symbols(id, plan, symbols)?;
                self.symbol_packets.add(Direction::Receiving, number, symbols);
                self.trace.record(now, TraceEvent::SymbolsReceived { number, bytes, symbols });
                (true, Some(symbols))
            }
            PacketKind::Control => {
                Frames::check_all(packet.plaintext)?;
                self.trace.record(now, TraceEvent::PacketReceived { number, bytes, kind: "control" });
                let mut asks = false;
                for frame in Frames::new(packet.plaintext) {
                    let frame = frame?;
                    asks |= asks_for_feedback(&frame);
                    if let Err(Violation(reason)) = self.handle_frame(now, (path, packet.plaintext.len()), frame) {
                        self.violation(now, reason);
                    }
                    if !matches!(self.phase, ConnectionState::Open) {
                        return Ok(());
                    }
                }
                (asks, None)
            }
        };
        let last = symbols.map(SymbolRun::last).filter(|_| self.feedback.is_in_order());
        let behind_gap = last.filter(|id| self.recv_flows.is_behind_gap(*id));
        self.feedback.on_packet(now, AcceptedPacket { number, ecn, ip_bytes: bytes, asks, behind_gap });
        Ok(())
    }

    /// Handles a frame of a packet with `plaintext` bytes of frames, which arrived over `path`.
    fn handle_frame(
        &mut self,
        now: Time,
        (path, plaintext): (AddressPair, usize),
        frame: Frame<'_>,
    ) -> Result<(), Violation> {
        match frame {
            Frame::Ping => self.feedback.hurry(),
            Frame::Feedback(feedback) => self.handle_feedback(now, &feedback)?,
            Frame::FeedbackSeen { number, rtt_micros } => {
                let number = self.feedback.on_seen(number, Duration::from_micros(rtt_micros.into()));
                self.recv_flows.on_seen(number);
            }
            Frame::Control { offset, data } => {
                let more = self.control.on_data(offset, data);
                if more.map_err(|_| Violation("sent control data beyond its credit"))? {
                    self.events.push_back(Event::ControlReadable);
                }
            }
            Frame::Announce(object) => self.recv_flows.on_announcement(FlowAnnouncement::Object(object))?,
            Frame::AnnounceStream(stream) => self.recv_flows.on_announcement(FlowAnnouncement::Stream(stream))?,
            Frame::Successor(Successor { flow, symbol_size, object }) => {
                self.recv_flows.on_successor(flow, symbol_size, FlowAnnouncement::Object(object))?;
            }
            Frame::StreamSuccessor(StreamSuccessor { flow, symbol_size, stream }) => {
                self.recv_flows.on_successor(flow, symbol_size, FlowAnnouncement::Stream(stream))?;
            }
            Frame::Plan(plan) => self.recv_flows.on_plan(plan)?,
            Frame::StreamRead { flow, symbols } => self.on_stream_read(flow, symbols)?,
            Frame::Reset { flow, code } => self.recv_flows.on_reset(flow, code)?,
            Frame::Stop { flow, code } => self.on_stop(now, flow, code)?,
            Frame::PathChallenge { data } => self.on_challenge(now, path, data, plaintext),
            Frame::PathResponse { data } => self.on_response(now, path, data),
            Frame::Close { code, reason } => {
                // Everything before it counts: the program learns of acknowledged data, and then that the peer has
                // closed.
                self.settle(now);
                if !matches!(self.phase, ConnectionState::Open) {
                    return Ok(());
                }
                self.recovery.close(now);
                self.end(ConnectionError::ClosedByPeer { code, reason: String::from_utf8_lossy(reason).into_owned() });
                self.phase = ConnectionState::Closing(Closing::answering(now, self.known_rtt()));
            }
        }
        self.move_recv_events(now);
        Ok(())
    }

    fn handle_feedback(&mut self, now: Time, feedback: &Feedback) -> Result<(), Violation> {
        let number = self.seen.number_of(feedback.number);
        let acked = ack_info(self.profile.feedback.packets, feedback);
        self.recovery
            .on_feedback(now, acked, feedback.ecn)
            .map_err(|_| Violation("acknowledged a packet that was never sent"))?;
        self.liveness.on_feedback(now);
        self.spread_report();
        self.send_flows.grant(feedback.credit.symbols);
        self.control.grant(feedback.credit.control);
        let Self { send_flows, trace, .. } = self;
        send_flows.on_statuses(number, &feedback.statuses(), |flow, block| {
            trace.record(now, TraceEvent::BlockAcknowledged { flow, block });
        });
        // Last: flows that continue under other numbers would not recognise their feedback.
        self.update_path_mtu(now);
        self.seen.on_feedback(number, feedback.len());
        Ok(())
    }

    /// Passes recovery's report to the components that sent its packets.
    pub(super) fn spread_report(&mut self) {
        let report = self.recovery.report();
        let limited_by = self.pause.limited_by().name(self.recovery.constraint());
        let sending = Sending { symbols: self.send_flows.symbols(), limited_by };
        self.trace.report(&report, &self.recovery, sending);
        let flows = &mut self.send_flows;
        self.control.on_report(&report, |frame| flows.on_frame_delivered(frame));
        self.send_flows.on_report(&report);
        self.recovery.leave_counter(|sent| !self.send_flows.is_retired(sent));
        self.liveness.on_report();
    }

    /// Updates path MTU discovery after a report: checks whether large packets vanish, and applies the result of a
    /// search.
    pub(super) fn update_path_mtu(&mut self, now: Time) {
        let pto = self.recovery.probe_timeout();
        if let Some(shrunk) = self.mtu.on_report(&self.recovery.report(), pto) {
            self.shrink(now, shrunk);
        }
    }

    /// Continues with smaller packets.
    pub(super) fn shrink(&mut self, now: Time, shrunk: Shrunk) {
        match shrunk {
            Shrunk::Symbols { symbol_size: size, payload } => {
                if !self.send_flows.can_shrink(size) {
                    return self.mtu.watch_anew();
                }
                if !self.send_flows.can_be_numbered(self.next_flow) {
                    return self.close_exhausted(now, "no flow numbers left for smaller packets");
                }
                self.mtu.set_payload(payload);
                self.next_flow = self.send_flows.shrink(size, self.next_flow, &mut self.control);
                self.trace.record(now, TraceEvent::SymbolSizeChanged { size });
            }
            Shrunk::PerPacket(count) => {
                // Fewer of the same symbols: the flows continue unchanged.
                self.mtu.set_per_packet(count);
                self.send_flows.forget_unanswered();
                self.trace.record(now, TraceEvent::PerPacketChanged { count });
            }
        }
        self.recovery.set_max_packet(self.mtu.full_packet());
        let rtt = self.recovery.rtt().smoothed();
        // Recent losses were due to size: they are no evidence about the path but its round trip.
        self.restart_path(now);
        self.recovery.set_rtt_from_handshake(now, rtt);
    }

    /// Closes the connection because a block cannot be decoded: the sender has dropped it, or does not retransmit it.
    /// Both sides should learn it rather than wait (rc-udp IV acknowledges before it decodes, and leaves the
    /// consequence open; ttp I lets transfers fail).
    pub(super) fn close_undecodable(&mut self, now: Time, why: &'static str) {
        self.counters.undecodable_blocks += 1;
        self.close_as(now, CloseCode::Undecodable as u32, why, ConnectionError::Undecodable);
    }

    pub(super) fn violation(&mut self, now: Time, reason: &'static str) {
        self.close_as(now, CloseCode::Violation as u32, reason, ConnectionError::Violation(reason));
    }

    /// Closes the connection because a sequence number or key is exhausted. A new connection can continue
    /// (docs/design/counters.md).
    pub(super) fn close_exhausted(&mut self, now: Time, reason: &'static str) {
        self.close_as(now, CloseCode::Exhausted as u32, reason, ConnectionError::Exhausted(reason));
    }

    /// Handles the second message of the handshake, in a datagram of `size` bytes.
    pub(crate) fn handle_answer(
        &mut self,
        now: Time,
        from: SocketAddr,
        message: &Message2<'_>,
        size: usize,
    ) -> Result<(), RejectReason> {
        let ConnectionState::Handshake(handshake) = &mut self.phase else { return Err(RejectReason::HandshakeLate) };
        let answered = handshake.on_answer(now, from, message, size)?;
        let peer = Parameters::decode(&answered.established.payload)?;
        if peer.ciphers.len() != 1 || Cipher::from_wire(peer.ciphers[0]).is_none() {
            self.end(ConnectionError::Violation("chose a cipher that was not offered"));
            return Ok(());
        }
        self.paths.on_handshake(answered.remote);
        self.establish(&answered.established.secrets, peer);
        self.phase = ConnectionState::Open;
        self.on_first_payload(answered.payload);
        if let Some(rtt) = answered.rtt {
            self.recovery.set_rtt_from_handshake(now, rtt);
            self.seen.on_handshake();
        }
        self.events.push_back(Event::Connected);
        // The peer sends nothing until it receives a packet under the new keys: send two, in case one is lost.
        self.liveness.on_handshake(now);
        self.control.push(ReliableFrame::Ping);
        self.feedback.hurry();
        Ok(())
    }

    /// Handles a list of versions in answer to the first message.
    pub(crate) fn handle_versions(&mut self, answer: &VersionAnswer<'_>) -> Result<(), RejectReason> {
        let ConnectionState::Handshake(handshake) = &mut self.phase else { return Err(RejectReason::HandshakeLate) };
        handshake.on_versions(answer)
    }
}

/// Returns the packets of feedback. A receiver that does not support the requested form acknowledges each arrived
/// packet.
const fn ack_info(asked: PacketFeedback, feedback: &Feedback) -> AckInfo<'_> {
    match (asked, feedback.count, &feedback.packets) {
        (PacketFeedback::Count, Some(count), _) => {
            AckInfo::Count { largest: count.largest, delay_micros: count.delay_micros, arrived: count.arrived }
        }
        (PacketFeedback::InOrder, Some(count), packets) => {
            AckInfo::InOrder { packets: packets.as_ref(), largest: count.largest, arrived: count.arrived }
        }
        (_, _, Some(packets)) => AckInfo::Ranges(packets),
        (_, _, None) => AckInfo::Nothing,
    }
}

const fn asks_for_feedback(frame: &Frame<'_>) -> bool {
    !matches!(
        frame,
        Frame::Feedback(_)
            | Frame::FeedbackSeen { .. }
            | Frame::PathChallenge { .. }
            | Frame::PathResponse { .. }
            | Frame::Close { .. }
    )
}

fn has_close(packet: &OpenedPacket<'_>) -> bool {
    let closes = |frame| matches!(frame, Ok(Frame::Close { .. }));
    packet.kind == PacketKind::Control && Frames::new(packet.plaintext).any(closes)
}
