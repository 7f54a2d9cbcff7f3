//! [`Recovery`]: one path and the packets on it.

use super::black_hole::BlackHole;
use super::congestion::{CongestionControl, PathView};
use super::delivery_rate::DeliveryRate;
use super::detection::Detector;
use super::ecn::{Ecn, EcnCodepoint};
use super::flight::{Arrival, Entry, Flight};
use super::loss_estimate::LossEstimate;
use super::outcome::{Outcome, RecoveryStats};
use super::pacer::Pacer;
use super::rtt::RttEstimator;
use super::sent::{Cause, Report, Sent};
use super::{Admission, NeverSent, RecoveryConfig, Timeout};
use crate::time::{Rate, Time};
use crate::wire::{EcnCounts, PacketRanges};
use std::time::Duration;

/// UDP payload assumed to pass before the handshake found the path's (RFC 9000 section 14.1).
const INITIAL_PAYLOAD: u32 = 1200;

/// The pacer's lead over the window's average rate, so that the window and not the pacer is the limit (RFC 9002
/// section 7.7); in slow start, where the window doubles in a round trip, the rate must too (design section 8).
const PACING_GAIN: f64 = 1.25;
const SLOW_START_GAIN: f64 = 2.0;

/// A packet called lost is forgotten after so many round trips.
const LATE_ROUNDS: u32 = 3;

/// Everything known about one path, and the packets on it.
#[derive(Debug)]
pub struct Recovery {
    congestion: Box<dyn CongestionControl>,
    detector: Detector,
    pacer: Pacer,
    flight: Flight,
    delivery_rate: DeliveryRate,
    rtt: RttEstimator,
    loss: LossEstimate,
    ecn: Ecn,
    stats: RecoveryStats,
    outcome: Outcome,
    max_packet: u32,
    limit: Option<Rate>,
    /// When the oldest overtaken packet is lost by its age.
    loss_time: Option<Time>,
    /// Packets sent so far that ask for feedback.
    ordinal: u32,
    /// Lower numbers took an earlier path.
    first_number: u64,
    black_hole: BlackHole,
}

impl Recovery {
    /// A path that nothing is known about. `datagram_overhead` is what IP and UDP add to a payload: 28 or 48 bytes.
    pub fn new(config: &RecoveryConfig, now: Time, datagram_overhead: u32) -> Self {
        let congestion = config.congestion.build(INITIAL_PAYLOAD + datagram_overhead);
        Self::with_congestion(config, congestion, now, datagram_overhead)
    }

    /// As [`Recovery::new`] with a controller from elsewhere; `config.congestion` does not count.
    pub fn with_congestion(
        config: &RecoveryConfig,
        congestion: Box<dyn CongestionControl>,
        now: Time,
        datagram_overhead: u32,
    ) -> Self {
        let max_packet = INITIAL_PAYLOAD + datagram_overhead;
        let mut recovery = Self {
            congestion,
            detector: Detector::new(&config.detection, &config.timeout, now),
            pacer: Pacer::new(now, max_packet),
            flight: Flight::default(),
            delivery_rate: DeliveryRate::new(now),
            rtt: RttEstimator::new(),
            loss: LossEstimate::new(&config.estimator),
            ecn: Ecn::new(),
            stats: RecoveryStats::default(),
            outcome: Outcome::new(now),
            max_packet,
            limit: None,
            loss_time: None,
            ordinal: 0,
            first_number: 0,
            black_hole: BlackHole::default(),
        };
        recovery.set_pacing(now);
        recovery
    }

    /// The packets take another path from now on, of which nothing is known (RFC 9000 section 9.4). What is in flight is given up:
    /// the report says so, and no controller hears of it. Limit, packet size and counts stay.
    pub fn restart(&mut self, config: &RecoveryConfig, now: Time) {
        self.close(now);
        self.first_number = self.flight.next_number();
        self.congestion = config.congestion.build(self.max_packet);
        self.detector = Detector::new(&config.detection, &config.timeout, now);
        self.pacer = Pacer::new(now, self.max_packet);
        self.delivery_rate = DeliveryRate::new(now);
        self.rtt = RttEstimator::new();
        self.loss = LossEstimate::new(&config.estimator);
        self.ecn.restart();
        self.black_hole.restart(self.black_hole.small());
        self.path_changed(now);
    }

