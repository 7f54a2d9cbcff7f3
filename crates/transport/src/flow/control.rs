//! Flow 0, the control stream: the program's ordered, reliable, uncoded bytes.

use super::append_range;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// The sending half: keeps bytes until they are acknowledged, and the ranges to send.
#[derive(Debug, Default)]
pub(crate) struct ControlSender {
    bytes: VecDeque<u8>,
    /// Stream offset of the first byte in `bytes`.
    base: u64,
    /// Next byte to send for the first time.
    next: u64,
    limit: u64,
    /// Ranges to retransmit, by start.
    again: BTreeMap<u64, u64>,
    /// Acknowledged ranges above `base`, by start.
    acknowledged: BTreeMap<u64, u64>,
    /// Bytes below this offset have been sent twice or acknowledged; [`ControlSender::double`] covers those above.
    doubled: u64,
}

impl ControlSender {
    /// Bytes at the end of the stream worth sending twice: a loss further ahead is revealed by the bytes behind it.
    const DOUBLED_AT_MOST: u64 = 16_384;

    /// Appends bytes to the stream.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Returns the number of bytes written and not acknowledged.
    pub(crate) fn backlog(&self) -> usize {
        self.bytes.len()
    }

    /// Raises the peer's absolute limit.
    pub(crate) fn grant(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Returns whether something can be sent now.
    pub(crate) fn is_ready(&self) -> bool {
        !self.again.is_empty() || self.next < self.sendable_end()
    }

    /// Queues the unacknowledged bytes at the end of the stream for a second transmission: no later data reveals the
    /// loss of the last message (docs/design/tail-rule.md).
    pub(crate) fn double(&mut self) {
        let from = self.doubled.max(self.base).max(self.next.saturating_sub(Self::DOUBLED_AT_MOST));
        if from < self.next && self.again.is_empty() {
            self.again.insert(from, self.next);
            self.doubled = self.next;
        }
    }

    /// Queues the oldest `most` unacknowledged bytes again, so that a probe carries something useful.
    pub(crate) fn repeat_oldest(&mut self, most: usize) {
        let end = self.next.min(self.base + most as u64);
        if self.again.is_empty() && self.base < end {
            self.again.insert(self.base, end);
        }
    }

    /// Takes the next range to send, at most `most` bytes, and appends its bytes to `out`.
    pub(crate) fn take(&mut self, most: usize, out: &mut Vec<u8>) -> Option<Range<u64>> {
        let range = self.take_again(most).or_else(|| {
            let end = self.sendable_end().min(self.next + most as u64);
            let range = (self.next < end).then_some(self.next..end)?;
            self.next = end;
            Some(range)
        })?;
        let (from, to) = ((range.start - self.base) as usize, (range.end - self.base) as usize);
        append_range(&self.bytes, from..to, out);
        Some(range)
    }

    /// Handles the arrival of a packet with this range.
    pub(crate) fn on_delivered(&mut self, range: Range<u64>) {
        merge(&mut self.acknowledged, range);
        while let Some(entry) = self.acknowledged.first_entry().filter(|entry| *entry.key() <= self.base) {
            let end = entry.remove();
            if end > self.base {
                self.bytes.drain(..(end - self.base) as usize);
                self.base = end;
            }
        }
    }

    /// Handles the loss of a packet with this range: its unacknowledged part is sent again.
    pub(crate) fn on_lost(&mut self, range: Range<u64>) {
        let mut start = range.start.max(self.base);
        for (from, to) in &self.acknowledged {
            if *from >= range.end {
                break;
            }
            if start < *from {
                merge(&mut self.again, start..*from);
            }
            start = start.max(*to);
        }
        if start < range.end {
            merge(&mut self.again, start..range.end);
        }
    }

    fn sendable_end(&self) -> u64 {
        (self.base + self.bytes.len() as u64).min(self.limit)
    }

    fn take_again(&mut self, most: usize) -> Option<Range<u64>> {
        loop {
            let (start, end) = self.again.pop_first()?;
            let start = start.max(self.base);
            if start >= end {
                continue;
            }
            let cut = end.min(start + most as u64);
            if cut < end {
                self.again.insert(cut, end);
            }
            return Some(start..cut);
        }
    }
}

/// The receiving half: puts bytes in order, within the credit it gave.
#[derive(Debug)]
pub(crate) struct ControlReceiver {
    room: u64,
    /// In order and not yet read.
    ready: VecDeque<u8>,
    /// Stream offset after the last byte in `ready`.
    next: u64,
    /// Read by the program.
    read: u64,
    /// Out of order, by offset; disjoint; within the credit.
    early: BTreeMap<u64, Vec<u8>>,
}

/// The peer sent control bytes beyond its credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BeyondCredit;

impl ControlReceiver {
    /// Creates a receiver with room for `room` unread bytes.
    pub(crate) const fn new(room: u64) -> Self {
        Self { room, ready: VecDeque::new(), next: 0, read: 0, early: BTreeMap::new() }
    }

