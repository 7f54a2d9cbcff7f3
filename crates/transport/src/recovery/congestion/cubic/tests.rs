//! CUBIC against its closed form, and event by event.

use super::*;
use crate::recovery::loss_estimate::LossEstimate;
use crate::recovery::rtt::RttEstimator;
use crate::recovery::sent::{Cause, Content, Sent};
use std::time::Duration;

const PACKET: u32 = 1000;

/// A controller with a path of fixed round-trip time, driven by hand.
struct Bench {
    cubic: Cubic,
    rtt: RttEstimator,
    loss: LossEstimate,
    now: Time,
}

#[derive(Clone, Copy, Default)]
struct Event {
    delivered: u64,
    lost: u64,
    spurious: u64,
    marked: u64,
    app_limited: bool,
    persistent: bool,
    /// How long ago the packets left; 0: a round trip.
    age_millis: u64,
    rtt: Option<Duration>,
}

impl Bench {
    fn new(config: CubicConfig, rtt_millis: u64) -> Self {
        let mut rtt = RttEstimator::new();
        rtt.sample(Duration::from_millis(rtt_millis), Duration::ZERO);
        let now = Time::ZERO + Duration::from_secs(100);
        Self {
            cubic: Cubic::new(config, PACKET),
            rtt,
            loss: LossEstimate::new(&"packets:initial=0%".parse().unwrap()),
            now,
        }
    }

    /// In congestion avoidance after a reduction from `packets`.
    fn reduced_from(config: CubicConfig, rtt_millis: u64, packets: f64) -> Self {
        let mut bench = Self::new(config, rtt_millis);
        bench.cubic.growth.window = packets * f64::from(PACKET);
        bench.report(Event { lost: 1, ..Event::default() });
        bench
    }

    fn report(&mut self, event: Event) {
        let age = if event.age_millis == 0 { self.rtt.smoothed() } else { Duration::from_millis(event.age_millis) };
        let sent = Sent { number: 0, time: self.now - age, bytes: PACKET, content: Content::Nothing };
        let packets = |count: u64| vec![sent; count as usize];
        let (delivered, lost, spurious) = (packets(event.delivered), packets(event.lost), packets(event.spurious));
        let report = Report {
            now: self.now,
            cause: Cause::Feedback,
            delivered: &delivered,
            lost: &lost,
            spurious: &spurious,
            outlived: &[],
            delivered_bytes: event.delivered * u64::from(PACKET),
            lost_bytes: event.lost * u64::from(PACKET),
            newly_marked: event.marked,
            rtt: event.rtt,
            rate_sample: None,
            in_flight_before: self.cubic.window(),
            app_limited: event.app_limited,
        };
        let path =
            PathView { rtt: &self.rtt, loss: &self.loss, max_packet: PACKET, persistent_congestion: event.persistent };
        self.cubic.on_report(&report, &path);
    }

    /// Lets `time` pass with a full window and 32 reports per round trip.
    fn run(&mut self, time: Duration, event: Event) {
        let step = self.rtt.smoothed() / 32;
        let end = self.now + time;
        let mut credit = 0.0;
        while self.now < end {
            self.now += step;
            credit += self.packets() / 32.0;
            let delivered = credit as u64;
            credit -= delivered as f64;
            // Sent a round trip ago, but never before the reduction.
            self.report(Event { delivered, ..event });
        }
    }

    fn packets(&self) -> f64 {
        self.cubic.growth.window / f64::from(PACKET)
    }
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= expected * share
}

