//! Path MTU discovery (DPLPMTUD, RFC 8899): which packets the path carries, and so how large symbols are and how many a packet has.
//!
//! The handshake finds the largest of the profile's symbol sizes that passes both ways. From there an [`UpwardSearch`] finds how many
//! symbols a packet may have, while data goes on. Packets that vanish for their size alone are a [`BlackHole`]: a [`DownwardSearch`]
//! then finds what still passes, and every flow goes on in smaller symbols. What routers report is not looked at: anybody can
//! forge it.

mod black_hole;
mod downward;
mod upward;

use crate::profile::SymbolSizes;
use crate::recovery::{Report, SentPacket};
use crate::time::Time;
use crate::wire::limits::MIN_MESSAGE1;
use crate::wire::{HEADER, Parameters, SYMBOL_OVERHEAD, TAG};
use black_hole::BlackHole;
use downward::DownwardSearch;
use std::time::Duration;
use upward::UpwardSearch;

/// Probes of one size before it is taken not to pass (RFC 8899 section 5.1.2). Where a tenth of the packets is lost, all of them are
/// lost by chance once in a thousand times.
const MAX_PROBES: usize = 3;

/// UDP payload that any path is taken to carry (RFC 8899 section 5.1.2: BASE_PLPMTU). First messages are no smaller.
const BASE_PLPMTU: usize = MIN_MESSAGE1;

/// The path's times, which probes are spaced by.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeTimes {
    pub(super) rtt: Duration,
    /// The probe timeout (RFC 9002 section 6.2.1), not backed off.
    pub(super) pto: Duration,
    /// What the time between two probes backs off to, on any path with a shorter PTO.
    pub(super) max_spacing: Duration,
    /// Whether packets are in flight.
    pub(super) in_flight: bool,
}

/// A packet that asks whether the path carries its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MtuProbe {
    /// A PING padded to so many bytes of UDP payload; 0: not padded. It counts in flight.
    Ping { payload: usize },
    /// A PATH_CHALLENGE padded likewise. Its loss is no sign of congestion, so that nothing counts it.
    Challenge { payload: usize, data: [u8; 8] },
}

/// What a response to a PATH_CHALLENGE says of packet sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeResponse {
    /// The challenge was none of ours.
    Unknown,
    /// It came from an address that the probe was not sent to.
    Ignored,
    /// Packets have so many symbols from now on.
    Raised(u8),
}

/// What is to follow from a downward search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shrunk {
    /// Flows are to go on in symbols of `symbol_size` bytes, in datagrams of `payload` bytes.
    Symbols { symbol_size: u16, payload: usize },
    /// Packets are to have only so many of the same symbols.
    PerPacket(u8),
}

/// Discovers what the path carries.
#[derive(Debug)]
pub(super) struct PathMtu {
    symbols: SymbolSizes,
    /// The largest symbol that the peer accepts, and the most in a packet.
    max_symbol_size: usize,
    max_per_packet: u8,
    /// Bytes that IP and UDP add to a payload.
    overhead: u32,
    /// UDP payload of the largest datagram with one symbol that the path is known to carry (RFC 8899: PLPMTU).
    payload: usize,
    /// Symbols that a packet may have; more than one may need more than `payload`.
    per_packet: u8,
    upward: Option<UpwardSearch>,
    /// Whether the upward search has begun on this path. It is made once.
    searched: bool,
    downward: Option<DownwardSearch>,
    black_hole: BlackHole,
    /// A small packet is to go out now, whatever the window says, to measure the round trip of a new path.
    measure: bool,
    probes_sent: u64,
}

impl PathMtu {
    /// A path of which nothing is known, with so many bytes of IP and UDP headers.
    pub(super) fn new(symbols: SymbolSizes, overhead: u32) -> Self {
        Self {
            symbols,
            max_symbol_size: usize::MAX,
            max_per_packet: 1,
            overhead,
            payload: BASE_PLPMTU,
            per_packet: 1,
            upward: None,
            searched: false,
            downward: None,
            black_hole: BlackHole::default(),
            measure: false,
            probes_sent: 0,
        }
    }

    /// The peer has said what it accepts.
    pub(super) fn on_parameters(&mut self, peer: &Parameters) {
        self.max_symbol_size = peer.max_symbol_size.into();
        self.max_per_packet = peer.max_per_packet;
    }

    /// Datagrams of `payload` bytes have passed both ways on a path with so many bytes of headers.
    pub(super) fn on_handshake(&mut self, payload: usize, overhead: u32) {
        self.overhead = overhead;
        self.set_payload(payload);
    }

