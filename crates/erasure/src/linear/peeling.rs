//! The order in which equations give unknowns, each from those known before: RFC 6330, section 5.4.2.2.

use super::Equations;

/// The order in which equations give unknowns, if some unknowns, the inactive ones, are known beforehand.
#[derive(Debug)]
pub(super) struct Peeling {
    /// An equation and the unknown it gives: all its other unknowns are inactive or given before.
    pub(super) steps: Vec<(u32, u32)>,
    /// The inactive unknowns.
    pub(super) inactive: Vec<u32>,
    /// For every unknown [`PEELED`] or its index among the inactive ones.
    pub(super) places: Vec<u32>,
    /// Equations that give no unknown.
    pub(super) rest: Vec<u32>,
}

/// An unknown that an equation gives.
pub(super) const PEELED: u32 = u32::MAX;
/// An undecided unknown.
const ACTIVE: u32 = u32::MAX - 1;

/// The remainder of an equation.
#[derive(Clone, Copy, Default)]
struct Left {
    /// How many of its unknowns are active.
    count: u32,
    /// The exclusive or of their numbers: once one is left, its number.
    sum: u32,
}

struct Peeler<'a> {
    equations: &'a Equations,
    left: Vec<Left>,
    /// The equations that each unknown is in: those of unknown `u` from `starts[u]` to `starts[u + 1]`.
    starts: Vec<u32>,
    members: Vec<u32>,
    /// Equations with one active unknown, perhaps with none by now.
    ready: Vec<u32>,
    /// Equations reduced to two active unknowns that have not joined them yet.
    pairs: Vec<u32>,
    components: Components,
    /// Equations that had the fewest active unknowns, three or more, when no others were left.
    spare: Vec<u32>,
    steps: Vec<(u32, u32)>,
    inactive: Vec<u32>,
    places: Vec<u32>,
    used: Vec<bool>,
}

/// Peels `equations`, making unknowns inactive where that stalls.
pub(super) fn peel(equations: &Equations) -> Peeling {
    let mut peeler = Peeler::new(equations);
    loop {
        while let Some(equation) = peeler.ready.pop() {
            peeler.give(equation);
        }
        if !peeler.inactivate() {
            break;
        }
    }
    let Peeler { steps, inactive, places, used, .. } = peeler;
    let rest = (0..equations.count() as u32).filter(|&equation| !used[equation as usize]).collect();
    Peeling { steps, inactive, places, rest }
}

impl<'a> Peeler<'a> {
    fn new(equations: &'a Equations) -> Self {
        let (active, count) = (equations.active as usize, equations.count());
        let mut left = vec![Left::default(); count];
        let mut starts = vec![0; active + 1];
        for (equation, left) in left.iter_mut().enumerate() {
            for &term in equations.terms(equation as u32) {
                if let Some(start) = starts.get_mut(term as usize + 1) {
                    *start += 1;
                    left.count += 1;
                    left.sum ^= term;
                }
            }
        }
        for unknown in 0..active {
            starts[unknown + 1] += starts[unknown];
        }
        // Filled from the back of each range, so that `starts` ends as the true starts.
        let mut next: Vec<u32> = starts[1..].to_vec();
        let mut members = vec![0; starts[active] as usize];
        let (mut ready, mut pairs) = (Vec::new(), Vec::new());
        for equation in (0..count as u32).rev() {
            for &term in equations.terms(equation) {
                if let Some(next) = next.get_mut(term as usize) {
                    *next -= 1;
                    members[*next as usize] = equation;
                }
            }
            match left[equation as usize].count {
                1 => ready.push(equation),
                2 => pairs.push(equation),
                _ => (),
            }
        }
        let mut places = vec![ACTIVE; active];
        let inactive: Vec<u32> = (equations.active..equations.unknowns).collect();
        places.extend(0..inactive.len() as u32);
        Self {
            equations,
            left,
            starts,
            members,
            ready,
            pairs,
            components: Components::new(active),
            spare: Vec::new(),
            steps: Vec::with_capacity(active),
            inactive,
            places,
            used: vec![false; count],
        }
    }

    /// Lets the equation give its last active unknown, if it still has one.
    fn give(&mut self, equation: u32) {
        let left = self.left[equation as usize];
        if left.count != 1 {
            return;
        }
        self.used[equation as usize] = true;
        self.steps.push((equation, left.sum));
        self.places[left.sum as usize] = PEELED;
        self.remove(left.sum);
    }

