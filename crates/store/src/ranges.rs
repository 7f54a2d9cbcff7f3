//! A set of byte ranges: which bytes of an object or a file are verified.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges, merged where they touch; few if the bytes arrive in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RangeSet {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds `range` if no byte of it is in the set; returns whether it was added.
    pub(super) fn insert(&mut self, range: Range<u64>) -> bool {
        let Range { mut start, mut end } = range;
        if start >= end {
            return false;
        }
        let before = self.ranges.range(..end).next_back().map(|(s, e)| (*s, *e));
        if before.is_some_and(|(_, e)| e > start) {
            return false;
        }
        if let Some((before_start, before_end)) = before
            && before_end == start
        {
            start = before_start;
        }
        if let Some(after_end) = self.ranges.remove(&end) {
            end = after_end;
        }
        self.ranges.insert(start, end);
        true
    }

    /// The ranges, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(start, end)| *start..*end)
    }

    /// Returns the gaps between the ranges and behind them, within `length` bytes from 0.
    pub(super) fn gaps(&self, length: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = std::iter::once(0).chain(self.ranges.values().copied());
        let ends = self.ranges.keys().copied().chain([length]);
        starts.zip(ends).map(move |(start, end)| start..end.min(length)).filter(|gap| !gap.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_set_merges_and_rejects_overlaps() {
        let mut set = RangeSet::default();
        assert!(set.insert(10..20));
        assert!(set.insert(30..40));
        assert!(!set.insert(15..16));
        assert!(!set.insert(5..11));
        assert!(!set.insert(19..31));
        assert!(!set.insert(0..100));
        assert!(!set.insert(20..20));
        assert!(set.insert(20..30));
        assert_eq!(set.ranges, BTreeMap::from([(10, 40)]));
        assert!(set.insert(0..10));
        assert!(set.insert(41..42));
        assert_eq!(set.ranges, BTreeMap::from([(0, 40), (41, 42)]));
    }

    #[test]
    fn range_set_gaps_complement_ranges() {
        let mut set = RangeSet::default();
        let gaps = |set: &RangeSet, length| set.gaps(length).map(|gap| (gap.start, gap.end)).collect::<Vec<_>>();
        assert_eq!(gaps(&set, 10), [(0, 10)]);
        assert_eq!(gaps(&set, 0), []);
        assert!(set.insert(0..3) && set.insert(5..7));
        assert_eq!(gaps(&set, 10), [(3, 5), (7, 10)]);
        assert_eq!(gaps(&set, 7), [(3, 5)]);
        assert_eq!(gaps(&set, 4), [(3, 4)]);
        assert_eq!(gaps(&set, 2), []);
    }
}
