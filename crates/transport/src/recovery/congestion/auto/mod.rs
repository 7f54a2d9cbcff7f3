//! The controller of the default profile: searches the rate of an unknown path, takes only loss beyond the path's own
//! for congestion, and keeps the queue short unless others fill it (docs/design/auto.md).
//!
//! It grows like CUBIC (RFC 9438), so that it takes CUBIC's share. The congestion signals are new, in two modes:
//! DEFAULT yields to a small queue, COMPETE fills the queue with flows that do not yield. All is decided at the end of
//! a round, except the end of the start.

mod aggregation;
mod baseline;
mod compete;
mod config;
mod delay;
mod dips;
mod hold;
mod ledger;
mod marks;
mod start;

use super::cubic::{CubicConfig, Growth};
use super::rounds::Rounds;
use super::{CongestionControl, ControllerState, PathLoss, PathView, RateConstraint, SavedPath};
use crate::recovery::report::{Cause, Report};
use crate::recovery::sent_packets::SentPacket;
use crate::time::{Rate, Time};
use aggregation::Aggregation;
use baseline::Baseline;
use compete::{Compete, ProbationEnd, Standing};
use delay::{Delay, RoundDelay};
use dips::{DOWN, Dips};
use hold::Hold;
use ledger::{Ledger, Round};
use marks::Marks;
use start::{FIRST_PACKETS, RateSearch, SearchEnd};
use std::time::Duration;

pub use config::{AutoConfig, Policy};

/// The smallest window, in packets.
const MIN_PACKETS: f64 = 4.0;
/// A packet of at least this part of the largest is a full one.
const FULL: f64 = 0.9;
/// The pacing rate is this many times the window's average.
const PACING_GAIN: f64 = 1.15;
/// On a path that marks, a window that refills at more than the rate earns a mark each time.
const PACING_GAIN_MARKED: f64 = 1.02;
/// CUBIC's answer to loss and to a neighbour's.
const BETA: f64 = 0.7;
/// The answer of low policy to loss, and the most that it leaves of a window that meets a queue.
const BETA_LOW: f64 = 0.5;
const MOST_LEFT_LOW: f64 = 0.85;
/// The answer to marks (RFC 8511 section 3.1).
const BETA_MARKED: f64 = 0.85;
/// The part of the path's content that the start leaves as the window.
const FOUND: f64 = 0.97;
/// Rounds sent at less than this share of the delivered rate do not press on the path.
const UNPRESSED: f64 = 0.92;
/// A flow that loses more than this share of a round sends more than twice the capacity, since at most 30 % of loss is
/// compensated.
const FLOODING: f64 = 0.65;
/// A round with fewer bursts of losses than this does not show it.
const BURSTS: f64 = 8.0;
/// Loss in one round beyond the credible one that counts even if the path was not pressed.
const STARTLING: f64 = 0.2;
/// The most that the window of a hold grows by in a round, while less than the held rate is delivered.
const HELD_GROWTH: f64 = 1.01;
/// Rounds without a queue after which the window grows faster, and by how much for each byte delivered.
const FAST_GROWTH: [(u32, f64); 3] = [(4, 1.0), (2, 0.5), (0, 0.2)];
/// After so many rounds without a queue a window below the plateau grows by this for each byte delivered: on fast paths
/// CUBIC takes many seconds to return to where it was.
const LONG_UNUSED: u32 = 8;
const UNUSED_GROWTH: f64 = 0.1;
/// A saved window held at least so many initial windows (RFC 9959).
const MEMORABLE: f64 = 4.0;
/// Probe timeouts in a row are an outage once no packet has arrived for so long: on short paths a burst of losses and
/// the probes after it are over sooner.
const OUTAGE: Duration = Duration::from_millis(500);
/// A sender that wakes up late catches up with so much at once. More would be a burst for policers and small queues.
const CATCH_UP: Duration = Duration::from_millis(1);

/// The use of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AutoPhase {
    /// Searching for the rate.
    Start,
    /// Growing.
    Cruise,
    /// A little below the rate, to learn the path's own loss.
    Down,
    /// Far below it, to find the base delay and detect other flows.
    Drain,
}

