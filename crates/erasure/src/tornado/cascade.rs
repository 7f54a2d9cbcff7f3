//! Which symbols a code has: the levels of the cascade and its end.

use std::ops::Range;

use super::Rate;

/// A level of at most so many symbols is the end: with it, the MDS code stays within the 256 symbols of GF(2^8) at every rate.
pub(super) const MOST_IN_END: u32 = 120;

/// A bipartite graph: its left symbols, and after them its check symbols, each the exclusive or of some of the left ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) lefts: Range<u32>,
    pub(super) checks: Range<u32>,
}

/// The levels, whose checks are the lefts of the next, and the end: an MDS code of the last level's checks. Symbols are named by their
/// esi: source, then the checks level by level, then the repair symbols of the end.
#[derive(Clone, Debug)]
pub(super) struct Cascade {
    pub(super) levels: Vec<Level>,
    /// Source symbols of the MDS code.
    pub(super) end: Range<u32>,
    /// Repair symbols of the MDS code.
    pub(super) repairs: Range<u32>,
}

impl Cascade {
    pub(super) fn new(k: u32, rate: Rate) -> Self {
        let rate = u32::from(rate.of_128());
        let mut levels = Vec::new();
        let mut end = 0..k;
        while end.len() > MOST_IN_END as usize {
            // Departs: 1997 has beta times the lefts. The smaller a level, the more its losses scatter, by their square root.
            let lefts = end.len() as u32;
            let checks = (lefts * rate).div_ceil(128) + lefts.isqrt() / 2;
            let level = Level { lefts: end.clone(), checks: end.end..end.end + checks };
            end = level.checks.clone();
            levels.push(level);
        }
        // A code of rate 1 - beta has beta / (1 - beta) repair symbols for each source symbol.
        let lefts = end.len() as u32;
        let repairs = (lefts * rate).div_ceil(128 - rate) + lefts.isqrt() / 2;
        let repairs = end.end..end.end + repairs;
        Self { levels, end, repairs }
    }

    /// First esi that does not exist.
    pub(super) const fn symbol_limit(&self) -> u32 {
        self.repairs.end
    }
}
