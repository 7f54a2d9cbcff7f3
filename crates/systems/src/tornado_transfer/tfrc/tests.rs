//! TFRC against its equation.

use super::*;
use transport::congestion::{Bench as TestBench, ReportSpec};
use transport::recovery::{Content, SentPacket};

type Bench = TestBench<Tfrc>;

const RTT: Duration = Duration::from_millis(100);

fn bench() -> Bench {
    Bench::new(Tfrc::new(TfrcConfig::default(), Bench::PACKET), 100)
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= expected * share
}

/// Lets a round trip pass in which the `packets` packets sent evenly in the previous one are acknowledged, except those
/// in `lost`.
fn round(bench: &mut Bench, first: u64, packets: u64, lost: &[u64]) {
    for at in 0..packets {
        bench.now += RTT / u32::try_from(packets).unwrap();
        let sent = SentPacket { number: first + at, time: bench.now - RTT, bytes: 1000, content: Content::Nothing };
        let event = ReportSpec { rtt: Some(RTT), ..ReportSpec::default() };
        if lost.contains(&(first + at)) {
            bench.report_of(event, &[], &[sent], &[]);
        } else {
            bench.report_of(event, &[sent], &[], &[]);
        }
    }
}

/// Worked out by hand: 1000 / (0.1 (sqrt(0.02 / 3) + 12 sqrt(0.03 / 8) 0.01 (1 + 32 0.0001))).
#[test]
fn the_equation_and_its_inverse() {
    let rate = throughput(1000.0, 0.1, 0.01);
    assert!(near(rate, 112_332.0, 1e-4), "{rate}");
    assert!(near(loss_for(1000.0, 0.1, rate), 0.01, 1e-6));
    assert!(
        near(throughput(1000.0, 0.1, 1e-6), 1000.0 / 0.1 / (2e-6_f64 / 3.0).sqrt(), 1e-3),
        "Mathis where loss is rare"
    );
}

#[test]
fn slow_start_doubles_until_the_first_loss_event() {
    let mut bench = bench();
    assert_eq!(bench.controller.rate, 30_000.0, "three packets in a round trip");
    let mut number = 0;
    // The first round trip of feedback begins with the first feedback.
    round(&mut bench, number, 3, &[]);
    assert_eq!(bench.controller.rate, 30_000.0);
    for _ in 0..4 {
        number += 100;
        let before = bench.controller.rate;
        round(&mut bench, number, (before / 10_000.0) as u64, &[]);
        assert!(bench.controller.in_slow_start());
        assert!(near(bench.controller.rate, 2.0 * before, 0.15), "{} after {before}", bench.controller.rate);
    }
    let rate = bench.controller.rate;
    let packets = (rate / 10_000.0) as u64;
    // The interval before the first loss is the one for which the equation gives the rate at that loss: between half
    // this rate and this rate.
    round(&mut bench, number + 100, packets, &[number + 100 + packets - 5]);
    assert!(!bench.controller.in_slow_start());
    assert!((0.45 * rate..=rate).contains(&bench.controller.rate), "{} after {rate}", bench.controller.rate);
}

#[test]
fn the_rate_settles_where_the_equation_has_it() {
    let mut bench = bench();
    let mut number = 0;
    for _ in 0..400 {
        let packets = ((bench.controller.rate / 10_000.0) as u64).max(1);
        // One packet of a hundred is lost.
        let lost: Vec<u64> = (number..number + packets).filter(|at| at % 100 == 99).collect();
        round(&mut bench, number, packets, &lost);
        number += packets;
    }
    assert!(near(bench.controller.history.event_rate().unwrap(), 0.01, 0.01));
    assert!(near(bench.controller.rate, 112_332.0, 0.02), "{}", bench.controller.rate);
    assert_eq!(bench.controller.rate().unwrap().bits_per_second(), (8.0 * bench.controller.rate) as u64);
}

/// Section 5.2: losses within a round trip of the first are one event.
#[test]
fn losses_of_one_round_trip_are_one_event() {
    let mut bench = bench();
    round(&mut bench, 0, 100, &[10, 11, 12, 50, 90]);
    assert_eq!(bench.controller.history.closed_intervals(), 1);
    round(&mut bench, 100, 100, &[105, 112]);
    assert_eq!(
        bench.controller.history.closed_intervals(),
        2,
        "102 packets after the first: a new one, and 112 belongs to it"
    );
}

#[test]
fn silence_halves_the_rate() {
    let mut bench = bench();
    round(&mut bench, 0, 30, &[]);
    let rate = bench.controller.rate;
    let heard = bench.now;
    bench.controller.on_sent(heard + Duration::from_millis(399), 1000, 0);
    assert_eq!(bench.controller.rate, rate);
    bench.controller.on_sent(heard + Duration::from_millis(401), 1000, 0);
    assert_eq!(bench.controller.rate, rate / 2.0);
    bench.controller.on_sent(heard + Duration::from_millis(700), 1000, 0);
    assert_eq!(bench.controller.rate, rate / 2.0, "the timer has been restarted");
    bench.controller.on_sent(heard + Duration::from_millis(802), 1000, 0);
    assert_eq!(bench.controller.rate, rate / 4.0);
    for hour in 1..100 {
        bench.controller.on_sent(heard + Duration::from_secs(3600 * hour), 1000, 0);
    }
    assert_eq!(bench.controller.rate, 1000.0 / 64.0, "a packet in 64 s at least");
}
