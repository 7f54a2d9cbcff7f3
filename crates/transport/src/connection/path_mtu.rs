//! Path MTU discovery (DPLPMTUD, RFC 8899): which packet sizes the path carries, and so how large symbols are and how
//! many a packet has.
//!
//! The handshake finds the largest of the profile's symbol sizes that passes in both directions. From it an
//! [`UpwardSearch`] finds how many symbols a packet may have, while data is sent. Packets lost because of their size
//! alone indicate a [`BlackHole`]: a [`DownwardSearch`] then finds the size that still passes, and every flow continues
//! in smaller symbols. Router reports are ignored, since they can be forged.

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

/// Probes of one size before it is assumed not to pass (RFC 8899 section 5.1.2). With a loss of a tenth, all of them
/// are lost by chance once in a thousand times.
const MAX_PROBES: usize = 3;

/// UDP payload that any path is assumed to carry (RFC 8899 section 5.1.2: BASE_PLPMTU). First messages are no smaller.
const BASE_PLPMTU: usize = MIN_MESSAGE1;

/// The path's times, by which probes are spaced.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeTimes {
    pub(super) rtt: Duration,
    /// The probe timeout (RFC 9002 section 6.2.1), not backed off.
    pub(super) pto: Duration,
    /// Limit of the backoff between two probes, on any path with a shorter PTO.
    pub(super) max_spacing: Duration,
    /// Whether packets are in flight.
    pub(super) in_flight: bool,
}

impl ProbeTimes {
    /// Returns for how long a downward search waits for news.
    fn patience(&self) -> Duration {
        (self.pto * 2).min(self.max_spacing.max(self.rtt))
    }
}

/// A packet that tests whether the path carries its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MtuProbe {
    /// A PING padded to `payload` bytes of UDP payload; 0: not padded. It counts in flight.
    Ping { payload: usize },
    /// A PATH_CHALLENGE padded likewise. It is not counted, since its loss is no sign of congestion.
    Challenge { payload: usize, data: [u8; 8] },
}

/// The result of a response to a PATH_CHALLENGE for packet sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeResponse {
    /// The challenge is unknown.
    Unknown,
    /// It arrived from an address to which the probe was not sent.
    Ignored,
    /// Packets have this many symbols from now on.
    Raised(u8),
}

/// The result of a downward search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shrunk {
    /// Flows must continue in symbols of `symbol_size` bytes, in datagrams of `payload` bytes.
    Symbols { symbol_size: u16, payload: usize },
    /// Packets must have only this many of the same symbols.
    PerPacket(u8),
}

/// Discovers the packet sizes that the path carries.
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
    /// Whether the upward search has begun on this path. It is done once.
    searched: bool,
    downward: Option<DownwardSearch>,
    black_hole: BlackHole,
    /// Send a small packet now, regardless of the window, to measure the round trip of a new path.
    measure: bool,
    probes_sent: u64,
}

impl PathMtu {
    /// Creates the state of an unknown path, with `overhead` bytes of IP and UDP headers.
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

    /// Applies the peer's limits.
    pub(super) fn on_parameters(&mut self, peer: &Parameters) {
        self.max_symbol_size = peer.max_symbol_size.into();
        self.max_per_packet = peer.max_per_packet;
    }

    /// Notes that datagrams of `payload` bytes have passed in both directions on a path with `overhead` bytes of
    /// headers.
    pub(super) fn on_handshake(&mut self, payload: usize, overhead: u32) {
        self.overhead = overhead;
        self.set_payload(payload);
    }

    /// Starts over on another path to the peer, which has `overhead` bytes of headers and is searched again.
    pub(super) fn on_migration(&mut self, overhead: u32) {
        self.overhead = overhead;
        self.set_payload(self.payload);
        self.searched = false;
    }

    /// Abandons probes in flight, along with the path that they took.
    pub(super) fn on_restart(&mut self) {
        self.downward = None;
        self.upward = None;
        self.watch_anew();
    }

    /// Has the round trip measured at once: until it is known all timers are slow.
    pub(super) const fn measure_at_once(&mut self) {
        self.measure = true;
    }

    /// Returns the symbol size of flows that begin now.
    pub(super) fn symbol_size(&self) -> u16 {
        self.symbol_size_for(self.payload)
    }

    fn symbol_size_for(&self, payload: usize) -> u16 {
        self.symbols.for_payload(payload.min(self.max_symbol_size.saturating_add(SYMBOL_OVERHEAD)))
    }

    /// Returns how many symbols a packet may have.
    pub(super) const fn per_packet(&self) -> u8 {
        self.per_packet
    }

    /// Returns how many symbols the profile wants in a packet and the peer accepts.
    pub(super) fn wanted_per_packet(&self) -> u8 {
        self.symbols.per_packet(self.symbol_size()).min(self.max_per_packet)
    }

    /// Returns how many of the wanted symbols per packet fit a datagram of `payload` bytes; at least one.
    fn per_packet_within(&self, payload: usize) -> u8 {
        let fit = payload.saturating_sub(SYMBOL_OVERHEAD) / usize::from(self.symbol_size());
        u8::try_from(fit).unwrap_or(u8::MAX).clamp(1, self.wanted_per_packet())
    }

    /// Returns the UDP payload of a packet with `symbols` symbols.
    pub(super) fn payload_of(&self, symbols: u8) -> usize {
        usize::from(symbols) * usize::from(self.symbol_size()) + SYMBOL_OVERHEAD
    }

    /// Returns the UDP payload of the largest datagram that the path is known to carry.
    pub(super) fn max_datagram(&self) -> usize {
        self.payload.max(self.payload_of(self.per_packet))
    }

