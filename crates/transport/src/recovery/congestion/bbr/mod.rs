//! BBR, version 3 (draft-ietf-ccwg-bbr of 2026): keeps the product of the measured bandwidth and round-trip time in
//! flight, and periodically probes for more.
//!
//! Departs, each for the reason given:
//! - losses are processed once per feedback frame, by its rate sample, not packet by packet: feedback arrives 32 times
//!   in a round trip;
//! - a CE mark makes a round lossy, as a loss does; the draft leaves ECN to a later version;
//! - the wait between probes depends on the number of the cycle, since the engine has no randomness of its own;
//! - a spurious loss lifts the lower bounds; the draft also restores the upper one.

mod model;
mod phases;

use super::rounds::Rounds;
use super::{CongestionControl, INITIAL_PACKETS, PathView};
use crate::recovery::delivery_rate::RateSample;
use crate::recovery::report::{Cause, Report};
use crate::settings::{Number, Setting, Settings, Share, Span, field};
use crate::time::{Rate, Time};
use model::{Aggregation, MaxBandwidth, MinRtt, bandwidth};
use phases::{FullPipe, Phase, Probing};
use std::time::Duration;

/// Numbers of BBR (draft-ietf-ccwg-bbr section 2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BbrConfig {
    /// StartupPacingGain: 2.77.
    pub startup: f64,
    /// LossThresh: with 2 % of the data in flight lost, too much was in flight.
    pub loss: f64,
    /// Beta: 0.7, the factor by which a lossy round reduces the lower bounds.
    pub beta: f64,
    /// Headroom: 15 % of the estimate is left to other flows while cruising.
    pub headroom: f64,
    /// ProbeRTTInterval: 5 s.
    pub probe_rtt: Duration,
}

impl Default for BbrConfig {
    fn default() -> Self {
        Self { startup: 2.77, loss: 0.02, beta: 0.7, headroom: 0.15, probe_rtt: Duration::from_secs(5) }
    }
}

impl Settings for BbrConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("startup", startup, Number(1.1, 4.0)),
        field!("loss", loss, Share(0.001, 0.5)),
        field!("beta", beta, Number(0.1, 0.95)),
        field!("headroom", headroom, Share(0.0, 0.5)),
        field!("probe-rtt", probe_rtt, Span(Duration::from_secs(1), Duration::from_secs(600))),
    ];
}

/// PacingMarginPercent: 1.
const PACING_MARGIN: f64 = 0.99;
/// MinPipeCwnd, in packets.
const MIN_PIPE: f64 = 4.0;
/// StartupFullLossCnt: loss bursts in a round that end Startup, together with LossThresh.
const STARTUP_LOSSES: u32 = 6;

/// The controller.
#[derive(Debug)]
pub(super) struct Bbr {
    config: BbrConfig,
    /// Bytes of a full packet.
    packet: f64,
    window: f64,
    /// The window before ProbeRTT or a timeout.
    prior_window: f64,
    /// In bytes per second.
    pacing_rate: f64,
    rounds: Rounds,
    max_bandwidth: MaxBandwidth,
    min_rtt: MinRtt,
    aggregation: Aggregation,
    full: FullPipe,
    probing: Probing,
    bounds: Bounds,
    round: LossRound,
    phase: Phase,
    /// Delivered so far: Startup does not limit the window until the initial window is delivered.
    delivered: f64,
    idle: bool,
    started: bool,
}

/// Bounds set by losses, in bytes and bytes per second.
#[derive(Debug)]
struct Bounds {
    /// inflight_longterm: more than that was too much at the last probe.
    long_term: f64,
    /// inflight_shortterm and bw_shortterm: since the last lossy round.
    short_term: f64,
    bandwidth: f64,
}

/// Measurements of the present round trip, for the short-term bounds.
#[derive(Debug, Default)]
struct LossRound {
    lossy: bool,
    /// Gaps between arrived packets.
    gaps: u32,
    bandwidth: f64,
    delivered: f64,
}

