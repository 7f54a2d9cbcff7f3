//! The phases of BBR (draft-ietf-ccwg-bbr section 5.3): Startup, Drain, the four of ProbeBW, ProbeRTT.

use super::model::bandwidth;
use super::{Bbr, BbrConfig};
use crate::recovery::delivery_rate::RateSample;
use crate::recovery::report::Report;
use crate::time::Time;
use std::time::Duration;

/// Growth that indicates that the pipe is not full yet, and rounds without it that indicate that it is (section
/// 5.3.1.2).
const GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// ProbeRTTDuration.
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Reno's time scale: probing again after as many rounds as the window has packets, 62 or 63 at most (section 5.3.3.5).
const RENO_ROUNDS: u64 = 63;
/// Limit on the doublings of the upward slope.
const MOST_SLOPE: u32 = 30;

/// The phase of BBR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Doubles the rate each round until the bandwidth stops growing.
    Startup,
    /// Empties the queue that Startup has built.
    Drain,
    /// ProbeBW: below the bandwidth, until the queue is empty.
    Down,
    /// ProbeBW: at the bandwidth.
    Cruise,
    /// ProbeBW: a round at the bandwidth with the lower bounds lifted.
    Refill,
    /// ProbeBW: above the bandwidth, until losses or a plateau show its limit.
    Up,
    /// Half the window for a while, to see the round-trip time without queue.
    ProbeRtt {
        /// When it ends; known once little enough is in flight.
        done: Option<Time>,
        /// A round trip has passed since.
        round_done: bool,
    },
}

impl Phase {
    /// Returns pacing gain and window gain (section 5.1).
    pub(super) const fn gains(self, config: &BbrConfig) -> (f64, f64) {
        match self {
            Self::Startup => (config.startup, 2.0),
            Self::Drain => (0.5, 2.0),
            Self::Down => (0.9, 2.0),
            Self::Cruise | Self::Refill => (1.0, 2.0),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt { .. } => (1.0, 0.5),
        }
    }

    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// Whether the bandwidth still grows (BBRCheckFullBWReached).
#[derive(Debug, Default)]
pub(super) struct FullPipe {
    bandwidth: f64,
    rounds: u32,
    /// In the current report.
    now: bool,
    /// Once at least.
    pub(super) reached: bool,
}

impl FullPipe {
    pub(super) fn on_sample(&mut self, sample: Option<&RateSample>, round_ended: bool) {
        let Some(sample) = sample.filter(|sample| !self.now && !sample.app_limited) else { return };
        if bandwidth(sample) >= GROWTH * self.bandwidth {
            self.reset(bandwidth(sample));
        } else if round_ended {
            self.rounds += 1;
            self.now = self.rounds >= FULL_ROUNDS;
            self.reached |= self.now;
        }
    }

    const fn reset(&mut self, bandwidth: f64) {
        (self.bandwidth, self.rounds, self.now) = (bandwidth, 0, false);
    }
}

/// The phase to which incoming feedback answers (section 5.3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Answers {
    #[default]
    Nothing,
    /// Up has begun, but feedback still answers packets sent before.
    Starting,
    /// Feedback answers packets sent in Up.
    Probe,
    /// Up is over, and feedback still answers it.
    Stopping,
    /// Refill.
    Refilling,
}

/// One cycle of ProbeBW.
#[derive(Debug, Default)]
pub(super) struct Probing {
    /// When the cycle began.
    since: Time,
    cycle: u64,
    wait: Duration,
    /// Rounds since the last probe.
    pub(super) rounds: u64,
    answers: Answers,
    /// Losses are still the result of a probe.
    samples: bool,
    /// Rounds for which the window has been raised, packets acknowledged towards the next packet, and how many that
    /// takes.
    up_rounds: u32,
    up_acked: f64,
    up_count: f64,
}

impl Bbr {
    fn enter(&mut self, phase: Phase, now: Time) {
        self.phase = phase;
        self.rounds.begin(now);
    }

    /// BBRStartProbeBW_DOWN.
    fn start_down(&mut self, now: Time) {
        self.round = super::LossRound::default();
        self.probing.up_count = f64::INFINITY;
        self.probing.cycle += 1;
        self.probing.rounds = self.probing.cycle % 2;
        // BBRPickProbeWait: 2 to 3 s, spread over the cycles by the golden ratio.
        let spread = (self.probing.cycle as f64 * 0.618_033_988_75).fract();
        self.probing.wait = Duration::from_secs_f64(2.0 + spread);
        self.probing.since = now;
        self.probing.answers = Answers::Stopping;
        self.enter(Phase::Down, now);
    }

    /// BBRStartProbeBW_REFILL.
    fn start_refill(&mut self, now: Time) {
        self.reset_lower_bounds();
        self.probing.up_rounds = 0;
        self.probing.up_acked = 0.0;
        self.probing.answers = Answers::Refilling;
        self.enter(Phase::Refill, now);
    }

    /// BBRStartProbeBW_UP.
    fn start_up(&mut self, sample: Option<&RateSample>, now: Time) {
        self.probing.answers = Answers::Starting;
        self.full.reset(sample.map_or(0.0, bandwidth));
        self.enter(Phase::Up, now);
        self.raise_slope();
    }

