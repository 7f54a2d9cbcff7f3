//! Sent packets (RFC 9002 appendix A.1): a ring of slots indexed by packet number.
//!
//! Feedback repeats itself (some forty frames name the same packet), so its cost must not depend on how much of it is
//! old news. Every settled slot knows how far it is to the next slot that may not be settled, and walks shorten these
//! paths as a disjoint-set forest does: a feedback costs what is new in it, plus a near-constant per range. Loss
//! detection costs its losses: numbers and sending times rise together, so what is lost is nearly always a prefix of what is
//! outstanding, and a cursor remembers how far it reached.

use super::NeverSent;
use super::delivery_rate::Snapshot;
use crate::time::Time;
use crate::wire::{PacketRanges, SymbolRun};
use std::collections::VecDeque;
use std::time::Duration;

/// What a packet carried, kept for the one who has to act on its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing that needs to arrive: a probe or feedback.
    Nothing,
    /// Symbols of a flow: they arrive or are lost together.
    Symbols(SymbolRun),
    /// Control frames, kept by the connection under this key.
    Control(u32),
}

impl Content {
    /// Whether it is symbols: feedback in order names them only when nothing before them is missing, and everything else at once.
    pub(super) const fn is_symbol(&self) -> bool {
        matches!(self, Self::Symbols(_))
    }
}

/// A packet on its way that asks for feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Packet number.
    pub number: u64,
    /// When it left.
    pub time: Time,
    /// IP bytes: UDP payload plus headers.
    pub bytes: u32,
    /// What it carried.
    pub content: Content,
}

/// Slots kept for the sake of lost packets that might still arrive: one that thousands of others have overtaken is not worth the
/// memory.
const LATE_PACKETS: usize = 8_192;

/// Skipped numbers remembered, the newest ones.
const SKIPPED: usize = 64;

/// A packet and what is kept with it until its fate is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) sent: SentPacket,
    /// State of the delivery-rate sampler when it left.
    pub(super) snapshot: Snapshot,
    /// Its place among the packets that ask for feedback.
    pub(super) ordinal: u32,
    /// It was marked ECT(0).
    pub(super) marked: bool,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Outstanding(Entry),
    /// Called lost, and when; kept to recognise a late arrival.
    Lost(Entry, Time),
    /// Arrived, or never worth waiting for. No slot closer than `skip` further on is unsettled.
    Settled {
        skip: u32,
    },
}

