//! [`Recovery`]: the state of one path, and of the packets sent on it.

use super::congestion::{CongestionControl, PathView, RateConstraint, SavedPath};
use super::delivery_rate::DeliveryRate;
use super::detection::Detector;
use super::ecn::{Ecn, EcnCodepoint};
use super::in_flight::Counter;
use super::loss_estimate::LossEstimate;
use super::pacer::Pacer;
use super::report::ReportBuilder;
use super::report::{Cause, Report};
use super::rtt::RttEstimator;
use super::sent_packets::SentPacket;
use super::sent_packets::{SentPackets, TrackedPacket};
use super::stats::RecoveryStats;
use super::timeout::TimeoutTimer;
use super::{RecoveryConfig, SendAllowance};
use crate::time::{Rate, Time};
use std::time::Duration;

/// UDP payload that every path is assumed to carry (RFC 9000 section 14.1).
const INITIAL_PAYLOAD: u32 = 1200;

/// Round trips after which a packet declared lost is forgotten.
const LATE_ROUNDS: u32 = 3;

/// Loss detection and congestion control of one path.
#[derive(Debug)]
pub struct Recovery {
    config: RecoveryConfig,
    congestion: Box<dyn CongestionControl>,
    pub(super) detector: Detector,
    pub(super) timer: TimeoutTimer,
    pacer: Pacer,
    pub(super) sent_packets: SentPackets,
    counter: Option<Counter>,
    pub(super) delivery_rate: DeliveryRate,
    pub(super) rtt: RttEstimator,
    pub(super) loss: LossEstimate,
    pub(super) ecn: Ecn,
    pub(super) stats: RecoveryStats,
    pub(super) report: ReportBuilder,
    max_packet: u32,
    limit: Option<Rate>,
    /// When the oldest overtaken packet will be lost by its age.
    pub(super) loss_time: Option<Time>,
    /// Packets received in total, if feedback counts them.
    pub(super) arrived: u64,
    /// One packet may be sent beyond the window.
    pub(super) fast_retransmit: bool,
    /// Ack-eliciting packets sent so far.
    ordinal: u32,
    /// Smaller numbers were sent on an earlier path.
    pub(super) first_number: u64,
    salt: u64,
}

impl Recovery {
    /// Creates the state of an unknown path. `datagram_overhead` is the size of the IP and UDP headers: 28 or 48 bytes.
    pub fn new(config: &RecoveryConfig, now: Time, datagram_overhead: u32) -> Self {
        let max_packet = INITIAL_PAYLOAD + datagram_overhead;
        let mut recovery = Self {
            config: config.clone(),
            congestion: config.congestion.build(max_packet),
            detector: Detector::new(&config.detection, now),
            timer: TimeoutTimer::new(config.timeout.clone(), now),
            pacer: Pacer::new(now, max_packet),
            sent_packets: SentPackets::default(),
            counter: Counter::of(config.in_flight, 0),
            delivery_rate: DeliveryRate::new(now),
            rtt: RttEstimator::new(&config.rtt),
            loss: LossEstimate::new(&config.estimator),
            ecn: Ecn::new(),
            stats: RecoveryStats::default(),
            report: ReportBuilder::new(now),
            max_packet,
            limit: None,
            loss_time: None,
            arrived: 0,
            fast_retransmit: false,
            ordinal: 0,
            first_number: 0,
            salt: 0,
        };
        recovery.set_pacing(now);
        recovery
    }

    /// Starts over on an unknown path, after a migration (RFC 9000 section 9.4). Packets in flight are abandoned: a
    /// report lists them, but no controller sees it. Rate limit, packet size and statistics stay.
    pub fn restart(&mut self, config: &RecoveryConfig, now: Time) {
        self.close(now);
        self.first_number = self.sent_packets.next_number();
        self.congestion = config.congestion.build(self.max_packet);
        self.config = config.clone();
        self.detector = Detector::new(&config.detection, now);
        self.timer = TimeoutTimer::new(config.timeout.clone(), now);
        self.counter = Counter::of(config.in_flight, 0);
        self.pacer = Pacer::new(now, self.max_packet);
        self.delivery_rate = DeliveryRate::new(now);
        self.rtt = RttEstimator::new(&config.rtt);
        self.loss = LossEstimate::new(&config.estimator);
        self.ecn.restart();
        self.path_changed(now);
    }

