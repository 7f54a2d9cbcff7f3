//! Entries that holders share: if there are too many, the oldest entry of the largest holder goes first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Places, numbered by age, and their holders.
#[derive(Debug)]
pub(super) struct Shares<H> {
    places: BTreeMap<H, BTreeSet<u64>>,
    /// The holders by size; of those with equally many entries, the one with the oldest is last.
    order: BTreeSet<(usize, Reverse<u64>, H)>,
}

impl<H> Default for Shares<H> {
    fn default() -> Self {
        Self { places: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<H: Copy + Ord> Shares<H> {
    /// Gives this place to `holder`.
    pub(super) fn add(&mut self, holder: H, place: u64) {
        self.change(holder, |places| places.insert(place));
    }

    /// Takes this place back from `holder`.
    pub(super) fn remove(&mut self, holder: H, place: u64) {
        self.change(holder, |places| places.remove(&place));
    }

    /// Returns the holder with the most entries, and the oldest of them. Of several holders, it is the one with the
    /// oldest entry of all.
    pub(super) fn largest(&self) -> Option<(H, u64)> {
        self.order.last().map(|(_, Reverse(oldest), holder)| (*holder, *oldest))
    }

    /// Returns whether `holder` has a place.
    pub(super) fn has(&self, holder: H) -> bool {
        self.places.contains_key(&holder)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn change(&mut self, holder: H, change: impl FnOnce(&mut BTreeSet<u64>) -> bool) {
        let places = self.places.entry(holder).or_default();
        let order = |places: &BTreeSet<u64>| places.first().map(|oldest| (places.len(), Reverse(*oldest), holder));
        let before = order(places);
        change(places);
        let after = order(places);
        if places.is_empty() {
            self.places.remove(&holder);
        }
        before.iter().for_each(|before| _ = self.order.remove(before));
        self.order.extend(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_oldest_place_of_the_largest_holder_goes_first(changes in prop::collection::vec((0..6_u8, any::<bool>()), 0..60)) {
            let (mut shares, mut places) = (Shares::default(), Vec::<(u8, u64)>::new());
            for (number, (holder, adds)) in (0..).zip(changes) {
                if adds || places.is_empty() {
                    shares.add(holder, number);
                    places.push((holder, number));
                } else {
                    let (holder, place) = places.remove(usize::from(holder) % places.len());
                    shares.remove(holder, place);
                }
                let size = |holder: u8| places.iter().filter(|(other, _)| *other == holder).count();
                // Places are numbered by age, so that the first of the largest holders is meant.
                let most = places.iter().map(|(holder, _)| size(*holder)).max();
                let expected = places.iter().find(|(holder, _)| Some(size(*holder)) == most).copied();
                prop_assert_eq!(shares.largest(), expected);
                prop_assert_eq!(shares.is_empty(), places.is_empty());
                prop_assert_eq!(shares.has(holder), size(holder) > 0);
            }
        }
    }
}