#[test]
fn grows_along_the_cubic() {
    let mut bench = Bench::reduced_from(CubicConfig::default(), 100, 1000.0);
    assert!(near(bench.packets(), 700.0, 1e-9), "{}", bench.packets());
    bench.run(Duration::from_millis(100), Event::default()); // Recovery: nothing sent after it is back yet.
    assert!(near(bench.packets(), 700.0, 1e-9), "{}", bench.packets());
    let start = bench.now;
    let k = (300.0_f64 / 0.4).cbrt();
    assert!(near(k, 9.086, 1e-3));
    for second in 1..=14 {
        bench.run(Duration::from_secs(1), Event::default());
        let t = bench.now.since(start).as_secs_f64();
        let closed_form = 0.4 * (t - k).powi(3) + 1000.0;
        // It aims at where the curve is a round trip later, a round trip ahead of itself: 2 % is one such step.
        assert!(near(bench.packets(), closed_form, 0.02), "{second} s: {} for {closed_form}", bench.packets());
    }
    assert!(bench.packets() > 1040.0, "{}", bench.packets());
}

#[test]
fn is_as_fast_as_reno_where_the_cubic_is_slower() {
    let mut bench = Bench::reduced_from(CubicConfig::default(), 10, 40.0);
    bench.run(Duration::from_millis(10), Event::default());
    let before = bench.packets();
    assert!(near(before, 28.0, 0.01), "{before}");
    bench.run(Duration::from_millis(100), Event::default());
    // alpha = 3 * 0.3 / 1.7 packets per round trip.
    assert!(near(bench.packets() - before, 10.0 * 0.529, 0.03), "{}", bench.packets() - before);
    bench.run(Duration::from_millis(200), Event::default());
    let caught_up = bench.packets();
    assert!(caught_up > 40.0, "{caught_up}");
    bench.run(Duration::from_millis(100), Event::default());
    assert!(near(bench.packets() - caught_up, 10.0, 0.05), "alpha is 1 above the prior window: {}", bench.packets());
}

#[test]
fn slow_start_doubles_and_ends_with_the_first_loss() {
    let mut bench = Bench::new(CubicConfig::default(), 100);
    assert!(bench.cubic.in_slow_start());
    for expected in [20.0, 40.0, 80.0] {
        bench.report(Event { delivered: bench.packets() as u64, ..Event::default() });
        assert_eq!(bench.packets(), expected);
    }
    bench.report(Event { lost: 1, delivered: 3, ..Event::default() });
    assert_eq!(bench.packets(), 56.0);
    assert!(!bench.cubic.in_slow_start());
}

#[test]
fn one_reduction_per_round_trip_and_fast_convergence() {
    let mut bench = Bench::reduced_from(CubicConfig::default(), 100, 1000.0);
    bench.now += Duration::from_millis(50);
    bench.report(Event { lost: 40, ..Event::default() });
    assert_eq!(bench.packets(), 700.0, "sent before the reduction");
    bench.now += Duration::from_millis(60);
    bench.report(Event { lost: 1, ..Event::default() });
    assert!(near(bench.packets(), 490.0, 1e-9));
    assert_eq!(bench.cubic.growth.plateau, 700.0 * 1000.0 * 0.85);

    let slow = CubicConfig { fast_convergence: false, beta: 0.5, ..CubicConfig::default() };
    let mut bench = Bench::reduced_from(slow, 100, 1000.0);
    assert_eq!(bench.packets(), 500.0);
    bench.now += Duration::from_millis(110);
    bench.report(Event { lost: 1, ..Event::default() });
    assert_eq!((bench.packets(), bench.cubic.growth.plateau), (250.0, 500_000.0));
}

#[test]
fn a_mark_counts_like_a_loss_and_is_never_undone() {
    let mut bench = Bench::new(CubicConfig::default(), 100);
    bench.report(Event { delivered: 10, marked: 2, ..Event::default() });
    assert_eq!(bench.packets(), 14.0 / 2.0);
    bench.now += Duration::from_millis(20);
    bench.report(Event { delivered: 1, marked: 1, ..Event::default() });
    bench.report(Event { spurious: 5, ..Event::default() });
    assert_eq!(bench.packets(), 7.0);
    bench.now += Duration::from_millis(79);
    bench.report(Event { marked: 1, ..Event::default() });
    assert_eq!(bench.packets(), 7.0, "a mark on no packet in particular, less than a round trip later");
    bench.now += Duration::from_millis(2);
    bench.report(Event { marked: 1, ..Event::default() });
    assert!(near(bench.packets(), 4.9, 1e-9), "{}", bench.packets());
}