    /// Applies another configuration to the same path. Packets in flight and measurements stay. Only changed parts are
    /// replaced: a new controller starts with its initial window, a new loss estimate with the current one.
    pub fn reconfigure(&mut self, config: &RecoveryConfig, now: Time) {
        if config.congestion != self.config.congestion {
            self.congestion = config.congestion.build(self.max_packet);
        }
        if config.detection != self.config.detection {
            self.detector = Detector::new(&config.detection, now);
            self.loss_time = None;
        }
        if config.timeout != self.config.timeout {
            self.timer = TimeoutTimer::new(config.timeout.clone(), now);
        }
        if config.estimator != self.config.estimator {
            self.loss.reconfigure(&config.estimator);
        }
        if config.in_flight != self.config.in_flight {
            self.counter = Counter::of(config.in_flight, self.sent_packets.bytes());
        }
        self.rtt.reconfigure(&config.rtt);
        self.config = config.clone();
        self.path_changed(now);
    }

    /// Sets the first round-trip time sample, from the handshake or from path validation.
    pub fn set_rtt_from_handshake(&mut self, now: Time, rtt: Duration) {
        self.rtt.sample(now, rtt, Duration::ZERO);
        self.path_changed(now);
    }

    /// Returns the IP bytes of a full packet.
    pub const fn max_packet(&self) -> u32 {
        self.max_packet
    }

    /// Sets the size of a full packet, headers included.
    pub fn set_max_packet(&mut self, ip_bytes: u32) {
        self.max_packet = ip_bytes.max(1);
        self.pacer.set_packet(self.max_packet);
        self.path_changed(self.pacer.updated());
    }

    /// Sets the number by which connections differ in the events that they time themselves.
    pub const fn set_salt(&mut self, salt: u64) {
        self.salt = salt;
    }

    /// Passes the measurements of an earlier connection to the controller.
    pub fn recall(&mut self, memory: &SavedPath) {
        self.congestion.recall(memory);
    }

    /// Limits the pacing rate, whatever the controller.
    pub fn set_limit(&mut self, limit: Option<Rate>) {
        self.limit = limit;
        self.set_pacing(self.pacer.updated());
    }

    fn path_changed(&mut self, now: Time) {
        let view = view(&self.rtt, &self.loss, &self.ecn, (self.max_packet, self.salt), false);
        self.congestion.on_path(&view);
        self.set_pacing(now);
    }

    /// Returns the controller's rate, or one derived from its window, if that is paced, once a round-trip time is known.
    fn controlled_rate(&self) -> Option<Rate> {
        if let Some(rate) = self.congestion.rate() {
            return Some(rate);
        }
        let gain = self.config.pacing.gain(self.congestion.in_slow_start())?;
        let bits = 8.0 * gain * self.congestion.window() as f64 / self.rtt.smoothed().as_secs_f64().max(1e-9);
        self.rtt.has_sample().then(|| Rate::from_bits_per_second(bits as u64))
    }

    fn set_pacing(&mut self, now: Time) {
        let rate = match (self.controlled_rate(), self.limit) {
            (Some(rate), Some(limit)) => Some(rate.min(limit)),
            (rate, limit) => rate.or(limit),
        };
        // Where a limit binds, a train would wait for long, and show nothing of the link.
        self.pacer.set_train(if self.limit.is_some() { 1 } else { self.congestion.min_train_packets() });
        self.pacer.set_rate(now, rate, self.congestion.catch_up());
    }

    /// Returns how much may be sent now: the remaining window, and the pacer's allowance for the next millisecond.
    /// Probes need no admission.
    pub fn send_allowance(&mut self, now: Time) -> SendAllowance {
        let in_flight = self.bytes_against_window();
        let room = self.congestion.window().saturating_sub(in_flight);
        if room < u64::from(self.max_packet) && in_flight > 0 && !self.fast_retransmit {
            return SendAllowance::Blocked;
        }
        match self.pacer.admit(now) {
            Ok(bytes) => SendAllowance::Bytes(bytes.min(room).max(u64::from(self.max_packet))),
            Err(until) => SendAllowance::Wait(until),
        }
    }

