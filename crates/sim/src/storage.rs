//! Objects without disks: bytes that follow from a seed, and what arrived of them.

use std::collections::BTreeMap;

/// An object whose byte at any offset follows from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern(pub u64);

impl Pattern {
    /// Fills `out` with the bytes from `offset` on.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let mut at = offset;
        let mut rest = out;
        while !rest.is_empty() {
            let word = self.word(at / 8).to_le_bytes();
            let skip = (at % 8) as usize;
            let take = rest.len().min(8 - skip);
            let (now, later) = rest.split_at_mut(take);
            now.copy_from_slice(&word[skip..skip + take]);
            at += take as u64;
            rest = later;
        }
    }

    /// Whether `bytes` are those from `offset` on.
    pub fn matches(self, offset: u64, bytes: &[u8]) -> bool {
        let mut expected = vec![0; bytes.len()];
        self.fill(offset, &mut expected);
        expected == bytes
    }

    /// Eight bytes of the object: a bijection of seed and place, so no two places look alike (SplitMix64's finaliser).
    const fn word(self, at: u64) -> u64 {
        let mut x = self.0 ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}

/// What arrived of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Length announced.
    pub length: u64,
    /// Ranges written, by start; adjacent ones joined.
    ranges: BTreeMap<u64, u64>,
    /// Ranges whose bytes were not the object's, or that were written twice.
    pub wrong: u64,
    /// Every byte is written, says the engine.
    pub complete: bool,
}

impl Received {
    /// Notes a write and checks its bytes.
    pub fn write(&mut self, object: Pattern, offset: u64, bytes: &[u8]) {
        let mut end = offset + bytes.len() as u64;
        let before = self.ranges.range(..end).next_back().map(|(start, stop)| (*start, *stop));
        let overlaps = before.is_some_and(|(_, stop)| stop > offset);
        if overlaps || end > self.length || !object.matches(offset, bytes) {
            self.wrong += 1;
            return;
        }
        let mut start = offset;
        if let Some((from, _)) = before.filter(|(_, stop)| *stop == offset) {
            start = from;
        }
        if let Some(to) = self.ranges.remove(&end) {
            end = to;
        }
        self.ranges.insert(start, end);
    }

    /// Bytes written and right.
    pub fn written(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// Every byte is here, once, and right.
    pub fn is_identical(&self) -> bool {
        self.complete && self.is_whole()
    }

    /// Every byte is written, once, and right, whether the engine has said so or was closed before.
    pub fn is_whole(&self) -> bool {
        let whole = self.length == 0 || (self.ranges.len() == 1 && self.ranges.get(&0) == Some(&self.length));
        whole && self.wrong == 0
    }
}
