//! CUBIC against its closed form, and event by event.

use super::super::bench;
use super::*;
use crate::recovery::report::Cause;
use bench::ReportSpec;
use std::time::Duration;

type Bench = bench::Bench<Cubic>;

fn bench(config: CubicConfig, rtt_millis: u64) -> Bench {
    Bench::new(Cubic::new(config, Bench::PACKET), rtt_millis)
}

/// In congestion avoidance after a reduction from `packets`.
fn reduced_from(config: CubicConfig, rtt_millis: u64, packets: f64) -> Bench {
    let mut bench = bench(config, rtt_millis);
    bench.controller.growth.window = packets * f64::from(Bench::PACKET);
    bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
    bench
}

/// Returns the window, which is not a whole number of packets.
fn packets(bench: &Bench) -> f64 {
    bench.controller.growth.window / f64::from(Bench::PACKET)
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= expected * share
}

#[test]
fn grows_along_the_cubic() {
    let mut bench = reduced_from(CubicConfig::default(), 100, 1000.0);
    assert!(near(packets(&bench), 700.0, 1e-9), "{}", packets(&bench));
    bench.run(Duration::from_millis(100), ReportSpec::default()); // Recovery: no packet sent after the reduction is acknowledged yet.
    assert!(near(packets(&bench), 700.0, 1e-9), "{}", packets(&bench));
    let start = bench.now;
    let k = (300.0_f64 / 0.4).cbrt();
    assert!(near(k, 9.086, 1e-3));
    for second in 1..=14 {
        bench.run(Duration::from_secs(1), ReportSpec::default());
        let t = bench.now.since(start).as_secs_f64();
        let closed_form = 0.4 * (t - k).powi(3) + 1000.0;
        // The window aims at the curve's value a round trip later: 2 % is one such step.
        assert!(near(packets(&bench), closed_form, 0.02), "{second} s: {} for {closed_form}", packets(&bench));
    }
    assert!(packets(&bench) > 1040.0, "{}", packets(&bench));
}

#[test]
fn is_as_fast_as_reno_where_the_cubic_is_slower() {
    let mut bench = reduced_from(CubicConfig::default(), 10, 40.0);
    bench.run(Duration::from_millis(10), ReportSpec::default());
    let before = packets(&bench);
    assert!(near(before, 28.0, 0.01), "{before}");
    bench.run(Duration::from_millis(100), ReportSpec::default());
    // alpha = 3 * 0.3 / 1.7 packets per round trip.
    assert!(near(packets(&bench) - before, 10.0 * 0.529, 0.03), "{}", packets(&bench) - before);
    bench.run(Duration::from_millis(200), ReportSpec::default());
    let caught_up = packets(&bench);
    assert!(caught_up > 40.0, "{caught_up}");
    bench.run(Duration::from_millis(100), ReportSpec::default());
    assert!(near(packets(&bench) - caught_up, 10.0, 0.05), "alpha is 1 above the prior window: {}", packets(&bench));
}

#[test]
fn slow_start_doubles_and_ends_with_the_first_loss() {
    let mut bench = bench(CubicConfig::default(), 100);
    assert!(bench.controller.in_slow_start());
    for expected in [20.0, 40.0, 80.0] {
        bench.report(ReportSpec { delivered: packets(&bench) as u64, ..ReportSpec::default() });
        assert_eq!(packets(&bench), expected);
    }
    bench.report(ReportSpec { lost: 1, delivered: 3, ..ReportSpec::default() });
    assert_eq!(packets(&bench), 56.0);
    assert!(!bench.controller.in_slow_start());
}

/// arq §3.1 and §4.1: from one packet to 64 by one for each acknowledgement, whatever the round-trip time, and then
/// along the cubic: K is 0, so that a round trip later it is 64 + 0.4 * 0.1^3.
#[test]
fn the_document_starts_with_one_packet_and_leaves_slow_start_at_64() {
    let config = CubicConfig {
        initial: 1,
        threshold: Some(64),
        beta: 0.5,
        hystart: false,
        form: CubicForm::Document,
        ..CubicConfig::default()
    };
    let mut bench = bench(config, 100);
    let mut rtt = 100;
    for expected in [2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        for _ in 0..packets(&bench) as u64 {
            bench.report(ReportSpec { delivered: 1, rtt: Some(Duration::from_millis(rtt)), ..ReportSpec::default() });
        }
        assert_eq!(packets(&bench), expected, "an acknowledgement adds a packet");
        rtt += 50;
    }
    assert!(!bench.controller.in_slow_start());
    (0..64).for_each(|_| bench.report(ReportSpec { delivered: 1, ..ReportSpec::default() }));
    // Reno's estimate adds a packet in a round trip, and is ahead of the cubic.
    assert!(near(packets(&bench), 65.0, 0.001), "{}", packets(&bench));
    bench.later(200);
    bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
    assert!(near(packets(&bench), 32.5, 0.001), "{}", packets(&bench));
}