    /// The handshake, or the proof of a new address, measured `rtt`: the first sample.
    pub fn set_rtt_from_handshake(&mut self, now: Time, rtt: Duration) {
        self.rtt.sample(rtt, Duration::ZERO);
        self.path_changed(now);
    }

    /// IP bytes of a full packet.
    pub const fn max_packet(&self) -> u32 {
        self.max_packet
    }

    /// A full packet has `ip_bytes` bytes from now on, headers included.
    pub fn set_max_packet(&mut self, ip_bytes: u32) {
        self.max_packet = ip_bytes.max(1);
        self.pacer.set_packet(self.max_packet);
        self.path_changed(self.pacer.updated());
    }

    /// Caps the pacing rate, whatever controls.
    pub fn set_limit(&mut self, limit: Option<Rate>) {
        self.limit = limit;
        self.set_pacing(self.pacer.updated());
    }

    fn path_changed(&mut self, now: Time) {
        let view = view(&self.rtt, &self.loss, self.max_packet, false);
        self.congestion.on_path(&view);
        self.set_pacing(now);
    }

    /// The controller's rate, or one that follows from its window once a round-trip time is known.
    fn controlled_rate(&self) -> Option<Rate> {
        if let Some(rate) = self.congestion.rate() {
            return Some(rate);
        }
        let gain = if self.congestion.in_slow_start() { SLOW_START_GAIN } else { PACING_GAIN };
        let bits = 8.0 * gain * self.congestion.window() as f64 / self.rtt.smoothed().as_secs_f64().max(1e-9);
        self.rtt.has_sample().then(|| Rate::from_bits_per_second(bits as u64))
    }

    fn set_pacing(&mut self, now: Time) {
        let rate = match (self.controlled_rate(), self.limit) {
            (Some(rate), Some(limit)) => Some(rate.min(limit)),
            (rate, limit) => rate.or(limit),
        };
        self.pacer.set_rate(now, rate);
    }

    /// How much may be sent now: what the window leaves and what the pacer gives for the next millisecond. Probes do
    /// not ask.
    pub fn admit(&mut self, now: Time) -> Admission {
        let in_flight = self.flight.bytes();
        let room = self.congestion.window().saturating_sub(in_flight);
        if room < u64::from(self.max_packet) && in_flight > 0 {
            return Admission::Blocked;
        }
        match self.pacer.admit(now) {
            Ok(bytes) => Admission::Bytes(bytes.min(room).max(u64::from(self.max_packet))),
            Err(until) => Admission::Wait(until),
        }
    }

    /// A packet that asks for feedback left. Numbers rise from call to call; a number passed over was sent untracked.
    /// A `probe` was not admitted but counts in flight all the same.
    pub fn on_sent(&mut self, sent: Sent, probe: bool) {
        let passed_over = sent.number.saturating_sub(self.flight.next_number());
        (0..passed_over).for_each(|_| _ = self.ecn.on_sent());
        let snapshot = self.delivery_rate.on_sent(sent.time, self.flight.bytes());
        let marked = self.ecn.on_sent();
        self.flight.push(Entry { sent, snapshot, ordinal: self.ordinal, marked });
        self.ordinal = self.ordinal.wrapping_add(1);
        self.stats.on_sent(&sent, probe);
        self.black_hole.on_sent(&sent);
        self.pacer.on_sent(sent.time, sent.bytes);
        self.congestion.on_sent(sent.time, sent.bytes, self.flight.bytes());
    }

    /// A packet left that asks for no feedback: neither window nor pacer counts it, but its number may be acknowledged.
    pub fn on_untracked(&mut self, number: u64, bytes: u32) {
        self.ecn.on_sent();
        self.flight.push_untracked(number);
        self.stats.on_untracked(bytes);
    }

    /// `number` will never be sent: who acknowledges it lies.
    pub fn on_skipped(&mut self, number: u64) {
        self.flight.push_skipped(number);
    }

