//! A connection whose peer, or whose own address, moves.

use super::paths::{Errand, Moved, Origin, Verdict};
use super::{Batch, Connection, Phase};
use crate::recovery::EcnCodepoint;
use crate::time::Time;
use crate::trace::TraceEvent;
use crate::wire::{Frame, HEADER, PacketKind, Refused, TAG};
use std::time::Duration;

/// Bytes of a challenge or a response.
pub(super) const ERRAND_FRAME: usize = 9;

/// UDP payload bytes of a packet with one challenge or response.
const ERRAND: usize = HEADER + ERRAND_FRAME + TAG;

/// A silence that no round trip explains: feedback held back, a block being written, a busy machine.
const QUIET: Duration = Duration::from_millis(100);

impl Connection {
    /// The peer may be elsewhere than at [`Connection::remote`]: that has not been proved, or another address is being asked.
    pub fn is_validating(&self) -> bool {
        !self.paths.is_proven() || self.paths.has_candidates()
    }

    /// A new packet came from `origin`.
    pub(super) fn on_origin(&mut self, now: Time, origin: Origin, number: u64, bytes: u64) {
        if origin.from == self.sealing.remote() && self.paths.is_trusted() {
            self.sealing.set_source(origin.local);
            self.paths.on_packet_here(now, number);
            return;
        }
        if let Phase::Closing(closing) = &mut self.phase {
            if self.paths.is_newest(number) {
                closing.follow();
                self.proving = false;
                self.sealing.set_remote(origin.from);
                self.sealing.set_source(origin.local);
                self.paths.on_packet_here(now, number);
            }
            return;
        }
        let rtt = self.known_rtt();
        let Self { paths, sealing, .. } = self;
        paths.on_packet_elsewhere(now, origin, (number, bytes), rtt, || sealing.random_bytes());
    }

    /// `alone`: nothing is with it in its packet. Otherwise it asks about the packet's size, and not where we are.
    pub(super) fn on_challenge(&mut self, now: Time, origin: Origin, data: [u8; 8], alone: bool) {
        if !alone {
            self.paths.respond(origin, data);
        } else if self.paths.on_challenge(now, origin, data) {
            self.restart_path(now);
            self.measure_at_once = true;
        }
    }

    pub(super) fn on_response(&mut self, now: Time, origin: Origin, data: [u8; 8]) {
        if self.on_size_answered(now, origin, data) {
            return;
        }
        match self.paths.on_response(now, origin, data) {
            Verdict::Moved(moved) => self.move_to(now, moved),
            Verdict::Nothing => {}
            Verdict::Unasked => self.refuse(now, Refused::Unacceptable),
        }
    }

    /// The peer is at another address.
    fn move_to(&mut self, now: Time, moved: Moved) {
        let Moved { to, rtt } = moved;
        self.sealing.set_remote(to.from);
        self.sealing.set_source(to.local);
        self.set_payload(self.payload);
        self.restart_path(now);
        match rtt {
            Some(rtt) => self.recovery.set_rtt_from_handshake(now, rtt),
            None => self.measure_at_once = true,
        }
        self.trace.record(now, TraceEvent::PathChanged { remote: to.from });
        // What was said lately went to the old address.
        self.incoming.clock.hurry();
        self.grown = false;
        if self.outgoing.has_objects() {
            self.begin_growth();
        }
    }

    /// Another path: nothing is known of it, and what is in flight on the old one goes out again unless feedback comes first.
    pub(super) fn restart_path(&mut self, now: Time) {
        self.search = None;
        self.growth = None;
        self.recovery.restart(&self.profile.recovery, now);
        self.spread_report();
    }

    /// Challenges, and responses to them. Neither window nor pacer counts them.
    pub(super) fn transmit_errand(&mut self, now: Time, batch: &mut Batch) -> bool {
        let bytes = self.errand_bytes();
        let (errand, frame) = if let Some(errand) = self.paths.take_response() {
            (errand, Frame::PathResponse { data: errand.data })
        } else if let Some(errand) = self.paths.take_challenge(now, bytes) {
            (errand, Frame::PathChallenge { data: errand.data })
        } else {
            return false;
        };
        self.send_errand(now, batch, &errand, &frame);
        self.paths.on_sent(errand.to.from, bytes);
        true
    }

    fn send_errand(&mut self, now: Time, batch: &mut Batch, errand: &Errand, frame: &Frame<'_>) {
        let mut frames = Vec::new();
        frame.encode(&mut frames);
        self.sealing.begin_to(batch, errand.to.from, errand.to.local, EcnCodepoint::NotEct);
        let header = self.next_header(PacketKind::Control);
        batch.push_packet(header, [&frames, &[]]);
        let bytes = self.errand_bytes() as u32;
        self.recovery.on_untracked(header.number, bytes);
        self.trace.record(now, TraceEvent::PacketSent { number: header.number, bytes, kind: "path" });
    }

    /// IP bytes of a packet with one challenge or response.
    fn errand_bytes(&self) -> u64 {
        ERRAND as u64 + u64::from(self.sealing.datagram_overhead())
    }

    /// When there is something to do about addresses.
    pub(super) fn errand_at(&self) -> Option<Time> {
        self.paths.due(self.errand_bytes())
    }

    /// Something of the peer's is unfinished and nothing comes: it may be sending to an address that we have left. A question
    /// shows it the new one; like a probe, backed off to one a second.
    pub(super) fn listen_at(&self) -> Option<Time> {
        let waits = matches!(self.phase, Phase::Open) && self.incoming.has_unfinished();
        let spacing = (self.known_rtt() * 4 + QUIET) * (1 << self.paths.asked.min(10));
        waits.then(|| self.last_asked.max(self.last_heard) + spacing.min(self.most_apart().max(QUIET)))
    }

    /// Data waits: the peer has not proved to be where it would go, or is heard from elsewhere only.
    pub(super) fn is_lost_sight_of(&self, now: Time) -> bool {
        self.paths.doubts(now, self.known_rtt() * 3 + QUIET)
    }
}