impl AutoPhase {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Cruise => "cruise",
            Self::Down => "down",
            Self::Drain => "drain",
        }
    }
}

#[derive(Debug)]
enum Mode {
    /// Yields to a queue.
    Default(Standing),
    /// Fills the queue with others.
    Compete(Box<Compete>),
}

/// The controller.
#[derive(Debug)]
pub(super) struct Auto {
    config: AutoConfig,
    packet: f64,
    growth: Growth,
    cubic: CubicConfig,
    mode: Mode,
    phase: AutoPhase,
    dips: Dips,
    /// When the last reduction was: nothing sent before it counts again.
    reduced: Time,
    /// Rounds since it.
    rounds_since: u32,
    /// Rounds without a queue since the last reduction, and those of them in which the window was beyond its plateau.
    rounds_unused: u32,
    rounds_beyond: u32,
    /// Rounds up to this number were sent before the last reduction.
    judged_from: u64,
    delay: Delay,
    ledger: Ledger<AutoPhase>,
    baseline: Baseline,
    start: RateSearch,
    hold: Hold,
    rounds: Rounds,
    round_began: Time,
    round_bytes: f64,
    /// Average delivered rate, in bytes per second, and its value when there was last enough to send.
    average: f64,
    proven: f64,
    aggregation: Aggregation,
    smoothed: Duration,
    last_feedback: Option<Time>,
    /// No packet has arrived since an outage began.
    is_out: bool,
    marks: Marks,
    started: bool,
}

impl Auto {
    pub(super) fn new(config: AutoConfig, max_packet: u32) -> Self {
        let packet = f64::from(max_packet);
        Self {
            config,
            packet,
            growth: Growth::new(FIRST_PACKETS * packet),
            cubic: CubicConfig::default(),
            mode: Mode::Default(Standing::default()),
            phase: AutoPhase::Start,
            dips: Dips::default(),
            reduced: Time::ZERO,
            rounds_since: 0,
            rounds_unused: 0,
            rounds_beyond: 0,
            judged_from: 0,
            delay: Delay::new(config.policy),
            ledger: Ledger::new(AutoPhase::Start),
            baseline: Baseline::default(),
            start: RateSearch::default(),
            hold: Hold::default(),
            rounds: Rounds::default(),
            round_began: Time::ZERO,
            round_bytes: 0.0,
            average: 0.0,
            proven: 0.0,
            aggregation: Aggregation::default(),
            smoothed: Duration::ZERO,
            last_feedback: None,
            is_out: false,
            marks: Marks::default(),
            started: false,
        }
    }

    /// A controller after its search: on a path of this base delay it has found this rate, in bytes per second.
    pub(super) fn at_rate(now: Time, rate: f64, base: Duration, path: &PathView<'_>) -> Self {
        let mut auto = Self::new(AutoConfig::default(), path.max_packet);
        auto.on_path(path);
        auto.started = true;
        auto.rounds.begin(now);
        auto.round_began = now;
        auto.delay.sample(now, base, true);
        auto.ledger.begin_round(now, AutoPhase::Start);
        auto.end_start(now, rate);
        auto
    }

    /// Returns the rate that the path is known to carry, in bytes per second.
    fn min_rate(&self) -> Option<f64> {
        self.config.min_rate.map(|rate| rate.bits_per_second() as f64 / 8.0)
    }

    fn smallest(&self) -> f64 {
        MIN_PACKETS * self.packet
    }

    /// Whether the window compensates the path's own loss: not where it should be less than the path delivers.
    fn compensation(&self) -> f64 {
        match self.phase {
            AutoPhase::Down | AutoPhase::Drain => 1.0,
            AutoPhase::Start | AutoPhase::Cruise => 1.0 / (1.0 - self.baseline.share()),
        }
    }

    /// Returns the window after a loss or a neighbor's reduction.
    const fn beta(&self) -> f64 {
        match self.config.policy {
            Policy::Fair => BETA,
            Policy::Low => BETA_LOW,
        }
    }

