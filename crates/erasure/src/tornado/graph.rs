//! The graphs of a cascade, which both ends draw from the same numbers.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::TornadoCode;
use super::cascade::{Cascade, Level};
use crate::splitmix::SplitMix64;

/// A left symbol's checks are redrawn if an earlier left symbol has the same, up to this many draws: the smallest
/// graphs have too few checks.
const MOST_DRAWS: u32 = 64;

/// Graphs are cached for this many symbols altogether, at 40 to 60 bytes each. A single larger graph is kept alone.
const CACHED_SYMBOLS: u32 = 1 << 17;

/// Graphs are deterministic, so the cache belongs to the process; it changes the time a call takes,
/// never its result.
static CACHE: Mutex<Vec<(TornadoCode, u32, Arc<Graph>)>> = Mutex::new(Vec::new());

/// Lists of numbers, one after another.
#[derive(Debug)]
struct Lists {
    /// List `i` is `items[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    /// Returns list `i`; empty if it does not exist.
    fn get(&self, i: u32) -> &[u32] {
        match self.starts.get(i as usize..i as usize + 2) {
            Some(&[start, end]) => &self.items[start as usize..end as usize],
            _ => &[],
        }
    }

    /// Returns `count` lists: for each `i`, the lists that name it, in ascending order.
    fn transposed(&self, count: u32) -> Self {
        let mut starts = vec![0; count as usize + 1];
        for &item in &self.items {
            starts[item as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut items = vec![0; self.items.len()];
        for (list, bounds) in (0..).zip(self.starts.windows(2)) {
            for &item in &self.items[bounds[0] as usize..bounds[1] as usize] {
                items[next[item as usize] as usize] = list;
                next[item as usize] += 1;
            }
        }
        Self { starts, items }
    }
}

/// A cascade and the edges of its graphs. A check symbol of a graph is an equation: it and its lefts add up to zero.
/// Equation `e` is the one of check symbol `k + e`.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) k: u32,
    pub(super) cascade: Cascade,
    /// By equation: the lefts, ascending.
    lefts: Lists,
    /// By symbol: the equations in which it is a left.
    checks: Lists,
}

impl Graph {
    /// Returns the graphs of a design for blocks of `k` symbols.
    pub(super) fn of(design: TornadoCode, k: u32) -> Arc<Self> {
        let cached = |cache: &mut Vec<(TornadoCode, u32, Arc<Self>)>| {
            let at = cache.iter().position(|&(other, other_k, _)| (other, other_k) == (design, k))?;
            cache[at..].rotate_left(1);
            cache.last().map(|(_, _, graph)| Arc::clone(graph))
        };
        if let Some(graph) = cached(&mut CACHE.lock().unwrap_or_else(PoisonError::into_inner)) {
            return graph;
        }
        // Drawn without the lock: other blocks continue meanwhile; at worst the same graph is drawn twice.
        let graph = Arc::new(Self::new(design, k));
        let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(graph) = cached(&mut cache) {
            return graph;
        }
        cache.push((design, k, Arc::clone(&graph)));
        let mut total: u32 = cache.iter().map(|(_, _, graph)| graph.cascade.symbol_limit()).sum();
        while total > CACHED_SYMBOLS && cache.len() > 1 {
            total -= cache.remove(0).2.cascade.symbol_limit();
        }
        graph
    }

    fn new(design: TornadoCode, k: u32) -> Self {
        let cascade = Cascade::new(k, design.rate);
        let mut checks = Lists { starts: vec![0], items: Vec::new() };
        for level in &cascade.levels {
            draw(level, design.longest_tail, level.checks.start - k, &mut checks);
        }
        let lefts = checks.transposed(cascade.end.end - k);
        Self { k, cascade, lefts, checks }
    }

    /// Returns all equations.
    pub(super) fn equations(&self) -> Range<u32> {
        0..self.cascade.end.end - self.k
    }

    /// Returns the lefts of an equation.
    pub(super) fn lefts(&self, equation: u32) -> &[u32] {
        self.lefts.get(equation)
    }

