//! CCID 3 of DCCP, TCP-friendly rate control (RFC 5348): the average rate of Reno at the measured loss event rate. One
//! of the two controllers of tornado-transfer §2.2.
//!
//! Departs: the sender keeps the loss history, as section 3.1 allows, since it knows the outcome of every packet; and
//! it acts once per round trip on all feedback of that time, as if the receiver had sent it together (section 6.2).

mod history;

use history::LossHistory;
use std::time::Duration;
use transport::congestion::LATE_WAKING;
use transport::congestion::{CongestionControl, ControllerFactory, PathView};
use transport::recovery::INITIAL_RTT;
use transport::recovery::{Cause, Report};
use transport::settings::{IntegerRange, Setting, Settings, field};
use transport::time::{Rate, Time};

/// Numbers of TFRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TfrcConfig {
    /// n, loss intervals remembered: 8 (RFC 5348 section 5.4).
    pub intervals: u32,
    /// The initial window in packets, sent over a round trip: 3, as RFC 3390 allows for packets of 1460 bytes (section
    /// 4.2).
    pub initial: u32,
}

impl Default for TfrcConfig {
    fn default() -> Self {
        Self { intervals: 8, initial: 3 }
    }
}

impl Settings for TfrcConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("intervals", intervals, IntegerRange(2, 64)), field!("initial", initial, IntegerRange(1, 100))];
}

impl ControllerFactory for TfrcConfig {
    const NAME: &'static str = "tfrc";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(Tfrc::new(*self, max_packet))
    }
}

/// q: the weight of the previous round-trip time (section 4.3).
const OLD_RTT: f64 = 0.9;
/// t_mbi, in seconds: at least one packet is sent in this time (section 4.3).
const LEAST_EVERY: f64 = 64.0;

/// Returns X_Bps, the throughput equation (section 3.1), in bytes per second: packets of `packet` bytes, a round trip
/// of `rtt` seconds, a loss event rate of `loss`, with b = 1 and t_RTO = 4 R.
fn throughput(packet: f64, rtt: f64, loss: f64) -> f64 {
    let timeouts = 4.0 * (3.0 * (3.0 * loss / 8.0).sqrt() * loss * (1.0 + 32.0 * loss * loss));
    packet / (rtt * ((2.0 * loss / 3.0).sqrt() + timeouts))
}

/// Returns the loss event rate at which the equation gives `rate` (section 6.3.1).
fn loss_for(packet: f64, rtt: f64, rate: f64) -> f64 {
    let (mut low, mut high) = (1e-12_f64, 1.0);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if throughput(packet, rtt, middle) > rate { low = middle } else { high = middle }
    }
    high
}

/// The rate and the state it follows from.
#[derive(Debug)]
pub(super) struct Tfrc {
    config: TfrcConfig,
    /// s: bytes of a full packet.
    packet: f64,
    /// X, in bytes per second.
    rate: f64,
    /// R, in seconds; `None` before the first sample.
    rtt: Option<f64>,
    history: LossHistory,
    /// X_recv_set: the receive rates of the last two round trips, in bytes per second (section 4.3).
    received: [f64; 2],
    /// Start of the interval of the next receive rate.
    round: Option<Round>,
    /// When the no-feedback timer was last restarted (section 4.3).
    heard: Option<Time>,
    started: bool,
}

/// A round trip in which feedback is collected.
#[derive(Clone, Copy, Debug)]
struct Round {
    start: Time,
    delivered: u64,
    app_limited: bool,
}

impl Tfrc {
    pub(super) fn new(config: TfrcConfig, max_packet: u32) -> Self {
        let mut tfrc = Self {
            config,
            packet: f64::from(max_packet),
            rate: 0.0,
            rtt: None,
            history: LossHistory::new(config.intervals as usize),
            received: [f64::INFINITY; 2],
            round: None,
            heard: None,
            started: false,
        };
        tfrc.rate = tfrc.initial_rate();
        tfrc
    }

    fn rtt(&self) -> f64 {
        self.rtt.unwrap_or(INITIAL_RTT.as_secs_f64())
    }

    /// W_init / R (section 4.2).
    fn initial_rate(&self) -> f64 {
        f64::from(self.config.initial) * self.packet / self.rtt()
    }

    fn least(&self) -> f64 {
        self.packet / LEAST_EVERY
    }

