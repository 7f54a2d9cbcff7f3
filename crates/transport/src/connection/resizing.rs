//! When the path's MTU shrinks: what it still carries is found out, and every flow goes on in smaller symbols (RFC 8899; design
//! section 6).

use super::{Batch, Connection};
use crate::recovery::{Cause, Content, Report, SentPacket};
use crate::time::Time;
use crate::trace::TraceEvent;
use crate::wire::{Frame, HEADER, PacketKind, SYMBOL_OVERHEAD, TAG};

/// Packets of each size that ask whether the path carries it: at 10 % loss all of a size are lost once in a thousand times.
const COPIES: usize = 3;

/// A search for the largest packet that the path carries.
#[derive(Debug)]
pub(super) struct Search {
    /// UDP payload bytes of the packets still to be sent, the next one last.
    unsent: Vec<usize>,
    /// Packets on their way, by number, with their payload bytes.
    flying: Vec<(u64, usize)>,
    /// Packets called lost for the silence alone: they may be late.
    late: Vec<(u64, usize)>,
    /// The largest that arrived; 0: none has.
    best: usize,
}

impl Search {
    /// Takes note of what became of its packets.
    fn hear(&mut self, report: &Report<'_>) {
        let arrived = |number| report.delivered.iter().chain(report.spurious).any(|sent| sent.number == number);
        for (_, size) in self.flying.iter().chain(&self.late).filter(|(number, _)| arrived(*number)) {
            self.best = self.best.max(*size);
        }
        let lost = |number| report.lost.iter().any(|sent| sent.number == number);
        let open = self.flying.drain(..).filter(|(number, _)| !arrived(*number));
        let (lost, flying): (Vec<_>, Vec<_>) = open.partition(|(number, _)| lost(*number));
        self.flying = flying;
        if report.cause == Cause::Timeout {
            self.late.extend(lost);
        }
    }
}

impl Connection {
    /// UDP payload bytes of the smallest full packet, which any path is taken to carry.
    fn smallest_payload(&self) -> usize {
        usize::from(self.profile.symbols.smallest()) + SYMBOL_OVERHEAD
    }

    /// IP bytes of it.
    pub(super) fn smallest_packet(&self) -> u32 {
        self.smallest_payload() as u32 + self.datagram_overhead()
    }

    /// Payload bytes that frames may take in a packet that gets through whatever the path has become: feedback is sent once, and
    /// its loss looks like that of what it tells of.
    pub(super) fn safe_room(&self) -> usize {
        self.frame_room().min(self.smallest_payload() - HEADER - TAG)
    }

    /// A small packet, when large ones are not answered, or the round trip of a new path is to be known soon: until it is, all
    /// timers are slow.
    pub(super) fn transmit_sounding(&mut self, now: Time, batch: &mut Batch) -> bool {
        let due = self.recovery.sounding_at().is_some_and(|at| at <= now);
        if !std::mem::take(&mut self.measure_at_once) && !due {
            return false;
        }
        self.recovery.on_sounding(now);
        self.push_padded(now, batch, 0);
        true
    }

    /// The next packet of a search.
    pub(super) fn transmit_search(&mut self, now: Time, batch: &mut Batch) -> bool {
        let Some(size) = self.search.as_mut().and_then(|search| search.unsent.pop()) else { return false };
        let number = self.push_padded(now, batch, size);
        if let Some(search) = &mut self.search {
            search.flying.push((number, size));
        }
        true
    }

    /// A ping that fills a datagram of `size` payload bytes, or none but its own; its number. Neither window nor pacer is asked.
    fn push_padded(&mut self, now: Time, batch: &mut Batch, size: usize) -> u64 {
        let mut frames = Vec::new();
        Frame::Ping.encode(&mut frames);
        frames.resize(frames.len().max(size.saturating_sub(HEADER + TAG)), 0);
        self.begin_batch(batch, self.recovery.ecn_codepoint());
        let header = self.next_header(PacketKind::Control);
        batch.push_packet(header, [&frames, &[]]);
        let bytes = (HEADER + frames.len() + TAG) as u32 + self.datagram_overhead();
        self.recovery.on_sent(SentPacket { number: header.number, time: now, bytes, content: Content::Nothing }, true);
        self.last_asked = now;
        self.trace.record(now, TraceEvent::PacketSent { number: header.number, bytes, kind: "size" });
        header.number
    }

    /// After each report: whether large packets vanish, and what a search has found.
    pub(super) fn watch_sizes(&mut self, now: Time) {
        let Some(mut search) = self.search.take() else {
            if self.recovery.is_black_hole() {
                self.growth = None;
                self.search = Some(Search { unsent: self.copies(), flying: Vec::new(), late: Vec::new(), best: 0 });
            }
            return;
        };
        let report = self.recovery.report();
        search.hear(&report);
        if search.unsent.is_empty() && search.flying.is_empty() {
            // A retransmission timeout calls all of them lost alike, of whatever size, and may have been too short.
            if search.best > 0 || report.cause != Cause::Timeout {
                return self.conclude(now, search.best);
            }
            search.unsent = self.copies();
        }
        self.search = Some(search);
    }

    /// Payload bytes of the packets of a search, the next one last. The present size too: many losses in a row may have been chance.
    /// Large ones go first, so that small ones reveal their loss.
    fn copies(&self) -> Vec<usize> {
        let present = self.payload_of(self.per_packet);
        let sizes = self.profile.symbols.all().iter().map(|size| usize::from(*size) + SYMBOL_OVERHEAD);
        let several = (2..=self.per_packet).map(|symbols| self.payload_of(symbols));
        let mut sizes: Vec<usize> = sizes.chain(several).filter(|size| *size <= present).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.into_iter().flat_map(|size| [size; COPIES]).collect()
    }

    fn conclude(&mut self, now: Time, best: usize) {
        let (before, best) = (self.symbol_size(), best.max(self.smallest_payload()));
        let payload = self.payload.min(best);
        let size = self.symbol_size_for(payload);
        let per_packet = self.per_packet_within(best);
        if size < before && self.outgoing.can_shrink(size, self.next_flow) {
            self.set_payload(payload);
            self.next_flow = self.outgoing.shrink(size, self.next_flow);
            self.trace.record(now, TraceEvent::SymbolSizeChanged { size });
        } else if size == before && per_packet < self.per_packet {
            // Fewer of the same symbols: the flows go on as they are.
            self.set_per_packet(per_packet);
            self.outgoing.unanswered = None;
            self.trace.record(now, TraceEvent::PerPacketChanged { count: per_packet });
        } else {
            // The size is not to blame, or cannot be helped.
            self.recovery.watch_sizes_anew(self.smallest_packet());
            return;
        }
        let rtt = self.recovery.rtt().smoothed();
        // What was lost lately was lost for its size: it says nothing of the path but its round trip.
        self.restart_path(now);
        self.recovery.set_rtt_from_handshake(now, rtt);
    }
}
