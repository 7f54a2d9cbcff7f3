//! Reno step by step.

use super::super::bench;
use super::*;
use bench::ReportSpec;
use std::time::Duration;

type Bench = bench::Bench<Reno>;

fn bench(numbers: &str, rtt_millis: u64) -> Bench {
    let config = crate::settings::read("reno", numbers, RenoConfig::default()).unwrap();
    Bench::new(Reno::new("reno", config, Response::STANDARD, Bench::PACKET), rtt_millis)
}

const fn acked(packets: u64) -> ReportSpec {
    ReportSpec {
        delivered: packets,
        cause: None,
        lost: 0,
        spurious: 0,
        marked: 0,
        app_limited: false,
        persistent: false,
        age_millis: 0,
        rtt: None,
        rate_sample: None,
    }
}

/// arq §3.1: from one segment to 64 by one for each acknowledgement, then by MSS^2 / cwnd.
#[test]
fn grows_as_the_document() {
    let mut bench = bench("", 100);
    assert_eq!(bench.controller.window(), 1000);
    for segments in 1..=63 {
        assert!(bench.controller.in_slow_start());
        bench.report(acked(1));
        assert_eq!(bench.controller.window(), (segments + 1) * 1000);
    }
    assert!(!bench.controller.in_slow_start());
    bench.report(acked(1));
    assert_eq!(bench.controller.window(), 64_015, "1000 * 1000 / 64000 = 15.625");
    bench.report(acked(1));
    assert_eq!(bench.controller.window(), 64_031, "and 15.621 more");
    bench.report(ReportSpec { app_limited: true, ..acked(10) });
    assert_eq!(bench.controller.window(), 64_031, "an unused window does not grow");
    bench.controller.window = 2e6;
    bench.report(acked(1));
    assert_eq!(bench.controller.window(), 2_000_001, "at least a byte");
}

/// arq §3.1: ssthresh is half the window, the window ssthresh + 3 MSS until new data is acknowledged, and then
/// ssthresh.
#[test]
fn fast_recovery_halves_inflates_and_deflates() {
    let mut bench = bench("", 100);
    bench.controller.window = 40_000.0;
    bench.report(ReportSpec { lost: 1, ..acked(0) });
    assert_eq!((bench.controller.window(), bench.controller.threshold), (23_000, 20_000.0));
    bench.later(10);
    bench.report(acked(0));
    assert_eq!(bench.controller.window(), 24_000, "a duplicate acknowledgement inflates");
    bench.report(ReportSpec { lost: 1, ..acked(0) });
    assert_eq!(bench.controller.window(), 24_000, "one reduction a window of data");
    bench.report(acked(3));
    assert_eq!(bench.controller.window(), 22_000, "a partial acknowledgement of three packets");
    bench.report(acked(30));
    assert_eq!(bench.controller.window(), 21_000, "one packet stays");
    bench.later(200);
    bench.report(acked(1));
    assert_eq!(
        bench.controller.window(),
        20_050,
        "packets sent in recovery have arrived: ssthresh, and 1000 * 1000 / 20000 more"
    );
    bench.report(acked(0));
    assert_eq!(bench.controller.window(), 20_050, "nothing inflates outside of recovery");
}

#[test]
fn a_timeout_leaves_one_segment_and_slow_start() {
    let mut bench = bench("", 100);
    bench.controller.window = 40_000.0;
    let timeout = ReportSpec { cause: Some(Cause::Timeout), lost: 40, ..acked(0) };
    bench.report(timeout);
    assert_eq!((bench.controller.window(), bench.controller.threshold), (1000, 20_000.0));
    bench.later(1000);
    bench.report(timeout);
    assert_eq!((bench.controller.window(), bench.controller.threshold), (1000, 20_000.0));
    bench.later(1000);
    bench.report(acked(1));
    assert_eq!((bench.controller.window(), bench.controller.in_slow_start()), (2000, true));
    bench.report(ReportSpec { lost: 1, persistent: true, ..acked(0) });
    assert_eq!((bench.controller.window(), bench.controller.threshold), (1000, 2000.0));
}