#[test]
fn refuted_losses_give_the_window_back() {
    let mut bench = Bench::reduced_from(CubicConfig::default(), 100, 1000.0);
    bench.now += Duration::from_millis(10);
    bench.report(Event { lost: 2, ..Event::default() });
    bench.now += Duration::from_millis(10);
    bench.report(Event { spurious: 2, ..Event::default() });
    assert_eq!(bench.packets(), 700.0, "one of three losses stands");
    bench.report(Event { spurious: 1, ..Event::default() });
    assert_eq!(bench.packets(), 1000.0);
    assert!(bench.cubic.in_slow_start(), "as before the reduction");
}

#[test]
fn an_unused_window_does_not_grow_and_its_time_does_not_count() {
    let mut bench = Bench::reduced_from(CubicConfig::default(), 100, 1000.0);
    bench.run(Duration::from_secs(3), Event::default());
    let before = bench.packets();
    bench.run(Duration::from_secs(60), Event { app_limited: true, ..Event::default() });
    assert_eq!(bench.packets(), before);
    bench.run(Duration::from_secs(1), Event::default());
    // 4 s into the epoch, less the round trip of recovery: K = 9.086 s.
    let closed_form = 0.4 * (3.9_f64 - 9.086).powi(3) + 1000.0;
    assert!(near(bench.packets(), closed_form, 0.02), "{} for {closed_form}", bench.packets());
}

#[test]
fn persistent_congestion_collapses_the_window() {
    let mut bench = Bench::new(CubicConfig::default(), 100);
    bench.cubic.growth.window = 100_000.0;
    bench.report(Event { lost: 50, persistent: true, ..Event::default() });
    assert_eq!(bench.cubic.window(), 2000);
    assert!(bench.cubic.in_slow_start());
    bench.report(Event { spurious: 50, ..Event::default() });
    assert_eq!(bench.cubic.window(), 2000);
    for _ in 0..20 {
        bench.now += Duration::from_millis(100);
        bench.report(Event { delivered: 40, ..Event::default() });
    }
    assert!(bench.packets() >= 70.0 && !bench.cubic.in_slow_start(), "{}", bench.packets());
}

#[test]
fn never_falls_below_two_packets() {
    let mut bench = Bench::new(CubicConfig::default(), 100);
    for _ in 0..20 {
        bench.now += Duration::from_millis(110);
        bench.report(Event { lost: 1, ..Event::default() });
    }
    assert_eq!(bench.cubic.window(), 2000);
}

#[test]
fn a_rising_round_trip_time_ends_slow_start_before_a_loss() {
    let mut bench = Bench::new(CubicConfig::default(), 100);
    let round = |bench: &mut Bench, rtt: u64| {
        let before = bench.packets();
        let delivered = before as u64 / 10;
        for _ in 0..10 {
            bench.now += Duration::from_millis(10);
            bench.report(Event { delivered, rtt: Some(Duration::from_millis(rtt)), ..Event::default() });
        }
        bench.packets() / before
    };
    for rtt in [100, 100, 111] {
        assert!(near(round(&mut bench, rtt), 2.0, 0.1), "11 ms is less than an eighth: {}", bench.packets());
    }
    // 13 ms more: noticed with the eighth sample, from then on a quarter of the growth.
    let growth = round(&mut bench, 126);
    assert!((1.6..1.9).contains(&growth), "{growth}");
    let growth = round(&mut bench, 130);
    assert!(near(growth, 1.25, 0.02), "{growth}");
    // Lower than at the rise: it was a mistake.
    round(&mut bench, 100);
    let growth = round(&mut bench, 100);
    assert!(near(growth, 2.0, 0.1), "{growth}");
    round(&mut bench, 120);
    for _ in 0..4 {
        assert!(bench.cubic.in_slow_start());
        round(&mut bench, 130);
    }
    round(&mut bench, 130);
    assert!(!bench.cubic.in_slow_start(), "five cautious rounds");
}