    /// Returns the equations of a symbol: those in which it is a left, and its own if it is a check.
    pub(super) fn equations_of(&self, symbol: u32) -> impl Iterator<Item = u32> {
        let own = self.cascade.end.end > symbol && symbol >= self.k;
        self.checks.get(symbol).iter().copied().chain(own.then(|| symbol - self.k))
    }
}

/// Returns the degree of each left, ascending, by the heavy tail distribution (Luby 1997): `lambda_i = 1 / (H(D) (i -
/// 1))` of the edges, so 1 / (i (i - 1)) of the lefts but for a common factor, and (1 - 1/i) (D + 1) / D of them have
/// at most `i` edges.
pub(super) fn degrees(lefts: u32, longest_tail: u32) -> impl Iterator<Item = u32> {
    let (lefts, tail) = (u64::from(lefts), u64::from(longest_tail));
    let up_to = move |i: u64| lefts * (i - 1) * (tail + 1) / (i * tail);
    (2..=tail + 1).flat_map(move |i| (up_to(i - 1)..up_to(i)).map(move |_| i as u32))
}

/// Draws the graph of a level and appends, for each left in the order of its esi, the equations it is in.
fn draw(level: &Level, longest_tail: u32, first_equation: u32, checks_of: &mut Lists) {
    let (lefts, checks) = (level.lefts.len() as u32, level.checks.len() as u32);
    let mut random = SplitMix64::new(u64::from(lefts) << 32 | u64::from(checks));
    // Neighbours on the path are lost together, so degrees are assigned at random.
    let mut order: Vec<u32> = (0..lefts).collect();
    for last in (1..lefts).rev() {
        order.swap(last as usize, random.below_u32(last + 1) as usize);
    }
    let mut edges = Edges::new(random, checks);
    let mut drawn = vec![Vec::new(); lefts as usize];
    for (&left, degree) in order.iter().zip(degrees(lefts, longest_tail)) {
        drawn[left as usize] = if degree == 2 { edges.pair_and_guard() } else { edges.of_degree(degree) };
    }
    for checks in drawn {
        checks_of.items.extend(checks.iter().map(|check| first_equation + check));
        checks_of.starts.push(checks_of.items.len() as u32);
    }
}

/// Draws the checks of one left after another.
///
/// The right degrees of 1997 are Poisson: here they follow from drawing each edge's check at random. Half of the lefts
/// have two edges, and such lefts in a cycle cannot be distinguished when all of them are lost. So a few checks, the
/// *guards*, are reserved for them: each gets a third edge to one, as in the proof that decoding ends (Luby 2001,
/// section IV).
struct Edges {
    random: SplitMix64,
    /// Checks other than guards; these are first.
    ordinary: u32,
    guards: u32,
    pairs: BTreeSet<(u32, u32)>,
    /// Each check of a pair with the pair's guard.
    guarded: BTreeSet<(u32, u32)>,
}

impl Edges {
    fn new(random: SplitMix64, checks: u32) -> Self {
        let guards = checks.isqrt();
        Self { random, ordinary: checks - guards, guards, pairs: BTreeSet::new(), guarded: BTreeSet::new() }
    }

    /// Returns different ordinary checks, at most all of them.
    fn of_degree(&mut self, degree: u32) -> Vec<u32> {
        let degree = degree.min(self.ordinary) as usize;
        let mut checks = Vec::with_capacity(degree);
        while checks.len() < degree {
            let check = self.random.below_u32(self.ordinary);
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
        checks
    }

    /// Returns two ordinary checks and a guard.
    ///
    /// Departs: 1997 leaves the graph to chance. Here no two lefts share both ordinary checks, nor an ordinary check
    /// and a guard, if possible; then neither two nor three of them are lost permanently. Without it, one block in a
    /// hundred needed nearly all symbols.
    fn pair_and_guard(&mut self) -> Vec<u32> {
        let mut checks = self.of_degree(2);
        for _ in 1..MOST_DRAWS {
            if !self.pairs.contains(&ordered(&checks)) {
                break;
            }
            checks = self.of_degree(2);
        }
        self.pairs.insert(ordered(&checks));
        let mut guard = self.random.below_u32(self.guards);
        for _ in 1..MOST_DRAWS {
            if !checks.iter().any(|&check| self.guarded.contains(&(check, guard))) {
                break;
            }
            guard = self.random.below_u32(self.guards);
        }
        self.guarded.extend(checks.iter().map(|&check| (check, guard)));
        checks.push(self.ordinary + guard);
        checks
    }
}

fn ordered(pair: &[u32]) -> (u32, u32) {
    (pair[0].min(pair[1]), pair[0].max(pair[1]))
}