/// A packet newly named by feedback.
#[derive(Debug)]
pub(super) enum Arrival<'a> {
    /// In time.
    Delivered(&'a Entry),
    /// After it was called lost.
    Late(&'a Entry),
}

/// What became of a packet, where only a number of arrivals is known.
#[derive(Debug)]
pub(super) enum Fate<'a> {
    /// It arrived.
    Arrived(Arrival<'a>),
    /// It is lost.
    Lost(&'a Entry),
}

/// When an overtaken packet is lost: at either limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LossRule {
    /// The newest arrival is so many numbers ahead.
    pub(super) packets: u64,
    /// It left so long ago.
    pub(super) age: Duration,
}

/// All packets whose fate is open, and those called lost lately.
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
    /// IP bytes outstanding.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets outstanding.
    pub(super) fn packets(&self) -> usize {
        self.packets
    }

    /// When the last packet that asks for feedback left.
    pub(super) fn last_sent(&self) -> Time {
        self.last_sent
    }

    /// The highest number acknowledged.
    pub(super) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// One more than the highest number used.
    pub(super) fn next_number(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    /// A packet that asks for feedback left. Numbers rise; those passed over need nothing to arrive.
    pub(super) fn push(&mut self, entry: Entry) {
        if !self.pass_to(entry.sent.number) {
            return;
        }
        self.bytes += u64::from(entry.sent.bytes);
        self.packets += 1;
        self.last_sent = entry.sent.time;
        self.slots.push_back(Slot::Outstanding(entry));
    }

    /// Packet numbers remembered: those from the oldest on whose fate matters.
    pub(super) fn remembered(&self) -> usize {
        self.slots.len()
    }

    /// A packet left that needs not arrive.
    pub(super) fn push_untracked(&mut self, number: u64) {
        if self.pass_to(number) {
            self.slots.push_back(Slot::Settled { skip: 1 });
            self.trim();
        }
    }

    /// A number was never used.
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

    /// Makes `number` the next one. False when it was used before.
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

    /// Refuses a number never sent.
    pub(super) fn check_number(&self, number: u64) -> Result<(), NeverSent> {
        if number >= self.next_number() || self.skipped.contains(&number) {
            return Err(NeverSent { number });
        }
        Ok(())
    }

    /// Refuses feedback that names a number never sent.
    pub(super) fn check(&self, packets: &PacketRanges) -> Result<(), NeverSent> {
        if let Some(&(_, largest)) = packets.ranges.first() {
            self.check_number(largest)?;
        }
        for &number in &self.skipped {
            let after = packets.ranges.partition_point(|&(low, _)| low > number);
            if packets.ranges.get(after).is_some_and(|&(_, high)| number <= high) {
                return Err(NeverSent { number });
            }
        }
        Ok(())
    }

    /// Settles what `packets` names and calls `arrived` for each packet that is news, in order of number. Returns when
    /// the largest of them left, if that one is news.
    pub(super) fn acknowledge(&mut self, packets: &PacketRanges, mut arrived: impl FnMut(Arrival<'_>)) -> Option<Time> {
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

    /// Settles every packet outstanding up to `largest` where only a number of arrivals is known: `arrivals` of them arrived, the
    /// newest; the older ones are lost. Of what needs to arrive itself nothing is taken for granted: any loss counts for all of it.
    /// More arrivals than were outstanding are of packets called lost before, the newest again. Returns when `largest` left, if that is
    /// news.
    pub(super) fn settle_count(
        &mut self,
        now: Time,
        largest: u64,
        arrivals: u64,
        mut tell: impl FnMut(Fate<'_>),
    ) -> Option<Time> {
        let end = largest.saturating_add(1).clamp(self.base, self.next_number());
        let from = self.first_outstanding().map_or(end, |first| first.sent.number).min(end);
        let slots = (from - self.base) as usize..(end - self.base) as usize;
        let outstanding = self.slots.range(slots).filter(|slot| matches!(slot, Slot::Outstanding(_))).count() as u64;
        let mut missing = outstanding.saturating_sub(arrivals);
        let any_missing = missing > 0;
        let mut largest_sent = None;
        for number in from..end {
            let Slot::Outstanding(entry) = self.slots[(number - self.base) as usize] else { continue };
            let is_lost = missing > 0 || (any_missing && number < largest && !entry.sent.content.is_symbol());
            if is_lost {
                missing = missing.saturating_sub(1);
                self.lose(&entry, now);
                tell(Fate::Lost(&entry));
            } else {
                let mut arrived = |arrival: Arrival<'_>| tell(Fate::Arrived(arrival));
                largest_sent = self.settle(number, number + 1, &mut arrived).filter(|_| number == largest);
            }
        }
        let mut late = arrivals.saturating_sub(outstanding);
        let mut number = end;
        while late > 0 && number > self.base {
            number -= 1;
            if matches!(self.slots[(number - self.base) as usize], Slot::Lost(..)) {
                self.settle(number, number + 1, &mut |arrival: Arrival<'_>| tell(Fate::Arrived(arrival)));
                late -= 1;
            }
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.trim();
        largest_sent
    }

    /// Settles one slot whose range reaches to `end`, which will be settled as a whole.
    fn settle(&mut self, number: u64, end: u64, arrived: &mut impl FnMut(Arrival<'_>)) -> Option<Time> {
        let skip = u32::try_from(end - number).unwrap_or(u32::MAX);
        let slot = self.slots.get_mut(usize::try_from(number - self.base).ok()?)?;
        match std::mem::replace(slot, Slot::Settled { skip }) {
            Slot::Outstanding(entry) => {
                self.bytes -= u64::from(entry.sent.bytes);
                self.packets -= 1;
                arrived(Arrival::Delivered(&entry));
                Some(entry.sent.time)
            }
            Slot::Lost(entry, _) => {
                arrived(Arrival::Late(&entry));
                Some(entry.sent.time)
            }
            Slot::Settled { .. } => None,
        }
    }

    /// The first number from `number` on that is not settled, or `end` or more if that comes first. Makes every settled
    /// slot on the way point to where it got.
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

    /// Calls packets lost by `rule`, in order of number. Returns when the next one will be lost by its age.
    pub(super) fn detect(&mut self, now: Time, rule: LossRule, mut lost: impl FnMut(&Entry)) -> Option<Time> {
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

    /// Calls everything outstanding below number `end` lost.
    pub(super) fn give_up(&mut self, now: Time, end: u64, mut lost: impl FnMut(&Entry)) {
        while let Some(&entry) = self.first_outstanding().filter(|first| first.sent.number < end) {
            self.lose(&entry, now);
            lost(&entry);
        }
    }

    /// Calls the oldest symbol outstanding lost if its number is below `end`, and whatever else is older.
    pub(super) fn lose_oldest(&mut self, now: Time, end: u64, mut lost: impl FnMut(&Entry)) {
        while let Some(&entry) = self.first_outstanding().filter(|first| first.sent.number < end) {
            self.lose(&entry, now);
            lost(&entry);
            if entry.sent.content.is_symbol() {
                return;
            }
        }
    }

    /// Calls packet `number` lost, if it is outstanding.
    pub(super) fn lose_number(&mut self, now: Time, number: u64, lost: impl FnOnce(&Entry)) {
        let slot = number.checked_sub(self.base).and_then(|at| self.slots.get(usize::try_from(at).ok()?));
        if let Some(&Slot::Outstanding(entry)) = slot {
            self.lose(&entry, now);
            lost(&entry);
        }
    }

    /// The number of the oldest packet outstanding.
    pub(super) fn oldest(&mut self) -> Option<u64> {
        self.first_outstanding().map(|entry| entry.sent.number)
    }

    fn lose(&mut self, entry: &Entry, now: Time) {
        self.bytes -= u64::from(entry.sent.bytes);
        self.packets -= 1;
        self.slots[(entry.sent.number - self.base) as usize] = Slot::Lost(*entry, now);
        if entry.sent.number == self.cursor {
            self.cursor += 1;
        }
    }

    fn first_outstanding(&mut self) -> Option<&Entry> {
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

    /// Forgets packets called lost before `horizon`: they will not arrive any more.
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