    /// Adjusts the rate when the feedback of a round trip is complete, or shows a new loss event (section 4.3 step 4).
    fn adjust(&mut self, round: Round, now: Time) {
        let span = now.since(round.start).as_secs_f64();
        // A round that a loss event cuts short is too short for a receive rate.
        if span >= 0.5 * self.rtt() {
            let rate = round.delivered as f64 / span;
            let last = self.received[1];
            // Over a data-limited interval the maximum receive rate is kept (section 4.3).
            let kept = if round.app_limited && last.is_finite() { rate.max(last) } else { rate };
            self.received = [last, kept];
        }
        // max(X_recv_set); an infinite rate has not been measured yet.
        let measured = self.received.iter().copied().filter(|rate| rate.is_finite()).fold(0.0, f64::max);
        let limit = if measured > 0.0 { 2.0 * measured } else { self.initial_rate() };
        self.rate = match self.history.event_rate() {
            // Slow start: X doubles in each round trip, up to twice the receive rate.
            None => (2.0 * self.rate).min(limit).max(self.initial_rate()),
            Some(loss) => throughput(self.packet, self.rtt(), loss).min(limit).max(self.least()),
        };
    }

    /// Returns the interval before the first loss event, for which the equation gives the rate at that event (section
    /// 6.3.1).
    fn first_interval(&self, round: Option<Round>, now: Time) -> f64 {
        let partial =
            round.map_or(0.0, |round| round.delivered as f64 / now.since(round.start).as_secs_f64().max(self.rtt()));
        let received = self.received.iter().copied().filter(|rate| rate.is_finite()).fold(partial, f64::max);
        let target = if received > 0.0 { received } else { self.rate / 2.0 };
        1.0 / loss_for(self.packet, self.rtt(), target)
    }

    /// Checks the no-feedback timer, max(4 R, 2 s / X), and halves the rate for each of its expiries (section 4.4).
    /// Done whenever a packet is sent, which is often enough.
    fn check_silence(&mut self, now: Time) {
        let Some(heard) = self.heard else {
            self.heard = Some(now);
            return;
        };
        let timer = (4.0 * self.rtt()).max(2.0 * self.packet / self.rate);
        if now.since(heard).as_secs_f64() > timer {
            self.rate = (self.rate / 2.0).max(self.least());
            self.heard = Some(now);
        }
    }
}

impl CongestionControl for Tfrc {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = f64::from(path.max_packet);
        if path.rtt.has_sample() && self.rtt.is_none() {
            self.rtt = Some(path.rtt.latest().as_secs_f64().max(1e-6));
        }
        if !self.started {
            self.rate = self.initial_rate();
        }
    }

    fn on_sent(&mut self, now: Time, _bytes: u32, _in_flight: u64) {
        self.started = true;
        self.check_silence(now);
    }

    fn on_report(&mut self, report: &Report<'_>, _path: &PathView<'_>) {
        if let Some(sample) = report.rtt {
            let sample = sample.as_secs_f64().max(1e-6);
            self.rtt = Some(self.rtt.map_or(sample, |rtt| OLD_RTT * rtt + (1.0 - OLD_RTT) * sample));
        }
        if report.cause == Cause::Feedback {
            self.heard = Some(report.now);
        }
        let span = Duration::from_secs_f64(self.rtt());
        let had_losses = self.history.event_rate().is_some();
        let events = self.history.on_report(report, span);
        if events > 0 && !had_losses {
            let first = self.first_interval(self.round, report.now);
            self.history.seed(first);
        }
        let round = self.round.get_or_insert(Round { start: report.now, delivered: 0, app_limited: false });
        round.delivered += report.delivered_bytes;
        round.app_limited |= report.app_limited;
        let round = *round;
        if events > 0 || report.now.since(round.start) >= span {
            self.adjust(round, report.now);
            self.round = Some(Round { start: report.now, delivered: 0, app_limited: false });
        }
    }

    /// The rate is in control; the window only stops a sender without feedback before the no-feedback timer expires.
    fn window(&self) -> u64 {
        let span = 4.0 * self.rtt() + LATE_WAKING.as_secs_f64();
        (self.rate * span + 2.0 * self.packet) as u64
    }

    fn rate(&self) -> Option<Rate> {
        Some(Rate::from_bits_per_second((8.0 * self.rate) as u64))
    }

    fn name(&self) -> &'static str {
        "tfrc"
    }

    fn in_slow_start(&self) -> bool {
        self.history.event_rate().is_none()
    }
}

#[cfg(test)]
mod tests;