#[test]
fn hystart_is_off_or_ends_slow_start_below_a_threshold() {
    let last_packets = |hystart: bool, threshold: Option<u32>| {
        let mut bench = bench(CubicConfig { hystart, threshold, ..CubicConfig::default() }, 100);
        for rtt in [100, 140, 140, 140, 140, 140] {
            let delivered = packets(&bench) as u64 / 10;
            for _ in 0..10 {
                bench.now += Duration::from_millis(10);
                bench.report(ReportSpec { delivered, rtt: Some(Duration::from_millis(rtt)), ..ReportSpec::default() });
            }
        }
        packets(&bench)
    };
    let (without, with) = (last_packets(false, None), last_packets(true, None));
    assert!((600.0..=640.0).contains(&without), "six doublings of ten packets: {without}");
    assert!(with < 100.0, "a quarter of the growth after the rise: {with}");
    assert_eq!(last_packets(true, Some(1000)), with);
    assert!((64.0..70.0).contains(&last_packets(false, Some(64))), "a threshold");
}

#[test]
fn one_reduction_per_round_trip_and_fast_convergence() {
    let mut bench = reduced_from(CubicConfig::default(), 100, 1000.0);
    bench.now += Duration::from_millis(50);
    bench.report(ReportSpec { lost: 40, ..ReportSpec::default() });
    assert_eq!(packets(&bench), 700.0, "sent before the reduction");
    bench.now += Duration::from_millis(60);
    bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
    assert!(near(packets(&bench), 490.0, 1e-9));
    assert_eq!(bench.controller.growth.plateau, 700.0 * 1000.0 * 0.85);

    let slow = CubicConfig { fast_convergence: false, beta: 0.5, ..CubicConfig::default() };
    let mut bench = reduced_from(slow, 100, 1000.0);
    assert_eq!(packets(&bench), 500.0);
    bench.now += Duration::from_millis(110);
    bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
    assert_eq!((packets(&bench), bench.controller.growth.plateau), (250.0, 500_000.0));
}

#[test]
fn a_mark_counts_like_a_loss_and_is_never_undone() {
    let mut bench = bench(CubicConfig::default(), 100);
    bench.report(ReportSpec { delivered: 10, marked: 2, ..ReportSpec::default() });
    assert_eq!(packets(&bench), 14.0 / 2.0);
    bench.now += Duration::from_millis(20);
    bench.report(ReportSpec { delivered: 1, marked: 1, ..ReportSpec::default() });
    bench.report(ReportSpec { spurious: 5, ..ReportSpec::default() });
    assert_eq!(packets(&bench), 7.0);
    bench.now += Duration::from_millis(79);
    bench.report(ReportSpec { marked: 1, ..ReportSpec::default() });
    assert_eq!(packets(&bench), 7.0, "a mark on no packet in particular, less than a round trip later");
    bench.now += Duration::from_millis(2);
    bench.report(ReportSpec { marked: 1, ..ReportSpec::default() });
    assert!(near(packets(&bench), 4.9, 1e-9), "{}", packets(&bench));
}

#[test]
fn refuted_losses_give_the_window_back() {
    let mut bench = reduced_from(CubicConfig::default(), 100, 1000.0);
    bench.now += Duration::from_millis(10);
    bench.report(ReportSpec { lost: 2, ..ReportSpec::default() });
    bench.now += Duration::from_millis(10);
    bench.report(ReportSpec { spurious: 2, ..ReportSpec::default() });
    assert_eq!(packets(&bench), 700.0, "one of three losses remains");
    bench.report(ReportSpec { spurious: 1, ..ReportSpec::default() });
    assert_eq!(packets(&bench), 1000.0);
    assert!(bench.controller.in_slow_start(), "as before the reduction");
}