    /// Returns the IP bytes of a full packet.
    pub(super) fn full_packet(&self) -> u32 {
        self.payload_of(self.per_packet) as u32 + self.overhead
    }

    /// Returns the bytes of frames that a control packet may have.
    pub(super) fn frame_room(&self) -> usize {
        usize::from(self.symbol_size()) + SYMBOL_OVERHEAD - HEADER - TAG
    }

    /// Returns the bytes of frames that pass whatever the path has become. Feedback is kept within them, since it is
    /// sent once and its loss looks like the loss of the packets that it acknowledges.
    pub(super) fn safe_frame_room(&self) -> usize {
        self.frame_room().min(self.smallest_payload() - HEADER - TAG)
    }

    /// Returns the UDP payload of the smallest full packet, which any path is assumed to carry.
    fn smallest_payload(&self) -> usize {
        usize::from(self.symbols.smallest()) + SYMBOL_OVERHEAD
    }

    /// Sets the size of packets' datagrams to `payload` bytes.
    pub(super) fn set_payload(&mut self, payload: usize) {
        self.payload = payload.max(BASE_PLPMTU);
        self.set_per_packet(self.per_packet_within(self.payload));
    }

    /// Sets the number of symbols in a packet.
    pub(super) fn set_per_packet(&mut self, count: u8) {
        self.per_packet = count;
        self.watch_anew();
    }

    /// Restarts black hole detection. Packets that any path carries are small.
    pub(super) fn watch_anew(&mut self) {
        self.black_hole.restart(self.smallest_payload() as u32 + self.overhead);
    }

    /// Begins the search for the packet size of the path, up to the profile's, once for each path.
    pub(super) fn begin_search(&mut self, data: impl FnOnce() -> [u8; 8]) {
        let wanted = self.wanted_per_packet();
        if wanted > self.per_packet && !std::mem::replace(&mut self.searched, true) {
            self.upward = Some(UpwardSearch::new(wanted, u16::from(wanted) + 1, data()));
        }
    }

    /// Returns when the next probe for a loss of large packets is due.
    pub(super) fn black_hole_deadline(&self, times: ProbeTimes) -> Option<Time> {
        self.black_hole.probe_at(times.pto, times.max_spacing).filter(|_| times.in_flight)
    }

    /// Returns when the next probe of a search is due. Those with which a downward search begins are sent at once.
    pub(super) fn search_deadline(&self, times: ProbeTimes) -> Option<Time> {
        match (&self.downward, &self.upward) {
            (Some(search), _) => search.deadline(times.patience()),
            (None, upward) => upward.as_ref().map(|search| search.deadline(times.rtt)),
        }
    }

    /// Returns whether data has to wait for the end of a downward search.
    pub(super) const fn holds_data(&self) -> bool {
        self.downward.is_some()
    }

    /// Takes the next probe to send, and counts it as sent; `data` draws the bytes of a challenge.
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
        if let Some(payload) = self.downward.as_mut().and_then(|search| search.next_probe(now)) {
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

    /// Notes that a [`MtuProbe::Ping`] padded to `payload` bytes was sent as packet `number`.
    pub(super) fn on_probe_sent(&mut self, number: u64, payload: usize) {
        if let Some(search) = self.downward.as_mut().filter(|_| payload > 0) {
            search.on_sent(number, payload);
        }
    }

    /// Notes that a packet was sent that counts in flight.
    pub(super) fn on_packet_sent(&mut self, sent: &SentPacket) {
        self.black_hole.on_sent(sent);
    }

    /// Handles a PATH_RESPONSE. `from_peer`: it arrived over the path in use. `data` draws the bytes of the next
    /// challenge.
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

    /// Handles a report of recovery. Returns the consequence, if it ends a downward search.
    pub(super) fn on_report(&mut self, report: &Report<'_>, pto: Duration) -> Option<Shrunk> {
        self.black_hole.on_report(report);
        if let Some(search) = &mut self.downward {
            let largest = search.on_report(report)?;
            return self.end_search(largest);
        }
        if self.black_hole.is_found(pto) {
            self.upward = None;
            self.downward = Some(DownwardSearch::new(self.sizes()));
        }
        None
    }

    /// Handles the expiry of the timer of searches. Returns the consequence, if it ends a downward search.
    pub(super) fn on_timer(&mut self, now: Time, times: ProbeTimes) -> Option<Shrunk> {
        let largest = self.downward.as_mut()?.on_timer(now, times.patience())?;
        self.end_search(largest)
    }

    fn end_search(&mut self, largest: usize) -> Option<Shrunk> {
        self.downward = None;
        let shrunk = self.shrunk(largest);
        if shrunk.is_none() {
            self.watch_anew();
        }
        shrunk
    }

    /// Returns the UDP payloads that a downward search tries, in rising order. The present one is among them: many
    /// losses in a row may be chance.
    fn sizes(&self) -> Vec<usize> {
        let present = self.payload_of(self.per_packet);
        let sizes = self.symbols.all().iter().map(|size| usize::from(*size) + SYMBOL_OVERHEAD);
        let several = (2..=self.per_packet).map(|symbols| self.payload_of(symbols));
        let mut sizes: Vec<usize> = sizes.chain(several).filter(|size| *size <= present).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// Returns the consequence of `largest` bytes being the largest datagram that passes; `None` when size was not the
    /// cause, or no smaller size exists.
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

    /// Returns the number of probes sent so far.
    pub(super) const fn probes_sent(&self) -> u64 {
        self.probes_sent
    }
}

#[cfg(test)]
mod tests;
