//! The ring against a naive map, and its cost.

use super::*;
use crate::recovery::delivery_rate::DeliveryRate;
use crate::recovery::sent_packets::Content;
use crate::recovery::test_path::Random;
use std::collections::BTreeMap;

fn entry(number: u64, time: Time) -> TrackedPacket {
    let sent = SentPacket { number, time, bytes: 100 + (number % 7) as u32, content: Content::Control(number as u32) };
    let snapshot = DeliveryRate::new(time).on_sent(time, 1000, 0);
    TrackedPacket { sent, snapshot, ordinal: number as u32, marked: false }
}

fn ranges(ranges: &[(u64, u64)]) -> PacketRanges {
    PacketRanges { delay_micros: 0, ranges: ranges.to_vec() }
}

/// Returns the ranges, highest first, of the numbers below `end` for which `has` is true.
fn ranges_of(end: u64, has: impl Fn(u64) -> bool) -> PacketRanges {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for number in (0..end).rev().filter(|&number| has(number)) {
        match found.last_mut() {
            Some(last) if last.0 == number + 1 => last.0 = number,
            _ => found.push((number, number)),
        }
    }
    ranges(&found)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Outstanding,
    Lost,
}

/// The behaviour of [`SentPackets`], in a map of all packets.
#[derive(Default)]
struct Model {
    packets: BTreeMap<u64, (SentPacket, Fate)>,
    largest: Option<u64>,
}

impl Model {
    fn acknowledge(&mut self, packets: &PacketRanges) -> (Vec<u64>, Vec<u64>) {
        let (mut delivered, mut late) = (Vec::new(), Vec::new());
        for &(low, high) in packets.ranges.iter().rev() {
            let numbers: Vec<u64> = self.packets.range(low..=high).map(|(&number, _)| number).collect();
            for number in numbers {
                match self.packets.remove(&number) {
                    Some((_, Fate::Outstanding)) => delivered.push(number),
                    _ => late.push(number),
                }
            }
        }
        self.largest = self.largest.max(packets.ranges.first().map(|range| range.1));
        (delivered, late)
    }

    fn detect(&mut self, now: Time, rule: LossRule) -> (Vec<u64>, Option<Time>) {
        let mut lost = Vec::new();
        let mut next = None;
        let Some(largest) = self.largest else {
            return (lost, next);
        };
        for (&number, (sent, fate)) in self.packets.range_mut(..=largest) {
            if *fate == Fate::Lost {
                continue;
            }
            if largest - number >= rule.packets || sent.time + rule.age <= now {
                *fate = Fate::Lost;
                lost.push(number);
            } else if next.is_none() {
                next = Some(sent.time + rule.age);
            }
        }
        (lost, next)
    }

    fn outstanding(&self) -> (u64, usize) {
        let outstanding = self.packets.values().filter(|(_, fate)| *fate == Fate::Outstanding);
        let bytes: Vec<u64> = outstanding.map(|(sent, _)| u64::from(sent.bytes)).collect();
        (bytes.iter().sum(), bytes.len())
    }
}

/// Does one run: packets of all kinds, a network that loses and reorders, feedback that repeats, shrinks and arrives
/// late.
fn agrees_with_the_model(seed: u64) {
    let mut random = Random::new(seed);
    let mut flight = SentPackets::default();
    let mut model = Model::default();
    let mut received: Vec<bool> = Vec::new();
    let mut now = Time::ZERO;
    let replay = format!("seed {seed}: cargo test -p downpour-transport ring_agrees_with_a_map");
    let mut tracked = 0;
    for _ in 0..random.below(300) {
        now += Duration::from_millis(random.below(20));
        for _ in 0..random.below(40) {
            let number = received.len() as u64;
            match random.below(20) {
                0 => flight.push_skipped(number),
                1 => flight.push_untracked(number),
                2 => {}
                _ => {
                    flight.push(entry(number, now));
                    model.packets.insert(number, (entry(number, now).sent, Fate::Outstanding));
                    tracked += 1;
                }
            }
            received.push(false);
        }
        let known = flight.next_number();
        for number in known.saturating_sub(120)..known {
            received[number as usize] |= random.below(8) == 0 && !flight.skipped.contains(&number);
        }
        let from = known.saturating_sub(random.below(200));
        let until = if random.below(4) == 0 { known.saturating_sub(random.below(50)) } else { known };
        let skipped: Vec<u64> = flight.skipped.iter().copied().collect();
        let feedback =
            ranges_of(until, |number| number >= from && received[number as usize] && !skipped.contains(&number));
        assert_eq!(flight.check(&feedback), Ok(()), "{replay}");
        let (mut delivered, mut late) = (Vec::new(), Vec::new());
        flight.acknowledge(&feedback, |arrival| match arrival {
            AckedPacket::Delivered(entry) => delivered.push(entry.sent.number),
            AckedPacket::Late(entry) => late.push(entry.sent.number),
        });
        assert_eq!((delivered, late), model.acknowledge(&feedback), "{replay}");

        let rule = LossRule { packets: 3 + random.below(60), age: Duration::from_millis(20 + random.below(100)) };
        let mut lost = Vec::new();
        let next = flight.detect(now, rule, |entry| lost.push(entry.sent.number));
        assert_eq!((lost, next), model.detect(now, rule), "{replay}");
        assert_eq!((flight.bytes(), flight.packets()), model.outstanding(), "{replay}");
    }
    let mut given_up = 0;
    flight.lose_all_below(now, u64::MAX, |_| given_up += 1);
    assert_eq!(given_up, model.outstanding().1, "{replay}");
    assert_eq!((flight.bytes(), flight.packets()), (0, 0), "{replay}: of {tracked}");
}

