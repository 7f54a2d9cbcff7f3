//! One event at a time.

use super::*;
use crate::recovery::congestion::ControllerFactory;
use crate::settings::{Setting, Settings};

fn send(recovery: &mut Recovery, number: u64, time: Time) {
    recovery.on_sent(SentPacket { number, time, bytes: PACKET, content: Content::Control(number as u32) }, false);
}

fn numbers(packets: &[SentPacket]) -> Vec<u64> {
    packets.iter().map(|sent| sent.number).collect()
}

#[test]
fn a_report_has_the_outcome_of_each_packet() {
    let mut recovery = recovery("cubic", millis(100));
    (0..10).for_each(|number| send(&mut recovery, number, at(number)));
    recovery.on_feedback(at(110), AckInfo::Ranges(&ranges(&[(8, 9), (4, 6), (0, 1)])), None).unwrap();
    let report = recovery.report();
    assert_eq!((report.now, report.cause), (at(110), Cause::Feedback));
    assert_eq!(numbers(report.delivered), [0, 1, 4, 5, 6, 8, 9]);
    assert_eq!(numbers(report.lost), [2, 3]);
    assert_eq!((report.delivered_bytes, report.lost_bytes), (7 * u64::from(PACKET), 2 * u64::from(PACKET)));
    assert_eq!(report.in_flight_before, 10 * u64::from(PACKET));
    assert_eq!(report.rtt, Some(millis(101)));
    assert!(report.lost.iter().all(|sent| sent.content == Content::Control(sent.number as u32)));
    assert_eq!(recovery.packets_in_flight(), 1);

    // Number 7 is overtaken by two: age decides, at 7 ms + 9/8 x 101 ms + RTT/32.
    let due = recovery.next_timeout().unwrap();
    assert!(due > at(7 + 113) && due < at(7 + 119), "{due:?}");
    assert_eq!(recovery.on_timeout(at(111)), Timeout::None);
    assert_eq!(recovery.on_timeout(due), Timeout::Lost);
    assert_eq!((recovery.report().cause, numbers(recovery.report().lost)), (Cause::LossTimer, vec![7]));
    assert_eq!((recovery.bytes_in_flight(), recovery.next_timeout()), (0, None));

    recovery.on_feedback(at(130), AckInfo::Ranges(&ranges(&[(7, 9), (0, 1)])), None).unwrap();
    let report = recovery.report();
    assert_eq!((numbers(report.spurious), report.delivered.len(), report.lost.len()), (vec![7], 0, 0));
    assert_eq!(report.rtt, None, "the largest packet named is old news");
    let stats = recovery.stats();
    assert_eq!((stats.sent_packets, stats.delivered_packets, stats.lost_packets), (10, 7, 3));
    assert_eq!((stats.spurious_packets, stats.spurious_bytes), (1, u64::from(PACKET)));
}

#[test]
fn only_the_largest_packet_gives_a_round_trip_and_the_delay_is_taken_off() {
    let mut recovery = recovery("cubic", millis(80));
    send(&mut recovery, 0, at(0));
    recovery.on_untracked(1, 100);
    recovery.on_feedback(at(90), AckInfo::Ranges(&ranges(&[(0, 1)])), None).unwrap();
    assert_eq!(recovery.report().rtt, None, "the largest was not tracked");
    send(&mut recovery, 2, at(100));
    let packets = PacketRanges { delay_micros: 8000, ranges: vec![(0, 2)] };
    recovery.on_feedback(at(196), AckInfo::Ranges(&packets), None).unwrap();
    assert_eq!(recovery.report().rtt, Some(millis(96)));
    assert_eq!(recovery.rtt().smoothed(), millis(81)); // (80 * 7 + 88) / 8
}

#[test]
fn lies_are_refused_whole() {
    let mut recovery = recovery("cubic", millis(50));
    (0..5).for_each(|number| send(&mut recovery, number, at(0)));
    recovery.on_skipped(5);
    send(&mut recovery, 6, at(0));
    assert_eq!(
        recovery.on_feedback(at(60), AckInfo::Ranges(&ranges(&[(0, 6)])), None),
        Err(UnsentAcknowledged { number: 5 })
    );
    assert_eq!(
        recovery.on_feedback(at(60), AckInfo::Ranges(&ranges(&[(7, 7)])), None),
        Err(UnsentAcknowledged { number: 7 })
    );
    assert_eq!((recovery.packets_in_flight(), recovery.stats().delivered_packets), (6, 0));
    send(&mut recovery, 9, at(1));
    assert_eq!(recovery.on_feedback(at(60), AckInfo::Ranges(&ranges(&[(6, 9), (0, 4)])), None), Ok(()));
    assert_eq!(recovery.report().delivered.len(), 7, "7 and 8 were passed over: sent, and nothing of note");
}