    fn is_default(&self) -> bool {
        matches!(self.mode, Mode::Default(_))
    }

    /// Returns the ratio of the pacing rate to the window's average.
    fn gain(&self) -> f64 {
        let is_marking = self.last_feedback.is_some_and(|now| self.marks.are_recent(now));
        if is_marking { PACING_GAIN_MARKED } else { PACING_GAIN }
    }

    /// Reduces the window. Packets sent before count no more.
    fn reduce(&mut self, now: Time, factor: f64) {
        self.growth.reduce(factor, true, self.smallest());
        self.reduced = now;
        (self.rounds_since, self.rounds_unused, self.rounds_beyond) = (0, 0, 0);
        self.judged_from = self.ledger.current() + 1;
        self.baseline.restart_test();
    }

    /// Returns whether a packet was sent after the last reduction.
    fn is_new(&self, sent: &SentPacket) -> bool {
        sent.time >= self.reduced
    }

    /// In an outage losses are no signal, and the path may be another afterwards.
    fn on_outage(&mut self, now: Time) {
        self.growth.window = (self.growth.window * 0.5).max(self.smallest());
        let plateau = self.growth.window;
        self.growth.begin_epoch(plateau);
        self.ledger.forget(now, self.phase);
        self.baseline.restart_test();
        self.reduced = now;
    }

    /// Learns from a round with known outcomes, and answers loss beyond the path's own.
    fn judge(&mut self, round: &Round<AutoPhase>, report: &Report<'_>) {
        if round.sent < 1.0 {
            return;
        }
        let (sent, lost) = (round.sent, round.lost);
        if round.phase == AutoPhase::Start {
            self.baseline.on_start(sent, lost);
            return;
        }
        let base = self.delay.base();
        let noise = self.delay.noise_up_to(0.005, 0.12);
        let is_calm = round.queue() - noise < (0.1 * base).max(0.004);
        let is_flooded = self.is_flood(round);
        if is_flooded {
            self.average = round.delivered_rate();
        }
        let is_quiet = is_calm && !is_flooded && round.sending_rate() <= UNPRESSED * self.average;
        self.average_rate(round);
        if !report.app_limited {
            self.proven = self.average;
        }
        if is_quiet {
            self.baseline.on_quiet(report.now, sent, lost);
        }
        self.keep_held(round, report);
        let is_unremarkable = is_quiet && lost < sent * (self.baseline.credible() + STARTLING);
        if round.number <= self.judged_from || is_unremarkable {
            return;
        }
        let is_new = report.delivered.last().is_some_and(|sent| self.is_new(sent));
        if self.baseline.is_exceeded(sent, lost) && is_new && self.phase == AutoPhase::Cruise {
            self.on_excess(round, is_flooded, report.now);
        }
    }

    /// Keeps the rate of a hold rather than its window: withheld feedback and batches of the pacer make a round trip
    /// longer than the base.
    fn keep_held(&mut self, round: &Round<AutoPhase>, report: &Report<'_>) {
        let Some(rate) = self.hold.rate(report.now) else { return };
        let is_ours = round.phase == AutoPhase::Cruise && round.number > self.judged_from && !report.app_limited;
        if is_ours
            && round.lost <= round.sent * self.baseline.credible()
            && self.phase == AutoPhase::Cruise
            && round.queue() < self.delay.unused()
        {
            self.growth.window *= (rate / round.delivered_rate()).clamp(1.0, HELD_GROWTH);
        }
    }

    fn average_rate(&mut self, round: &Round<AutoPhase>) {
        let span = (10.0 * self.delay.base()).max(3.0);
        let kept = (-round.span() / span).exp();
        let rate = round.delivered_rate();
        self.average = if self.average > 0.0 { self.average * kept + rate * (1.0 - kept) } else { rate };
    }

    /// Returns whether most of a round was lost, and not to a burst or two.
    fn is_flood(&self, round: &Round<AutoPhase>) -> bool {
        round.lost > FLOODING * round.sent && round.sent >= BURSTS * self.baseline.burst()
    }