    /// Records a sent ack-eliciting packet. Numbers rise from call to call; those passed over were sent untracked. A
    /// `probe` was sent without admission, but counts as in flight.
    pub fn on_sent(&mut self, sent: SentPacket, probe: bool) {
        let passed_over = sent.number.saturating_sub(self.sent_packets.next_number());
        (0..passed_over).for_each(|_| _ = self.ecn.on_sent(false));
        let snapshot = self.delivery_rate.on_sent(sent.time, sent.bytes, self.sent_packets.bytes());
        let marked = self.ecn.on_sent(true);
        self.timer.on_sent(sent.time, self.sent_packets.packets() == 0);
        self.detector.on_sent(&sent);
        self.fast_retransmit &= probe;
        if let Some(counter) = &mut self.counter {
            counter.on_sent(sent.bytes);
        }
        self.sent_packets.push(TrackedPacket { sent, snapshot, ordinal: self.ordinal, marked });
        self.ordinal = self.ordinal.wrapping_add(1);
        self.stats.on_sent(&sent, probe);
        self.pacer.on_sent(sent.time, sent.bytes);
        self.congestion.on_sent(sent.time, sent.bytes, self.bytes_in_flight());
    }

    /// Records a sent packet that is not ack-eliciting: neither window nor pacer counts it, but its number may be
    /// acknowledged.
    pub fn on_untracked(&mut self, number: u64, bytes: u32) {
        self.ecn.on_sent(false);
        self.sent_packets.push_untracked(number);
        self.stats.on_untracked(bytes);
    }

    /// Records that `number` is skipped, to detect a peer that acknowledges packets it has not received (RFC 9000
    /// section 21.4).
    pub fn on_skipped(&mut self, number: u64) {
        self.sent_packets.push_skipped(number);
    }

    /// Notes that the sender is application-limited: until the packets in flight are acknowledged, the window does not
    /// measure the path.
    pub fn set_app_limited(&mut self) {
        self.delivery_rate.set_app_limited(self.sent_packets.bytes());
    }

    /// Removes the arrived packets of the last report that `leaves` selects from lt-tcp's counter (§3.5): packets whose
    /// block the receiver had before stay. Packets counted one by one need no such call.
    pub fn leave_counter(&mut self, leaves: impl Fn(&SentPacket) -> bool) {
        if let Some(counter) = &mut self.counter {
            let report = self.report.report();
            let arrived = report.delivered.iter().chain(report.spurious);
            arrived.filter(|sent| leaves(sent)).for_each(|sent| counter.leave(sent.bytes));
        }
    }

    /// Returns whether lt-tcp's counter fills the window: then nothing is sent before a timeout, if nothing is in flight.
    pub(super) fn counter_is_full(&self) -> bool {
        self.counter.is_some_and(|counter| counter.fills(self.congestion.window(), self.max_packet))
    }

    /// Handles a timeout: takes a counter that fills the window to zero (lt-tcp §3.5).
    pub(super) fn empty_full_counter(&mut self) {
        if self.counter_is_full() {
            self.counter = Some(Counter::default());
            self.stats.counter_resets += 1;
        }
    }

    /// Returns the IP bytes that lt-tcp's counter has beyond those in flight.
    pub fn counter_drift(&self) -> u64 {
        self.counter.map_or(0, |counter| counter.bytes().saturating_sub(self.bytes_in_flight()))
    }

    /// Abandons the path: everything in flight counts as lost. Statistics exclude it, since it is no evidence about the
    /// path.
    pub fn close(&mut self, now: Time) {
        self.begin_report(now, Cause::Closed);
        let Self { sent_packets, report, .. } = self;
        sent_packets.lose_all_below(now, u64::MAX, |entry| report.lost.push(entry.sent));
        self.detector.on_all_lost(self.sent_packets.next_number());
        self.loss_time = None;
        self.report.total();
    }

    /// Notifies the controller if no packet has arrived for so long that the path may be dead.
    pub(super) fn notify_repeated_pto(&mut self, now: Time) {
        if self.timer.is_silent() {
            self.congestion.on_repeated_pto(now);
            self.set_pacing(now);
        }
    }

    pub(super) fn begin_report(&mut self, now: Time, cause: Cause) {
        self.report.begin(now, cause, self.bytes_in_flight());
        // The mark may be a round trip old: a full window is the limit now.
        let full = self.congestion.window().saturating_sub(2 * u64::from(self.max_packet));
        let held_back = self.delivery_rate.is_app_limited() || self.limit_binds();
        self.report.app_limited = held_back && self.bytes_against_window() <= full;
    }

    /// Returns whether the limit and not the controller determines the rate.
    fn limit_binds(&self) -> bool {
        self.limit.is_some_and(|limit| self.controlled_rate().is_none_or(|rate| limit < rate))
    }

