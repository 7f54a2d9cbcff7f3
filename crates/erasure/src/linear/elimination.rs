//! The structure of a system: which unknowns are peeled, which are inactive, and whether the inactive ones can be
//! determined.

use super::echelon::Echelon;
use super::heavy::{Heavy, HeavyRows};
use super::peeling::{PEELED, Peeling, peel};
use super::plan::Plan;
use super::{Equations, bits};

/// A system of equations, solved as far as possible without data. Adding further equations continues from there.
#[derive(Debug)]
pub(crate) struct Elimination {
    pub(super) equations: Equations,
    pub(super) heavy: Option<Heavy>,
    pub(super) peeling: Peeling,
    /// For each unknown, the inactive unknowns that it depends on through its equation and the earlier ones: itself, if
    /// it is inactive.
    pub(super) reach: Reach,
    /// The equations left over by peeling, in the inactive unknowns.
    pub(super) echelon: Echelon,
    /// The equations in the echelon, in order.
    pub(super) chosen: Vec<u32>,
    /// The heavy equations in the inactive unknowns, once they are needed.
    heavy_rows: Option<HeavyRows>,
    /// How the unknowns without a row in the echelon are determined.
    pub(super) tail: Tail,
}

/// Rows of bits over the inactive unknowns, one per unknown.
#[derive(Debug)]
pub(super) struct Reach {
    pub(super) words: usize,
    pub(super) rows: Vec<u64>,
}

/// The inactive unknowns that the equations over GF(2) leave free.
#[derive(Debug)]
pub(super) enum Tail {
    /// At least this many independent equations are missing.
    Lacking(u32),
    /// None is free.
    Nothing,
    /// They are determined by the heavy equations.
    Heavy(HeavyTail),
}

/// How free unknowns follow from heavy equations.
#[derive(Debug)]
pub(super) struct HeavyTail {
    /// The free inactive unknowns.
    pub(super) free: Vec<u32>,
    /// For each free unknown: the coefficient of each heavy equation, then of each row of the echelon, in the sum that
    /// gives it.
    pub(super) coefficients: Vec<u8>,
}

impl Reach {
    fn new(equations: &Equations, peeling: &Peeling) -> Self {
        let words = bits::words(peeling.inactive.len());
        let mut reach = Self { words, rows: vec![0; equations.unknowns as usize * words] };
        for (index, &unknown) in peeling.inactive.iter().enumerate() {
            bits::flip(&mut reach.rows[unknown as usize * words..], index);
        }
        for &(equation, unknown) in &peeling.steps {
            reach.add_terms(equations.terms(equation), unknown);
        }
        reach
    }

    /// Makes the row of `unknown` the sum of the rows of the other `terms`; its own row is zero.
    fn add_terms(&mut self, terms: &[u32], unknown: u32) {
        let (words, at) = (self.words, unknown as usize * self.words);
        for &term in terms {
            let from = term as usize * words;
            for word in 0..words {
                // The unknown's own row would add itself to itself.
                let other = if term == unknown { 0 } else { self.rows[from + word] };
                self.rows[at + word] ^= other;
            }
        }
    }

    pub(super) fn row(&self, unknown: u32) -> &[u64] {
        &self.rows[unknown as usize * self.words..][..self.words]
    }

    /// Sets `sum` to the sum of the rows of `terms`.
    pub(super) fn sum(&self, terms: &[u32], sum: &mut [u64]) {
        sum.fill(0);
        for &term in terms {
            bits::add(sum, self.row(term));
        }
    }
}

impl Elimination {
    pub(crate) fn new(equations: Equations, heavy: Option<Heavy>) -> Self {
        let peeling = peel(&equations);
        Self::of_peeled(equations, heavy, peeling)
    }

    /// As [`Elimination::new`], but `None` if more than `most` unknowns are inactive: the cost of the rest grows with
    /// their square and cube.
    pub(crate) fn bounded(equations: Equations, heavy: Option<Heavy>, most: usize) -> Option<Self> {
        let peeling = peel(&equations);
        (peeling.inactive.len() <= most).then(|| Self::of_peeled(equations, heavy, peeling))
    }