    /// Loss beyond the path's own: congestion. Without a queue, and at the same rate as before, it is a policer or a
    /// small buffer, and its rate is held.
    fn on_excess(&mut self, round: &Round<AutoPhase>, is_flooded: bool, now: Time) {
        if is_flooded {
            // More than twice the capacity: down to it, before the reduction.
            let carried = round.delivered_rate() * self.delay.base();
            self.growth.window = self.growth.window.min(carried.max(self.smallest()));
            self.growth.begin_epoch(self.growth.window);
        }
        let has_queue = round.queue() >= self.delay.target();
        let held = if self.is_default() && !has_queue {
            self.hold.on_loss(now, round.delivered_rate(), self.smoothed)
        } else {
            None
        };
        let factor = held.map_or(self.beta(), |rate| (rate * self.delay.base() / self.growth.window).clamp(0.5, 1.0));
        self.reduce(now, factor);
    }

    /// Ends the start at an exceeded rate, in bytes per second.
    fn end_start(&mut self, now: Time, rate: f64) {
        self.begin_cruise(now, rate);
        self.reduced = now;
        self.judged_from = self.ledger.current() + 1;
        self.begin_down(now);
    }

    /// Ends the start at a rate not exceeded, in bytes per second.
    fn settle_at(&mut self, now: Time, rate: f64) {
        self.begin_cruise(now, rate);
        self.dips.put_off_down(now, self.delay.base());
    }

    /// Begins a little below the path's content at `rate`, which is the plateau.
    fn begin_cruise(&mut self, now: Time, rate: f64) {
        let product = rate * self.delay.base();
        self.growth.window = (FOUND * product).max(self.smallest());
        self.growth.threshold = 0.0;
        self.growth.begin_epoch(product);
        (self.average, self.proven) = (rate, rate);
        (self.rounds_unused, self.rounds_beyond) = (0, 0);
        self.dips.put_off_drain(now);
        self.delay.set_emptied(now);
        self.phase = AutoPhase::Cruise;
    }

    fn begin_down(&mut self, now: Time) {
        self.growth.window = self.dips.begin_down(now, self.growth.window).max(self.smallest());
        self.phase = AutoPhase::Down;
    }

    fn begin_drain(&mut self, now: Time) {
        if let Mode::Compete(compete) = &mut self.mode {
            compete.on_drain(now);
        }
        self.growth.window = self.dips.begin_drain(now, self.growth.window).max(self.smallest());
        self.delay.watch_least();
        self.phase = AutoPhase::Drain;
    }

    fn grow(&mut self, report: &Report<'_>) {
        let now = report.now;
        let acked = report.delivered_bytes as f64;
        if report.app_limited || !self.hold.is_over(now) {
            return;
        }
        if let Mode::Compete(compete) = &self.mode
            && compete.is_on_trial()
        {
            return;
        }
        let is_unused = self.delay.queue() < self.delay.unused();
        if self.is_default() && is_unused && self.hold.is_forgotten(now) && !self.marks.are_recent(now) {
            let fast = FAST_GROWTH.iter().find(|(rounds, _)| self.rounds_beyond >= *rounds);
            let factor = match fast {
                Some((_, factor)) if self.is_beyond() && self.config.policy == Policy::Fair => *factor,
                _ if self.rounds_unused >= LONG_UNUSED && self.growth.window < self.growth.plateau => UNUSED_GROWTH,
                _ => 0.0,
            };
            self.growth.window += acked * factor * self.config.share;
        }
        // Growth is counted in packets. At the same loss a window follows the root of its growth.
        let step = self.packet * self.config.share.powi(2);
        match self.config.policy {
            Policy::Fair => self.growth.avoid_congestion(now, acked, self.smoothed, step, &self.cubic),
            Policy::Low => {
                let room = (1.0 - self.delay.queue() / self.delay.target()).max(0.0);
                self.growth.window += acked * room * step / self.growth.window.max(1.0);
            }
        }
    }

