//! LEDBAT (RFC 6817): uses the capacity that other traffic leaves, by keeping the queueing delay near a target.
//!
//! Departs: the RFC measures one-way delays by the receiver's clock, which feedback does not carry. Delays are
//! round-trip times, so that a queue on the reverse path counts too.

use std::collections::VecDeque;
use std::time::Duration;
use transport::congestion::{Congestion, RecoveryPeriod};
use transport::congestion::{CongestionControl, ControllerFactory, PathView};
use transport::recovery::{Cause, Report};
use transport::settings::{IntegerRange, Number, Setting, Settings, Span, field};
use transport::time::{Rate, Time};

/// Numbers of LEDBAT (RFC 6817 section 2.5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedbatConfig {
    /// TARGET, the longest queueing delay it causes: 100 ms.
    pub target: Duration,
    /// GAIN, packets per round trip without queueing delay: 1, the largest value that the RFC allows.
    pub gain: f64,
    /// BASE_HISTORY: 10 minutes of minima.
    pub base_history: u32,
    /// CURRENT_FILTER: the minimum of 4 samples is the current delay.
    pub current_filter: u32,
    /// INIT_CWND in packets: 2.
    pub initial: u32,
    /// ALLOWED_INCREASE, in packets: the window exceeds the packets in flight by at most this: 1.
    pub allowed_increase: u32,
}

impl Default for LedbatConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(100),
            gain: 1.0,
            base_history: 10,
            current_filter: 4,
            initial: 2,
            allowed_increase: 1,
        }
    }
}

impl Settings for LedbatConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("target", target, Span(Duration::from_millis(1), Duration::from_millis(100))),
        field!("gain", gain, Number(0.01, 1.0)),
        field!("base-history", base_history, IntegerRange(1, 60)),
        field!("current-filter", current_filter, IntegerRange(1, 64)),
        field!("initial", initial, IntegerRange(2, 4)),
        field!("allowed-increase", allowed_increase, IntegerRange(1, 100)),
    ];
}

impl ControllerFactory for LedbatConfig {
    const NAME: &'static str = "ledbat";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(Ledbat::new(*self, max_packet))
    }
}

/// MIN_CWND, in packets.
const MIN_PACKETS: f64 = 2.0;

/// How long each base delay is collected.
const BASE_SPAN: Duration = Duration::from_secs(60);

/// Adjusts the window linearly by the queueing delay, and halves it on loss.
#[derive(Debug)]
pub(super) struct Ledbat {
    config: LedbatConfig,
    /// Bytes of a full packet.
    packet: f64,
    window: f64,
    /// The minimum delay of each minute, the newest last.
    base: VecDeque<Duration>,
    /// When the newest of them began.
    base_since: Time,
    /// The last samples.
    current: VecDeque<Duration>,
    period: RecoveryPeriod,
    started: bool,
}

impl Ledbat {
    pub(super) fn new(config: LedbatConfig, max_packet: u32) -> Self {
        let packet = f64::from(max_packet);
        let window = f64::from(config.initial) * packet;
        Self {
            config,
            packet,
            window,
            base: VecDeque::new(),
            base_since: Time::ZERO,
            current: VecDeque::new(),
            period: RecoveryPeriod::default(),
            started: false,
        }
    }

    fn smallest(&self) -> f64 {
        MIN_PACKETS * self.packet
    }

    /// Takes a sample of the delay (`update_current_delay` and `update_base_delay` of section 2.4.2).
    fn sample(&mut self, now: Time, delay: Duration) {
        while self.current.len() >= self.config.current_filter as usize {
            self.current.pop_front();
        }
        self.current.push_back(delay);
        match self.base.back_mut() {
            Some(newest) if now.since(self.base_since) < BASE_SPAN => *newest = delay.min(*newest),
            _ => {
                while self.base.len() >= self.config.base_history as usize {
                    self.base.pop_front();
                }
                self.base.push_back(delay);
                self.base_since = now;
            }
        }
    }

    /// Returns the queueing delay: the delay beyond the base. `None` before the first sample.
    fn queueing_delay(&self) -> Option<Duration> {
        let current = self.current.iter().min()?;
        let base = self.base.iter().min()?;
        Some(current.saturating_sub(*base))
    }

    /// Section 2.4.2: `cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd`, within its limits.
    fn steer(&mut self, report: &Report<'_>, acked: f64) {
        let Some(queueing) = self.queueing_delay() else { return };
        let target = self.config.target.as_secs_f64();
        let off_target = (target - queueing.as_secs_f64()) / target;
        let wanted = self.window + self.config.gain * off_target * acked * self.packet / self.window;
        let allowed = report.in_flight_before as f64 + f64::from(self.config.allowed_increase) * self.packet;
        // The limit only stops growth; an unused window does not shrink to it.
        self.window = wanted.min(allowed.max(self.window)).max(self.smallest());
    }
}

