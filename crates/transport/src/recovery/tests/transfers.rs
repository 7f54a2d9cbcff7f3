//! Closed loops: the steady state of a controller and its path.

use super::*;

#[test]
fn fixed_rate_sends_at_its_rate_through_loss() {
    let rate = Rate::from_bits_per_second(100_000_000);
    for (seed, loss) in [(1, 0.0), (2, 0.05), (3, 0.3)] {
        let mut path = path("fixed-rate:100M", Conditions { loss, ..Conditions::clean(millis(50)) }, seed);
        path.run_until(at(10_000));
        let sent = path.recovery.stats().sent_bytes;
        let at_rate = rate.bytes_in(Duration::from_secs(10));
        // At most one batch of a millisecond more than R x t, and one less.
        assert!(sent.abs_diff(at_rate) <= 9 * u64::from(PACKET), "seed {seed}: {sent} bytes for {at_rate}");
        assert!(path.most_in_flight <= rate.bytes_in(millis(100)), "seed {seed}: {}", path.most_in_flight);
        assert!((path.recovery.loss().loss() - loss).abs() < 0.03, "seed {seed}: {}", path.recovery.loss().loss());
        assert_eq!(path.recovery.loss().loss() == 0.0, loss == 0.0, "seed {seed}");
        assert_eq!(path.recovery.stats().spurious_packets, 0, "seed {seed}");
        path.finish();
        let stats = path.recovery.stats();
        assert_eq!((path.recovery.bytes_in_flight(), path.recovery.packets_in_flight()), (0, 0), "seed {seed}");
        assert_eq!(stats.delivered_packets + stats.lost_packets, stats.sent_packets, "seed {seed}");
        assert_eq!(path.recovery.next_timeout(), None, "seed {seed}");
    }
}

#[test]
fn fixed_rate_keeps_its_rate_on_a_path_shorter_than_the_feedback_interval() {
    let rate = Rate::from_bits_per_second(5_000_000_000);
    let mut path = path("fixed-rate:5G", Conditions::clean(Duration::from_micros(100)), 1);
    path.run_until(at(200));
    let sent = path.recovery.stats().sent_bytes;
    assert!(sent.abs_diff(rate.bytes_in(millis(200))) <= 65 * u64::from(PACKET), "{sent}");
    assert_eq!(path.recovery.stats().lost_packets, 0);
}

#[test]
fn silence_stops_fixed_rate_after_two_round_trips() {
    let conditions = Conditions { dark_from: at(1000), dark_until: at(3000), ..Conditions::clean(millis(50)) };
    let mut path = path("fixed-rate:100M", conditions, 1);
    path.run_until(at(1000));
    let before = path.recovery.stats().sent_bytes;
    path.run_until(at(2900));
    let rate = Rate::from_bits_per_second(100_000_000);
    let stats = *path.recovery.stats();
    let probes = stats.probe_packets * u64::from(PACKET);
    assert!(stats.sent_bytes - before - probes <= rate.bytes_in(millis(100)), "{stats:?}");
    assert!((2..8).contains(&stats.probe_packets), "{stats:?}");
    assert_eq!(stats.lost_packets, 0, "a probe timeout calls nothing lost");
    path.run_until(at(5000));
    assert!(path.recovery.stats().lost_packets > 500, "{:?}", path.recovery.stats());
    path.finish();
    assert_eq!(path.recovery.packets_in_flight(), 0);
}

/// RFC 9438 section 5.1: with one loss every 1/p packets the window averages (C (3 + b) / (4 (1 - b)))^(1/4) x
/// (RTT / p)^(3/4) = 1.054 x (RTT / p)^(3/4) packets.
#[test]
fn cubic_averages_match_its_response_function() {
    let conditions = Conditions { periodic_loss: 10_000, ..Conditions::clean(millis(100)) };
    let mut path = path("cubic", conditions, 1);
    path.run_until(at(200_000));
    let mean = path.mean_window(at(40_000));
    let expected = 1.054 * (0.1_f64 / 1e-4).powf(0.75);
    assert!((mean / expected - 1.0).abs() < 0.1, "{mean} packets on average, {expected} expected");
    path.finish();
    assert_eq!(path.recovery.bytes_in_flight(), 0);
}

/// Where Reno is faster the window is Reno's: sqrt(3 / (2 p)) packets (RFC 9438 section 4.3).
#[test]
fn cubic_averages_renos_window_on_a_short_path() {
    let conditions = Conditions { periodic_loss: 1000, ..Conditions::clean(millis(10)) };
    let mut path = path("cubic", conditions, 1);
    path.run_until(at(60_000));
    let mean = path.mean_window(at(5000));
    let expected = (1.5_f64 / 1e-3).sqrt();
    assert!((mean / expected - 1.0).abs() < 0.15, "{mean} packets on average, {expected} expected");
}