    /// Returns whether the window is larger than it was when it was last reduced.
    fn is_beyond(&self) -> bool {
        self.growth.window > 1.05 * self.growth.plateau
    }

    fn end_round(&mut self, report: &Report<'_>, newest: &SentPacket) {
        let now = report.now;
        let rate = self.round_bytes / now.since(self.round_began).as_secs_f64().max(1e-6);
        (self.round_began, self.round_bytes) = (now, 0.0);
        self.dips.end_round();
        self.rounds_since += 1;
        if let Some(round) = self.delay.end_round(self.phase != AutoPhase::Start) {
            let is_unused = round.min < self.delay.unused();
            self.rounds_unused = if is_unused { self.rounds_unused + 1 } else { 0 };
            let is_beyond = is_unused && self.phase == AutoPhase::Cruise && self.is_beyond();
            self.rounds_beyond = if is_beyond { self.rounds_beyond + 1 } else { 0 };
            match self.phase {
                AutoPhase::Start if report.app_limited => {}
                AutoPhase::Start => match self.start.end_round(rate, self.growth.window, round.min, &self.delay) {
                    Some(SearchEnd::Exceeded(rate)) => self.end_start(now, rate),
                    Some(SearchEnd::Reached(rate)) => self.settle_at(now, rate),
                    None => {}
                },
                AutoPhase::Down => self.end_round_of_down(now),
                AutoPhase::Drain => self.end_round_of_drain(now, &round),
                AutoPhase::Cruise => self.end_round_of_cruise(now, &round, newest),
            }
        }
        self.ledger.begin_round(now, self.phase);
    }

    fn end_round_of_down(&mut self, now: Time) {
        if let Some(window) = self.dips.end_down(now, self.delay.base()) {
            self.growth.window = window;
            self.phase = AutoPhase::Cruise;
        }
    }

    fn end_round_of_drain(&mut self, now: Time, round: &RoundDelay) {
        let Some(window) = self.dips.end_drain(now, self.delay.base()) else { return };
        self.growth.window = window;
        let target = self.delay.target();
        match &mut self.mode {
            // The queue is not ours, and no other flow's yields: the path has become longer.
            Mode::Default(_) if self.delay.least() > target && round.min > target => self.delay.rebase(round),
            Mode::Default(_) => {}
            Mode::Compete(compete) => {
                compete.watch_lowest(now, round, &self.delay);
                if self.delay.least() < (0.1 * self.delay.top()).max(0.002) {
                    compete.try_default(now, self.growth, &self.delay);
                    let share = 1.02 * self.average * self.delay.base();
                    self.growth.begin_epoch(window);
                    self.growth.window = (DOWN * window).min(share).max(MIN_PACKETS * self.packet);
                }
            }
        }
        self.phase = AutoPhase::Cruise;
        self.dips.put_off_drain(now);
        self.dips.put_off_down(now, self.delay.base());
        self.delay.set_emptied(now);
    }

    fn end_round_of_cruise(&mut self, now: Time, round: &RoundDelay, newest: &SentPacket) {
        let is_new = self.is_new(newest);
        if self.marks.take() && is_new {
            self.reduce(now, BETA_MARKED);
        }
        match &mut self.mode {
            Mode::Default(standing) if round.min <= self.delay.target() => standing.clear(),
            Mode::Default(_) if is_new && self.config.policy == Policy::Low => {
                let left = self.delay.without(round.min).clamp(BETA_LOW, MOST_LEFT_LOW);
                self.reduce(now, left);
            }
            Mode::Default(standing) if is_new => match standing.on_round(self.growth.window, round, &self.delay) {
                Some(window) => self.begin_competing(now, window, round),
                None => self.reduce(now, self.delay.without(round.min).clamp(0.6, 0.95)),
            },
            Mode::Default(_) => {}
            Mode::Compete(_) => self.compete(now, round, is_new),
        }
        self.dip_if_due(now);
    }

    fn begin_competing(&mut self, now: Time, window: f64, round: &RoundDelay) {
        self.growth.window = window;
        self.growth.begin_epoch(window);
        self.mode = Mode::Compete(Box::new(Compete::new(now, round.min)));
        self.dips.put_off_drain(now);
        self.delay.set_emptied(now);
    }