#[test]
fn closing_empties_the_flight_without_a_loss() {
    let mut recovery = recovery("cubic", millis(50));
    (0..8).for_each(|number| send(&mut recovery, number, at(number)));
    let window = recovery.window();
    recovery.close(at(20));
    let report = recovery.report();
    assert_eq!((report.cause, report.lost.len(), report.in_flight_before), (Cause::Closed, 8, 8 * u64::from(PACKET)));
    assert_eq!((recovery.bytes_in_flight(), recovery.packets_in_flight(), recovery.next_timeout()), (0, 0, None));
    assert_eq!((recovery.window(), recovery.loss().loss()), (window, 0.05));
}

#[test]
fn the_window_blocks_and_one_packet_always_passes() {
    let mut recovery = recovery("cubic", millis(50));
    let mut now = Time::ZERO;
    for number in 0.. {
        match recovery.send_allowance(now) {
            SendAllowance::Bytes(bytes) => {
                assert!(bytes >= u64::from(PACKET));
                send(&mut recovery, number, now);
            }
            SendAllowance::Wait(until) => now = until,
            SendAllowance::Blocked => break,
        }
    }
    assert_eq!(recovery.packets_in_flight(), 10);
    assert!(now < at(50), "the initial window leaves within a round trip: {now:?}");
    recovery.set_max_packet(20_000);
    recovery.close(now);
    assert!(matches!(recovery.send_allowance(at(1000)), SendAllowance::Bytes(bytes) if bytes >= 20_000));
}

#[test]
fn probes_are_sent_into_silence_and_call_nothing_lost() {
    let mut recovery = recovery("cubic", millis(64));
    (0..3).for_each(|number| send(&mut recovery, number, at(0)));
    // 64 + 4 x 32 + 4 ms.
    assert_eq!(recovery.next_timeout(), Some(at(196)));
    assert_eq!(recovery.on_timeout(at(195)), Timeout::None);
    let (mut now, mut last_sent) = (at(196), at(0));
    for (probe, wait) in [(3, 392), (4, 784), (5, 1000), (6, 1000)] {
        assert_eq!(recovery.on_timeout(now), Timeout::Probe);
        recovery.on_sent(SentPacket { number: probe, time: now, bytes: 60, content: Content::Nothing }, true);
        let next = recovery.next_timeout().unwrap();
        assert_eq!(next.since(now), millis(wait));
        (now, last_sent) = (next, now);
    }
    assert_eq!((recovery.stats().lost_packets, recovery.stats().probe_packets), (0, 4));
    assert_eq!(recovery.ecn_codepoint(), EcnCodepoint::NotEct, "perhaps marks do not pass");
    // Only the last probe arrives: all before it is lost over more than three probe timeouts.
    recovery.on_feedback(last_sent + millis(64), AckInfo::Ranges(&ranges(&[(6, 6)])), None).unwrap();
    assert_eq!(numbers(recovery.report().lost), [0, 1, 2, 3, 4, 5]);
    assert_eq!(recovery.window(), 2 * u64::from(PACKET), "persistent congestion");
    assert_eq!(recovery.packets_in_flight(), 0);
}

#[test]
fn an_unanswered_timer_does_not_spin() {
    let mut recovery = recovery("cubic", millis(64));
    send(&mut recovery, 0, at(0));
    let mut fired = 0;
    while let Some(due) = recovery.next_timeout().filter(|&due| due < at(60_000)) {
        assert_eq!(recovery.on_timeout(due), Timeout::Probe);
        fired += 1;
    }
    assert!((60..65).contains(&fired), "{fired} timeouts in a minute without one probe sent");
}

#[test]
fn marks_reach_the_controller_once() {
    let mut recovery = recovery("cubic", millis(50));
    (0..10).for_each(|number| send(&mut recovery, number, at(0)));
    assert_eq!(recovery.ecn_codepoint(), EcnCodepoint::Ect0);
    let window = recovery.window();
    let counts = EcnCounts { ect0: 7, ect1: 0, ce: 2 };
    recovery.on_feedback(at(50), AckInfo::Ranges(&ranges(&[(0, 8)])), Some(counts)).unwrap();
    assert_eq!(recovery.report().newly_marked, 2);
    assert!(recovery.window() < window, "{}", recovery.window());
    let reduced = recovery.window();
    recovery
        .on_feedback(at(51), AckInfo::Ranges(&ranges(&[(0, 9)])), Some(EcnCounts { ect0: 7, ect1: 0, ce: 3 }))
        .unwrap();
    assert_eq!((recovery.report().newly_marked, recovery.window()), (1, reduced), "one reduction per round trip");
    assert_eq!((recovery.ecn().state(), recovery.stats().marked_packets), (EcnState::Capable, 3));
}

