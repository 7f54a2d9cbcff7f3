//! What arrived and when to say so: the receiver's half of feedback.

use crate::time::Time;
use crate::wire::{EcnCounts, FeedbackTiming, Heartbeat, PacketRanges, Spacing};
use std::collections::VecDeque;
use std::time::Duration;

/// Ranges kept at most: a path that loses every other packet still has the newest 4096 packets told.
const MAX_RANGES: usize = 2048;

/// Feedbacks remembered for when the sender names one of them as seen.
const MAX_HISTORY: usize = 4_096;

/// Which packets arrived, as ranges, newest first.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    ranges: VecDeque<(u64, u64)>,
    largest_at: Time,
    /// What lies below was told in a feedback that the sender has seen.
    floor: u64,
    /// Feedbacks sent: number, and the floor once it is known to be seen.
    told: VecDeque<(u32, u64)>,
    marks: EcnCounts,
}

/// The mark a datagram arrived with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedEcn {
    /// Not ECN-capable.
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Arrivals {
    /// Notes a packet that is authentic and new.
    pub(super) fn insert(&mut self, number: u64, ecn: ReceivedEcn, now: Time) {
        match ecn {
            ReceivedEcn::NotEct => {}
            ReceivedEcn::Ect0 => self.marks.ect0 += 1,
            ReceivedEcn::Ect1 => self.marks.ect1 += 1,
            ReceivedEcn::Ce => self.marks.ce += 1,
        }
        match self.ranges.front_mut() {
            Some((_, high)) if number == *high + 1 => *high = number,
            Some((_, high)) if number <= *high => return self.insert_late(number),
            _ => self.ranges.push_front((number, number)),
        }
        self.largest_at = now;
        self.ranges.truncate(MAX_RANGES);
    }

    /// A packet that others have overtaken.
    fn insert_late(&mut self, number: u64) {
        // Whatever was told so far did not name it.
        for (_, floor) in &mut self.told {
            *floor = (*floor).min(number);
        }
        self.floor = self.floor.min(number);
        let at = self.ranges.partition_point(|(low, _)| *low > number);
        let above = at.checked_sub(1).filter(|above| self.ranges[*above].0 == number + 1);
        let below = Some(at).filter(|at| self.ranges.get(*at).is_some_and(|(_, high)| *high + 1 == number));
        match (above, below) {
            (Some(above), Some(below)) => {
                self.ranges[above].0 = self.ranges[below].0;
                self.ranges.remove(below);
            }
            (Some(above), None) => self.ranges[above].0 = number,
            (None, Some(below)) => self.ranges[below].1 = number,
            (None, None) => self.ranges.insert(at, (number, number)),
        }
        self.ranges.truncate(MAX_RANGES);
    }

    /// What feedback `number` says: everything since the last one the sender is known to have seen.
    pub(super) fn tell(&mut self, number: u32, now: Time) -> Option<PacketRanges> {
        let (_, largest) = *self.ranges.front()?;
        let ranges = self.ranges.iter().take_while(|(_, high)| *high >= self.floor).copied().collect::<Vec<_>>();
        // What was told is told again until it is seen, the newest packet always.
        let ranges = if ranges.is_empty() { vec![(largest, largest)] } else { ranges };
        self.told.push_back((number, largest + 1));
        if self.told.len() > MAX_HISTORY {
            self.told.pop_front();
        }
        let delay_micros = u32::try_from(now.since(self.largest_at).as_micros()).unwrap_or(u32::MAX);
        Some(PacketRanges { delay_micros, ranges })
    }

    /// The sender has seen feedback `number`.
    pub(super) fn on_seen(&mut self, number: u32) {
        while let Some((told, floor)) = self.told.front().copied().filter(|(told, _)| *told <= number) {
            self.told.pop_front();
            if told == number {
                self.floor = self.floor.max(floor);
            }
        }
        while self.ranges.len() > 1 && self.ranges.back().is_some_and(|(_, high)| *high < self.floor) {
            self.ranges.pop_back();
        }
    }

    pub(super) const fn marks(&self) -> EcnCounts {
        self.marks
    }
}

/// When feedback goes out (design section 8): spaced by the round trip, at most 2 % of the bytes received, but always the
/// first, the urgent ones, and sixteen per round trip. Where every packet is to be answered, every packet is.
///
/// Departs: the design would let 2 % block all but one per round trip. A window of five packets is then answered once, its packets
/// wait for half a round trip on average, and loss-based controllers get half of what their response functions promise. Sixteen are
/// what a window of sixteen packets needs for an answer to each; they cost 2 kB a round trip.
#[derive(Debug)]
pub(super) struct FeedbackClock {
    timing: FeedbackTiming,
    rtt: Duration,
    number: u32,
    last: Option<Time>,
    pending: bool,
    urgent: bool,
    prompt: bool,
    received: u64,
    sent: u64,
}

impl FeedbackClock {
    /// Bytes received for each byte of feedback.
    const SHARE: u64 = 50;
    /// Feedbacks per round trip that the share does not block.
    const NEVER_BLOCKED: u32 = 16;
    /// Feedback that may go out before anything counts: a few packets' worth.
    const ALLOWANCE: u64 = 2_000;

