//! Sums of many subsets of the same symbols, through tables of the sums of small groups: the method of the four
//! Russians.

use super::bits;
use crate::kernel::program::Program;

/// Group sizes to try; groups of one symbol need no tables.
const GROUPS: [usize; 3] = [1, 4, 6];

/// Groups of symbols, each with a table of all sums of its symbols: in slots from `first` on, `2^size` for each group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    /// Symbols in all groups.
    symbols: usize,
    /// Symbols in a group.
    size: usize,
    first: u32,
}

impl Tables {
    /// Returns the group size with which `sums` sums of about half of `symbols` symbols each take the fewest additions,
    /// and their number.
    pub(super) fn fewest_additions(symbols: usize, sums: usize) -> (usize, usize) {
        let additions = |size: usize| match size {
            1 => sums * symbols / 2,
            size => symbols.div_ceil(size) * ((1 << size) - 1 + sums),
        };
        GROUPS.map(|size| (size, additions(size))).into_iter().min_by_key(|&(_, additions)| additions).unwrap_or((1, 0))
    }

    /// Creates tables for groups of `size` symbols, with slots from `first` on.
    pub(super) fn new(symbols: usize, size: usize, first: u32) -> Self {
        Self { symbols, size, first }
    }

    /// Returns the number of slots.
    pub(super) fn slots(&self) -> u32 {
        (self.symbols.div_ceil(self.size) << self.size) as u32
    }

    fn entry(&self, group: usize, pattern: usize) -> u32 {
        self.first + ((group << self.size) + pattern) as u32
    }

    /// Appends the sums that fill the tables, from the slots of the symbols.
    pub(super) fn fill(&self, symbols: &[u32], program: &mut Program) {
        for (group, symbols) in symbols.chunks(self.size).enumerate() {
            for pattern in 1usize..1 << symbols.len() {
                let lowest = pattern & pattern.wrapping_neg();
                let symbol = symbols[lowest.trailing_zeros() as usize];
                let rest = (pattern != lowest).then(|| self.entry(group, pattern - lowest));
                program.push_parts(self.entry(group, pattern), 0, [symbol], rest);
            }
        }
    }

    /// Iterates over the entries that add up to the sum of the symbols whose bit is set.
    pub(super) fn entries<'a>(&'a self, subset: &'a [u64]) -> impl Iterator<Item = u32> + 'a {
        let groups = self.symbols.div_ceil(self.size);
        let patterns = (0..groups).map(move |group| (group, bits::field(subset, group * self.size, self.size)));
        patterns.filter(|&(_, pattern)| pattern != 0).map(|(group, pattern)| self.entry(group, pattern))
    }
}