#[test]
fn passed_over_numbers_count_as_marked() {
    let mut recovery = recovery("cubic", millis(50));
    send(&mut recovery, 3, at(0));
    let counts = EcnCounts { ect0: 4, ect1: 0, ce: 0 };
    recovery.on_feedback(at(50), AckInfo::Ranges(&ranges(&[(0, 3)])), Some(counts)).unwrap();
    assert_eq!(recovery.ecn().state(), EcnState::Capable);
}

#[test]
fn an_application_limited_sender_is_distinguished() {
    let mut recovery = recovery("cubic", millis(50));
    let window = recovery.window();
    for round in 0..20 {
        send(&mut recovery, round, at(round * 60));
        recovery.set_app_limited();
        recovery.on_feedback(at(round * 60 + 50), AckInfo::Ranges(&ranges(&[(0, round)])), None).unwrap();
        assert!(recovery.report().app_limited);
        if round > 0 {
            assert!(recovery.report().rate_sample.unwrap().app_limited);
        }
    }
    assert_eq!(recovery.window(), window);
}

#[test]
fn pacing_follows_the_window_where_the_controller_gives_no_rate() {
    let mut recovery = Recovery::new(&config("cubic"), Time::ZERO, OVERHEAD);
    assert_eq!(recovery.pacing_rate(), None, "no round trip is known");
    recovery.set_rtt_from_handshake(Time::ZERO, millis(50));
    let bits = |gain: f64, window: u64| Some(Rate::from_bits_per_second((gain * 8.0 * window as f64 / 0.05) as u64));
    assert_eq!(recovery.window(), 10 * 1228);
    assert_eq!(recovery.pacing_rate(), bits(2.0, 12_280));
    recovery.set_max_packet(PACKET);
    assert_eq!(recovery.pacing_rate(), bits(2.0, 14_790));
    (0..5).for_each(|number| send(&mut recovery, number, at(0)));
    recovery.on_feedback(at(50), AckInfo::Ranges(&ranges(&[(4, 4)])), None).unwrap();
    assert_eq!((recovery.window(), recovery.pacing_rate()), (10_353, bits(1.25, 10_353)));
    recovery.set_limit(Some(Rate::from_bits_per_second(1_000_000)));
    assert_eq!(recovery.pacing_rate(), Some(Rate::from_bits_per_second(1_000_000)));
    recovery.set_limit(None);
    assert_eq!(recovery.pacing_rate(), bits(1.25, 10_353));
}

/// A controller from another crate: a window that grows with deliveries.
#[derive(Clone, Debug, Default, PartialEq)]
struct Growing(u64);

impl Settings for Growing {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[];
}

impl ControllerFactory for Growing {
    const NAME: &'static str = "growing";

    fn build(&self, _max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(self.clone())
    }
}

impl CongestionControl for Growing {
    fn on_path(&mut self, _path: &PathView<'_>) {}
    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {}
    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        assert!(path.rtt.has_sample() && report.cause != Cause::Closed);
        self.0 += report.delivered_bytes;
    }
    fn window(&self) -> u64 {
        self.0
    }
    fn rate(&self) -> Option<Rate> {
        None
    }
    fn name(&self) -> &'static str {
        Self::NAME
    }
    fn in_slow_start(&self) -> bool {
        false
    }
}

#[test]
fn a_custom_controller_takes_part() {
    let window = 3 * u64::from(PACKET);
    let config = RecoveryConfig { congestion: CongestionConfig::custom(Growing(window)), ..RecoveryConfig::default() };
    let mut recovery = Recovery::new(&config, Time::ZERO, OVERHEAD);
    recovery.set_max_packet(PACKET);
    assert_eq!(recovery.congestion().name(), "growing");
    assert_eq!(recovery.send_allowance(Time::ZERO), SendAllowance::Bytes(window));
    (0..3).for_each(|number| send(&mut recovery, number, Time::ZERO));
    assert_eq!(recovery.send_allowance(Time::ZERO), SendAllowance::Blocked);
    recovery.on_feedback(at(20), AckInfo::Ranges(&ranges(&[(0, 0)])), None).unwrap();
    assert_eq!(recovery.window(), 4 * u64::from(PACKET));
    recovery.close(at(30));
    assert_eq!(recovery.window(), 4 * u64::from(PACKET));
}