    /// Returns the reason if window or pacer limit the rate: the limit set by the program, or the controller's
    /// constraint.
    pub fn constraint(&self) -> RateConstraint {
        if self.limit_binds() {
            return RateConstraint::RateLimit;
        }
        self.congestion.state().map_or(RateConstraint::Path, |state| state.constraint)
    }

    pub(super) fn finish_report(&mut self) {
        self.report.total();
        let persistent_congestion = self.report.persistent_congestion && self.rtt.has_sample();
        if persistent_congestion {
            self.rtt.forget_minimum();
        }
        let report = self.report.report();
        self.stats.on_report(&report);
        let view = view(&self.rtt, &self.loss, &self.ecn, (self.max_packet, self.salt), persistent_congestion);
        self.congestion.on_report(&report, &view);
        if let Some(successor) = self.congestion.successor() {
            self.congestion = successor;
        }
        let now = report.now;
        self.set_pacing(now);
        let late = self.rtt.smoothed().max(self.rtt.latest()) * LATE_ROUNDS;
        self.sent_packets
            .forget(now - late.max(self.timer.late_arrival_time(&self.rtt, self.detector.slack(&self.rtt))));
    }

    /// Returns the probe timeout (RFC 9002 section 6.2.1), not backed off.
    pub fn probe_timeout(&self) -> Duration {
        self.rtt.probe_timeout(self.detector.slack(&self.rtt))
    }

    /// Returns the last report: of feedback, of a timeout ([`super::Timeout::Lost`]), or of closing.
    pub fn report(&self) -> Report<'_> {
        self.report.report()
    }

    /// Returns the number of packet numbers remembered, from the oldest unsettled one on.
    pub fn remembered(&self) -> usize {
        self.sent_packets.remembered()
    }

    /// Returns the IP bytes in flight. A packet received but not yet acknowledged is deducted at the average size.
    pub fn bytes_in_flight(&self) -> u64 {
        let (bytes, packets) = (self.sent_packets.bytes(), self.sent_packets.packets() as u64);
        match self.detector.received_unnamed() {
            0 => bytes,
            arrived => bytes * packets.saturating_sub(arrived) / packets.max(1),
        }
    }

    /// Returns the IP bytes that the window must cover. A window inflated for packets received but not acknowledged
    /// covers these too (RFC 5681 section 3.2 counts them in FlightSize): deducted as well, each would let two new
    /// packets out.
    fn bytes_against_window(&self) -> u64 {
        if let Some(counter) = self.counter {
            return counter.bytes();
        }
        let (named, in_flight) = (self.sent_packets.bytes(), self.bytes_in_flight());
        named - (named - in_flight).saturating_sub(self.congestion.inflation())
    }

    /// Returns the packets in flight, including those received but not named yet.
    pub fn packets_in_flight(&self) -> usize {
        self.sent_packets.packets()
    }

    /// Returns when the oldest packet in flight became the oldest.
    pub const fn oldest_since(&self) -> Time {
        self.timer.advanced()
    }

    /// Returns the congestion window, in IP bytes.
    pub fn window(&self) -> u64 {
        self.congestion.window()
    }

    /// Returns the pacing rate; `None` while packets are not paced.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// Returns the round-trip time.
    pub fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// Returns the loss before decoding.
    pub fn loss(&self) -> &LossEstimate {
        &self.loss
    }

    /// Returns the expected loss of packets sent now: the measured loss, limited to the controller's estimate of the
    /// path's own.
    pub fn expected_loss(&self) -> f64 {
        let measured = self.loss.loss();
        match self.congestion.path_loss() {
            Some(own) if measured > 0.0 => measured.clamp(own.share, own.most),
            _ => measured,
        }
    }

    /// Returns the ECN state and counts.
    pub fn ecn(&self) -> &Ecn {
        &self.ecn
    }

    /// Returns the ECN codepoint for packets. It changes only with feedback or a timeout.
    pub fn ecn_codepoint(&self) -> EcnCodepoint {
        self.ecn.codepoint()
    }

    /// Returns the controller.
    pub fn congestion(&self) -> &dyn CongestionControl {
        &*self.congestion
    }

    /// Returns the counters of the path.
    pub fn stats(&self) -> &RecoveryStats {
        &self.stats
    }
}

fn view<'a>(
    rtt: &'a RttEstimator,
    loss: &'a LossEstimate,
    ecn: &Ecn,
    (max_packet, salt): (u32, u64),
    persistent_congestion: bool,
) -> PathView<'a> {
    PathView { rtt, loss, max_packet, persistent_congestion, ecn_usable: ecn.is_usable(), salt }
}