#[test]
fn ring_agrees_with_a_map() {
    (0..400).for_each(agrees_with_the_model);
}

#[test]
fn acknowledging_unsent_packets_changes_nothing() {
    let mut flight = SentPackets::default();
    assert_eq!(flight.check(&ranges(&[(0, 0)])), Err(UnsentAcknowledged { number: 0 }));
    (0..10).for_each(|number| flight.push(entry(number, Time::ZERO)));
    flight.push_skipped(10);
    flight.push(entry(11, Time::ZERO));
    flight.push_untracked(12);
    assert_eq!(flight.check(&ranges(&[(0, 13)])), Err(UnsentAcknowledged { number: 13 }));
    assert_eq!(flight.check(&ranges(&[(u64::MAX, u64::MAX)])), Err(UnsentAcknowledged { number: u64::MAX }));
    assert_eq!(flight.check(&ranges(&[(10, 12), (0, 3)])), Err(UnsentAcknowledged { number: 10 }));
    assert_eq!(flight.check(&ranges(&[(12, 12), (4, 10)])), Err(UnsentAcknowledged { number: 10 }));
    assert_eq!(flight.check(&ranges(&[(11, 12), (0, 9)])), Ok(()));
    assert_eq!(flight.packets(), 11);
    let mut count = 0;
    flight.acknowledge(&ranges(&[(11, 12), (0, 9)]), |_| count += 1);
    assert_eq!((count, flight.packets(), flight.slots.len()), (11, 0, 0));
    assert_eq!(
        flight.check(&ranges(&[(10, 10)])),
        Err(UnsentAcknowledged { number: 10 }),
        "remembered after it left the ring"
    );
}

#[test]
fn malformed_ranges_do_no_harm() {
    let mut flight = SentPackets::default();
    (0..10).for_each(|number| flight.push(entry(number, Time::ZERO)));
    let mut seen = Vec::new();
    for bad in [&[(5, 4)][..], &[(2, 3), (2, 3)], &[(0, 1), (6, 6)], &[]] {
        flight.acknowledge(&ranges(bad), |arrival| {
            if let AckedPacket::Delivered(entry) = arrival {
                seen.push(entry.sent.number);
            }
        });
    }
    assert_eq!(seen, [2, 3, 6, 0, 1]);
    assert_eq!(flight.packets(), 5);
}

/// 10,000 packets per round trip for 20 round trips, every 50th lost, feedback 32 times a round trip, each naming
/// everything of the last 1.25 round trips: each packet is named 40 times.
#[test]
fn repeated_news_costs_nothing_per_packet() {
    const ROUND: u64 = 10_000;
    let mut flight = SentPackets::default();
    let rule = LossRule { packets: 3, age: Duration::from_secs(9) };
    let (mut frames, mut named, mut range_count, mut delivered, mut lost) = (0_u64, 0_u64, 0_u64, 0_u64, 0_u64);
    for number in 0..20 * ROUND {
        let now = Time::from_nanos(number * 10_000);
        flight.push(entry(number, now));
        if number % (ROUND / 32) != 0 || number < ROUND {
            continue;
        }
        let newest = number - ROUND;
        let oldest = newest.saturating_sub(ROUND * 5 / 4);
        let feedback = ranges_of(newest + 1, |number| number >= oldest && number % 50 != 7);
        frames += 1;
        named += feedback.ranges.iter().map(|(low, high)| high - low + 1).sum::<u64>();
        range_count += feedback.ranges.len() as u64;
        flight.acknowledge(&feedback, |_| delivered += 1);
        flight.detect(now, rule, |_| lost += 1);
        // Lost packets are forgotten after three round trips.
        flight.forget(now - Duration::from_nanos(3 * ROUND * 10_000));
    }
    assert!(lost * 48 < delivered && delivered < lost * 50, "{delivered} delivered, {lost} lost");
    assert!(named > 35 * delivered, "{named} packets named for {delivered} delivered");
    let budget = 4 * (delivered + lost) + 4 * range_count + frames;
    assert!(flight.visits < budget, "{} slot visits, budget {budget}, {named} packets named", flight.visits);
    assert!(flight.slots.len() < 5 * ROUND as usize, "{}", flight.slots.len());
    println!("{} visits for {delivered} delivered, {lost} lost, {range_count} ranges, {named} named", flight.visits);
}

#[test]
fn late_packets_are_remembered_within_bounds() {
    let mut flight = SentPackets::default();
    flight.push(entry(0, Time::ZERO));
    let rule = LossRule { packets: 3, age: Duration::from_secs(9) };
    for number in 1..200_000 {
        flight.push(entry(number, Time::ZERO));
        flight.acknowledge(&ranges(&[(number, number)]), |_| {});
        flight.detect(Time::ZERO, rule, |entry| assert_eq!(entry.sent.number, 0));
        assert!(flight.slots.len() <= LATE_PACKETS + 1, "{}", flight.slots.len());
    }
    assert_eq!(flight.slots.len(), 0);
    assert_eq!(flight.packets(), 0);
}