#[test]
fn an_unused_window_does_not_grow_and_its_time_does_not_count() {
    let mut bench = reduced_from(CubicConfig::default(), 100, 1000.0);
    bench.run(Duration::from_secs(3), ReportSpec::default());
    let before = packets(&bench);
    bench.run(Duration::from_secs(60), ReportSpec { app_limited: true, ..ReportSpec::default() });
    assert_eq!(packets(&bench), before);
    bench.run(Duration::from_secs(1), ReportSpec::default());
    // 4 s into the epoch, less the round trip of recovery: K = 9.086 s.
    let closed_form = 0.4 * (3.9_f64 - 9.086).powi(3) + 1000.0;
    assert!(near(packets(&bench), closed_form, 0.02), "{} for {closed_form}", packets(&bench));
}

#[test]
fn persistent_congestion_collapses_the_window() {
    let mut bench = bench(CubicConfig::default(), 100);
    bench.controller.growth.window = 100_000.0;
    bench.report(ReportSpec { lost: 50, persistent: true, ..ReportSpec::default() });
    assert_eq!(bench.controller.window(), 2000);
    assert!(bench.controller.in_slow_start());
    bench.report(ReportSpec { spurious: 50, ..ReportSpec::default() });
    assert_eq!(bench.controller.window(), 2000);
    for _ in 0..20 {
        bench.now += Duration::from_millis(100);
        bench.report(ReportSpec { delivered: 40, ..ReportSpec::default() });
    }
    assert!(packets(&bench) >= 70.0 && !bench.controller.in_slow_start(), "{}", packets(&bench));
}

#[test]
fn never_falls_below_two_packets() {
    let mut bench = bench(CubicConfig::default(), 100);
    for _ in 0..20 {
        bench.now += Duration::from_millis(110);
        bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
    }
    assert_eq!(bench.controller.window(), 2000);
}

#[test]
fn a_rising_round_trip_time_ends_slow_start_before_a_loss() {
    let mut bench = bench(CubicConfig::default(), 100);
    let round = |bench: &mut Bench, rtt: u64| {
        let before = packets(bench);
        let delivered = before as u64 / 10;
        for _ in 0..10 {
            bench.now += Duration::from_millis(10);
            bench.report(ReportSpec { delivered, rtt: Some(Duration::from_millis(rtt)), ..ReportSpec::default() });
        }
        packets(bench) / before
    };
    for rtt in [100, 100, 111] {
        assert!(near(round(&mut bench, rtt), 2.0, 0.1), "11 ms is less than an eighth: {}", packets(&bench));
    }
    // 13 ms more: noticed with the eighth sample, and a quarter of the growth from then on.
    let growth = round(&mut bench, 126);
    assert!((1.6..1.9).contains(&growth), "{growth}");
    let growth = round(&mut bench, 130);
    assert!(near(growth, 1.25, 0.02), "{growth}");
    // Lower than at the rise: the rise was spurious.
    round(&mut bench, 100);
    let growth = round(&mut bench, 100);
    assert!(near(growth, 2.0, 0.1), "{growth}");
    round(&mut bench, 120);
    for _ in 0..4 {
        assert!(bench.controller.in_slow_start());
        round(&mut bench, 130);
    }
    round(&mut bench, 130);
    assert!(!bench.controller.in_slow_start(), "five cautious rounds");
}

/// Section 4.8: beta still sets ssthresh, and the plateau of the next epoch is where it begins.
#[test]
fn a_timeout_leaves_one_packet_and_a_new_epoch() {
    let mut bench = reduced_from(CubicConfig { beta: 0.5, ..CubicConfig::default() }, 100, 200.0);
    bench.later(200);
    let timeout = ReportSpec { cause: Some(Cause::Timeout), ..ReportSpec::default() };
    bench.report(ReportSpec { lost: 100, ..timeout });
    assert_eq!((packets(&bench), bench.controller.growth.threshold), (1.0, 50_000.0));
    bench.later(200);
    bench.report(ReportSpec { lost: 1, ..timeout });
    assert_eq!((packets(&bench), bench.controller.growth.threshold), (1.0, 50_000.0), "a timeout after a timeout");
    bench.later(200);
    for expected in [2.0, 4.0, 8.0, 16.0, 32.0, 50.0] {
        bench.report(ReportSpec { delivered: packets(&bench) as u64, age_millis: 1, ..ReportSpec::default() });
        assert_eq!(packets(&bench), expected);
    }
    bench.report(ReportSpec { delivered: 1, age_millis: 1, ..ReportSpec::default() });
    let epoch = bench.controller.growth.epoch.unwrap();
    assert_eq!((bench.controller.growth.plateau, epoch.to_plateau), (50_000.0, 0.0));
}