/// lt-tcp §1.1: loss has no effect, and a mark halves the window, at most once in a round trip.
#[test]
fn the_window_can_be_driven_by_marks_alone() {
    let mut bench = bench("initial=40,threshold=none,inflation=0,signal=ecn", 100);
    bench.report(ReportSpec { lost: 20, ..acked(10) });
    assert_eq!(bench.packets(), 50.0, "still slow start");
    bench.report(ReportSpec { marked: 1, ..acked(1) });
    assert_eq!(bench.packets(), 25.0);
    bench.later(50);
    bench.report(ReportSpec { marked: 5, ..acked(5) });
    assert_eq!(bench.packets(), 25.0);
    bench.later(51);
    bench.report(ReportSpec { marked: 1, ..acked(1) });
    assert_eq!(bench.packets(), 12.5);
    bench.report(ReportSpec { cause: Some(Cause::Timeout), lost: 12, ..acked(0) });
    assert_eq!(bench.packets(), 12.5, "and not when all of it is lost");
}

/// RFC 9000 section 13.4.2.2: a path that fails validation is treated as one without ECN, where losses are the only
/// sign of congestion.
#[test]
fn losses_replace_marks_without_ecn() {
    let mut bench = bench("initial=40,threshold=none,inflation=0,signal=ecn", 100);
    bench.report(ReportSpec { lost: 1, ..acked(0) });
    assert_eq!(bench.packets(), 40.0);
    bench.ecn_usable = false;
    bench.report(ReportSpec { lost: 1, ..acked(0) });
    assert_eq!((bench.packets(), bench.controller.in_slow_start()), (20.0, false));
    bench.later(1000);
    bench.report(ReportSpec { cause: Some(Cause::Timeout), lost: 20, ..acked(0) });
    assert_eq!((bench.packets(), bench.controller.threshold), (1.0, 10_000.0));
    // Marks again: the window grows back as in the first slow start, and losses have no effect.
    bench.ecn_usable = true;
    bench.later(1000);
    bench.report(ReportSpec { lost: 5, ..acked(1) });
    assert_eq!((bench.packets(), bench.controller.in_slow_start()), (2.0, true));
    bench.report(ReportSpec { marked: 1, ..acked(20) });
    assert_eq!((bench.packets(), bench.controller.in_slow_start()), (2.0, false), "and a mark ends that");
}

/// RFC 3168 section 6.1.2: a mark halves as a loss does. Three duplicates show that three packets have left the
/// network; a mark does not.
#[test]
fn a_mark_inflates_nothing() {
    for (event, window) in
        [(ReportSpec { lost: 1, ..acked(0) }, 23_000), (ReportSpec { marked: 1, ..acked(0) }, 20_000)]
    {
        let mut bench = bench("", 100);
        bench.controller.window = 40_000.0;
        bench.report(event);
        assert_eq!((bench.controller.window(), bench.controller.threshold), (window, 20_000.0));
        assert_eq!(bench.controller.inflation(), window - 20_000);
    }
    let mut bench = bench("initial=20,threshold=none,limit=11", 100);
    bench.report(ReportSpec { lost: 1, ..acked(0) });
    assert_eq!(
        (bench.controller.window(), bench.controller.inflation()),
        (11_000, 1_000),
        "as far as the limit lets it"
    );
}

/// ttp §III-A: a receive window of 20 packets; dynamic right-sizing.
#[test]
fn a_limit_holds() {
    let mut bench = bench("initial=10,threshold=none,inflation=0,limit=20", 100);
    bench.report(acked(100));
    assert_eq!(bench.packets(), 20.0);
    bench.report(ReportSpec { lost: 1, ..acked(0) });
    assert_eq!(bench.packets(), 10.0, "half of the used window");
    // 155 Mbit/s and 104 ms hold 2015 packets of 1000 bytes.
    let mut bench = self::bench("initial=10,threshold=none,limit=told:155M", 104);
    bench.report(acked(10_000));
    assert_eq!(bench.controller.window(), 2_015_000);
    bench.rtt.sample(bench.now, Duration::from_millis(52), Duration::ZERO);
    bench.report(acked(1));
    assert_eq!(bench.controller.window(), 1_007_500);
}