    /// Feedback came. Makes a [`Report`] of it.
    ///
    /// # Errors
    /// [`NeverSent`] when it names a packet that was never sent: it is then refused whole, and nothing has changed.
    pub fn on_feedback(
        &mut self,
        now: Time,
        packets: Option<&PacketRanges>,
        counts: Option<EcnCounts>,
    ) -> Result<(), NeverSent> {
        let before = self.flight.largest_acked();
        if let Some(packets) = packets {
            self.flight.check(packets)?;
        }
        self.begin_report(now, Cause::Feedback);
        if let Some(packets) = packets {
            self.acknowledge(now, packets, before);
        }
        let newest = packets.is_none() || self.flight.largest_acked() > before;
        self.outcome.newly_marked = self.ecn.on_counts(counts, newest);
        self.detector.on_feedback(now, !self.outcome.delivered.is_empty(), &self.rtt);
        self.detect_losses(now);
        self.finish_report();
        Ok(())
    }

    fn acknowledge(&mut self, now: Time, packets: &PacketRanges, largest_before: Option<u64>) {
        let Self { flight, outcome, delivery_rate, detector, rtt, ecn, first_number, .. } = self;
        let largest_sent = flight.acknowledge(packets, |arrival| {
            let (Arrival::Delivered(entry) | Arrival::Late(entry)) = arrival;
            if entry.marked {
                ecn.on_marked_delivered();
            }
            let sent = entry.sent;
            if sent.number < *first_number {
                // Given up with the path it took: it says nothing about this one.
                outcome.outlived.push(sent);
            } else if let Arrival::Late(_) = arrival {
                let overtaken_by = largest_before.unwrap_or(0).saturating_sub(sent.number);
                detector.on_spurious(now, overtaken_by, now.since(sent.time), rtt);
                outcome.spurious.push(sent);
            } else {
                delivery_rate.on_delivered(now, sent.time, sent.bytes, entry.snapshot);
                outcome.delivered.push(sent);
            }
        });
        // The delay is that of the largest packet named, so no other gives a sample (RFC 9002 section 5.1).
        let largest = packets.ranges.first().map_or(0, |(_, high)| *high);
        if let Some(sent) = largest_sent.filter(|_| largest >= self.first_number) {
            let sample = now.since(sent);
            self.rtt.sample(sample, Duration::from_micros(u64::from(packets.delay_micros)));
            self.outcome.rtt = Some(sample);
        }
        self.outcome.rate_sample = self.delivery_rate.take_sample(self.rtt.min());
    }

    /// The time of [`Recovery::next_timeout`] has come.
    pub fn on_timeout(&mut self, now: Time) -> Timeout {
        if self.loss_time.is_some_and(|at| at <= now) {
            self.begin_report(now, Cause::LossTimer);
            self.detect_losses(now);
            self.finish_report();
            return if self.outcome.lost.is_empty() { Timeout::None } else { Timeout::Lost };
        }
        if self.next_timeout().is_none_or(|at| at > now) {
            return Timeout::None;
        }
        self.detector.on_probe_timeout(now);
        self.ecn.on_probe_timeout();
        self.stats.probe_timeouts += 1;
        Timeout::Probe
    }

