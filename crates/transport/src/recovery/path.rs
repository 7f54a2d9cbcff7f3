//! [`Recovery`]: one path and the packets on it.

use super::congestion::{CongestionControl, PathView};
use super::delivery_rate::DeliveryRate;
use super::detection::Detector;
use super::ecn::{Ecn, EcnCodepoint};
use super::loss_estimate::LossEstimate;
use super::pacer::Pacer;
use super::report::ReportBuilder;
use super::report::{Cause, Report};
use super::rtt::RttEstimator;
use super::sent_packets::SentPacket;
use super::sent_packets::{Entry, SentPackets};
use super::stats::RecoveryStats;
use super::timeout::Timer;
use super::{Admission, RecoveryConfig};
use crate::time::{Rate, Time};
use std::time::Duration;

/// UDP payload assumed to pass before the handshake found the path's (RFC 9000 section 14.1).
const INITIAL_PAYLOAD: u32 = 1200;

/// The pacer's lead over the window's average rate, so that the window and not the pacer is the limit (RFC 9002
/// section 7.7); in slow start, where the window doubles in a round trip, the rate must too (docs/design/pacing.md).
const PACING_GAIN: f64 = 1.25;
const SLOW_START_GAIN: f64 = 2.0;

/// A packet called lost is forgotten after so many round trips.
const LATE_ROUNDS: u32 = 3;

/// Everything known about one path, and the packets on it.
#[derive(Debug)]
pub struct Recovery {
    config: RecoveryConfig,
    congestion: Box<dyn CongestionControl>,
    pub(super) detector: Detector,
    pub(super) timer: Timer,
    pacer: Pacer,
    pub(super) flight: SentPackets,
    pub(super) delivery_rate: DeliveryRate,
    pub(super) rtt: RttEstimator,
    pub(super) loss: LossEstimate,
    pub(super) ecn: Ecn,
    pub(super) stats: RecoveryStats,
    pub(super) outcome: ReportBuilder,
    max_packet: u32,
    limit: Option<Rate>,
    /// When the oldest overtaken packet is lost by its age.
    pub(super) loss_time: Option<Time>,
    /// Packets that have arrived in all, as far as feedback counts them.
    pub(super) arrived: u64,
    /// One packet may leave whatever the window says.
    pub(super) resend_at_once: bool,
    /// Packets sent so far that ask for feedback.
    ordinal: u32,
    /// Lower numbers took an earlier path.
    pub(super) first_number: u64,
}

