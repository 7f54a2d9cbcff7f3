//! A fixed rate, whatever the losses, unless it is far above the capacity.

use super::auto::Auto;
use super::dispersion::Dispersion;
use super::{CongestionControl, ControllerState, MIN_PACKETS, PathView, RateConstraint};
use crate::recovery::report::Report;
use crate::recovery::rtt::INITIAL_RTT;
use crate::settings::{BitRate, IntegerRange, Setting, Settings, Switch, field};
use crate::time::{Rate, Time};
use std::time::Duration;

/// Numbers of the fixed rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedRateConfig {
    /// In IP bits per second.
    pub rate: Rate,
    /// Whether sending stops after about two round trips without feedback: on. If off, it stops after two seconds,
    /// since packets in flight take memory.
    pub window: bool,
    /// Whether the rate is kept even if the path carries far less: off. If off, `auto` replaces it after five seconds
    /// with more than 30 % of loss at a full queue.
    pub insist: bool,
    /// Packets that leave together: 1. Trains at a low rate show the rate of the path's slowest link
    /// ([`ControllerState::link`]).
    pub train: u32,
}

impl Default for FixedRateConfig {
    fn default() -> Self {
        Self { rate: Rate::from_bits_per_second(10_000_000), window: true, insist: false, train: 1 }
    }
}

impl Settings for FixedRateConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!(bare "rate", rate, BitRate),
        field!("window", window, Switch),
        field!("insist", insist, Switch),
        field!("train", train, IntegerRange(1, 64)),
    ];
}

/// The window's minimum beyond one round trip, for short paths: a sender and a receiver that each wake up 4 ms late. On
/// longer paths the second round trip covers it.
pub const LATE_WAKING: Duration = Duration::from_millis(8);

/// Paces at its rate and ignores loss. Its window only stops it when feedback fails to arrive: two round trips at that
/// rate, one for the packets in flight and one for late feedback and undetected losses. The round-trip time is
/// [`INITIAL_RTT`] until it is measured.
///
/// A rate far above the path's sends many bytes for each that arrives and leaves nothing to others. Unless the
/// configuration insists on it, `auto` replaces it then, permanently.
#[derive(Debug)]
pub(super) struct FixedRate {
    config: FixedRateConfig,
    window: u64,
    overload: OverloadDetector,
    dispersion: Dispersion,
    base: Duration,
    queue: Duration,
    successor: Option<Box<Auto>>,
}

impl FixedRate {
    pub(super) fn new(config: FixedRateConfig, max_packet: u32) -> Self {
        Self {
            config,
            window: window(config, INITIAL_RTT, max_packet),
            overload: OverloadDetector::default(),
            dispersion: Dispersion::default(),
            base: Duration::ZERO,
            queue: Duration::ZERO,
            successor: None,
        }
    }
}

/// A path that loses more than this share of the packets at a full queue carries far less than the rate.
const OVERLOAD: f64 = 0.3;
/// Loss and queue are judged over spans of this time, or two round trips.
const SPAN: Duration = Duration::from_millis(500);
/// After this time of overload the rate is abandoned.
const PATIENCE: Duration = Duration::from_secs(5);
/// A queue is full if packets are lost and it is longer than this for so many of them: not all, since a sender may run
/// out of blocks that it may open.
const QUEUE: Duration = Duration::from_millis(4);
const QUEUED: f64 = 0.8;

/// Watches whether the rate is far above the path's.
#[derive(Debug, Default)]
struct OverloadDetector {
    /// The current span: its beginning, its delivered and lost bytes, the round-trip times and those with a queue.
    span: Option<Time>,
    bytes: u64,
    delivered: u64,
    lost: u64,
    samples: u32,
    queued: u32,
    /// Bytes per second that the last span delivered.
    rate: Option<f64>,
    /// When the overload began.
    since: Option<Time>,
}

impl OverloadDetector {
    /// Takes a report of a path whose delay is `base`. Returns whether to abandon the rate.
    fn on_report(&mut self, report: &Report<'_>, base: Duration, smoothed: Duration) -> bool {
        let began = *self.span.get_or_insert(report.now);
        self.bytes += report.delivered_bytes;
        self.delivered += report.delivered.len() as u64;
        self.lost += report.lost.len() as u64;
        self.samples += u32::from(report.path_rtt.is_some());
        self.queued += u32::from(report.path_rtt.is_some_and(|rtt| rtt > base + QUEUE));
        let length = report.now.since(began);
        if length < SPAN.max(smoothed * 2) {
            return false;
        }
        let is_full = self.samples > 0 && f64::from(self.queued) > QUEUED * f64::from(self.samples);
        let is_overloaded = is_full && self.lost as f64 > OVERLOAD * (self.lost + self.delivered) as f64;
        self.since = is_overloaded.then(|| self.since.unwrap_or(began));
        self.rate = Some(self.bytes as f64 / length.as_secs_f64());
        *self = Self { span: Some(report.now), rate: self.rate, since: self.since, ..Self::default() };
        self.since.is_some_and(|since| report.now.since(since) >= PATIENCE)
    }
}

/// Without a window, sending stops after this time: longer than bursts of lost feedback, and short enough to bound the
/// packets in flight.
const SILENCE: Duration = Duration::from_secs(2);

/// Returns the window in bytes.
fn window(config: FixedRateConfig, rtt: Duration, max_packet: u32) -> u64 {
    let least = if config.window { LATE_WAKING } else { SILENCE };
    let span = rtt + rtt.max(least);
    let packets = MIN_PACKETS.max(config.train);
    config.rate.bytes_in(span).max(2 * u64::from(packets) * u64::from(max_packet))
}