    pub(super) const fn new(timing: FeedbackTiming) -> Self {
        Self {
            timing,
            rtt: Duration::ZERO,
            number: 0,
            last: None,
            pending: false,
            urgent: false,
            prompt: false,
            received: 0,
            sent: 0,
        }
    }

    pub(super) const fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// The round-trip time as the peer told it; zero before it did.
    pub(super) const fn rtt(&self) -> Duration {
        self.rtt
    }

    /// A packet arrived; `asks`: it asks for feedback.
    pub(super) const fn on_packet(&mut self, ip_bytes: u32, asks: bool) {
        self.received += ip_bytes as u64;
        self.pending |= asks;
    }

    /// Something the sender waits for is to be said at once.
    pub(super) const fn hurry(&mut self) {
        self.pending = true;
        self.urgent = true;
    }

    /// Something that the sender waits for is to be said at the usual time, whatever the share of feedback: where little is
    /// sent, a probe of the sender's costs more.
    pub(super) const fn prompt(&mut self) {
        self.pending = true;
        self.prompt = true;
    }

    /// Something is to be said, at the usual time.
    pub(super) const fn note(&mut self) {
        self.pending = true;
    }

    /// When the next feedback is due.
    pub(super) fn due(&self) -> Option<Time> {
        let last = match (self.pending, self.urgent, self.last) {
            (false, _, _) => return None,
            (true, false, Some(last)) => last,
            _ => return Some(Time::ZERO),
        };
        let interval = self.interval();
        let every = matches!(self.timing, FeedbackTiming::EveryPacket);
        let within_share = every || self.prompt || self.sent <= Self::ALLOWANCE + self.received / Self::SHARE;
        Some(last + if within_share { interval } else { interval.max(self.rtt / Self::NEVER_BLOCKED) })
    }

    /// The longest time for which feedback is held back on purpose.
    fn interval(&self) -> Duration {
        match self.timing {
            FeedbackTiming::EveryPacket => Duration::ZERO,
            FeedbackTiming::Spaced(Spacing { per_rtt, at_least }) => {
                (self.rtt / u32::from(per_rtt.max(1))).max(at_least)
            }
            FeedbackTiming::OnBlocks(Heartbeat { heartbeat }) => heartbeat,
            FeedbackTiming::Every(_) => self.rtt,
        }
    }

    /// The number of the feedback that goes out now.
    pub(super) const fn next_number(&mut self) -> u32 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    pub(super) const fn on_sent(&mut self, ip_bytes: u32, now: Time) {
        self.sent += ip_bytes as u64;
        self.last = Some(now);
        self.pending = false;
        self.urgent = false;
        self.prompt = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Whatever order packets come in, the ranges name exactly those that came and were not yet seen to be told.
    #[test]
    fn ranges_name_what_came() {
        for seed in 1..200u64 {
            let mut random = seed;
            let mut draw = move |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let mut arrivals = Arrivals::default();
            let (mut came, mut top, mut known) = (BTreeSet::new(), 0, BTreeSet::new());
            for feedback in 1..60u32 {
                for _ in 0..draw(20) {
                    top += 1 + draw(3);
                    let number = if draw(5) == 0 { top.saturating_sub(draw(12)) } else { top };
                    if came.insert(number) {
                        arrivals.insert(number, ReceivedEcn::NotEct, Time::ZERO);
                    }
                }
                let Some(told) = arrivals.tell(feedback, Time::ZERO) else {
                    continue;
                };
                let named: BTreeSet<u64> = told.ranges.iter().flat_map(|(low, high)| *low..=*high).collect();
                assert!(named.is_subset(&came), "seed {seed}");
                assert!(told.ranges.windows(2).all(|pair| pair[0].0 > pair[1].1 + 1), "seed {seed}");
                // What arrives at the sender is known there; with what it knew before, that is all that came.
                if draw(3) > 0 {
                    known.extend(named);
                    assert_eq!(known, came, "seed {seed}");
                    arrivals.on_seen(feedback);
                }
            }
        }
    }

    /// A window of five packets and a round trip of 32 ms: its answers are past 2 % of what comes.
    #[test]
    fn the_share_of_feedback_does_not_hold_up_a_small_window() {
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let spaced = FeedbackTiming::Spaced(Spacing { per_rtt: 32, at_least: Duration::from_millis(1) });
        for (timing, wait) in [(spaced, 2), (FeedbackTiming::EveryPacket, 0)] {
            let mut clock = FeedbackClock::new(timing);
            clock.set_rtt(Duration::from_millis(32));
            for packet in 0..100 {
                clock.on_packet(1479, true);
                clock.on_sent(120, at(packet * 6));
            }
            clock.on_packet(1479, true);
            assert_eq!(clock.due(), Some(at(594 + wait)), "{timing:?}");
        }
        let mut clock = FeedbackClock::new(spaced);
        clock.set_rtt(Duration::from_millis(32));
        clock.on_packet(100_000, true);
        clock.on_sent(120, at(0));
        clock.on_packet(1479, true);
        assert_eq!(clock.due(), Some(at(1)), "within the share: 32 a round trip");
    }
}
