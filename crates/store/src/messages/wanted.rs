//! The bytes of a batch that a receiver wants because it lacks them.

use std::ops::Range;

/// Ranges of a batch's bytes, which are the concatenation of its files. The concatenation of the ranges is the batch's
/// object.
///
/// Both peers map offsets of the object through the same value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted(Option<Vec<RangePosition>>);

/// One wanted range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RangePosition {
    /// Start in the object.
    object: u64,
    /// Start in the batch.
    start: u64,
    /// End in the batch.
    end: u64,
}

/// An invalid list of wanted ranges: empty, out of order, touching each other, or beyond the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("empty, unordered or adjacent ranges, or ranges beyond the batch")]
pub struct WantedError;

impl Wanted {
    /// Every byte.
    #[must_use]
    pub const fn all() -> Self {
        Self(None)
    }

    /// No bytes yet; see [`Wanted::push`].
    #[must_use]
    pub const fn none() -> Self {
        Self(Some(Vec::new()))
    }

    /// Adds a range after those before it; one that touches the last is merged with it.
    pub fn push(&mut self, range: Range<u64>) {
        let pieces = self.0.get_or_insert_default();
        if range.is_empty() {
            return;
        }
        match pieces.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => {
                let object = pieces.last().map_or(0, |last| last.object + (last.end - last.start));
                pieces.push(RangePosition { object, start: range.start, end: range.end });
            }
        }
    }

    /// Adds a range received from a peer, in a batch of `full` bytes.
    ///
    /// # Errors
    /// A range that is empty, does not lie after those before it, touches the last, or ends beyond the batch.
    pub fn push_received(&mut self, range: Range<u64>, full: u64) -> Result<(), WantedError> {
        let last = self.0.as_ref().and_then(|pieces| pieces.last());
        let behind = last.is_none_or(|last| range.start > last.end);
        if !behind || range.is_empty() || range.end > full {
            return Err(WantedError);
        }
        self.push(range);
        Ok(())
    }

    /// Whether every byte is wanted without a list.
    #[must_use]
    pub const fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the length of the object, for a batch of `full` bytes.
    #[must_use]
    pub fn length(&self, full: u64) -> u64 {
        match &self.0 {
            None => full,
            Some(pieces) => pieces.last().map_or(0, |last| last.object + (last.end - last.start)),
        }
    }

    /// Returns the wanted ranges of a batch of `full` bytes, in order.
    pub fn ranges(&self, full: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let whole = (self.0.is_none() && full > 0).then_some(0..full);
        whole.into_iter().chain(self.0.iter().flatten().map(|piece| piece.start..piece.end))
    }

    /// Returns the number of wanted bytes in a range of a batch of `full` bytes.
    #[must_use]
    pub fn bytes_in(&self, range: &Range<u64>, full: u64) -> u64 {
        let Some(pieces) = &self.0 else { return range.end.min(full).saturating_sub(range.start) };
        let first = pieces.partition_point(|piece| piece.end <= range.start);
        let overlapping = pieces[first..].iter().take_while(|piece| piece.start < range.end);
        overlapping.map(|piece| piece.end.min(range.end) - piece.start.max(range.start)).sum()
    }

    /// Returns the wanted ranges of a batch of `full` bytes except `ranges`, which are in order and do not overlap.
    #[must_use]
    pub fn without(&self, ranges: &[Range<u64>], full: u64) -> Self {
        let (mut rest, mut taken) = (Self::none(), ranges.iter().peekable());
        for piece in self.ranges(full) {
            let mut start = piece.start;
            while taken.next_if(|range| range.end <= start).is_some() {}
            // A range that ends beyond this one may reach into the next.
            while let Some(range) = taken.peek().filter(|range| range.start < piece.end) {
                rest.push(start..range.start.max(start));
                start = range.end.min(piece.end);
                if range.end > piece.end {
                    break;
                }
                taken.next();
            }
            rest.push(start..piece.end);
        }
        rest
    }

    /// Returns the wanted bytes in at most `most` ranges, at least one: the closest ranges are joined, and the bytes
    /// between them are wanted too. `None` if there are no more ranges than that.
    #[must_use]
    pub fn in_at_most(&self, most: usize) -> Option<Self> {
        let pieces = self.0.as_deref().filter(|pieces| pieces.len() > most)?;
        let gap = |pair: &[RangePosition]| pair[1].start - pair[0].end;
        let mut is_among = shortest(pieces.windows(2).map(gap).collect(), pieces.len() - most);
        let mut merged = Self::none();
        merged.push(pieces[0].start..pieces[0].end);
        for pair in pieces.windows(2) {
            merged.push(if is_among(gap(pair)) { pair[0].end } else { pair[1].start }..pair[1].end);
        }
        Some(merged)
    }

    /// Maps the object's bytes from `offset` on, at most `length` of them, to ranges of the batch, in order. Bytes
    /// beyond the end of the object are omitted.
    pub fn locate(&self, offset: u64, length: u64, full: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let end = offset.saturating_add(length);
        let whole = match &self.0 {
            None => Some(offset.min(full)..end.min(full)).filter(|range| !range.is_empty()),
            Some(_) => None,
        };
        let pieces = self.0.as_deref().unwrap_or_default();
        let first = pieces.partition_point(|piece| piece.object <= offset).saturating_sub(1);
        let located = pieces[first..].iter().take_while(move |piece| piece.object < end).map(move |piece| {
            let from = piece.start.saturating_add(offset.saturating_sub(piece.object)).min(piece.end);
            let to = piece.end.min(piece.start.saturating_add(end - piece.object));
            from..to
        });
        whole.into_iter().chain(located.filter(|range| !range.is_empty()))
    }
}