    fn compete(&mut self, now: Time, round: &RoundDelay, is_new: bool) {
        let Mode::Compete(compete) = &mut self.mode else { return };
        match compete.end_trial(now, round, &self.delay) {
            Some(ProbationEnd::Default) => {
                self.mode = Mode::Default(Standing::default());
                let plateau = self.growth.window;
                self.growth.begin_epoch(plateau);
                return;
            }
            Some(ProbationEnd::Compete(saved)) => {
                let window = self.growth.window.max(saved.window);
                self.growth = saved;
                self.growth.window = window;
            }
            None => {}
        }
        compete.watch_lowest(now, round, &self.delay);
        let is_clean = compete::is_clean(self.baseline.share(), self.growth.window / self.packet);
        if compete.end_round(self.rounds_since, is_clean, round, &self.delay) && is_new {
            self.reduce(now, BETA);
        }
    }

    fn dip_if_due(&mut self, now: Time) {
        let lowest = match &self.mode {
            Mode::Default(_) => self.delay.emptied(),
            Mode::Compete(compete) => compete.lowest_at(),
        };
        match self.dips.due(now, lowest, self.is_default(), self.delay.base()) {
            Some(AutoPhase::Drain) => self.begin_drain(now),
            Some(_) => self.begin_down(now),
            None => {}
        }
    }
}