#[test]
fn cubic_fills_a_bottleneck_and_does_not_flood_it_at_first() {
    let rate = Rate::from_bits_per_second(50_000_000);
    let bottleneck = Some((rate, rate.bytes_in(millis(60))));
    let mut path = path("cubic", Conditions { bottleneck, ..Conditions::clean(millis(60)) }, 1);
    path.run_until(at(3000));
    let start = *path.recovery.stats();
    // Classic slow start would lose 722 packets here: it doubles to twice the content of path and queue.
    assert!(start.lost_packets < 400, "slow start overshot: {start:?}");
    path.run_until(at(40_000));
    let end = *path.recovery.stats();
    let carried = rate.bytes_in(millis(37_000));
    let delivered = end.delivered_bytes - start.delivered_bytes;
    assert!(delivered as f64 > 0.97 * carried as f64, "{delivered} of {carried}: {end:?}");
    assert!((end.lost_packets * 500) < end.sent_packets, "{end:?}");
    assert_eq!(end.spurious_packets, 0);
}

#[test]
fn a_limit_holds_and_the_window_does_not_grow_unused() {
    let limit = Rate::from_bits_per_second(20_000_000);
    let mut path = path("cubic", Conditions::clean(millis(50)), 1);
    path.recovery.set_limit(Some(limit));
    path.run_until(at(20_000));
    let sent = path.recovery.stats().sent_bytes;
    assert!(sent <= limit.bytes_in(Duration::from_secs(20)) + 3 * u64::from(PACKET), "{sent}");
    assert!(sent >= limit.bytes_in(millis(19_800)), "{sent}");
    let used = limit.bytes_in(millis(50));
    assert!(path.recovery.window() < 4 * used, "{} with {used} used", path.recovery.window());
}

#[test]
fn reordering_raises_the_threshold_until_nothing_is_mistaken() {
    let conditions = Conditions { jitter: millis(4), ..Conditions::clean(millis(50)) };
    for seed in 1..=3 {
        let mut path = path("fixed-rate:100M", conditions, seed);
        path.run_until(at(2000));
        let learnt = path.recovery.stats().spurious_packets;
        assert!(learnt > 0, "seed {seed}");
        path.run_until(at(22_000));
        let stats = *path.recovery.stats();
        let sent = stats.sent_packets;
        // 4 ms of jitter reorder over 34 packets, which a threshold of 3 would constantly take for losses.
        assert!((stats.spurious_packets - learnt) * 500 < sent, "seed {seed}: {stats:?}");
        assert_eq!(stats.spurious_packets, stats.lost_packets, "seed {seed}: nothing was really lost");
        path.finish();
        assert_eq!(path.recovery.packets_in_flight(), 0, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = || {
        let conditions = Conditions { loss: 0.02, jitter: millis(3), ..Conditions::clean(millis(30)) };
        let mut path = path("cubic", conditions, 7);
        path.run_until(at(20_000));
        (*path.recovery.stats(), path.windows)
    };
    assert_eq!(run(), run());
}

/// Any mixture of loss, jitter, a small queue and an outage, with either controller.
#[test]
fn no_packet_stays_in_flight_on_any_path() {
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let mut draw = |bound: u64| random.below(bound);
        let rtt = Duration::from_micros(200 + draw(200_000));
        let rate = Rate::from_bits_per_second(2_000_000 + draw(50_000_000));
        let dark_from = at(draw(4000));
        let conditions = Conditions {
            loss: draw(60) as f64 / 100.0,
            jitter: rtt.mul_f64(draw(100) as f64 / 100.0),
            bottleneck: Some((rate, 3000 + draw(100_000))),
            dark_from,
            dark_until: dark_from + millis(draw(3000)),
            ..Conditions::clean(rtt)
        };
        let congestion = if draw(2) == 0 { "cubic" } else { "fixed-rate:10M" };
        let mut path = path(congestion, conditions, seed);
        path.run_until(at(4000));
        path.finish();
        let replay = format!("seed {seed}: cargo test -p downpour-transport whatever_the_path_does");
        let stats = path.recovery.stats();
        assert_eq!((path.recovery.bytes_in_flight(), path.recovery.packets_in_flight()), (0, 0), "{replay}");
        assert_eq!(path.recovery.next_timeout(), None, "{replay}");
        assert_eq!(stats.delivered_packets + stats.lost_packets, stats.sent_packets, "{replay}");
        assert!(stats.delivered_packets > 0 && stats.spurious_packets <= stats.lost_packets, "{replay}: {stats:?}");
    }
}
