//! Sent packets (RFC 9002 appendix A.1): a ring of slots indexed by packet number.
//!
//! Feedback is repetitive (about forty frames acknowledge the same packet), so its cost must not depend on packets
//! already known. Every settled slot holds a distance to the next slot that may be unsettled, and walks shorten these
//! distances as in a disjoint-set forest: feedback costs the packets that it newly acknowledges, plus a near-constant
//! per range. Loss detection costs the packets it declares lost: packet numbers and sending times rise together, so
//! that lost packets are nearly always a prefix of the outstanding ones, and a cursor marks its end.

use super::UnsentAcknowledged;
use super::delivery_rate::Snapshot;
use crate::time::Time;
use crate::wire::{PacketRanges, SymbolRun};
use std::collections::VecDeque;
use std::time::Duration;

/// The content of a packet, for the components that act when it is delivered or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing that must arrive: a probe or feedback.
    Nothing,
    /// Symbols of a flow, which arrive or are lost together.
    Symbols(SymbolRun),
    /// Control frames, which the connection keeps under this key.
    Control(u32),
}

impl Content {
    /// Returns whether the content is symbols: feedback in order names these only once nothing before them is missing,
    /// and everything else at once.
    pub(super) const fn is_symbol(&self) -> bool {
        matches!(self, Self::Symbols(_))
    }
}

/// A sent ack-eliciting packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Packet number.
    pub number: u64,
    /// When it was sent.
    pub time: Time,
    /// IP bytes: UDP payload plus headers.
    pub bytes: u32,
    /// Its content.
    pub content: Content,
}

/// Slots kept for lost packets that may still arrive. A packet overtaken by thousands is not worth the memory.
const LATE_PACKETS: usize = 8_192;

/// Skipped packet numbers remembered, the newest ones.
const SKIPPED: usize = 64;

/// A sent packet, and the data kept with it until it is delivered or forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackedPacket {
    pub(super) sent: SentPacket,
    /// State of the delivery rate sampler when it was sent.
    pub(super) snapshot: Snapshot,
    /// Its position among the ack-eliciting packets.
    pub(super) ordinal: u32,
    /// Whether it was marked ECT(0).
    pub(super) marked: bool,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Outstanding(TrackedPacket),
    /// Declared lost at this time; kept to recognise a late arrival.
    Lost(TrackedPacket, Time),
    /// Delivered, or not tracked. The next `skip - 1` slots are settled too.
    Settled {
        skip: u32,
    },
}

