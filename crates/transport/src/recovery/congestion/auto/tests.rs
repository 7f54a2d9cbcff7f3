use super::super::bench::{self, ReportSpec};
use super::*;
use crate::recovery::sent_packets::Content;
use proptest::collection::vec;
use proptest::prelude::*;

type Bench = bench::Bench<Auto>;

const RTT: Option<Duration> = Some(Duration::from_millis(50));

/// A window of a hundred packets on a path of 50 ms, after the start.
fn cruising() -> Bench {
    let mut bench = Bench::new(Auto::new(AutoConfig::default(), Bench::PACKET), 50);
    bench.controller.on_sent(bench.now, Bench::PACKET, 0);
    bench.report(ReportSpec { delivered: 1, rtt: RTT, age_millis: 1, ..ReportSpec::default() });
    bench.controller.end_start(bench.now, 2_000_000.0 / FOUND);
    bench.controller.growth.window /= DOWN;
    bench.controller.phase = AutoPhase::Cruise;
    bench.controller.dips.put_off_down(bench.now, 3.0);
    assert_eq!(bench.packets().round(), 100.0);
    bench
}

#[test]
fn marks_reduce_by_fifteen_percent_once_a_round_trip() {
    let mut bench = cruising();
    bench.later(51);
    let marked = ReportSpec { delivered: 1, marked: 1, rtt: RTT, age_millis: 1, ..ReportSpec::default() };
    bench.report(marked);
    assert_eq!(bench.packets().round(), 85.0);
    bench.later(10);
    bench.report(ReportSpec { age_millis: 20, ..marked });
    assert_eq!(bench.packets().round(), 85.0, "sent before the reduction");
    bench.later(51);
    bench.report(marked);
    assert_eq!(bench.packets().round(), 72.0);
    bench.ecn_usable = false;
    bench.later(51);
    bench.report(marked);
    assert_eq!(bench.packets().round(), 72.0, "a path that mangles marks");
}

#[test]
fn an_outage_halves_the_window_once_and_its_losses_count_nowhere() {
    let mut bench = cruising();
    bench.later(51);
    bench.report(ReportSpec { delivered: 1, rtt: RTT, age_millis: 1, ..ReportSpec::default() });
    bench.later(499);
    bench.controller.on_repeated_pto(bench.now);
    assert_eq!(bench.packets().round(), 100.0, "a burst of losses, and the probes after it");
    for _ in 0..4 {
        bench.later(1000);
        bench.controller.on_repeated_pto(bench.now);
        assert_eq!(bench.packets().round(), 50.0);
    }
    bench.report(ReportSpec { delivered: 1, lost: 90, rtt: RTT, age_millis: 4_490, ..ReportSpec::default() });
    assert_eq!(bench.packets().round(), 50.0);
    for _ in 0..20 {
        bench.later(51);
        bench.report(ReportSpec { delivered: 1, rtt: RTT, age_millis: 50, ..ReportSpec::default() });
    }
    assert!(bench.packets().round() >= 50.0, "{}", bench.packets());
    assert_eq!(bench.controller.baseline.share(), 0.0);
}

#[test]
fn a_small_queue_reduces_to_the_path_content() {
    let mut bench = cruising();
    let queued = Some(Duration::from_micros(62_500));
    bench.later(51);
    bench.report(ReportSpec { delivered: 1, rtt: RTT, age_millis: 1, ..ReportSpec::default() });
    bench.later(51);
    bench.report(ReportSpec { delivered: 1, rtt: queued, age_millis: 1, ..ReportSpec::default() });
    assert_eq!(bench.packets().round(), 80.0, "50 / 62.5");
    bench.later(51);
    bench.report(ReportSpec { delivered: 1, rtt: queued, age_millis: 80, ..ReportSpec::default() });
    assert_eq!(bench.packets().round(), 80.0, "sent before the reduction");
}

/// A report of packets sent one after the other, some of which are lost.
#[derive(Clone, Copy, Debug)]
struct Fates {
    /// Milliseconds since the last report, and for which its newest packet was under way.
    after: u64,
    rtt: u64,
    delivered: u64,
    lost: u64,
    marked: bool,
}

fn fates() -> impl Strategy<Value = Fates> {
    let lost = prop_oneof![3 => Just(0), 1 => 1_u64..4, 1 => 10_u64..60];
    let parts =
        (1_u64..40, prop_oneof![50_u64..52, 50_u64..70, 70_u64..150], 1_u64..40, lost, prop::bool::weighted(0.05));
    parts.prop_map(|(after, rtt, delivered, lost, marked)| Fates { after, rtt, delivered, lost, marked })
}

proptest! {
    /// On any path each reduction has a reason sent after the one before, and apart from reductions and measurements
    /// the window never shrinks.
    #[test]
    fn nothing_sent_before_a_reduction_makes_another(all in vec(fates(), 50..400), competes in any::<bool>()) {
        let mut bench = cruising();
        if competes {
            bench.controller.mode = Mode::Compete(Box::new(Compete::new(bench.now, 0.02)));
        }
        let (mut number, mut newest) = (0, bench.now);
        for Fates { after, rtt, delivered, lost, marked } in all {
            bench.later(after);
            newest = newest.max(Time::from_nanos(bench.now.as_nanos() - rtt * 1_000_000));
            let mut packet = || {
                number += 1;
                SentPacket { number, time: newest, bytes: Bench::PACKET, content: Content::Nothing }
            };
            let lost: Vec<SentPacket> = (0..lost).map(|_| packet()).collect();
            let delivered: Vec<SentPacket> = (0..delivered).map(|_| packet()).collect();
            (0..lost.len() + delivered.len()).for_each(|_| bench.controller.on_sent(bench.now, Bench::PACKET, 0));
            let rtt = Some(bench.now.since(newest));
            let of = |auto: &Auto| (auto.reduced, auto.growth.window, auto.phase);
            let (reduced, window, phase) = of(&bench.controller);
            bench.report_of(ReportSpec { marked: u64::from(marked), rtt, ..ReportSpec::default() }, &delivered, &lost, &[]);
            let (reduced_now, window_now, phase_now) = of(&bench.controller);
            if reduced_now > reduced {
                prop_assert!(newest >= reduced, "{:?} after a reduction at {:?}", newest, reduced);
            } else if [phase, phase_now] == [AutoPhase::Cruise; 2] {
                prop_assert!(window_now >= window, "{} after {}", window_now, window);
            }
        }
    }
}
