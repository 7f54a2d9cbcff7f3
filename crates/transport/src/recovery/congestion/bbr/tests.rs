//! BBR's phases over a path of known bandwidth, and its rules one by one. The tests of recovery measure its speed.

use super::super::bench::{self, ReportSpec};
use super::*;
use crate::recovery::sent_packets::{Content, SentPacket};

type Bench = bench::Bench<Bbr>;

fn bench(numbers: &str) -> Bench {
    Bench::new(Bbr::new(crate::settings::read("bbr", numbers, BbrConfig::default()).unwrap(), Bench::PACKET), 50)
}

const fn sample(kilobytes_per_second: u64, in_flight: u64, lost: u64) -> Option<RateSample> {
    let interval = Duration::from_millis(100);
    Some(RateSample { delivered: 100 * kilobytes_per_second, interval, app_limited: false, in_flight, lost })
}

/// Reports the end of a round trip of 50 ms, with `delivered` packets delivered and this sample.
fn round(bench: &mut Bench, delivered: u64, rate_sample: Option<RateSample>) {
    bench.later(51);
    bench.report(ReportSpec {
        delivered,
        rate_sample,
        rtt: Some(Duration::from_millis(50)),
        age_millis: 50,
        ..ReportSpec::default()
    });
}

/// In ProbeBW after a Startup that found 2 MB/s: 100 packets of 1000 bytes in 50 ms.
fn probing() -> Bench {
    let mut bench = bench("");
    for rate in [500, 1000, 2000, 2000, 2000, 2000] {
        assert_eq!(bench.controller.phase, Phase::Startup);
        round(&mut bench, 60, sample(rate, 100_000, 0));
    }
    bench.in_flight = Some(100_000);
    round(&mut bench, 10, sample(2000, 100_000, 0));
    bench
}

#[test]
fn starts_at_2_77_times_the_initial_window_a_round_trip() {
    let bench = bench("");
    assert_eq!(bench.packets(), 10.0);
    assert_eq!(bench.controller.pacing_rate, 2.77 * 10_000.0 / 0.05);
}

#[test]
fn startup_ends_when_three_rounds_bring_no_quarter_more() {
    let mut bench = bench("");
    for rate in [500, 1000, 1600, 1700, 1800] {
        round(&mut bench, 60, sample(rate, 100_000, 0));
        assert_eq!(bench.controller.phase, Phase::Startup, "{rate}");
    }
    assert!((bench.controller.pacing_rate - 2.77 * 0.99 * 1_800_000.0).abs() < 1.0, "{}", bench.controller.pacing_rate);
    bench.in_flight = Some(400_000);
    round(&mut bench, 60, sample(1800, 100_000, 0));
    assert_eq!(bench.controller.phase, Phase::Drain);
    assert!((bench.controller.pacing_rate - 0.5 * 0.99 * 1_800_000.0).abs() < 1.0, "{}", bench.controller.pacing_rate);
    bench.in_flight = Some(100_000);
    round(&mut bench, 12, sample(1800, 100_000, 0));
    assert_eq!(
        bench.controller.phase,
        Phase::Cruise,
        "88 packets fit the 90 of bandwidth times round-trip time: nothing is left to drain"
    );
}

#[test]
fn startup_ends_with_a_round_of_many_losses() {
    let mut bench = bench("");
    round(&mut bench, 10, sample(500, 20_000, 0));
    let sent = |number: u64, now: Time| SentPacket {
        number,
        time: now - Duration::from_millis(50),
        bytes: 1000,
        content: Content::Nothing,
    };
    bench.later(60);
    let lost: Vec<SentPacket> = (0..6).map(|gap| sent(2 * gap, bench.now)).collect();
    let arrived: Vec<SentPacket> = (0..20).map(|at| sent(20 + at, bench.now)).collect();
    let event = ReportSpec { rate_sample: sample(1000, 50_000, 6000), ..ReportSpec::default() };
    bench.report_of(event, &arrived, &lost, &[]);
    assert!(bench.controller.full.reached);
    assert_eq!(bench.controller.bounds.long_term, 100_000.0, "the sample's delivered bytes");
}