    /// The peer is reached over another path, which has so many bytes of headers and is searched anew.
    pub(super) fn on_migration(&mut self, overhead: u32) {
        self.overhead = overhead;
        self.set_payload(self.payload);
        self.searched = false;
    }

    /// What is in flight is given up with the path that it took.
    pub(super) fn on_restart(&mut self) {
        self.downward = None;
        self.upward = None;
        self.watch_anew();
    }

    /// The round trip is unknown, and until it is known all timers are slow.
    pub(super) const fn measure_at_once(&mut self) {
        self.measure = true;
    }

    /// The symbol size of flows that begin now.
    pub(super) fn symbol_size(&self) -> u16 {
        self.symbol_size_for(self.payload)
    }

    fn symbol_size_for(&self, payload: usize) -> u16 {
        self.symbols.for_payload(payload.min(self.max_symbol_size.saturating_add(SYMBOL_OVERHEAD)))
    }

    /// Symbols that a packet may have.
    pub(super) const fn per_packet(&self) -> u8 {
        self.per_packet
    }

    /// Symbols that the profile wants in a packet and the peer accepts.
    pub(super) fn wanted_per_packet(&self) -> u8 {
        self.symbols.per_packet(self.symbol_size()).min(self.max_per_packet)
    }

    /// Of the wanted symbols per packet, those that fit a datagram of `payload` bytes; at least one.
    fn per_packet_within(&self, payload: usize) -> u8 {
        let fit = payload.saturating_sub(SYMBOL_OVERHEAD) / usize::from(self.symbol_size());
        u8::try_from(fit).unwrap_or(u8::MAX).clamp(1, self.wanted_per_packet())
    }

    /// UDP payload of a packet with so many symbols.
    pub(super) fn payload_of(&self, symbols: u8) -> usize {
        usize::from(symbols) * usize::from(self.symbol_size()) + SYMBOL_OVERHEAD
    }

    /// UDP payload of the largest datagram that the path is known to carry.
    pub(super) fn max_datagram(&self) -> usize {
        self.payload.max(self.payload_of(self.per_packet))
    }

    /// IP bytes of a full packet.
    pub(super) fn full_packet(&self) -> u32 {
        self.payload_of(self.per_packet) as u32 + self.overhead
    }

    /// Bytes of frames that a control packet may have.
    pub(super) fn frame_room(&self) -> usize {
        usize::from(self.symbol_size()) + SYMBOL_OVERHEAD - HEADER - TAG
    }

    /// Bytes of frames that pass whatever the path has become. Feedback is kept within them, as it is sent once, and its loss looks
    /// like that of the packets that it acknowledges.
    pub(super) fn safe_frame_room(&self) -> usize {
        self.frame_room().min(self.smallest_payload() - HEADER - TAG)
    }

    /// UDP payload of the smallest full packet, which any path is taken to carry.
    fn smallest_payload(&self) -> usize {
        usize::from(self.symbols.smallest()) + SYMBOL_OVERHEAD
    }

    /// Packets have datagrams of `payload` bytes from now on.
    pub(super) fn set_payload(&mut self, payload: usize) {
        self.payload = payload.max(BASE_PLPMTU);
        self.set_per_packet(self.per_packet_within(self.payload));
    }

    /// Packets have so many symbols from now on.
    pub(super) fn set_per_packet(&mut self, count: u8) {
        self.per_packet = count;
        self.watch_anew();
    }

    /// Black hole detection begins anew. Packets that any path carries are small.
    pub(super) fn watch_anew(&mut self) {
        self.black_hole.restart(self.smallest_payload() as u32 + self.overhead);
    }

    /// Finds out whether the path carries what the profile wants in a packet, once for each path.
    pub(super) fn begin_search(&mut self, data: impl FnOnce() -> [u8; 8]) {
        let wanted = self.wanted_per_packet();
        if wanted > self.per_packet && !std::mem::replace(&mut self.searched, true) {
            self.upward = Some(UpwardSearch::new(wanted, u16::from(wanted) + 1, data()));
        }
    }

    /// When the next probe is due that tells whether large packets vanish.
    pub(super) fn black_hole_deadline(&self, times: ProbeTimes) -> Option<Time> {
        self.black_hole.probe_at(times.pto, times.max_spacing).filter(|_| times.in_flight)
    }

    /// When the next probe of the upward search is due. Those of a downward search leave at once.
    pub(super) fn search_deadline(&self, times: ProbeTimes) -> Option<Time> {
        self.upward.as_ref().map(|search| search.deadline(times.rtt))
    }

