//! The packets that feedback names, and when it is sent.

use super::super::clock::FeedbackClock;
use super::super::deferred_acks::DeferredAcks;
use super::*;
use crate::wire::{BlockFeedback, FlowId, Heartbeat, PacketCountTiming, Spacing, SymbolId};
use std::collections::BTreeSet;
use std::time::Duration;

fn arrivals(packets: PacketFeedback, timing: FeedbackTiming) -> ReceivedRanges {
    ReceivedRanges::new(&FeedbackConfig { ecn: true, packets, blocks: Some(BlockFeedback::Needs), timing })
}

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// In whatever order packets arrive, the ranges name exactly those that arrived and are not known to be reported.
#[test]
fn ranges_list_the_arrived_packets() {
    for seed in 1..200u64 {
        let mut random = seed;
        let mut draw = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut arrivals = ReceivedRanges::new(&FeedbackConfig::everything(FeedbackTiming::EveryPacket));
        let (mut came, mut top, mut known) = (BTreeSet::new(), 0, BTreeSet::new());
        for feedback in 1..60 {
            for _ in 0..draw(20) {
                top += 1 + draw(3);
                let number = if draw(5) == 0 { top.saturating_sub(draw(12)) } else { top };
                if came.insert(number) {
                    arrivals.record_received(number, Time::ZERO);
                }
            }
            let Some(reported) = arrivals.report_ranges(feedback, Time::ZERO) else {
                continue;
            };
            let named: BTreeSet<u64> = reported.ranges.iter().flat_map(|(low, high)| *low..=*high).collect();
            assert!(named.is_subset(&came), "seed {seed}");
            assert!(reported.ranges.windows(2).all(|pair| pair[0].0 > pair[1].1 + 1), "seed {seed}");
            // The sender learns the packets of this feedback; with those known before, they are all that arrived.
            if draw(3) > 0 {
                known.extend(named);
                assert_eq!(known, came, "seed {seed}");
                arrivals.on_seen(feedback);
            }
        }
    }
}

#[test]
fn packets_that_ask_are_counted_whichever_are_named() {
    let mut arrivals = arrivals(PacketFeedback::Count, FeedbackTiming::EveryPacket);
    assert_eq!(arrivals.report_count(at(0)), None);
    for (number, asks, millis) in [(3, true, 1), (1, true, 2), (9, false, 3)] {
        arrivals.count(number, ReceivedEcn::Ce, asks, at(millis));
        arrivals.record_received(number, at(millis));
    }
    let count = PacketCount { largest: 3, delay_micros: 4_000, arrived: 2 };
    assert_eq!((arrivals.report_ranges(1, at(5)), arrivals.report_count(at(5))), (None, Some(count)));
    assert_eq!(arrivals.marks().ce, 3);
}

#[test]
fn the_last_packets_are_named_whatever_was_seen() {
    let mut arrivals = arrivals(PacketFeedback::Last(LastPackets { packets: 10 }), FeedbackTiming::EveryPacket);
    (0..100).filter(|number| number % 7 != 0).for_each(|number| arrivals.record_received(number, at(1)));
    let ranges = |reported: Option<PacketRanges>| reported.expect("packets arrived").ranges;
    // Nothing was reported before the first feedback.
    assert_eq!(ranges(arrivals.report_ranges(1, at(1))).last(), Some(&(1, 6)));
    arrivals.on_seen(1);
    assert_eq!(ranges(arrivals.report_ranges(2, at(1))), [(99, 99), (92, 97), (90, 90)]);
    // More have arrived than the number to report: no unreported one is omitted.
    (100..120).for_each(|number| arrivals.record_received(number, at(2)));
    assert_eq!(ranges(arrivals.report_ranges(3, at(2))), [(100, 119)]);
    assert_eq!(ranges(arrivals.report_ranges(4, at(2))), [(110, 119)]);
    // A packet overtaken by more is no longer reported.
    arrivals.record_received(91, at(3));
    assert_eq!(ranges(arrivals.report_ranges(5, at(3))), [(110, 119)]);
    assert!(arrivals.ranges.len() < 10, "{:?}", arrivals.ranges);
    assert_eq!(arrivals.missing(10), 0);
}