impl Bbr {
    pub(super) fn new(config: BbrConfig, max_packet: u32) -> Self {
        let packet = f64::from(max_packet);
        let window = f64::from(INITIAL_PACKETS) * packet;
        Self {
            config,
            packet,
            window,
            prior_window: 0.0,
            pacing_rate: 0.0,
            rounds: Rounds::default(),
            max_bandwidth: MaxBandwidth::default(),
            min_rtt: MinRtt::new(),
            aggregation: Aggregation::default(),
            full: FullPipe::default(),
            probing: Probing::default(),
            bounds: Bounds { long_term: f64::INFINITY, short_term: f64::INFINITY, bandwidth: f64::INFINITY },
            round: LossRound::default(),
            phase: Phase::Startup,
            delivered: 0.0,
            idle: false,
            started: false,
        }
    }

    /// Returns bw, the bandwidth that it works with.
    fn bandwidth(&self) -> f64 {
        self.max_bandwidth.get().min(self.bounds.bandwidth)
    }

    /// Returns `gain` times the bandwidth-delay product; without a measurement, the initial window.
    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        match self.min_rtt.get() {
            Some(rtt) if bandwidth > 0.0 => gain * bandwidth * rtt,
            _ => gain * f64::from(INITIAL_PACKETS) * self.packet,
        }
    }

    fn min_pipe(&self) -> f64 {
        MIN_PIPE * self.packet
    }

    /// BBRInflight: the product, and the data that keeps sender, network and receiver busy in batches
    /// (BBRQuantizationBudget, section 5.6.4.2).
    fn inflight(&self, bandwidth: f64, gain: f64) -> f64 {
        let quantum = (self.pacing_rate * 1e-3).clamp(2.0 * self.packet, 65_536.0_f64.max(2.0 * self.packet));
        let inflight = self.bdp(bandwidth, gain).max(3.0 * quantum).max(self.min_pipe());
        if self.phase == Phase::Up { inflight + 2.0 * self.packet } else { inflight }
    }

    /// BBRInflightWithHeadroom.
    fn with_headroom(&self) -> f64 {
        if self.bounds.long_term.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (self.config.headroom * self.bounds.long_term).max(self.packet);
        (self.bounds.long_term - headroom).max(self.min_pipe())
    }

    /// BBRTargetInflight.
    fn target(&self) -> f64 {
        self.bdp(self.bandwidth(), 1.0).min(self.window)
    }

    /// IsInflightTooHigh.
    fn is_too_high(&self, sample: &RateSample) -> bool {
        sample.lost as f64 > self.config.loss * sample.in_flight as f64
    }

    /// BBRUpdateLatestDeliverySignals and BBRUpdateCongestionSignals (section 5.5.10).
    fn learn(&mut self, report: &Report<'_>) {
        let gaps = report.lost.iter().zip(report.lost.iter().skip(1)).filter(|(a, b)| b.number != a.number + 1).count();
        self.round.lossy |= !report.lost.is_empty() || report.newly_marked > 0;
        self.round.gaps += gaps as u32 + u32::from(!report.lost.is_empty());
        if let Some(sample) = &report.rate_sample {
            self.max_bandwidth.on_sample(sample);
            self.round.bandwidth = self.round.bandwidth.max(bandwidth(sample));
            self.round.delivered = self.round.delivered.max(sample.delivered as f64);
        }
        if !report.spurious.is_empty() && report.lost.is_empty() {
            self.reset_lower_bounds();
            self.round.lossy = false;
        }
    }

    /// BBRAdaptLowerBoundsFromCongestion, at the end of a round trip.
    fn end_round(&mut self) {
        let round = std::mem::take(&mut self.round);
        let probing = matches!(self.phase, Phase::Startup | Phase::Refill | Phase::Up);
        if round.lossy && !probing {
            let Bounds { short_term, bandwidth, .. } = &mut self.bounds;
            let known = if bandwidth.is_finite() { *bandwidth } else { self.max_bandwidth.get() };
            let inflight = if short_term.is_finite() { *short_term } else { self.window };
            *bandwidth = round.bandwidth.max(self.config.beta * known);
            *short_term = round.delivered.max(self.config.beta * inflight);
        }
    }

    const fn reset_lower_bounds(&mut self) {
        self.bounds.short_term = f64::INFINITY;
        self.bounds.bandwidth = f64::INFINITY;
    }

    /// BBRCheckStartupHighLoss (section 5.3.1.3), at the end of a round trip.
    fn check_startup_loss(&mut self, sample: Option<&RateSample>) {
        if self.phase == Phase::Startup
            && self.round.gaps >= STARTUP_LOSSES
            && sample.is_some_and(|sample| self.is_too_high(sample))
        {
            self.full.reached = true;
            self.bounds.long_term = self.bdp(self.max_bandwidth.get(), 1.0).max(self.round.delivered);
        }
    }

    /// BBRSetPacingRate (section 5.6.2).
    fn set_pacing_rate(&mut self) {
        let (gain, _) = self.phase.gains(&self.config);
        let rate = gain * self.bandwidth() * PACING_MARGIN;
        if self.bandwidth() > 0.0 && (self.full.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// BBRSetCwnd (section 5.6.4).
    fn set_window(&mut self, acked: f64) {
        let (_, gain) = self.phase.gains(&self.config);
        let most = self.inflight(self.bandwidth(), gain) + self.aggregation.get();
        let initial = f64::from(INITIAL_PACKETS) * self.packet;
        if self.full.reached {
            self.window = (self.window + acked).min(most);
        } else if self.window < most || self.delivered < initial {
            self.window += acked;
        }
        let cap = match self.phase {
            Phase::Startup | Phase::Drain => f64::INFINITY,
            Phase::Down | Phase::Refill | Phase::Up => self.bounds.long_term,
            Phase::Cruise | Phase::ProbeRtt { .. } => self.with_headroom(),
        };
        let cap = cap.min(self.bounds.short_term).max(self.min_pipe());
        self.window = self.window.max(self.min_pipe()).min(cap);
        if matches!(self.phase, Phase::ProbeRtt { .. }) {
            self.window = self.window.min(self.probe_rtt_window());
        }
    }

    /// ProbeRTTCwndGain: 0.5.
    fn probe_rtt_window(&self) -> f64 {
        self.bdp(self.bandwidth(), 0.5).max(self.min_pipe())
    }

    fn save_window(&mut self) {
        let reduced = matches!(self.phase, Phase::ProbeRtt { .. });
        self.prior_window = if reduced { self.prior_window.max(self.window) } else { self.window };
    }
}

impl CongestionControl for Bbr {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = f64::from(path.max_packet);
        if self.started {
            return;
        }
        self.window = f64::from(INITIAL_PACKETS) * self.packet;
        if path.rtt.has_sample() {
            // BBRInitPacingRate.
            self.pacing_rate = self.config.startup * self.window / path.rtt.latest().as_secs_f64().max(1e-3);
        }
    }

    fn on_sent(&mut self, _now: Time, bytes: u32, in_flight: u64) {
        self.idle |= self.started && in_flight <= u64::from(bytes);
        self.started = true;
    }

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        if report.cause == Cause::Timeout || path.persistent_congestion {
            // Section 5.6.4.4: the data in flight is unknown; the window recovers with deliveries.
            self.save_window();
            self.window = self.packet;
            self.round.lossy = true;
            return;
        }
        let sample = report.rate_sample.as_ref();
        self.rounds.on_report(report);
        self.learn(report);
        if self.rounds.ended {
            self.probing.rounds += 1;
            self.check_startup_loss(sample);
            self.end_round();
        }
        let (acked, most) = (report.delivered_bytes as f64, self.window);
        self.delivered += acked;
        self.aggregation.on_delivered(report.now, self.rounds.count, acked, self.bandwidth(), most);
        self.full.on_sample(sample, self.rounds.ended);
        let in_flight = report.in_flight_before.saturating_sub(report.delivered_bytes + report.lost_bytes) as f64;
        self.advance(report, in_flight);
        self.min_rtt.on_sample(report.now, report.rtt, self.config.probe_rtt);
        self.check_probe_rtt(report.now, in_flight);
        self.idle &= acked == 0.0;
        self.set_pacing_rate();
        self.set_window(acked);
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn rate(&self) -> Option<Rate> {
        (self.pacing_rate > 0.0).then(|| Rate::from_bits_per_second((8.0 * self.pacing_rate) as u64))
    }

    fn name(&self) -> &'static str {
        "bbr"
    }

    fn in_slow_start(&self) -> bool {
        self.phase == Phase::Startup
    }
}

#[cfg(test)]
mod tests;