    /// Removes the unknown from the active ones.
    fn remove(&mut self, unknown: u32) {
        let (start, end) = (self.starts[unknown as usize], self.starts[unknown as usize + 1]);
        for &equation in &self.members[start as usize..end as usize] {
            let left = &mut self.left[equation as usize];
            left.count -= 1;
            left.sum ^= unknown;
            match left.count {
                1 => self.ready.push(equation),
                2 => self.pairs.push(equation),
                _ => (),
            }
        }
    }

    /// Makes unknowns inactive; returns false when none is active. Equations of two unknowns tie unknowns into
    /// components, any member of which gives all others: RFC 6330 picks one out of the largest. Without such equations,
    /// all but one unknown of a shortest equation become inactive.
    fn inactivate(&mut self) -> bool {
        while let Some(equation) = self.pairs.pop() {
            if self.left[equation as usize].count == 2
                && let [a, b] = self.active_terms(equation)[..]
            {
                self.components.join(a, b);
            }
        }
        let places = &self.places;
        if let Some(unknown) = self.components.largest(|unknown| places[unknown as usize] == ACTIVE) {
            self.retire(unknown);
            return true;
        }
        if let Some(equation) = self.shortest() {
            for unknown in self.active_terms(equation).split_off(1) {
                self.retire(unknown);
            }
            return true;
        }
        // The remaining ones are in no equation at all.
        let lone: Vec<u32> =
            (0..self.equations.active).filter(|&unknown| self.places[unknown as usize] == ACTIVE).collect();
        for &unknown in &lone {
            self.retire(unknown);
        }
        false
    }

    fn retire(&mut self, unknown: u32) {
        self.places[unknown as usize] = self.inactive.len() as u32;
        self.inactive.push(unknown);
        self.remove(unknown);
    }

    fn active_terms(&self, equation: u32) -> Vec<u32> {
        let terms = self.equations.terms(equation).iter().copied();
        terms.filter(|&term| self.places[term as usize] == ACTIVE).collect()
    }

    /// Returns an equation with at least three active unknowns and few of them. Searches all equations only when the
    /// shortest ones of the last search are used up.
    fn shortest(&mut self) -> Option<u32> {
        while let Some(equation) = self.spare.pop() {
            if self.left[equation as usize].count > 2 {
                return Some(equation);
            }
        }
        let mut fewest = u32::MAX;
        for (equation, left) in self.left.iter().enumerate().filter(|(_, left)| left.count > 2) {
            if left.count < fewest {
                fewest = left.count;
                self.spare.clear();
            }
            if left.count == fewest {
                self.spare.push(equation as u32);
            }
        }
        self.spare.pop()
    }
}

/// Components of unknowns tied together by equations of two unknowns. When one of them becomes known, all do: a
/// component is complete or gone, so components only merge.
struct Components {
    /// The parent of each unknown in its tree; a root is its own.
    parents: Vec<u32>,
    sizes: Vec<u32>,
    /// The roots of components of at least two, with some that are no longer roots or active.
    roots: Vec<u32>,
}

impl Components {
    fn new(unknowns: usize) -> Self {
        Self { parents: (0..unknowns as u32).collect(), sizes: vec![1; unknowns], roots: Vec::new() }
    }

    fn root(&mut self, mut unknown: u32) -> u32 {
        while self.parents[unknown as usize] != unknown {
            let above = self.parents[self.parents[unknown as usize] as usize];
            self.parents[unknown as usize] = above;
            unknown = above;
        }
        unknown
    }

    fn join(&mut self, a: u32, b: u32) {
        let (mut large, mut small) = (self.root(a), self.root(b));
        if large == small {
            return;
        }
        if self.sizes[large as usize] < self.sizes[small as usize] {
            (large, small) = (small, large);
        }
        if self.sizes[large as usize] == 1 {
            self.roots.push(large);
        }
        self.parents[small as usize] = large;
        self.sizes[large as usize] += self.sizes[small as usize];
    }

    /// Returns the root of the largest remaining component. Visits all of them, which are few whenever it is called:
    /// the large ones go first.
    fn largest(&mut self, is_active: impl Fn(u32) -> bool) -> Option<u32> {
        let Self { parents, sizes, roots } = self;
        roots.retain(|&root| parents[root as usize] == root && is_active(root));
        roots.iter().copied().max_by_key(|&root| sizes[root as usize])
    }
}