    fn of_peeled(equations: Equations, heavy: Option<Heavy>, peeling: Peeling) -> Self {
        let reach = Reach::new(&equations, &peeling);
        let echelon = Echelon::new(peeling.inactive.len());
        let mut elimination = Self {
            equations,
            heavy,
            peeling,
            reach,
            echelon,
            chosen: Vec::new(),
            heavy_rows: None,
            tail: Tail::Nothing,
        };
        let rest = std::mem::take(&mut elimination.peeling.rest);
        for &equation in &rest {
            elimination.insert(equation);
        }
        elimination.settle();
        elimination
    }

    /// Returns the least number of further independent equations needed; 0 when the system can be solved.
    pub(crate) fn lacking(&self) -> u32 {
        if let Tail::Lacking(equations) = self.tail { equations } else { 0 }
    }

    /// Adds an equation; see [`Equations::push_with`]. Returns false, and changes nothing, if it follows from the
    /// others.
    pub(crate) fn push_with(&mut self, input: Option<u32>, list: impl FnOnce(&mut Vec<u32>)) -> bool {
        let equation = self.equations.count() as u32;
        self.equations.push_with(input, list);
        let is_new = self.insert(equation);
        if is_new {
            self.settle();
        } else {
            self.equations.pop();
        }
        is_new
    }

    /// Returns the plan of a system that lacks nothing.
    pub(crate) fn into_plan(self) -> Plan {
        debug_assert_eq!(self.lacking(), 0, "the system cannot be solved");
        Plan::new(self)
    }

    /// Adds an equation to the echelon; returns whether it is independent.
    fn insert(&mut self, equation: u32) -> bool {
        if self.echelon.rank() == self.peeling.inactive.len() {
            return false;
        }
        let mut sum = vec![0; self.reach.words];
        self.reach.sum(self.equations.terms(equation), &mut sum);
        let is_new = self.echelon.insert(&sum);
        if is_new {
            self.chosen.push(equation);
        }
        is_new
    }

    /// Determines whether the unknowns that the echelon leaves free follow from the heavy equations.
    fn settle(&mut self) {
        let free = self.peeling.inactive.len() - self.echelon.rank();
        let rows = self.heavy.as_ref().map_or(0, |heavy| heavy.rows as usize);
        self.tail = if free == 0 {
            Tail::Nothing
        } else if free > rows {
            Tail::Lacking((free - rows) as u32)
        } else {
            self.solve_tail().map_or(Tail::Lacking(1), Tail::Heavy)
        };
    }

    /// Substitutes the echelon's rows in the heavy equations, which leaves only the free unknowns.
    fn solve_tail(&mut self) -> Option<HeavyTail> {
        let Self { heavy, peeling, reach, echelon, heavy_rows, .. } = self;
        let heavy = heavy.as_ref()?;
        let rows = heavy_rows.get_or_insert_with(|| {
            let span = &reach.rows[..heavy.span as usize * reach.words];
            let own = |row| peeling.places[(heavy.span + row) as usize] as usize;
            heavy.rows(peeling.inactive.len(), span, own)
        });
        let free = echelon.free();
        let given = |row: usize| {
            let octets = rows.row(row);
            let mut at_free: Vec<u8> = free.iter().map(|&unknown| octets[unknown as usize]).collect();
            for (index, &pivot) in echelon.pivots().iter().enumerate() {
                let octet = octets[pivot as usize];
                let unknowns = echelon.unknowns(index);
                for (at_free, &unknown) in at_free.iter_mut().zip(&free) {
                    *at_free ^= if bits::is_set(unknowns, unknown as usize) { octet } else { 0 };
                }
            }
            at_free
        };
        let inverse = rows.invert(given, free.len())?;
        let mut coefficients = Vec::new();
        for of_row in inverse {
            // The free unknown's coefficient of an echelon row: through every heavy equation that has the row's pivot.
            let of_pivot = |pivot: &u32| {
                let each = of_row.iter().enumerate();
                each.fold(0, |sum, (row, &factor)| sum ^ crate::field::multiply(factor, rows.row(row)[*pivot as usize]))
            };
            coefficients.extend_from_slice(&of_row);
            coefficients.extend(echelon.pivots().iter().map(of_pivot));
        }
        Some(HeavyTail { free, coefficients })
    }

    /// Returns the unknown's index among the inactive ones, if it is inactive.
    pub(super) fn inactive(&self, unknown: u32) -> Option<u32> {
        let place = self.peeling.places[unknown as usize];
        (place != PEELED).then_some(place)
    }
}
