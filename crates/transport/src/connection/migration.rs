//! The consequences of a new path: the peer, or this host, has another address (RFC 9000 section 9).

use super::path_mtu::ProbeResponse;
use super::path_validator::{AddressPair, LastPath, PATH_FRAME, PathFrame, ReceivedPacket, Validation};
use super::{Batch, Connection, ConnectionState};
use crate::recovery::EcnCodepoint;
use crate::time::Time;
use crate::trace::TraceEvent;
use crate::wire::{Frame, PacketKind, RejectReason};
use std::time::Duration;

impl Connection {
    /// Returns whether the peer may have an address other than [`Connection::remote`]: that address has not been
    /// validated, or another one is under validation.
    pub fn is_validating(&self) -> bool {
        self.paths.is_validating()
    }

    /// Handles the path of an authentic, new packet. Returns false for a packet that a closing connection ignores.
    pub(super) fn on_packet_path(&mut self, now: Time, packet: ReceivedPacket) -> bool {
        if let ConnectionState::Closing(closing) = &mut self.phase {
            let path = self.paths.on_packet_while_closing(now, packet);
            if path == LastPath::Changed {
                closing.follow();
                self.liveness.confirm();
            }
            return path != LastPath::Left;
        }
        let rtt = self.known_rtt();
        let Self { paths, crypto, .. } = self;
        paths.on_packet(now, packet, rtt, || crypto.random_bytes());
        true
    }

    /// Handles a challenge in a packet with `plaintext` bytes of frames.
    pub(super) fn on_challenge(&mut self, now: Time, path: AddressPair, data: [u8; 8], plaintext: usize) {
        if self.paths.on_challenge(now, path, data, plaintext == PATH_FRAME) {
            self.restart_path(now);
            self.mtu.measure_at_once();
        }
    }

    pub(super) fn on_response(&mut self, now: Time, path: AddressPair, data: [u8; 8]) {
        let Self { mtu, crypto, paths, .. } = self;
        let from_peer = path.remote == paths.active().remote;
        match mtu.on_response(data, from_peer, || crypto.random_bytes()) {
            ProbeResponse::Unknown => {}
            ProbeResponse::Ignored => return,
            ProbeResponse::Raised(count) => {
                self.recovery.set_max_packet(self.mtu.full_packet());
                self.trace.record(now, TraceEvent::PerPacketChanged { count });
                return;
            }
        }
        match self.paths.on_response(now, path, data) {
            Validation::Migrated { rtt } => self.on_migration(now, rtt),
            Validation::Ignored => {}
            Validation::Unsolicited => self.refuse(now, RejectReason::Unacceptable),
        }
    }

    /// Moves to the peer's new address.
    fn on_migration(&mut self, now: Time, rtt: Option<Duration>) {
        self.mtu.on_migration(self.datagram_overhead());
        self.recovery.set_max_packet(self.mtu.full_packet());
        self.restart_path(now);
        match rtt {
            Some(rtt) => self.recovery.set_rtt_from_handshake(now, rtt),
            None => self.mtu.measure_at_once(),
        }
        self.trace.record(now, TraceEvent::PathChanged { remote: self.remote() });
        // The last feedback was sent to the old address.
        self.feedback.hurry();
        if self.send_flows.has_objects() {
            self.begin_mtu_search();
        }
    }

    /// Begins the search for the packet size of the path, up to the profile's.
    pub(super) fn begin_mtu_search(&mut self) {
        let Self { mtu, crypto, .. } = self;
        mtu.begin_search(|| crypto.random_bytes());
    }

    /// Starts over on another path: nothing is known of it, and packets in flight on the old one are resent unless
    /// acknowledged first.
    pub(super) fn restart_path(&mut self, now: Time) {
        self.mtu.on_restart();
        self.recovery.restart(&self.profile.recovery, now);
        self.spread_report();
    }

    /// Sends challenges and responses. Neither window nor pacer counts them.
    pub(super) fn transmit_path_probe(&mut self, now: Time, batch: &mut Batch) -> bool {
        let Some(probe) = self.paths.poll_probe(now) else { return false };
        let mut frames = Vec::new();
        match probe.frame {
            PathFrame::Challenge(data) => Frame::PathChallenge { data },
            PathFrame::Response(data) => Frame::PathResponse { data },
        }
        .encode(&mut frames);
        self.begin_batch_to(batch, probe.to, EcnCodepoint::NotEct);
        let header = self.next_header(PacketKind::Control);
        batch.push_packet(header, [&frames, &[]]);
        self.recovery.on_untracked(header.number, probe.ip_bytes);
        let event = TraceEvent::PacketSent { number: header.number, bytes: probe.ip_bytes, kind: "path" };
        self.trace.record(now, event);
        true
    }
}