    /// Returns the absolute limit to grant.
    pub(crate) const fn granted(&self) -> u64 {
        self.read + self.room
    }

    /// Stores arrived bytes; returns whether more can be read now.
    ///
    /// # Errors
    /// [`BeyondCredit`] when they exceed the granted limit.
    pub(crate) fn on_data(&mut self, offset: u64, data: &[u8]) -> Result<bool, BeyondCredit> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= self.granted()).ok_or(BeyondCredit)?;
        if end <= self.next {
            return Ok(false);
        }
        if offset > self.next {
            self.keep_early(offset, data);
            return Ok(false);
        }
        self.append(offset, data);
        while let Some(entry) = self.early.first_entry().filter(|entry| *entry.key() <= self.next) {
            let (start, bytes) = entry.remove_entry();
            self.append(start, &bytes);
        }
        Ok(true)
    }

    /// Moves the bytes in order to `out`, which returns their credit to the peer.
    pub(crate) fn read(&mut self, out: &mut Vec<u8>) -> usize {
        let count = self.ready.len();
        append_range(&self.ready, 0..count, out);
        self.ready.clear();
        self.read += count as u64;
        count
    }

    /// Appends the new part of `data`; `offset` is at or before `next`.
    fn append(&mut self, offset: u64, data: &[u8]) {
        let known = (self.next - offset) as usize;
        if let Some(fresh) = data.get(known..) {
            self.ready.extend(fresh);
            self.next += fresh.len() as u64;
        }
    }

    /// Keeps only bytes that fill gaps, so that memory stays within the room however the peer cuts its stream.
    fn keep_early(&mut self, offset: u64, data: &[u8]) {
        let end = offset + data.len() as u64;
        let after = |(start, bytes): (&u64, &Vec<u8>)| *start + bytes.len() as u64;
        let mut at = self.early.range(..=offset).next_back().map_or(offset, after).max(offset);
        while at < end {
            let next = self.early.range(at..).next();
            let gap_end = next.map_or(end, |(start, _)| end.min(*start));
            let resume = next.map_or(end, after);
            if at < gap_end {
                let piece = data[(at - offset) as usize..(gap_end - offset) as usize].to_vec();
                self.early.insert(at, piece);
            }
            at = resume;
        }
    }
}

/// Adds a range to a set of disjoint ranges keyed by start.
fn merge(set: &mut BTreeMap<u64, u64>, range: Range<u64>) {
    let (mut start, mut end) = (range.start, range.end);
    while let Some((from, to)) = set.range(..=end).next_back().map(|(from, to)| (*from, *to)) {
        if to < start {
            break;
        }
        start = start.min(from);
        end = end.max(to);
        set.remove(&from);
    }
    set.insert(start, end);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces reordered, recut, lost and repeated give the same bytes, for a few hundred seeds.
    #[test]
    fn bytes_arrive_in_order_whatever_happens() {
        for seed in 0..300u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut draw = move |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let sent: Vec<u8> = (0..5000u32).map(|at| (at * 7 % 251) as u8).collect();
            let mut sender = ControlSender::default();
            let mut receiver = ControlReceiver::new(1500);
            sender.write(&sent);
            sender.grant(receiver.granted());
            let (mut flying, mut got) = (Vec::new(), Vec::new());
            while got.len() < sent.len() {
                let mut out = Vec::new();
                if let Some(range) = sender.take(1 + draw(300) as usize, &mut out) {
                    flying.push((range, out));
                } else {
                    sender.double();
                }
                if flying.len() > draw(8) as usize {
                    let (range, bytes) = flying.swap_remove(draw(flying.len() as u64) as usize);
                    if draw(3) == 0 {
                        sender.on_lost(range);
                    } else {
                        receiver.on_data(range.start, &bytes).expect("within credit");
                        sender.on_delivered(range);
                    }
                }
                receiver.read(&mut got);
                sender.grant(receiver.granted());
            }
            assert_eq!(got, sent, "seed {seed}");
        }
    }

    #[test]
    fn a_peer_cannot_send_past_its_credit_nor_make_us_hold_more() {
        let mut receiver = ControlReceiver::new(1000);
        assert_eq!(receiver.on_data(900, &[0; 101]), Err(BeyondCredit));
        assert_eq!(receiver.on_data(u64::MAX, &[0; 2]), Err(BeyondCredit));
        for offset in (1..900).rev() {
            assert_eq!(receiver.on_data(offset, &[1; 100]), Ok(false));
        }
        let held: usize = receiver.early.values().map(Vec::len).sum();
        assert!(held <= 1000, "{held} bytes held for a credit of 1000");
    }
}
