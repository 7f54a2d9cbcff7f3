//! Which packets arrived, and how feedback reports them: the receiver's half of acknowledgement.

use crate::time::{Time, micros};
use crate::wire::{EcnCounts, FeedbackConfig, FeedbackTiming, LastPackets, PacketCount, PacketFeedback, PacketRanges};
use std::collections::VecDeque;

/// Most ranges kept: on a path that loses every other packet, the newest 4096 packets are still reported.
const MAX_RANGES: usize = 2048;

/// Feedbacks remembered until the sender acknowledges one of them.
const MAX_HISTORY: usize = 4_096;

/// The packets that arrived, as ranges, newest first.
#[derive(Debug)]
pub(super) struct ReceivedRanges {
    packets: PacketFeedback,
    /// Number of most recent packet numbers to remember, whatever the sender has seen.
    remembered: u64,
    ranges: VecDeque<(u64, u64)>,
    largest_at: Time,
    /// Packets below were reported in a feedback that the sender has seen.
    floor: u64,
    /// Feedbacks sent: their number, and the floor once the feedback is known to be seen.
    reported: VecDeque<(u64, u64)>,
    /// One above the largest packet number when the last feedback was made.
    before: u64,
    /// Packets that ask for feedback: their count, the highest number, and its arrival time.
    asking: Option<(PacketCount, Time)>,
    marks: EcnCounts,
}

/// The ECN codepoint with which a datagram arrived.
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

impl ReceivedRanges {
    pub(super) fn new(choice: &FeedbackConfig) -> Self {
        let last = if let PacketFeedback::Last(LastPackets { packets }) = choice.packets { packets } else { 0 };
        let counted = if let FeedbackTiming::Every(counting) = choice.timing { counting.packets } else { 0 };
        Self {
            packets: choice.packets,
            remembered: last.max(counted).into(),
            ranges: VecDeque::new(),
            largest_at: Time::ZERO,
            floor: 0,
            reported: VecDeque::new(),
            before: 0,
            asking: None,
            marks: EcnCounts::default(),
        }
    }

    /// Counts an authentic, new packet.
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

    /// Makes feedback report a packet that arrived at `at` from now on.
    pub(super) fn record_received(&mut self, number: u64, at: Time) {
        match self.ranges.front_mut() {
            Some((_, high)) if number == *high + 1 => *high = number,
            Some((_, high)) if number <= *high => return self.name_late(number),
            _ => self.ranges.push_front((number, number)),
        }
        self.largest_at = at;
        self.ranges.truncate(MAX_RANGES);
    }

    /// Reports a packet that others have overtaken.
    fn name_late(&mut self, number: u64) {
        // No feedback so far has reported it. The floors rise with the feedback number, so the others are below it.
        for (_, floor) in self.reported.iter_mut().rev().take_while(|(_, floor)| *floor > number) {
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

    /// Returns the packets that feedback `number` reports: those since the last feedback known to be seen, or among the
    /// last packets.
    pub(super) fn report_ranges(&mut self, number: u64, now: Time) -> Option<PacketRanges> {
        let (_, largest) = *self.ranges.front()?;
        let delay_micros = micros(now.since(self.largest_at));
        let ranges = match self.packets {
            PacketFeedback::Count => {
                self.pass(largest);
                return None;
            }
            PacketFeedback::Last(LastPackets { packets }) => {
                // Feedback sent less often than every `packets` would omit some, and so report them lost.
                let lowest = (largest + 1).saturating_sub(packets.into()).min(self.before);
                self.pass(largest);
                let of_these = self.ranges.iter().take_while(|(_, high)| *high >= lowest);
                of_these.map(|(low, high)| ((*low).max(lowest), *high)).collect()
            }
            PacketFeedback::Ranges | PacketFeedback::InOrder => {
                let since = self.ranges.iter().take_while(|(_, high)| *high >= self.floor).copied().collect::<Vec<_>>();
                self.reported.push_back((number, largest + 1));
                if self.reported.len() > MAX_HISTORY {
                    self.reported.pop_front();
                }
                // Reports are repeated until seen; the newest packet is always reported.
                if since.is_empty() { vec![(largest, largest)] } else { since }
            }
        };
        Some(PacketRanges { delay_micros, ranges })
    }

    /// Returns how many packets arrived, if the sender wants counts.
    pub(super) fn report_count(&self, now: Time) -> Option<PacketCount> {
        let (count, largest_at) = self.asking?;
        let wanted = matches!(self.packets, PacketFeedback::Count | PacketFeedback::InOrder);
        wanted.then_some(PacketCount { delay_micros: micros(now.since(largest_at)), ..count })
    }

    /// Notes that a feedback was made that will not be repeated.
    fn pass(&mut self, largest: u64) {
        self.floor = self.before;
        self.before = largest + 1;
        self.forget();
    }

    /// Handles the sender's confirmation that it has seen feedback `number`.
    pub(super) fn on_seen(&mut self, number: u64) {
        while let Some((feedback, floor)) = self.reported.front().copied().filter(|(feedback, _)| *feedback <= number) {
            self.reported.pop_front();
            if feedback == number {
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

    /// Returns how many of the last `packets` numbers are not known to have arrived. Withheld packets count too.
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