/// arq §4.1: a timeout reduces W_max, where RFC 9438 forgets it, and K is (W_max (1 - beta) / C)^(1/3) even if fast
/// convergence has reduced W_max.
#[test]
fn the_document_reduces_its_plateau_and_takes_k_from_it() {
    let epoch_after = |form, timeouts: u32| {
        let mut bench = reduced_from(CubicConfig { beta: 0.5, form, ..CubicConfig::default() }, 100, 200.0);
        (0..timeouts).for_each(|_| {
            bench.later(200);
            bench.report(ReportSpec { cause: Some(Cause::Timeout), lost: 1, ..ReportSpec::default() });
        });
        bench.later(200);
        if timeouts == 0 {
            // Another loss below W_max.
            bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
            bench.later(200);
        }
        while bench.controller.growth.epoch.is_none() {
            bench.report(ReportSpec { delivered: packets(&bench) as u64, age_millis: 1, ..ReportSpec::default() });
        }
        let epoch = bench.controller.growth.epoch.unwrap();
        (bench.controller.growth.plateau, (epoch.to_plateau * 1000.0).round() as u32)
    };
    let (document, rfc) = (CubicForm::Document, CubicForm::Rfc9438);
    // Half of 200 packets, from 50 on: (100 x 0.5 / 0.4)^(1/3) = 5 s.
    assert_eq!((epoch_after(document, 1), epoch_after(rfc, 1)), ((100_000.0, 5000), (50_000.0, 0)));
    // A quarter, from 25 packets on: (50 x 0.5 / 0.4)^(1/3).
    assert_eq!((epoch_after(document, 2), epoch_after(rfc, 2)), ((50_000.0, 3969), (50_000.0, 0)));
    // From 50 packets to 75: (75 x 0.5 / 0.4)^(1/3) and (25 / 0.4)^(1/3).
    assert_eq!((epoch_after(document, 0), epoch_after(rfc, 0)), ((75_000.0, 4543), (75_000.0, 3969)));
}

/// arq §4.1: a timeout reduces the window, by the factor of a loss, where RFC 9438 leaves one packet.
#[test]
fn the_document_reduces_its_window_after_a_timeout() {
    let config = CubicConfig { beta: 0.5, form: CubicForm::Document, ..CubicConfig::default() };
    let mut bench = reduced_from(config, 100, 200.0);
    for (packets_left, plateau) in [(50.0, 100_000.0), (25.0, 50_000.0)] {
        bench.later(200);
        bench.report(ReportSpec { cause: Some(Cause::Timeout), lost: 1, ..ReportSpec::default() });
        let growth = &bench.controller.growth;
        assert_eq!((growth.window / 1000.0, growth.threshold / 1000.0), (packets_left, packets_left));
        assert_eq!(growth.plateau, plateau);
    }
}

/// arq §3.1, which part 3 builds on: three packets at a loss, one for each duplicate acknowledgement, none once a packet
/// sent since is acknowledged. Feedback that names packets beyond a gap, as RFC 9438 has it, needs none.
#[test]
fn the_document_inflates_its_window_in_fast_recovery() {
    let inflated = |form| {
        let mut bench = reduced_from(CubicConfig { beta: 0.5, form, ..CubicConfig::default() }, 100, 200.0);
        bench.later(200);
        bench.report(ReportSpec { lost: 1, ..ReportSpec::default() });
        let loss = (bench.packets(), bench.controller.inflation());
        bench.report(ReportSpec::default());
        let duplicate = bench.controller.inflation();
        bench.later(200);
        bench.report(ReportSpec { delivered: 1, age_millis: 1, ..ReportSpec::default() });
        (loss, duplicate, bench.controller.inflation())
    };
    assert_eq!(inflated(CubicForm::Document), ((53.0, 3_000), 4_000, 0));
    assert_eq!(inflated(CubicForm::Rfc9438), ((50.0, 0), 0, 0));
}