    /// Whether data has to wait for the end of a downward search.
    pub(super) const fn holds_data(&self) -> bool {
        self.downward.is_some()
    }

    /// The next probe to send. It counts as sent; `data` draws the bytes of a challenge.
    pub(super) fn poll_probe(
        &mut self,
        now: Time,
        times: ProbeTimes,
        data: impl FnMut() -> [u8; 8],
    ) -> Option<MtuProbe> {
        let probe = self.next_probe(now, times, data);
        self.probes_sent += u64::from(probe.is_some());
        probe
    }

    fn next_probe(&mut self, now: Time, times: ProbeTimes, mut data: impl FnMut() -> [u8; 8]) -> Option<MtuProbe> {
        let due = self.black_hole_deadline(times).is_some_and(|at| at <= now);
        if std::mem::take(&mut self.measure) || due {
            self.black_hole.on_probe_sent(now);
            return Some(MtuProbe::Ping { payload: 0 });
        }
        if let Some(payload) = self.downward.as_mut().and_then(DownwardSearch::next_probe) {
            return Some(MtuProbe::Ping { payload });
        }
        while let Some(search) = self.upward.as_mut().filter(|search| search.deadline(times.rtt) <= now) {
            if let Some((symbols, data)) = search.next_probe(now) {
                return Some(MtuProbe::Challenge { payload: self.payload_of(symbols), data });
            }
            self.upward = search.below(self.per_packet, &mut data);
        }
        None
    }

    /// A [`MtuProbe::Ping`] that was padded to `payload` bytes left as packet `number`.
    pub(super) fn on_probe_sent(&mut self, number: u64, payload: usize) {
        if let Some(search) = self.downward.as_mut().filter(|_| payload > 0) {
            search.on_sent(number, payload);
        }
    }

    /// A packet left that counts in flight.
    pub(super) fn on_packet_sent(&mut self, sent: &SentPacket) {
        self.black_hole.on_sent(sent);
    }

    /// A PATH_RESPONSE came; `from_peer`: over the path in use. `data` draws the bytes of the next challenge.
    pub(super) fn on_response(
        &mut self,
        response: [u8; 8],
        from_peer: bool,
        data: impl FnMut() -> [u8; 8],
    ) -> ProbeResponse {
        let Some(search) = self.upward.take_if(|search| search.is_answered_by(response)) else {
            return ProbeResponse::Unknown;
        };
        if from_peer {
            self.set_per_packet(search.symbols());
        }
        self.upward = search.above(self.per_packet, data);
        if from_peer { ProbeResponse::Raised(search.symbols()) } else { ProbeResponse::Ignored }
    }

    /// Recovery has made a report. What follows when that ends a downward search.
    pub(super) fn on_report(&mut self, report: &Report<'_>, pto: Duration) -> Option<Shrunk> {
        self.black_hole.on_report(report);
        if let Some(search) = &mut self.downward {
            let largest = search.on_report(report)?;
            self.downward = None;
            let shrunk = self.shrunk(largest);
            if shrunk.is_none() {
                self.watch_anew();
            }
            return shrunk;
        }
        if self.black_hole.is_found(pto) {
            self.upward = None;
            self.downward = Some(DownwardSearch::new(self.sizes()));
        }
        None
    }

    /// UDP payloads that a downward search tries, in rising order. The present one too: many losses in a row may have been chance.
    fn sizes(&self) -> Vec<usize> {
        let present = self.payload_of(self.per_packet);
        let sizes = self.symbols.all().iter().map(|size| usize::from(*size) + SYMBOL_OVERHEAD);
        let several = (2..=self.per_packet).map(|symbols| self.payload_of(symbols));
        let mut sizes: Vec<usize> = sizes.chain(several).filter(|size| *size <= present).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// What follows when datagrams of `largest` bytes are the largest that pass; nothing when their size was not the cause, or there
    /// is no smaller one.
    fn shrunk(&self, largest: usize) -> Option<Shrunk> {
        let largest = largest.max(self.smallest_payload());
        let (payload, per_packet) = (self.payload.min(largest), self.per_packet_within(largest));
        let symbol_size = self.symbol_size_for(payload);
        if symbol_size < self.symbol_size() {
            Some(Shrunk::Symbols { symbol_size, payload })
        } else if per_packet < self.per_packet {
            Some(Shrunk::PerPacket(per_packet))
        } else {
            None
        }
    }

    /// Probes sent so far.
    pub(super) const fn probes_sent(&self) -> u64 {
        self.probes_sent
    }
}

#[cfg(test)]
mod tests;