/// A newly acknowledged packet.
#[derive(Debug)]
pub(super) enum AckedPacket<'a> {
    /// While it was outstanding.
    Delivered(&'a TrackedPacket),
    /// After it had been declared lost.
    Late(&'a TrackedPacket),
}

/// The outcome of a packet, if feedback only counts arrivals.
#[derive(Debug)]
pub(super) enum PacketOutcome<'a> {
    /// It arrived.
    Arrived(AckedPacket<'a>),
    /// It is lost.
    Lost(&'a TrackedPacket),
}

/// When an overtaken packet is lost: when either limit is reached (RFC 9002 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LossRule {
    /// The largest acknowledged number is this far ahead.
    pub(super) packets: u64,
    /// It was sent this long ago.
    pub(super) age: Duration,
}

/// The outstanding packets, and those declared lost recently.
#[derive(Debug, Default)]
pub(super) struct SentPackets {
    slots: VecDeque<Slot>,
    /// Number of the first slot.
    base: u64,
    /// No packet below this number is outstanding.
    cursor: u64,
    largest_acked: Option<u64>,
    skipped: VecDeque<u64>,
    bytes: u64,
    packets: usize,
    last_sent: Time,
    #[cfg(test)]
    pub(super) visits: u64,
}

impl SentPackets {
    /// Returns the IP bytes outstanding.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the packets outstanding.
    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// Returns when the last ack-eliciting packet was sent.
    pub(super) fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// Returns the largest number acknowledged.
    pub(super) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// Returns one more than the largest number used.
    pub(super) fn next_number(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// Adds a sent ack-eliciting packet. Numbers rise; those passed over are not tracked.
    pub(super) fn push(&mut self, entry: TrackedPacket) {
        if !self.pass_to(entry.sent.number) {
            return;
        }
        self.bytes += u64::from(entry.sent.bytes);
        self.packets += 1;
        self.last_sent = entry.sent.time;
        self.slots.push_back(Slot::Outstanding(entry));
    }

    /// Returns the number of packet numbers remembered, from the oldest unsettled one on.
    pub(super) fn remembered(&self) -> usize {
        self.slots.len()
    }

    /// Records a sent packet that is not ack-eliciting.
    pub(super) fn push_untracked(&mut self, number: u64) {
        if self.pass_to(number) {
            self.slots.push_back(Slot::Settled { skip: 1 });
            self.trim();
        }
    }

    /// Records a skipped packet number: the peer cannot acknowledge it honestly.
    pub(super) fn push_skipped(&mut self, number: u64) {
        if self.pass_to(number) {
            if self.skipped.len() == SKIPPED {
                self.skipped.pop_front();
            }
            self.skipped.push_back(number);
            self.slots.push_back(Slot::Settled { skip: 1 });
            self.trim();
        }
    }

    /// Makes `number` the next one. Returns false if it was used before.
    fn pass_to(&mut self, number: u64) -> bool {
        debug_assert!(number >= self.next_number(), "packet numbers rise");
        if self.slots.is_empty() && number >= self.base {
            self.base = number;
        }
        while self.next_number() < number {
            self.slots.push_back(Slot::Settled { skip: 1 });
        }
        self.next_number() == number
    }

    /// Rejects an unsent number.
    pub(super) fn check_number(&self, number: u64) -> Result<(), UnsentAcknowledged> {
        if number >= self.next_number() || self.skipped.contains(&number) {
            return Err(UnsentAcknowledged { number });
        }
        Ok(())
    }

    /// Rejects feedback that acknowledges an unsent number.
    pub(super) fn check(&self, packets: &PacketRanges) -> Result<(), UnsentAcknowledged> {
        if let Some(&(_, largest)) = packets.ranges.first() {
            self.check_number(largest)?;
        }
        for &number in &self.skipped {
            let after = packets.ranges.partition_point(|&(low, _)| low > number);
            if packets.ranges.get(after).is_some_and(|&(_, high)| number <= high) {
                return Err(UnsentAcknowledged { number });
            }
        }
        Ok(())
    }

    /// Acknowledges `packets` and calls `arrived` for each one newly acknowledged, in order of their numbers. Returns
    /// when the largest of them was sent, if it is newly acknowledged.
    pub(super) fn acknowledge(
        &mut self,
        packets: &PacketRanges,
        mut arrived: impl FnMut(AckedPacket<'_>),
    ) -> Option<Time> {
        let &(_, largest) = packets.ranges.first()?;
        let mut largest_sent = None;
        for &(low, high) in packets.ranges.iter().rev() {
            let end = (high.saturating_add(1)).min(self.next_number());
            let mut number = self.next_unsettled(low.max(self.base), end);
            while number < end {
                let sent = self.settle(number, end, &mut arrived);
                if number == largest {
                    largest_sent = sent;
                }
                number = self.next_unsettled(number + 1, end);
            }
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.trim();
        largest_sent
    }

    /// Settles the packets outstanding up to `largest` if feedback only counts arrivals: assumes that the newest
    /// `arrivals` of them are delivered and the older ones lost. Arrivals in excess of the packets outstanding are late
    /// ones of packets declared lost, the newest first. A packet without symbols must itself arrive: it is assumed lost
    /// unless it is the largest, or every packet up to that has arrived. Returns when `largest` was sent, if it is
    /// newly acknowledged.
    pub(super) fn settle_count(
        &mut self,
        now: Time,
        largest: u64,
        arrivals: u64,
        mut each: impl FnMut(PacketOutcome<'_>),
    ) -> Option<Time> {
        let end = largest.saturating_add(1).clamp(self.base, self.next_number());
        let from = self.first_outstanding().map_or(end, |first| first.sent.number).min(end);
        let slots = (from - self.base) as usize..(end - self.base) as usize;
        let outstanding = self.slots.range(slots).filter(|slot| matches!(slot, Slot::Outstanding(_))).count() as u64;
        let declared_lost =
            self.slots.range(..(end - self.base) as usize).filter(|slot| matches!(slot, Slot::Lost(..))).count() as u64;
        let mut missing = outstanding.saturating_sub(arrivals);
        // Otherwise any arrival may be that of a packet declared lost.
        let all_arrived = arrivals >= outstanding + declared_lost;
        let is_known =
            |number, entry: &TrackedPacket| all_arrived || number == largest || entry.sent.content.is_symbol();
        let mut largest_sent = None;
        for number in from..end {
            let Slot::Outstanding(entry) = self.slots[(number - self.base) as usize] else { continue };
            let is_lost = missing > 0 || !is_known(number, &entry);
            if is_lost {
                missing = missing.saturating_sub(1);
                self.lose(&entry, now);
                each(PacketOutcome::Lost(&entry));
            } else {
                let mut arrived = |arrival: AckedPacket<'_>| each(PacketOutcome::Arrived(arrival));
                largest_sent = self.settle(number, number + 1, &mut arrived).filter(|_| number == largest);
            }
        }
        let mut late = arrivals.saturating_sub(outstanding);
        let mut number = end;
        while late > 0 && number > self.base {
            number -= 1;
            if let Slot::Lost(entry, _) = &self.slots[(number - self.base) as usize]
                && is_known(number, entry)
            {
                self.settle(number, number + 1, &mut |arrival: AckedPacket<'_>| each(PacketOutcome::Arrived(arrival)));
                late -= 1;
            }
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.trim();
        largest_sent
    }

    /// Settles one slot of a range up to `end`, all of which will be settled.
    fn settle(&mut self, number: u64, end: u64, arrived: &mut impl FnMut(AckedPacket<'_>)) -> Option<Time> {
        let skip = u32::try_from(end - number).unwrap_or(u32::MAX);
        let slot = self.slots.get_mut(usize::try_from(number - self.base).ok()?)?;
        match std::mem::replace(slot, Slot::Settled { skip }) {
            Slot::Outstanding(entry) => {
                self.bytes -= u64::from(entry.sent.bytes);
                self.packets -= 1;
                arrived(AckedPacket::Delivered(&entry));
                Some(entry.sent.time)
            }
            Slot::Lost(entry, _) => {
                arrived(AckedPacket::Late(&entry));
                Some(entry.sent.time)
            }
            Slot::Settled { .. } => None,
        }
    }

    /// Returns the first unsettled number from `number` on, or `end` or more if none is before it. Makes every settled
    /// slot on the way point to it (path compression).
    fn next_unsettled(&mut self, number: u64, end: u64) -> u64 {
        let mut found = number;
        while found < end
            && let Some(skip) = self.skip_at(found)
        {
            found += skip;
        }
        let mut at = number;
        while at < found
            && let Some(skip) = self.skip_at(at)
        {
            let whole = u32::try_from(found - at).unwrap_or(u32::MAX);
            self.slots[(at - self.base) as usize] = Slot::Settled { skip: whole };
            at += skip;
        }
        found
    }

    fn skip_at(&mut self, number: u64) -> Option<u64> {
        #[cfg(test)]
        {
            self.visits += 1;
        }
        match self.slots.get(usize::try_from(number.checked_sub(self.base)?).ok()?)? {
            Slot::Settled { skip } => Some(u64::from(*skip)),
            Slot::Outstanding(_) | Slot::Lost(..) => None,
        }
    }

    /// Declares packets lost by `rule`, in order of their numbers. Returns when the next one will be lost by its age.
    pub(super) fn detect(&mut self, now: Time, rule: LossRule, mut lost: impl FnMut(&TrackedPacket)) -> Option<Time> {
        let largest = self.largest_acked?;
        loop {
            let entry = *self.first_outstanding()?;
            if entry.sent.number > largest {
                return None;
            }
            let lost_at = entry.sent.time + rule.age;
            if largest - entry.sent.number < rule.packets && lost_at > now {
                return Some(lost_at);
            }
            self.lose(&entry, now);
            lost(&entry);
        }
    }

    /// Declares everything outstanding below number `end` lost.
    pub(super) fn lose_all_below(&mut self, now: Time, end: u64, mut lost: impl FnMut(&TrackedPacket)) {
        while let Some(&entry) = self.first_outstanding().filter(|first| first.sent.number < end) {
            self.lose(&entry, now);
            lost(&entry);
        }
    }

    /// Declares the oldest outstanding packet with symbols lost if its number is below `end`, and all older packets.
    pub(super) fn lose_oldest(&mut self, now: Time, end: u64, mut lost: impl FnMut(&TrackedPacket)) {
        while let Some(&entry) = self.first_outstanding().filter(|first| first.sent.number < end) {
            self.lose(&entry, now);
            lost(&entry);
            if entry.sent.content.is_symbol() {
                return;
            }
        }
    }

    /// Declares packet `number` lost, if it is outstanding.
    pub(super) fn lose_number(&mut self, now: Time, number: u64, lost: impl FnOnce(&TrackedPacket)) {
        let slot = number.checked_sub(self.base).and_then(|at| self.slots.get(usize::try_from(at).ok()?));
        if let Some(&Slot::Outstanding(entry)) = slot {
            self.lose(&entry, now);
            lost(&entry);
        }
    }

    /// Returns the number of the oldest outstanding packet.
    pub(super) fn oldest(&mut self) -> Option<u64> {
        self.first_outstanding().map(|entry| entry.sent.number)
    }

    fn lose(&mut self, entry: &TrackedPacket, now: Time) {
        self.bytes -= u64::from(entry.sent.bytes);
        self.packets -= 1;
        self.slots[(entry.sent.number - self.base) as usize] = Slot::Lost(*entry, now);
        if entry.sent.number == self.cursor {
            self.cursor += 1;
        }
    }

    fn first_outstanding(&mut self) -> Option<&TrackedPacket> {
        let end = self.next_number();
        let mut number = self.cursor.max(self.base);
        loop {
            number = self.next_unsettled(number, end);
            self.cursor = number;
            match self.slots.get((number - self.base) as usize)? {
                Slot::Outstanding(_) => break,
                Slot::Lost(..) | Slot::Settled { .. } => number += 1,
            }
        }
        match self.slots.get((number - self.base) as usize)? {
            Slot::Outstanding(entry) => Some(entry),
            Slot::Lost(..) | Slot::Settled { .. } => None,
        }
    }

    /// Forgets packets declared lost before `horizon`: they are not expected to arrive any more.
    pub(super) fn forget(&mut self, horizon: Time) {
        while let Some(front) = self.slots.front() {
            let done = match front {
                Slot::Outstanding(_) => false,
                Slot::Lost(_, at) => *at < horizon || self.slots.len() > LATE_PACKETS,
                Slot::Settled { .. } => true,
            };
            if !done {
                break;
            }
            self.slots.pop_front();
            self.base += 1;
        }
    }

    fn trim(&mut self) {
        self.forget(Time::ZERO);
    }
}

#[cfg(test)]
mod tests;