    /// BBRCheckStartupDone, BBRCheckDrainDone and BBRUpdateProbeBWCyclePhase.
    pub(super) fn advance(&mut self, report: &Report<'_>, in_flight: f64) {
        let now = report.now;
        if self.phase == Phase::Startup && self.full.reached {
            self.enter(Phase::Drain, now);
        }
        if self.phase == Phase::Drain && in_flight <= self.inflight(self.bandwidth(), 1.0) {
            self.start_down(now);
        }
        if !self.full.reached {
            return;
        }
        self.adapt_upper_bounds(report);
        let sample = report.rate_sample.as_ref();
        let probed = self.phase == Phase::Up && self.is_time_to_go_down(report);
        match self.phase {
            Phase::Down if self.is_time_to_probe(now) => self.start_refill(now),
            Phase::Down if self.is_time_to_cruise(in_flight) => self.enter_cruise(),
            Phase::Cruise if self.is_time_to_probe(now) => self.start_refill(now),
            Phase::Refill if self.rounds.ended => {
                self.probing.samples = true;
                self.start_up(sample, now);
            }
            Phase::Up if probed => self.start_down(now),
            _ => {}
        }
    }

    const fn enter_cruise(&mut self) {
        self.phase = Phase::Cruise;
    }

    /// BBRIsTimeToProbeBW: after 2 to 3 s, or as often as a Reno with this window would have found its limit again.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno = (self.target() / self.packet) as u64;
        now.since(self.probing.since) > self.probing.wait || self.probing.rounds >= reno.min(RENO_ROUNDS)
    }

    /// BBRIsTimeToCruise.
    fn is_time_to_cruise(&self, in_flight: f64) -> bool {
        in_flight <= self.with_headroom() && in_flight <= self.inflight(self.max_bandwidth.get(), 1.0)
    }

    fn is_window_limited(&self, report: &Report<'_>) -> bool {
        !report.app_limited && report.in_flight_before as f64 + self.packet >= self.window
    }

    /// BBRIsTimeToGoDown.
    fn is_time_to_go_down(&mut self, report: &Report<'_>) -> bool {
        if self.is_window_limited(report) && self.window >= self.bounds.long_term {
            // The path does not limit the bandwidth.
            self.full.reset(report.rate_sample.as_ref().map_or(0.0, bandwidth));
            return false;
        }
        self.full.now
    }

    /// BBRAdaptLongTermModel (section 5.3.3.6).
    fn adapt_upper_bounds(&mut self, report: &Report<'_>) {
        let sample = report.rate_sample.as_ref();
        match self.probing.answers {
            Answers::Starting if self.rounds.ended => self.probing.answers = Answers::Probe,
            Answers::Stopping if self.rounds.ended => {
                self.probing.answers = Answers::Nothing;
                if self.phase.is_probe_bw() && sample.is_some_and(|sample| !sample.app_limited) {
                    self.max_bandwidth.advance();
                }
            }
            _ => {}
        }
        let Some(sample) = sample else { return };
        if self.is_too_high(sample) {
            if self.probing.samples {
                self.on_too_high(sample, report.now);
            }
        } else if self.bounds.long_term.is_finite() {
            self.bounds.long_term = self.bounds.long_term.max(sample.in_flight as f64);
            if self.phase == Phase::Up {
                self.raise_long_term(report);
            }
        }
    }

    /// BBRHandleInflightTooHigh.
    fn on_too_high(&mut self, sample: &RateSample, now: Time) {
        self.probing.samples = false;
        if !sample.app_limited {
            self.bounds.long_term = (sample.in_flight as f64).max(self.config.beta * self.target());
        }
        if self.phase == Phase::Up {
            self.start_down(now);
        }
    }

    /// BBRProbeInflightLongtermUpward: slowly at first, twice as fast each round.
    fn raise_long_term(&mut self, report: &Report<'_>) {
        if !self.is_window_limited(report) || self.window < self.bounds.long_term {
            return;
        }
        self.probing.up_acked += report.delivered_bytes as f64 / self.packet;
        let steps = (self.probing.up_acked / self.probing.up_count).floor();
        if steps >= 1.0 {
            self.probing.up_acked -= steps * self.probing.up_count;
            self.bounds.long_term += steps * self.packet;
        }
        if self.rounds.ended {
            self.raise_slope();
        }
    }

    /// BBRRaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = f64::from(self.probing.up_rounds).exp2();
        self.probing.up_rounds = (self.probing.up_rounds + 1).min(MOST_SLOPE);
        self.probing.up_count = (self.window / self.packet / growth).max(1.0);
    }

    /// BBRCheckProbeRTT (section 5.3.4).
    pub(super) fn check_probe_rtt(&mut self, now: Time, in_flight: f64) {
        let Phase::ProbeRtt { done, round_done } = self.phase else {
            if self.min_rtt.expired && !self.idle {
                self.save_window();
                self.probing.answers = Answers::Stopping;
                self.enter(Phase::ProbeRtt { done: None, round_done: false }, now);
            }
            return;
        };
        match done {
            None if in_flight <= self.probe_rtt_window() => {
                self.enter(Phase::ProbeRtt { done: Some(now + PROBE_RTT), round_done: false }, now);
            }
            Some(at) if (round_done || self.rounds.ended) && now > at => self.leave_probe_rtt(now),
            Some(at) if self.rounds.ended => self.phase = Phase::ProbeRtt { done: Some(at), round_done: true },
            _ => {}
        }
    }

    /// BBRExitProbeRTT.
    fn leave_probe_rtt(&mut self, now: Time) {
        self.min_rtt.measured(now);
        self.window = self.window.max(self.prior_window);
        self.reset_lower_bounds();
        if self.full.reached {
            self.start_down(now);
            self.enter_cruise();
        } else {
            self.phase = Phase::Startup;
        }
    }
}