impl Recovery {
    /// A path that nothing is known about. `datagram_overhead` is what IP and UDP add to a payload: 28 or 48 bytes.
    pub fn new(config: &RecoveryConfig, now: Time, datagram_overhead: u32) -> Self {
        let max_packet = INITIAL_PAYLOAD + datagram_overhead;
        let mut recovery = Self {
            config: config.clone(),
            congestion: config.congestion.build(max_packet),
            detector: Detector::new(&config.detection, now),
            timer: Timer::new(config.timeout.clone(), now),
            pacer: Pacer::new(now, max_packet),
            flight: SentPackets::default(),
            delivery_rate: DeliveryRate::new(now),
            rtt: RttEstimator::new(&config.rtt),
            loss: LossEstimate::new(&config.estimator),
            ecn: Ecn::new(),
            stats: RecoveryStats::default(),
            outcome: ReportBuilder::new(now),
            max_packet,
            limit: None,
            loss_time: None,
            arrived: 0,
            resend_at_once: false,
            ordinal: 0,
            first_number: 0,
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
        self.config = config.clone();
        self.detector = Detector::new(&config.detection, now);
        self.timer = Timer::new(config.timeout.clone(), now);
        self.pacer = Pacer::new(now, self.max_packet);
        self.delivery_rate = DeliveryRate::new(now);
        self.rtt = RttEstimator::new(&config.rtt);
        self.loss = LossEstimate::new(&config.estimator);
        self.ecn.restart();
        self.path_changed(now);
    }

    /// Other choices from now on, for the same path: what is in flight stays there, what is known of the path stays known. Only what
    /// differs is built anew: a controller starts with its first window, a loss estimate from where the last one stood.
    pub fn reconfigure(&mut self, config: &RecoveryConfig, now: Time) {
        if config.congestion != self.config.congestion {
            self.congestion = config.congestion.build(self.max_packet);
        }
        if config.detection != self.config.detection {
            self.detector = Detector::new(&config.detection, now);
            self.loss_time = None;
        }
        if config.timeout != self.config.timeout {
            self.timer = Timer::new(config.timeout.clone(), now);
        }
        if config.estimator != self.config.estimator {
            self.loss.reconfigure(&config.estimator);
        }
        self.rtt.reconfigure(&config.rtt);
        self.config = config.clone();
        self.path_changed(now);
    }

    /// The handshake, or the proof of a new address, measured `rtt`: the first sample.
    pub fn set_rtt_from_handshake(&mut self, now: Time, rtt: Duration) {
        self.rtt.sample(now, rtt, Duration::ZERO);
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
        let view = view(&self.rtt, &self.loss, &self.ecn, self.max_packet, false);
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
        let in_flight = self.bytes_against_window();
        let room = self.congestion.window().saturating_sub(in_flight);
        if room < u64::from(self.max_packet) && in_flight > 0 && !self.resend_at_once {
            return Admission::Blocked;
        }
        match self.pacer.admit(now) {
            Ok(bytes) => Admission::Bytes(bytes.min(room).max(u64::from(self.max_packet))),
            Err(until) => Admission::Wait(until),
        }
    }

    /// A packet that asks for feedback left. Numbers rise from call to call; a number passed over was sent untracked.
    /// A `probe` was not admitted but counts in flight all the same.
    pub fn on_sent(&mut self, sent: SentPacket, probe: bool) {
        let passed_over = sent.number.saturating_sub(self.flight.next_number());
        (0..passed_over).for_each(|_| _ = self.ecn.on_sent(false));
        let snapshot = self.delivery_rate.on_sent(sent.time, sent.bytes, self.flight.bytes());
        let marked = self.ecn.on_sent(true);
        self.timer.on_sent(sent.time, self.flight.packets() == 0);
        self.detector.on_sent(&sent);
        self.resend_at_once &= probe;
        self.flight.push(Entry { sent, snapshot, ordinal: self.ordinal, marked });
        self.ordinal = self.ordinal.wrapping_add(1);
        self.stats.on_sent(&sent, probe);
        self.pacer.on_sent(sent.time, sent.bytes);
        self.congestion.on_sent(sent.time, sent.bytes, self.bytes_in_flight());
    }

    /// A packet left that asks for no feedback: neither window nor pacer counts it, but its number may be acknowledged.
    pub fn on_untracked(&mut self, number: u64, bytes: u32) {
        self.ecn.on_sent(false);
        self.flight.push_untracked(number);
        self.stats.on_untracked(bytes);
    }

    /// `number` will never be sent: who acknowledges it lies.
    pub fn on_skipped(&mut self, number: u64) {
        self.flight.push_skipped(number);
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
        flight.give_up(now, u64::MAX, |entry| outcome.lost.push(entry.sent));
        self.detector.on_empty(self.flight.next_number());
        self.loss_time = None;
        self.outcome.total();
    }

    pub(super) fn begin_report(&mut self, now: Time, cause: Cause) {
        self.outcome.begin(now, cause, self.bytes_in_flight());
        // The marker alone may be a round trip old: a window that is full now is the limit now.
        let full = self.congestion.window().saturating_sub(2 * u64::from(self.max_packet));
        let held_back = self.delivery_rate.is_app_limited() || self.limit_binds();
        self.outcome.app_limited = held_back && self.bytes_against_window() <= full;
    }

    /// The limit and not the controller sets the pace.
    fn limit_binds(&self) -> bool {
        self.limit.is_some_and(|limit| self.controlled_rate().is_none_or(|rate| limit < rate))
    }

    pub(super) fn finish_report(&mut self) {
        self.outcome.total();
        let persistent_congestion = self.outcome.persistent_congestion && self.rtt.has_sample();
        if persistent_congestion {
            self.rtt.forget_minimum();
        }
        let report = self.outcome.report();
        self.stats.on_report(&report);
        let view = view(&self.rtt, &self.loss, &self.ecn, self.max_packet, persistent_congestion);
        self.congestion.on_report(&report, &view);
        let now = report.now;
        self.set_pacing(now);
        let late = self.rtt.smoothed().max(self.rtt.latest()) * LATE_ROUNDS;
        self.flight.forget(now - late.max(self.timer.patience(&self.rtt, self.detector.slack(&self.rtt))));
    }

    /// The probe timeout (RFC 9002 section 6.2.1), not backed off.
    pub fn probe_timeout(&self) -> Duration {
        self.rtt.probe_timeout(self.detector.slack(&self.rtt))
    }

    /// The last report made: by feedback, by a timeout that was [`super::Timeout::Lost`], or by closing.
    pub fn report(&self) -> Report<'_> {
        self.outcome.report()
    }

    /// Packet numbers remembered, from the oldest on whose fate is not known.
    pub fn remembered(&self) -> usize {
        self.flight.remembered()
    }

    /// IP bytes in flight. Packets that are known to have arrived, and nothing says which, take off the average packet.
    pub fn bytes_in_flight(&self) -> u64 {
        let (bytes, packets) = (self.flight.bytes(), self.flight.packets() as u64);
        match self.detector.arrived_unnamed() {
            0 => bytes,
            arrived => bytes * packets.saturating_sub(arrived) / packets.max(1),
        }
    }

    /// IP bytes that the window has to cover. A window that is inflated for packets that have arrived and are not named covers these too:
    /// taken off the flight as well, each would let two new ones out (RFC 5681 section 3.2 counts them in FlightSize).
    fn bytes_against_window(&self) -> u64 {
        let (named, in_flight) = (self.flight.bytes(), self.bytes_in_flight());
        named - (named - in_flight).saturating_sub(self.congestion.inflation())
    }

    /// Packets in flight, those among them that are known to have arrived included: their names are still to come.
    pub fn packets_in_flight(&self) -> usize {
        self.flight.packets()
    }

    /// When the oldest packet in flight became the oldest: none before it is waited for since.
    pub const fn oldest_since(&self) -> Time {
        self.timer.advanced()
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

fn view<'a>(
    rtt: &'a RttEstimator,
    loss: &'a LossEstimate,
    ecn: &Ecn,
    max_packet: u32,
    persistent_congestion: bool,
) -> PathView<'a> {
    PathView { rtt, loss, max_packet, persistent_congestion, ecn_usable: ecn.is_usable() }
}
