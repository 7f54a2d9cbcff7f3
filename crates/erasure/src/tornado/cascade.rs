//! The symbols of a code: the levels of the cascade and its end.

use std::iter::successors;
use std::ops::Range;

use super::CheckShare;

/// A level of at most this many symbols is the end: then the MDS code stays within the 256 symbols of GF(2^8) at every
/// rate.
pub(super) const MOST_IN_END: u32 = 120;

/// A bipartite graph: its left symbols, and after them its check symbols, each the exclusive or of some of the left
/// ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) lefts: Range<u32>,
    pub(super) checks: Range<u32>,
}

/// The levels, whose checks are the lefts of the next, and the end: an MDS code of the last level's checks. Symbols are
/// named by their esi: source, then the checks level by level, then the repair symbols of the end.
#[derive(Clone, Debug)]
pub(super) struct Cascade {
    pub(super) levels: Vec<Level>,
    /// Source symbols of the MDS code.
    pub(super) end: Range<u32>,
    /// Repair symbols of the MDS code.
    pub(super) repairs: Range<u32>,
}

/// Returns the check symbols of a level with these left symbols; `None` if the lefts are few enough to be the end.
fn checks(lefts: &Range<u32>, rate: CheckShare) -> Option<Range<u32>> {
    let count = lefts.len() as u32;
    // Departs: 1997 has beta times the lefts. The smaller a level, the more its losses vary, by their square root.
    let checks = (count * u32::from(rate.of_128())).div_ceil(128) + count.isqrt() / 2;
    (count > MOST_IN_END).then(|| lefts.end..lefts.end + checks)
}

/// Iterates over the left symbols of each level and, last, of the end.
fn sides(k: u32, rate: CheckShare) -> impl Iterator<Item = Range<u32>> {
    successors(Some(0..k), move |lefts| checks(lefts, rate))
}

/// Returns the source and repair symbols of the MDS code. Allocates nothing: the probability of failure is computed
/// very often.
pub(super) fn end(k: u32, rate: CheckShare) -> (Range<u32>, Range<u32>) {
    let end = sides(k, rate).last().expect("a side at least, the source symbols");
    // A code of rate 1 - beta has beta / (1 - beta) repair symbols for each source symbol.
    let (lefts, rate) = (end.len() as u32, u32::from(rate.of_128()));
    let repairs = (lefts * rate).div_ceil(128 - rate) + lefts.isqrt() / 2;
    let repairs = end.end..end.end + repairs;
    (end, repairs)
}

impl Cascade {
    pub(super) fn new(k: u32, rate: CheckShare) -> Self {
        let level = |lefts| checks(&lefts, rate).map(|checks| Level { lefts, checks });
        let (end, repairs) = end(k, rate);
        Self { levels: sides(k, rate).filter_map(level).collect(), end, repairs }
    }

    /// Returns the first esi that does not exist.
    pub(super) const fn symbol_limit(&self) -> u32 {
        self.repairs.end
    }
}
