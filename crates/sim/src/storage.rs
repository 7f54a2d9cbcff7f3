//! Objects without disks: bytes that follow from a seed, and a record of those that arrived.

use std::collections::BTreeMap;
use std::sync::Arc;

/// An object whose byte at any offset follows from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern(pub u64);

impl Pattern {
    /// Fills `out` with the bytes from `offset` on.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let start = self.start();
        let (head, words) = out.split_at_mut(before_word(offset).min(out.len()));
        let mut first = [0; WORD];
        first.copy_from_slice(&word(start, offset / WORD as u64).to_le_bytes());
        let skip = offset as usize % WORD;
        head.copy_from_slice(&first[skip..skip + head.len()]);
        // Simple enough for the compiler to vectorise: a simulation fills many bytes.
        let mut words = words.chunks_exact_mut(WORD);
        let mut at = offset.div_ceil(WORD as u64);
        for chunk in &mut words {
            chunk.copy_from_slice(&word(start, at).to_le_bytes());
            at += 1;
        }
        let tail = words.into_remainder();
        tail.copy_from_slice(&word(start, at).to_le_bytes()[..tail.len()]);
    }

    /// Returns whether `bytes` are those from `offset` on.
    pub fn matches(self, offset: u64, bytes: &[u8]) -> bool {
        let mut expected = [0; 1024];
        (offset..).step_by(expected.len()).zip(bytes.chunks(expected.len())).all(|(offset, bytes)| {
            let expected = &mut expected[..bytes.len()];
            self.fill(offset, expected);
            expected == bytes
        })
    }

    /// Returns the start of the object's sequence of words: far from those of its neighbours.
    const fn start(self) -> u64 {
        let x = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }
}

/// The content of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes that follow from a seed.
    Pattern(Pattern),
    /// These, and no others.
    Given(Arc<[u8]>),
}

impl Content {
    /// Fills `out` with the bytes from `offset` on; with zeros beyond its end.
    pub fn fill(&self, offset: u64, out: &mut [u8]) {
        match self {
            Self::Pattern(pattern) => pattern.fill(offset, out),
            Self::Given(bytes) => {
                let bytes = bytes.get(offset as usize..).unwrap_or_default();
                let (within, beyond) = out.split_at_mut(bytes.len().min(out.len()));
                within.copy_from_slice(&bytes[..within.len()]);
                beyond.fill(0);
            }
        }
    }

    /// Returns whether `bytes` are those from `offset` on.
    pub fn matches(&self, offset: u64, bytes: &[u8]) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.matches(offset, bytes),
            Self::Given(given) => given.get(offset as usize..).is_some_and(|given| given.starts_with(bytes)),
        }
    }
}

const WORD: usize = 8;

/// Returns the bytes from `offset` to the next boundary of a word.
const fn before_word(offset: u64) -> usize {
    offset.wrapping_neg() as usize % WORD
}

/// Returns eight bytes of an object: a bijection of the position, so that no two positions are alike.
const fn word(start: u64, at: u64) -> u64 {
    let x = start.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x ^ (x >> 29)
}

/// The received part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Announced length.
    pub length: u64,
    /// Ranges written, by start; adjacent ones joined.
    ranges: BTreeMap<u64, u64>,
    /// Ranges with other bytes than the object's, or written twice.
    pub wrong: u64,
    /// The engine reports every byte as written.
    pub complete: bool,
}

impl Received {
    /// Records a write and checks its bytes.
    pub fn write(&mut self, object: &Content, offset: u64, bytes: &[u8]) {
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

    /// Returns the number of correct bytes written.
    pub fn written(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns whether every byte is written once and correct, and the engine has reported it.
    pub fn is_identical(&self) -> bool {
        self.complete && self.is_whole()
    }

    /// Returns whether every byte is written, once, and correct, whether the engine has reported it or was closed
    /// before.
    pub fn is_whole(&self) -> bool {
        let whole = self.length == 0 || (self.ranges.len() == 1 && self.ranges.get(&0) == Some(&self.length));
        whole && self.wrong == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_bytes_are_those_given() {
        let content = Content::Given([1, 2, 3, 4].into());
        for (offset, expected) in [(0, [1, 2, 3]), (1, [2, 3, 4]), (3, [4, 0, 0]), (4, [0; 3]), (9, [0; 3])] {
            let mut filled = [7; 3];
            content.fill(offset, &mut filled);
            assert_eq!(filled, expected, "{offset}");
            assert_eq!(content.matches(offset, &expected), offset < 2, "{offset}");
        }
        assert!(!content.matches(0, &[1, 2, 4]) && !content.matches(9, &[]) && content.matches(4, &[]));
    }

    #[test]
    fn a_range_has_the_bytes_of_the_whole() {
        let pattern = Pattern(7);
        let mut whole = vec![0; 3_000];
        pattern.fill(0, &mut whole);
        for (offset, length) in
            [(0, 3_000), (1, 1), (3, 4), (5, 3), (5, 2_500), (8, 8), (1_023, 1_025), (2_999, 1), (16, 0)]
        {
            let part = &whole[offset..offset + length];
            let mut filled = vec![0; length];
            pattern.fill(offset as u64, &mut filled);
            assert_eq!(filled, part, "{offset}, {length}");
            assert!(pattern.matches(offset as u64, part));
            for wrong in 0..length.min(40) {
                let mut changed = part.to_vec();
                changed[length - 1 - wrong] ^= 1;
                assert!(!pattern.matches(offset as u64, &changed), "{offset}, {length}, {wrong}");
            }
        }
        // Positions in one object and in its neighbours.
        let words = (0..4).flat_map(|seed| (0..1_000).map(move |at| word(Pattern(seed).start(), at)));
        assert_eq!(words.collect::<std::collections::BTreeSet<u64>>().len(), 4_000);
    }
}
