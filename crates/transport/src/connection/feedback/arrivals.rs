//! What arrived, and what feedback says of it: the receiver's half of acknowledging packets.

use crate::time::{Time, micros};
use crate::wire::{EcnCounts, FeedbackConfig, FeedbackTiming, LastPackets, PacketCount, PacketFeedback, PacketRanges};
use std::collections::VecDeque;

/// Ranges kept at most: a path that loses every other packet still has the newest 4096 packets told.
const MAX_RANGES: usize = 2048;

/// Feedbacks remembered for when the sender names one of them as seen.
const MAX_HISTORY: usize = 4_096;

/// Which packets arrived, as ranges, newest first.
#[derive(Debug)]
pub(super) struct Arrivals {
    packets: PacketFeedback,
    /// So many of the last packet numbers are remembered, whatever the sender has seen.
    remembered: u64,
    ranges: VecDeque<(u64, u64)>,
    largest_at: Time,
    /// What lies below was told in a feedback that the sender has seen.
    floor: u64,
    /// Feedbacks sent: number, and the floor once it is known to be seen.
    told: VecDeque<(u32, u64)>,
    /// What lies below had arrived, or not, when the last feedback was made.
    before: u64,
    /// Packets that ask for feedback: how many, the highest number, and when that one came.
    asking: Option<(PacketCount, Time)>,
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
    pub(super) fn new(choice: &FeedbackConfig) -> Self {
        let last = if let PacketFeedback::Last(LastPackets { packets }) = choice.packets { packets } else { 0 };
        let counted = if let FeedbackTiming::Every(counting) = choice.timing { counting.packets } else { 0 };
        Self {
            packets: choice.packets,
            remembered: last.max(counted).into(),
            ranges: VecDeque::new(),
            largest_at: Time::ZERO,
            floor: 0,
            told: VecDeque::new(),
            before: 0,
            asking: None,
            marks: EcnCounts::default(),
        }
    }

    /// Counts a packet that is authentic and new.
    pub(super) fn count(&mut self, number: u64, ecn: ReceivedEcn, asks: bool, now: Time) {
        match ecn {
            ReceivedEcn::NotEct => {}
            ReceivedEcn::Ect0 => self.marks.ect0 += 1,
            ReceivedEcn::Ect1 => self.marks.ect1 += 1,
            ReceivedEcn::Ce => self.marks.ce += 1,
        }
        if asks {
            let (count, largest_at) = self.asking.get_or_insert_default();
            count.arrived += 1;
            if number >= count.largest {
                (count.largest, *largest_at) = (number, now);
            }
        }
    }

    /// From now on a packet that came at `at` is one of those that feedback names.
    pub(super) fn name(&mut self, number: u64, at: Time) {
        match self.ranges.front_mut() {
            Some((_, high)) if number == *high + 1 => *high = number,
            Some((_, high)) if number <= *high => return self.name_late(number),
            _ => self.ranges.push_front((number, number)),
        }
        self.largest_at = at;
        self.ranges.truncate(MAX_RANGES);
    }

    /// A packet that others have overtaken.
    fn name_late(&mut self, number: u64) {
        // Whatever was told so far did not name it. What is told rises, so the rest of it lies below.
        for (_, floor) in self.told.iter_mut().rev().take_while(|(_, floor)| *floor > number) {
            *floor = number;
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

    /// Which packets feedback `number` names: everything since the last one the sender is known to have seen, or of the last packets.
    pub(super) fn tell(&mut self, number: u32, now: Time) -> Option<PacketRanges> {
        let (_, largest) = *self.ranges.front()?;
        let delay_micros = micros(now.since(self.largest_at));
        let ranges = match self.packets {
            PacketFeedback::Count => {
                self.pass(largest);
                return None;
            }
            PacketFeedback::Last(LastPackets { packets }) => {
                // Feedback that is rarer than every `packets` would leave some out, and call them lost.
                let lowest = (largest + 1).saturating_sub(packets.into()).min(self.before);
                self.pass(largest);
                let of_these = self.ranges.iter().take_while(|(_, high)| *high >= lowest);
                of_these.map(|(low, high)| ((*low).max(lowest), *high)).collect()
            }
            PacketFeedback::Ranges | PacketFeedback::InOrder => {
                let since = self.ranges.iter().take_while(|(_, high)| *high >= self.floor).copied().collect::<Vec<_>>();
                self.told.push_back((number, largest + 1));
                if self.told.len() > MAX_HISTORY {
                    self.told.pop_front();
                }
                // What was told is told again until it is seen, the newest packet always.
                if since.is_empty() { vec![(largest, largest)] } else { since }
            }
        };
        Some(PacketRanges { delay_micros, ranges })
    }

    /// How many packets arrived, where that is wanted.
    pub(super) fn tell_count(&self, now: Time) -> Option<PacketCount> {
        let (count, largest_at) = self.asking?;
        let wanted = matches!(self.packets, PacketFeedback::Count | PacketFeedback::InOrder);
        wanted.then_some(PacketCount { delay_micros: micros(now.since(largest_at)), ..count })
    }

    /// A feedback was made that nobody asks for again.
    fn pass(&mut self, largest: u64) {
        self.floor = self.before;
        self.before = largest + 1;
        self.forget();
    }

    /// The sender has seen feedback `number`.
    pub(super) fn on_seen(&mut self, number: u32) {
        while let Some((told, floor)) = self.told.front().copied().filter(|(told, _)| *told <= number) {
            self.told.pop_front();
            if told == number {
                self.floor = self.floor.max(floor);
            }
        }
        self.forget();
    }

    fn forget(&mut self) {
        let Some(&(_, largest)) = self.ranges.front() else { return };
        let kept = self.floor.min((largest + 1).saturating_sub(self.remembered));
        while self.ranges.len() > 1 && self.ranges.back().is_some_and(|(_, high)| *high < kept) {
            self.ranges.pop_back();
        }
    }

    /// How many of the last `packets` numbers are not known to have arrived. A name that is withheld counts with them.
    pub(super) fn missing(&self, packets: u16) -> u16 {
        let Some(&(_, largest)) = self.ranges.front() else { return 0 };
        let lowest = (largest + 1).saturating_sub(packets.into());
        let of_these = self.ranges.iter().take_while(|(_, high)| *high >= lowest);
        let arrived: u64 = of_these.map(|(low, high)| high - (*low).max(lowest) + 1).sum();
        u16::try_from(largest + 1 - lowest - arrived).unwrap_or(u16::MAX)
    }

    pub(super) const fn marks(&self) -> EcnCounts {
        self.marks
    }
}

#[cfg(test)]
mod tests;