impl CongestionControl for Auto {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = f64::from(path.max_packet);
        self.dips.seed(path.salt);
        self.smoothed = path.rtt.smoothed();
        if !self.started {
            let known = self.min_rate().map_or(0.0, |rate| rate * self.smoothed.as_secs_f64());
            self.growth.window = known.max(FIRST_PACKETS * self.packet);
        }
        self.growth.window = self.growth.window.max(self.smallest());
    }

    fn on_sent(&mut self, now: Time, bytes: u32, _in_flight: u64) {
        if !self.started {
            self.started = true;
            self.rounds.begin(now);
            self.round_began = now;
        }
        self.ledger.on_sent(bytes);
    }

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        let now = report.now;
        self.smoothed = path.rtt.smoothed();
        if report.cause == Cause::Timeout {
            self.on_outage(now);
        }
        if let Some((rtt, newest)) = report.path_rtt.zip(report.delivered.last()) {
            self.delay.sample(now, rtt, f64::from(newest.bytes) >= FULL * self.packet);
        }
        self.baseline.on_lost(report.lost);
        self.ledger.on_report(report, self.delay.queue());
        if report.newly_marked > 0 && path.ecn_usable {
            self.marks.note(now);
        }
        let is_lost_anew = report.lost.last().is_some_and(|sent| self.is_new(sent));
        if let Mode::Compete(compete) = &mut self.mode
            && is_lost_anew
        {
            compete.on_lost(&self.delay);
        }
        self.aggregation.forget(self.rounds.count);
        if let Some(last) = self.last_feedback.filter(|_| self.phase != AutoPhase::Start) {
            let since = report.now.since(last);
            self.aggregation.on_report(report, since, self.smoothed, self.average, self.growth.window);
        }
        while let Some(round) = self.ledger.settled() {
            self.judge(&round, report);
        }
        let Some(newest) = report.delivered.last().filter(|_| self.delay.is_known()) else { return };
        self.last_feedback = Some(now);
        self.is_out = false;
        self.round_bytes += report.delivered_bytes as f64;
        match (self.phase, self.min_rate()) {
            (AutoPhase::Start, Some(rate)) => {
                self.end_start(now, rate);
                // The delivery rate of the path is still unknown.
                (self.average, self.proven) = (0.0, 0.0);
            }
            (AutoPhase::Start, None) => {
                let rate = self.start.on_report(report, path.rtt, &self.delay, &self.baseline);
                if let Some(rate) = rate {
                    if self.delay.queue() < self.delay.target() {
                        self.hold.note(rate);
                    }
                    self.end_start(now, rate);
                } else {
                    // An unused window need not grow, but the spread at a link shows its rate all the same.
                    let delivered = if report.app_limited { 0.0 } else { report.delivered_bytes as f64 };
                    self.growth.window = self.start.grown(self.growth.window, delivered, &self.delay);
                    self.start.on_window(now, self.growth.window, &self.delay);
                }
            }
            (AutoPhase::Cruise, _) => self.grow(report),
            (AutoPhase::Down | AutoPhase::Drain, _) => {}
        }
        self.rounds.on_report(report);
        if self.rounds.ended {
            self.end_round(report, newest);
        }
    }

    fn window(&self) -> u64 {
        (self.growth.window * self.compensation() + self.aggregation.bytes()) as u64
    }

    fn rate(&self) -> Option<Rate> {
        if !self.delay.is_known() && self.smoothed.is_zero() {
            return None;
        }
        let window = self.growth.window * self.compensation();
        let rate = match (self.phase, self.min_rate()) {
            (AutoPhase::Start, Some(rate)) => rate,
            (AutoPhase::Start, None) => self.start.pacing(window, self.growth.window / self.packet, self.smoothed),
            _ => self.gain() * window / self.smoothed.as_secs_f64().max(1e-6),
        };
        Some(Rate::from_bits_per_second((8.0 * rate) as u64))
    }

    fn name(&self) -> &'static str {
        "auto"
    }

    fn in_slow_start(&self) -> bool {
        self.phase == AutoPhase::Start
    }

    fn on_repeated_pto(&mut self, now: Time) {
        if !self.is_out && self.last_feedback.is_some_and(|last| now.since(last) >= OUTAGE) {
            self.is_out = true;
            self.on_outage(now);
        }
    }

    fn catch_up(&self) -> Duration {
        CATCH_UP
    }

    fn min_train_packets(&self) -> u32 {
        if self.phase == AutoPhase::Start { self.start.train() } else { 1 }
    }

    fn path_loss(&self) -> Option<PathLoss> {
        self.baseline.path_loss()
    }

    fn recall(&mut self, memory: &SavedPath) {
        if self.phase == AutoPhase::Start && self.config.policy == Policy::Fair {
            self.start.recall(memory.rate.bits_per_second() as f64 / 8.0, memory.base.as_secs_f64());
            if let Some(share) = memory.baseline {
                self.baseline.recall(share, memory.burst);
            }
        }
    }

    fn save_path(&self) -> Option<SavedPath> {
        let rate = if self.phase == AutoPhase::Start { self.start.proven() } else { self.proven };
        let least = MEMORABLE * FIRST_PACKETS * self.packet;
        (self.delay.is_known() && rate * self.delay.base() >= least).then(|| SavedPath {
            rate: Rate::from_bits_per_second((8.0 * rate) as u64),
            base: Duration::from_secs_f64(self.delay.base()),
            baseline: self.baseline.path_loss().map(|own| own.share),
            burst: self.baseline.burst(),
        })
    }

    fn state(&self) -> Option<ControllerState> {
        let last = self.last_feedback.filter(|_| self.delay.is_known())?;
        let searched = if self.phase == AutoPhase::Start { self.start.rate() } else { Some(self.average) };
        Some(ControllerState {
            mode: if self.is_default() { "default" } else { "compete" },
            phase: self.phase.name(),
            constraint: match &self.mode {
                _ if self.phase == AutoPhase::Start => RateConstraint::Search,
                Mode::Compete(_) => RateConstraint::Neighbors,
                Mode::Default(_) if !self.hold.is_over(last) => RateConstraint::Policer,
                Mode::Default(_) => RateConstraint::Path,
            },
            rate: Rate::from_bits_per_second((8.0 * searched.unwrap_or_default()) as u64),
            base: Duration::from_secs_f64(self.delay.base()),
            queue: Duration::from_secs_f64(self.delay.queue()),
            baseline: self.baseline.share(),
            link: self.start.link(),
        })
    }
}

#[cfg(test)]
mod tests;