    /// When to call [`Recovery::on_timeout`]: for a loss by age, else for a probe. None when nothing is in flight.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.flight.packets() == 0 {
            return None;
        }
        Some(self.loss_time.unwrap_or_else(|| self.detector.probe_at(self.flight.last_sent(), &self.rtt)))
    }

    /// The sender has nothing to send although it may: until what is in flight has arrived, the window is no measure
    /// of the path.
    pub fn set_app_limited(&mut self) {
        self.delivery_rate.set_app_limited(self.flight.bytes());
    }

    /// The path is given up: everything in flight is lost. That says nothing about the path, so the statistics leave it out.
    pub fn close(&mut self, now: Time) {
        self.begin_report(now, Cause::Closed);
        let Self { flight, outcome, .. } = self;
        flight.give_up(now, |entry| outcome.lost.push(entry.sent));
        self.loss_time = None;
        self.outcome.total();
    }

    fn begin_report(&mut self, now: Time, cause: Cause) {
        self.outcome.begin(now, cause, self.flight.bytes());
        // The marker alone may be a round trip old: a window that is full now is the limit now.
        let full = self.congestion.window().saturating_sub(2 * u64::from(self.max_packet));
        let held_back = self.delivery_rate.is_app_limited() || self.limit_binds();
        self.outcome.app_limited = held_back && self.flight.bytes() <= full;
    }

    /// The limit and not the controller sets the pace.
    fn limit_binds(&self) -> bool {
        self.limit.is_some_and(|limit| self.controlled_rate().is_none_or(|rate| limit < rate))
    }

    fn detect_losses(&mut self, now: Time) {
        let rule = self.detector.rule(&self.rtt);
        let persistent = self.detector.persistent_duration(&self.rtt);
        let Self { flight, outcome, loss, .. } = self;
        loss.on_delivered(outcome.delivered.len());
        loss.on_spurious(outcome.spurious.len());
        self.loss_time = flight.detect(now, rule, |entry| {
            outcome.persistent_congestion |= loss.on_lost(entry.ordinal, entry.sent.time) >= persistent;
            outcome.lost.push(entry.sent);
        });
        self.delivery_rate.on_lost(self.flight.bytes());
    }

    fn finish_report(&mut self) {
        self.outcome.total();
        let persistent_congestion = self.outcome.persistent_congestion && self.rtt.has_sample();
        if persistent_congestion {
            self.rtt.forget_minimum();
        }
        let report = self.outcome.report();
        self.stats.on_report(&report);
        self.black_hole.on_report(&report);
        let view = view(&self.rtt, &self.loss, self.max_packet, persistent_congestion);
        self.congestion.on_report(&report, &view);
        let now = report.now;
        self.set_pacing(now);
        self.flight.forget(now - self.rtt.smoothed().max(self.rtt.latest()) * LATE_ROUNDS);
    }

    /// Packets of up to `small` IP bytes pass on any path: where larger ones vanish and these do not, it is for their size.
    pub fn watch_sizes_anew(&mut self, small: u32) {
        self.black_hole.restart(small);
    }

    /// Large packets vanish, and small ones do not.
    pub fn is_black_hole(&self) -> bool {
        self.black_hole.is_found(self.detector.probe_timeout(&self.rtt))
    }

    /// When a small packet is to be sent since no large one is answered.
    pub fn sounding_at(&self) -> Option<Time> {
        let (once, longest) = (self.detector.probe_timeout(&self.rtt), self.detector.max_probe_timeout());
        self.black_hole.sounding_at(once, longest).filter(|_| self.flight.packets() > 0)
    }

    /// That packet leaves now.
    pub fn on_sounding(&mut self, now: Time) {
        self.black_hole.on_sounding(now);
    }

    /// The last report made: by feedback, by a timeout that was [`Timeout::Lost`], or by closing.
    pub fn report(&self) -> Report<'_> {
        self.outcome.report()
    }

    /// Packet numbers remembered, from the oldest on whose fate is not known.
    pub fn remembered(&self) -> usize {
        self.flight.remembered()
    }

    /// IP bytes in flight.
    pub fn bytes_in_flight(&self) -> u64 {
        self.flight.bytes()
    }

    /// Packets in flight.
    pub fn packets_in_flight(&self) -> usize {
        self.flight.packets()
    }

    /// IP bytes that may be in flight.
    pub fn window(&self) -> u64 {
        self.congestion.window()
    }

    /// The rate at which packets leave; None while they leave as the window allows.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// Round-trip time.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Loss before decoding.
    pub fn loss(&self) -> &LossEstimate {
        &self.loss
    }

    /// ECN state and counts.
    pub fn ecn(&self) -> &Ecn {
        &self.ecn
    }

    /// What packets are to be marked with. Changes only when feedback comes or a timer runs out.
    pub fn ecn_codepoint(&self) -> EcnCodepoint {
        self.ecn.codepoint()
    }

    /// The controller.
    pub fn congestion(&self) -> &dyn CongestionControl {
        &*self.congestion
    }

    /// Counts since the path began.
    pub fn stats(&self) -> &RecoveryStats {
        &self.stats
    }
}

fn view<'a>(rtt: &'a RttEstimator, loss: &'a LossEstimate, max_packet: u32, persistent: bool) -> PathView<'a> {
    PathView { rtt, loss, max_packet, persistent_congestion: persistent }
}