#[test]
fn a_cycle_cruises_refills_probes_up_and_goes_down() {
    let mut bench = probing();
    assert_eq!(bench.controller.phase, Phase::Cruise, "90 packets in flight of 100");
    assert!((bench.controller.pacing_rate - 0.99 * 2e6).abs() < 1.0);
    let mut rounds = 0;
    while bench.controller.phase == Phase::Cruise {
        round(&mut bench, 80, sample(2000, 100_000, 0));
        rounds += 1;
    }
    // 2.618 s in the first cycle, or 63 rounds of 51 ms = 3.2 s.
    assert_eq!((bench.controller.phase, rounds), (Phase::Refill, 52));
    round(&mut bench, 80, sample(2000, 100_000, 0));
    assert_eq!(bench.controller.phase, Phase::Up);
    assert!((bench.controller.pacing_rate - 1.25 * 0.99 * 2e6).abs() < 1.0);
    bench.in_flight = Some(200_000);
    // 3 % of the data in flight is lost: it was too much.
    bench.later(51);
    let event =
        ReportSpec { delivered: 80, lost: 3, rate_sample: sample(2000, 130_000, 3900), ..ReportSpec::default() };
    bench.report(event);
    assert_eq!((bench.controller.phase, bench.controller.bounds.long_term), (Phase::Down, 130_000.0));
    assert!(bench.controller.window() <= 130_000);
}

#[test]
fn a_lossy_round_lowers_the_short_term_bounds_once() {
    let mut bench = probing();
    let window = bench.controller.window;
    bench.later(51);
    bench.report(ReportSpec {
        delivered: 40,
        lost: 2,
        rate_sample: sample(1000, 100_000, 1000),
        ..ReportSpec::default()
    });
    assert_eq!(bench.controller.bounds.bandwidth, 0.7 * 2e6);
    assert_eq!(bench.controller.bounds.short_term, (0.7 * window).max(100_000.0));
    assert!((bench.controller.pacing_rate - 0.99 * 1.4e6).abs() < 1.0);
    round(&mut bench, 40, sample(1000, 100_000, 0));
    assert_eq!(bench.controller.bounds.bandwidth, 0.7 * 2e6, "a round without loss");
}

#[test]
fn the_round_trip_time_is_measured_every_five_seconds() {
    let mut bench = probing();
    let mut rounds = 0;
    // The first sample arrived 50 ms after the path; none is lower from then on.
    while !matches!(bench.controller.phase, Phase::ProbeRtt { .. }) {
        round(&mut bench, 80, sample(2000, 100_000, 0));
        rounds += 1;
        assert!(rounds < 110);
    }
    assert!(rounds > 80, "{rounds} rounds of 51 ms");
    assert_eq!(bench.controller.window, 50_000.0, "half of the room");
    bench.in_flight = Some(90_000);
    for _ in 0..4 {
        round(&mut bench, 45, sample(1000, 50_000, 0));
        assert!(matches!(bench.controller.phase, Phase::ProbeRtt { .. }));
    }
    round(&mut bench, 45, sample(1000, 50_000, 0));
    assert_eq!(bench.controller.phase, Phase::Cruise, "200 ms and a round trip");
    assert!(bench.controller.window > 90_000.0, "{}", bench.controller.window);
}

#[test]
fn a_timeout_leaves_one_packet_until_something_is_delivered() {
    let mut bench = probing();
    bench.report(ReportSpec { cause: Some(Cause::Timeout), lost: 50, ..ReportSpec::default() });
    assert_eq!(bench.packets(), 1.0);
    round(&mut bench, 1, sample(2000, 1000, 0));
    assert_eq!(bench.packets(), 4.0);
    for _ in 0..3 {
        round(&mut bench, 40, sample(2000, 100_000, 0));
    }
    assert!(bench.packets() > 80.0, "{}", bench.packets());
}
