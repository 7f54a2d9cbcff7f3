//! A set of byte ranges: which bytes of an object are verified.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges, merged where they touch; as small as the arrivals are orderly.
#[derive(Debug, Default)]
pub(super) struct RangeSet {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds `range` if no byte of it is in the set; says whether it was added.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_and_overlaps_are_refused() {
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
}
