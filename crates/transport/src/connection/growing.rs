//! Packets of more symbols than the path is known to carry: larger and larger ones are asked about while data goes on (RFC 8899 section 5.2).

use super::path_validator::AddressPair;
use super::{Batch, Connection};
use crate::recovery::EcnCodepoint;
use crate::time::Time;
use crate::trace::TraceEvent;
use crate::wire::{Frame, HEADER, PacketKind, SYMBOL_OVERHEAD, TAG};
use std::time::Duration;

/// Packets of a size that ask for an answer before the size is taken not to pass (RFC 8899 section 5.1.2: MAX_PROBES).
const COPIES: u32 = 3;

/// What an answer may take beyond two round trips.
const SLACK: Duration = Duration::from_millis(25);

/// A search for the most symbols that a packet may have.
#[derive(Debug)]
pub(super) struct Growth {
    /// Symbols in the packet that is asked about.
    asked: u8,
    /// So many do not pass.
    too_many: u16,
    /// What the answer will bring.
    data: [u8; 8],
    copies: u32,
    /// When the last packet left.
    sent: Option<Time>,
}

impl Connection {
    /// Symbols that the profile wants in a packet, the peer takes, and the wire holds.
    pub(super) fn wanted_per_packet(&self) -> u8 {
        let accepted = self.peer.as_ref().map_or(1, |peer| peer.max_per_packet);
        self.profile.symbols.per_packet(self.symbol_size()).min(accepted)
    }

    /// UDP payload bytes of a packet with so many symbols.
    pub(super) fn payload_of(&self, symbols: u8) -> usize {
        usize::from(symbols) * usize::from(self.symbol_size()) + SYMBOL_OVERHEAD
    }

    /// Of the wanted symbols per packet, those that fit a datagram of `payload` bytes; at least one.
    pub(super) fn per_packet_within(&self, payload: usize) -> u8 {
        let fit = payload.saturating_sub(SYMBOL_OVERHEAD) / usize::from(self.symbol_size());
        u8::try_from(fit).unwrap_or(u8::MAX).clamp(1, self.wanted_per_packet())
    }

    /// Packets may have so many symbols from now on.
    pub(super) fn set_per_packet(&mut self, count: u8) {
        self.per_packet = count;
        let full = self.payload_of(count) as u32 + self.datagram_overhead();
        self.recovery.set_max_packet(full);
        self.recovery.watch_sizes_anew(self.smallest_packet());
    }

    /// Whether the path carries what the profile wants in a packet is found out, once for each path.
    pub(super) fn begin_growth(&mut self) {
        let wanted = self.wanted_per_packet();
        if wanted > self.per_packet && !std::mem::replace(&mut self.grown, true) {
            self.ask_about(wanted, u16::from(wanted) + 1);
        }
    }

    fn ask_about(&mut self, asked: u8, too_many: u16) {
        let data = self.crypto.random_bytes();
        self.growth = Some(Growth { asked, too_many, data, copies: 0, sent: None });
    }

    /// Halves what lies between the symbols that pass and those that do not.
    fn narrow(&mut self, too_many: u16) {
        let passes = u16::from(self.per_packet);
        let asked = u8::try_from(u16::midpoint(passes, too_many)).unwrap_or(u8::MAX);
        self.growth = None;
        if u16::from(asked) > passes {
            self.ask_about(asked, too_many);
        }
    }

    /// When the next packet of the search is due: as soon as an answer to the last one would be there.
    pub(super) fn growth_at(&self) -> Option<Time> {
        let sent = self.growth.as_ref()?.sent;
        Some(sent.map_or(Time::ZERO, |sent| sent + self.known_rtt() * 2 + SLACK))
    }

    /// A challenge that fills a packet of the size in question. Its loss is no sign of congestion, so nobody counts it.
    pub(super) fn transmit_growth(&mut self, now: Time, batch: &mut Batch) -> bool {
        let (symbols, data) = loop {
            let due = self.growth_at().is_some_and(|at| at <= now);
            let Some(growth) = self.growth.as_mut().filter(|_| due) else { return false };
            if growth.copies < COPIES {
                growth.copies += 1;
                growth.sent = Some(now);
                break (growth.asked, growth.data);
            }
            let too_many = growth.asked.into();
            self.narrow(too_many);
        };
        let mut frames = Vec::new();
        Frame::PathChallenge { data }.encode(&mut frames);
        frames.resize(self.payload_of(symbols) - HEADER - TAG, 0);
        self.begin_batch(batch, EcnCodepoint::NotEct);
        let header = self.next_header(PacketKind::Control);
        batch.push_packet(header, [&frames, &[]]);
        let bytes = self.payload_of(symbols) as u32 + self.datagram_overhead();
        self.recovery.on_untracked(header.number, bytes);
        self.trace.record(now, TraceEvent::PacketSent { number: header.number, bytes, kind: "size" });
        true
    }

    /// A response came; whether it is to the packet that was asked about.
    pub(super) fn on_size_answered(&mut self, now: Time, path: AddressPair, data: [u8; 8]) -> bool {
        let Some(Growth { asked, too_many, .. }) = self.growth.take_if(|growth| growth.data == data) else {
            return false;
        };
        if path.remote == self.remote() {
            self.set_per_packet(asked);
            self.trace.record(now, TraceEvent::PerPacketChanged { count: asked });
        }
        self.narrow(too_many);
        true
    }
}