impl CongestionControl for Ledbat {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = f64::from(path.max_packet);
        if !self.started {
            self.window = f64::from(self.config.initial) * self.packet;
        }
        self.window = self.window.max(self.packet);
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {
        self.started = true;
    }

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        if let Some(rtt) = report.rtt {
            self.sample(report.now, rtt);
        }
        if report.cause == Cause::Timeout || path.persistent_congestion {
            // Section 2.4.2 also has one packet.
            self.window = self.packet;
            self.period.begin(report.now);
            return;
        }
        let acked = self.period.acknowledged(report);
        if acked > 0 {
            self.steer(report, acked as f64);
        }
        let Congestion { lost, marked } = self.period.congestion(report, path);
        if lost || marked {
            // Section 2.4.2: at most once per round trip, and never up.
            self.window = self.window.min((self.window / 2.0).max(self.smallest()));
            self.period.begin(report.now);
        }
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn name(&self) -> &'static str {
        "ledbat"
    }

    fn in_slow_start(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::congestion::{Bench as TestBench, ReportSpec};

    type Bench = TestBench<Ledbat>;

    fn bench(numbers: &str) -> Bench {
        Bench::new(
            Ledbat::new(transport::settings::read("ledbat", numbers, LedbatConfig::default()).unwrap(), Bench::PACKET),
            50,
        )
    }

    const fn millis(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn the_window_follows_the_distance_to_the_target() {
        let mut bench = bench("");
        assert_eq!(bench.packets(), 2.0);
        bench.controller.window = 10_000.0;
        bench.report(ReportSpec { delivered: 10, rtt: millis(50), ..ReportSpec::default() });
        assert_eq!(bench.packets(), 11.0, "nothing queued: a packet per round trip");
        bench.controller.window = 10_000.0;
        // The minimum of the last four samples counts: three of 75 ms change nothing yet.
        for _ in 0..3 {
            bench.report(ReportSpec { rtt: millis(75), ..ReportSpec::default() });
        }
        bench.report(ReportSpec { delivered: 10, rtt: millis(75), ..ReportSpec::default() });
        assert_eq!(bench.packets(), 10.75, "a quarter of the target is queued");
        for _ in 0..4 {
            bench.report(ReportSpec { rtt: millis(250), ..ReportSpec::default() });
        }
        bench.controller.window = 10_000.0;
        bench.report(ReportSpec { delivered: 10, rtt: millis(250), ..ReportSpec::default() });
        assert_eq!(bench.packets(), 9.0, "twice the target is queued");
        for _ in 0..100 {
            bench.report(ReportSpec { delivered: 10, rtt: millis(250), ..ReportSpec::default() });
        }
        assert_eq!(bench.packets(), 2.0);
    }

    #[test]
    fn base_delays_are_forgotten_after_so_many_minutes() {
        let mut bench = bench("base-history=2,current-filter=1");
        let queueing = |bench: &Bench| bench.controller.queueing_delay().unwrap().as_millis();
        bench.report(ReportSpec { rtt: millis(50), ..ReportSpec::default() });
        bench.later(61_000);
        bench.report(ReportSpec { rtt: millis(80), ..ReportSpec::default() });
        assert_eq!(queueing(&bench), 30);
        bench.later(61_000);
        bench.report(ReportSpec { rtt: millis(90), ..ReportSpec::default() });
        assert_eq!(queueing(&bench), 10, "the minute of 50 ms is over");
    }

    #[test]
    fn a_loss_halves_once_a_round_trip_and_a_timeout_leaves_one_packet() {
        let mut bench = bench("");
        bench.controller.window = 40_000.0;
        bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
        bench.later(20);
        bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 20.0);
        bench.later(40);
        bench.report(ReportSpec { delivered: 1, marked: 1, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 10.0);
        bench.report(ReportSpec { cause: Some(Cause::Timeout), lost: 10, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 1.0);
        bench.later(200);
        bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 1.0, "a loss never raises it");
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut bench = bench("");
        bench.controller.window = 10_000.0;
        let sent = transport::recovery::SentPacket {
            number: 0,
            time: bench.now,
            bytes: 1000,
            content: transport::recovery::Content::Nothing,
        };
        bench.in_flight = Some(5000);
        bench.report_of(ReportSpec { rtt: millis(50), ..ReportSpec::default() }, &[sent; 5], &[], &[]);
        assert_eq!(bench.packets(), 10.0);
    }
}