impl CongestionControl for FixedRate {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.window = window(self.config, path.rtt.smoothed(), path.max_packet);
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {}

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        self.on_path(path);
        self.base = path.rtt.min();
        self.queue = report.path_rtt.map_or(self.queue, |rtt| rtt.saturating_sub(self.base));
        if self.config.train > 1 {
            self.dispersion.on_report(report, self.base.as_secs_f64());
        }
        let gives_up = self.overload.on_report(report, self.base, path.rtt.smoothed());
        if gives_up && !self.config.insist {
            let rate = self.overload.rate.unwrap_or_default();
            self.successor = Some(Box::new(Auto::at_rate(report.now, rate, self.base, path)));
        }
    }

    fn successor(&mut self) -> Option<Box<dyn CongestionControl>> {
        self.successor.take().map(|auto| -> Box<dyn CongestionControl> { auto })
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.config.rate)
    }

    fn min_train_packets(&self) -> u32 {
        self.config.train
    }

    fn name(&self) -> &'static str {
        "fixed-rate"
    }

    fn in_slow_start(&self) -> bool {
        false
    }

    fn state(&self) -> Option<ControllerState> {
        let is_overloaded = self.overload.since.is_some();
        let delivered = self.overload.rate.map(|rate| Rate::from_bits_per_second((8.0 * rate) as u64));
        Some(ControllerState {
            mode: "fixed",
            phase: if is_overloaded { "overload" } else { "steady" },
            constraint: if is_overloaded { RateConstraint::Overload } else { RateConstraint::FixedRate },
            rate: delivered.unwrap_or(self.config.rate),
            base: self.base,
            queue: self.queue,
            baseline: 0.0,
            link: self.dispersion.link(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{Bench, ReportSpec};
    use super::*;
    use crate::recovery::sent_packets::{Content, SentPacket};

    /// A second of a path of 50 ms that delivers 7 of 10 packets, or another number, and has a queue of 20 ms, or none.
    fn second(bench: &mut Bench<FixedRate>, delivered: u64, queue: u64) -> Option<RateConstraint> {
        for _ in 0..50 {
            bench.later(20);
            let rtt = Some(Duration::from_millis(50 + queue));
            bench.report(ReportSpec { delivered, lost: 10 - delivered, rtt, ..ReportSpec::default() });
        }
        bench.controller.state().map(|state| state.constraint)
    }

    fn bench(insist: bool) -> Bench<FixedRate> {
        let rate = Rate::from_bits_per_second(4_000_000);
        let config = FixedRateConfig { rate, insist, ..FixedRateConfig::default() };
        Bench::new(FixedRate::new(config, Bench::<FixedRate>::PACKET), 50)
    }

    #[test]
    fn a_rate_far_above_the_path_is_given_up_after_five_seconds_unless_it_insists() {
        let mut bench = bench(false);
        assert_eq!(second(&mut bench, 10, 0), Some(RateConstraint::FixedRate));
        assert_eq!(second(&mut bench, 6, 20), Some(RateConstraint::Overload), "within a second");
        let seconds =
            (1..20).take_while(|_| second(&mut bench, 6, 20).is_some() && bench.controller.successor.is_none());
        assert!((5..8).contains(&(seconds.count() + 2)));
        let successor = bench.controller.successor().expect("abandoned");
        assert_eq!(successor.name(), "auto");
        // 6 packets of 1000 bytes each 20 ms are 300 kB/s: 15 packets in 50 ms, and the queue persists.
        assert!((4_000..=15_000).contains(&successor.window()), "{}", successor.window());
        let mut bench = self::bench(true);
        assert!((0..20).all(|_| second(&mut bench, 6, 20).is_some()));
        assert!(bench.controller.successor().is_none());
        assert_eq!(bench.controller.state().map(|state| state.constraint), Some(RateConstraint::Overload));
    }

    #[test]
    fn loss_without_a_queue_and_a_queue_without_much_loss_are_no_overload() {
        let mut bench = bench(false);
        for (delivered, queue) in [(5, 0), (8, 20), (5, 3)] {
            assert!((0..10).all(|_| second(&mut bench, delivered, queue) == Some(RateConstraint::FixedRate)));
        }
        assert!(bench.controller.successor().is_none());
    }

    #[test]
    fn trains_leave_whole_and_show_the_slowest_link() {
        let rate = Rate::from_bits_per_second(4_000_000);
        let link = |train: u32| {
            let config = FixedRateConfig { rate, train, ..FixedRateConfig::default() };
            let mut bench = Bench::new(FixedRate::new(config, Bench::<FixedRate>::PACKET), 50);
            assert_eq!(bench.controller.min_train_packets(), train);
            assert!(bench.controller.window() >= 2 * u64::from(train) * u64::from(Bench::<FixedRate>::PACKET));
            // Of each train, so many packets are reported at first; one takes the link 100 us.
            for (first, places) in (0..).step_by(20).zip([19, 2, 18, 19, 1, 17, 19, 5, 19]) {
                let time = bench.now;
                bench.later(100);
                let packet = |number| SentPacket { number, time, bytes: 1000, content: Content::Nothing };
                let delivered: Vec<_> = (first..first + places).map(packet).collect();
                let rtt = Some(Duration::from_micros(50_000 + 100 * places));
                bench.report_of(ReportSpec { rtt, ..ReportSpec::default() }, &delivered, &[], &[]);
            }
            bench.controller.state().and_then(|state| state.link)
        };
        let found = link(20).expect("trains");
        assert_eq!((found.rate.bits_per_second().div_ceil(1000), found.reports), (80_000, 9));
        assert_eq!(link(1), None);
    }
}