#[test]
fn late_packets_are_reported_again_after_any_number_of_feedbacks() {
    let mut arrivals = arrivals(PacketFeedback::Ranges, FeedbackTiming::EveryPacket);
    for feedback in 1..=10 {
        arrivals.record_received(feedback * 10, at(1));
        arrivals.report_ranges(feedback, at(1));
    }
    arrivals.record_received(25, at(2));
    arrivals.record_received(26, at(2));
    arrivals.on_seen(10);
    let reported = arrivals.report_ranges(11, at(3)).expect("packets arrived");
    assert_eq!(reported.ranges.last(), Some(&(25, 26)));
}

#[test]
fn withheld_packets_come_out_in_order_and_are_bounded() {
    let mut withheld = DeferredAcks::default();
    let id = |flow, block, esi| SymbolId { flow: FlowId(flow), block, esi };
    for (number, id) in [id(1, 0, 3), id(1, 0, 2), id(1, 1, 0), id(2, 0, 1), id(1, 0, 2)].into_iter().enumerate() {
        withheld.keep(id, number as u64, at(number as u64));
    }
    let mut release = |gap: Option<(u32, u32)>| {
        let mut out = Vec::new();
        withheld.release(|flow| if flow.0 == 1 { gap } else { Some((0, 1)) }, |number, when| out.push((number, when)));
        out
    };
    assert_eq!(release(Some((0, 2))), []);
    assert_eq!(release(Some((0, 4))), [(1, at(1)), (4, at(4)), (0, at(0))]);
    assert_eq!(release(None), [(2, at(2))]);
    let mut full = DeferredAcks::default();
    (0..70_000).for_each(|number| full.keep(id(1, 5, 0), number, at(0)));
    let mut out = 0;
    full.release(|_| None, |_, _| out += 1);
    assert_eq!(out, 65_536);
}

/// A clock that has sent its first feedback at 0 and knows a round trip of 40 ms.
fn clock(timing: FeedbackTiming) -> FeedbackClock {
    let mut clock = FeedbackClock::new(timing);
    clock.set_rtt(Duration::from_millis(40));
    clock.on_sent(100, at(0));
    clock
}

#[test]
fn every_packet_is_answered_whatever_share_of_the_bytes_that_takes() {
    let (mut clock, arrivals) =
        (clock(FeedbackTiming::EveryPacket), arrivals(PacketFeedback::InOrder, FeedbackTiming::EveryPacket));
    for packet in 1..1_000 {
        assert_eq!(clock.due(|| true), None);
        clock.on_packet(at(packet), 50, true, &arrivals);
        assert!(clock.due(|| true).is_some_and(|due| due <= at(packet)), "packet {packet}");
        clock.on_sent(100, at(packet));
    }
    // Spaced feedback has at most 2 % and sixteen in a round trip.
    let mut spaced = self::clock(FeedbackTiming::Spaced(Spacing::default()));
    for packet in 1..1_000 {
        spaced.on_packet(at(packet), 50, true, &arrivals);
        spaced.on_sent(100, at(packet));
    }
    spaced.on_packet(at(1_000), 50, true, &arrivals);
    assert_eq!(spaced.due(|| true), Some(at(999) + Duration::from_micros(2_500)));
}

#[test]
fn a_heart_beats_as_long_as_anything_is_unfinished() {
    let timing = FeedbackTiming::OnBlocks(Heartbeat { heartbeat: Duration::from_millis(100) });
    let (mut clock, arrivals) = (clock(timing), arrivals(PacketFeedback::Ranges, timing));
    assert_eq!(clock.due(|| false), None, "nothing arrived and nothing is unfinished");
    assert_eq!(clock.due(|| true), Some(at(100)));
    clock.on_packet(at(1), 1_500, true, &arrivals);
    assert_eq!(clock.due(|| false), Some(at(40)), "one in a round trip");
    clock.on_done();
    assert_eq!(clock.due(|| false), Some(Time::ZERO), "a block is done");
    clock.on_sent(100, at(50));
    assert_eq!(clock.due(|| true), Some(at(150)));
    clock.set_rtt(Duration::from_millis(3_200));
    assert_eq!(clock.due(|| true), Some(at(250)), "sixteen in a round trip");
}