/// Returns a function that is true for the `count` shortest of these lengths, at least one and at most all; it is asked
/// for each of them.
pub(crate) fn shortest(mut lengths: Vec<u64>, count: usize) -> impl FnMut(u64) -> bool {
    let (shorter, bound, _) = lengths.select_nth_unstable(count - 1);
    let bound = *bound;
    // Of the lengths equal to the longest selected one, only as many.
    let mut also = count - shorter.iter().filter(|length| **length < bound).count();
    move |length| {
        let is_among = length < bound || (length == bound && also > 0);
        also -= usize::from(is_among && length == bound);
        is_among
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns start and end of each.
    fn pairs(ranges: impl Iterator<Item = Range<u64>>) -> Vec<(u64, u64)> {
        ranges.map(|range| (range.start, range.end)).collect()
    }

    fn some() -> Wanted {
        let mut wanted = Wanted::none();
        [10..20, 20..25, 40..41, 100..150].into_iter().for_each(|range| wanted.push(range));
        wanted
    }

    #[test]
    fn wanted_all_maps_offsets_unchanged() {
        let all = Wanted::all();
        assert_eq!(all.length(7), 7);
        assert_eq!(pairs(all.locate(3, 100, 7)), [(3, 7)]);
        assert_eq!(all.locate(7, 1, 7).count(), 0);
        assert_eq!(pairs(all.ranges(7)), [(0, 7)]);
    }

    #[test]
    fn object_concatenates_wanted_ranges() {
        let some = some();
        assert_eq!(some.length(1000), 66);
        assert_eq!(pairs(some.ranges(1000)), [(10, 25), (40, 41), (100, 150)]);
        assert_eq!(pairs(some.locate(0, 66, 1000)), [(10, 25), (40, 41), (100, 150)]);
        assert_eq!(pairs(some.locate(14, 3, 1000)), [(24, 25), (40, 41), (100, 101)]);
        assert_eq!(pairs(some.locate(15, 1, 1000)), [(40, 41)]);
        assert_eq!(pairs(some.locate(60, 100, 1000)), [(144, 150)]);
        assert_eq!(some.locate(66, 1, 1000).count(), 0);
        assert_eq!(Wanted::none().length(1000), 0);
        assert_eq!(Wanted::none().locate(0, 10, 1000).count(), 0);
    }

    #[test]
    fn wanted_locate_covers_each_byte_once() {
        let some = some();
        let bytewise: Vec<u64> = (0..66).flat_map(|at| some.locate(at, 1, 1000)).map(|range| range.start).collect();
        let whole: Vec<u64> = some.ranges(1000).flatten().collect();
        assert_eq!(bytewise, whole);
    }

    #[test]
    fn wanted_without_removes_exact_ranges() {
        let some = some();
        let cases: [&[(u64, u64)]; 7] = [
            &[],
            &[(0, 9)],
            &[(0, 1000)],
            &[(12, 13), (14, 22)],
            &[(15, 45)],
            &[(24, 40), (41, 120), (150, 200)],
            &[(10, 25), (40, 41)],
        ];
        for ranges in cases {
            let ranges: &[_] = &ranges.iter().map(|(start, end)| *start..*end).collect::<Vec<_>>();
            let rest = some.without(ranges, 1000);
            let bytes: Vec<u64> = rest.ranges(1000).flatten().collect();
            let expected = some.ranges(1000).flatten().filter(|at| !ranges.iter().any(|range| range.contains(at)));
            assert_eq!(bytes, expected.collect::<Vec<_>>(), "{ranges:?}");
            assert_eq!(rest.length(1000), bytes.len() as u64);
            for range in [0..1000, 11..14, 24..41, 50..60] {
                let inside = bytes.iter().filter(|at| range.contains(*at)).count() as u64;
                assert_eq!(rest.bytes_in(&range, 1000), inside, "{ranges:?} {range:?}");
            }
        }
        assert_eq!(pairs(Wanted::all().without(&[2..3, 3..4], 7).ranges(7)), [(0, 2), (4, 7)]);
        assert_eq!(Wanted::all().bytes_in(&(5..20), 7), 2);
    }

    #[test]
    fn wanted_in_at_most_joins_closest_ranges() {
        let some = some();
        assert!(some.in_at_most(3).is_none() && Wanted::all().in_at_most(1).is_none());
        assert_eq!(pairs(some.in_at_most(2).unwrap().ranges(1000)), [(10, 41), (100, 150)]);
        assert_eq!(pairs(some.in_at_most(1).unwrap().ranges(1000)), [(10, 150)]);
        let mut even = Wanted::none();
        (0..10).for_each(|at| even.push(10 * at..10 * at + 5));
        for most in 1..10 {
            let joined = even.in_at_most(most).unwrap();
            assert_eq!(joined.ranges(1000).count(), most);
            assert_eq!(joined.length(1000), 50 + 5 * (10 - most as u64));
        }
    }

    #[test]
    fn wanted_list_from_peer_is_checked() {
        let mut wanted = Wanted::none();
        assert_eq!(wanted.push_received(5..9, 20), Ok(()));
        let (empty, before, touching, beyond) = (12..12, 0..3, 9..10, 15..21);
        for bad in [empty, before, touching, beyond] {
            assert_eq!(wanted.push_received(bad.clone(), 20), Err(WantedError), "{bad:?}");
        }
        assert_eq!(wanted.push_received(10..20, 20), Ok(()));
        assert_eq!(wanted.length(20), 14);
    }
}