#[test]
fn heartbeats_without_news_get_rarer_after_a_round_trip() {
    let timing = FeedbackTiming::OnBlocks(Heartbeat { heartbeat: Duration::from_millis(10) });
    let (mut clock, arrivals) = (clock(timing), arrivals(PacketFeedback::Ranges, timing));
    let beats = |clock: &mut FeedbackClock, until: u64| {
        let mut times = Vec::new();
        while let Some(due) = clock.due(|| true).filter(|due| *due <= at(until)) {
            times.push(due.since(Time::ZERO).as_millis());
            clock.on_sent(100, due);
        }
        times
    };
    let times = beats(&mut clock, 500);
    assert_eq!(times[..16], std::array::from_fn::<u128, 16, _>(|nth| 10 * (nth as u128 + 1)));
    assert_eq!(times[16..], [180, 220, 300, 380, 460]);
    clock.on_packet(at(500), 1_500, true, &arrivals);
    clock.on_sent(100, at(500));
    assert_eq!(beats(&mut clock, 530), [510, 520, 530], "news");
}

/// Sends a packet every millisecond, except the numbers that `lost` picks; returns after which of them feedback was
/// sent.
fn counted(timing: PacketCountTiming, packets: u64, lost: impl Fn(u64) -> bool) -> Vec<u64> {
    let timing = FeedbackTiming::Every(timing);
    let (mut clock, mut arrivals) = (clock(timing), arrivals(PacketFeedback::Last(LastPackets::default()), timing));
    let mut reported = Vec::new();
    for (nth, number) in (0..).filter(|number| !lost(*number)).take(packets as usize).enumerate() {
        let now = at(nth as u64);
        arrivals.record_received(number, now);
        clock.on_packet(now, 1_500, true, &arrivals);
        if clock.due(|| true).is_some_and(|due| due <= now) {
            arrivals.report_ranges(nth as u64, now);
            clock.on_sent(100, now);
            reported.push(nth as u64 + 1);
        }
    }
    reported
}

#[test]
fn feedback_by_packets_is_rarer_without_loss_and_sooner_after_much() {
    let counting = PacketCountTiming { packets: 1_000, threshold: 20_000, factor: 3 };
    assert_eq!(counted(counting, 7_000, |_| false), [3_000, 6_000]);
    // Numbers skipped on purpose are not losses.
    assert_eq!(counted(counting, 7_000, |number| number % 512 == 7), [3_000, 6_000]);
    assert_eq!(counted(counting, 3_500, |number| number % 100 == 7), [1_000, 2_000, 3_000]);
    assert_eq!(counted(counting, 2_000, |number| number % 20 == 7), [500, 1_000, 1_500, 2_000]);
    // It does not wait for three times as many when loss begins.
    assert_eq!(counted(counting, 2_600, |number| number > 1_900 && number % 20 == 7), [2_000, 2_500]);
}

#[test]
fn a_pause_ends_the_wait_and_the_next_packet_is_answered_at_once() {
    let timing = FeedbackTiming::Every(PacketCountTiming::default());
    let (mut clock, arrivals) = (clock(timing), arrivals(PacketFeedback::Ranges, timing));
    clock.on_packet(at(1), 1_500, true, &arrivals);
    clock.on_packet(at(3), 1_500, true, &arrivals);
    assert_eq!(clock.due(|| true), Some(at(13)), "a quarter of a round trip after the last");
    clock.on_tried();
    assert_eq!(clock.due(|| true), Some(at(13)), "a block's end waits with the rest");
    clock.on_sent(100, at(13));
    assert_eq!(clock.due(|| true), None);
    clock.on_packet(at(14), 1_500, true, &arrivals);
    assert_eq!(clock.due(|| true), Some(Time::ZERO), "it may be a probe");
    clock.on_sent(100, at(14));
    clock.on_packet(at(15), 1_500, false, &arrivals);
    assert_eq!(clock.due(|| true), None, "it does not ask");
    clock.hurry();
    assert_eq!(clock.due(|| true), Some(Time::ZERO));
}
