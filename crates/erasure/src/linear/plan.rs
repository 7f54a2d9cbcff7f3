//! Plans: the additions and their order, for any data.

use super::elimination::{Elimination, HeavyTail, Reach, Tail};
use super::peeling::PEELED;
use super::tables::Tables;
use super::{Equations, bits};
use crate::kernel::program::Program;

/// The solution of a system: programs over slots. Each unknown has the slot of its number, and intermediate sums have
/// the rest.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Slots of unknowns.
    pub(super) unknowns: u32,
    /// All slots.
    pub(super) slots: u32,
    /// The peeled unknowns, in order: the first part assumes the inactive ones to be zero, all of it uses their values.
    pub(super) steps: Program,
    /// The equations of the inactive unknowns of which the echelon consists, with the contributions of the peeled
    /// unknowns.
    pub(super) rest: Program,
    /// The pivots of the echelon's rows, with the free unknowns assumed to be zero.
    pub(super) dense: Program,
    pub(super) heavy: Option<HeavyPlan>,
    /// The contributions of the free unknowns to the pivots.
    pub(super) corrections: Program,
    /// The inactive unknowns.
    pub(super) inactive: Vec<u32>,
    /// For each unknown its index among the inactive ones, or [`PEELED`].
    places: Vec<u32>,
    reach: Reach,
}

/// How the free unknowns follow from the chain of the heavy equations.
#[derive(Debug)]
pub(super) struct HeavyPlan {
    pub(super) taps: Vec<[u8; 2]>,
    /// First slot of the rows' sums.
    pub(super) first: u32,
    pub(super) rows: u32,
    pub(super) targets: Vec<u32>,
    pub(super) sources: Vec<u32>,
    pub(super) coefficients: Vec<u8>,
}

/// Sums of unknowns.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Fills tables, in slots of their own, from the slots of the unknowns.
    pub(super) tables: Program,
    /// Slots of the tables.
    pub(super) slots: u32,
    /// The sums: their first parts are slots of unknowns, their last ones those of tables.
    pub(super) sums: Program,
}

impl Plan {
    pub(super) fn new(mut from: Elimination) -> Self {
        let unknowns = from.equations.unknowns;
        let heavy = from.heavy.take();
        let steps = steps(&from);
        let first_rest = unknowns;
        let mut rest = Program::default();
        for (slot, &equation) in (first_rest..).zip(&from.chosen) {
            let terms = from.equations.terms(equation).iter().copied();
            rest.push(
                slot,
                from.equations.inputs[equation as usize],
                terms.filter(|&term| from.inactive(term).is_none()),
            );
        }
        let mut slots = first_rest + from.chosen.len() as u32;
        let pivots: Vec<u32> =
            from.echelon.pivots().iter().map(|&pivot| from.peeling.inactive[pivot as usize]).collect();
        let dense = dense(&from, &pivots, first_rest, &mut slots);
        let mut corrections = Program::default();
        let heavy = match (&from.tail, heavy) {
            (Tail::Heavy(tail), Some(heavy)) => {
                corrections = correct(&from, tail, &pivots);
                let first = slots;
                slots += heavy.rows;
                let inactive = |&free: &u32| from.peeling.inactive[free as usize];
                Some(HeavyPlan {
                    taps: heavy.taps,
                    first,
                    rows: heavy.rows,
                    targets: tail.free.iter().map(inactive).collect(),
                    sources: (first..slots).chain(pivots).collect(),
                    coefficients: tail.coefficients.clone(),
                })
            }
            _ => None,
        };
        let Elimination { peeling, reach, .. } = from;
        let (inactive, places) = (peeling.inactive, peeling.places);
        Self { unknowns, slots, steps, rest, dense, heavy, corrections, inactive, places, reach }
    }

    /// Returns the sums of each list of unknowns, before the peeled unknowns are completed.
    pub(super) fn output(&self, lists: &Equations) -> Output {
        let (size, _) = Tables::fewest_additions(self.inactive.len(), lists.count());
        let tables = Tables::new(self.inactive.len(), size, 0);
        let mut output = Output { tables: Program::default(), slots: 0, sums: Program::default() };
        if size > 1 {
            tables.fill(&self.inactive, &mut output.tables);
            output.slots = tables.slots();
        }
        let mut sum = vec![0; self.reach.words];
        for list in 0..lists.count() as u32 {
            let terms = lists.terms(list);
            self.reach.sum(terms, &mut sum);
            let peeled = terms.iter().copied().filter(|&term| self.places[term as usize] == PEELED);
            if size > 1 {
                output.sums.push_parts(list, 0, peeled, tables.entries(&sum));
            } else {
                output.sums.push(list, 0, peeled.chain(bits::ones(&sum).map(|index| self.inactive[index])));
            }
        }
        output
    }

    /// Returns the additions for the inactive unknowns in an [`Plan::output`] of `lists` lists.
    pub(super) fn output_cost(&self, lists: usize) -> usize {
        Tables::fewest_additions(self.inactive.len(), lists).1
    }

    /// Returns the additions for completing the peeled unknowns.
    pub(super) fn completion_cost(&self) -> usize {
        self.steps.bytes() / size_of::<u32>()
    }

    /// Returns the number of inactive unknowns, and of additions before any output.
    #[cfg(test)]
    pub(crate) fn cost(&self) -> (usize, usize) {
        use crate::kernel::program::Part;
        let programs = [(&self.steps, Part::First), (&self.rest, Part::All), (&self.dense, Part::All)];
        (self.inactive.len(), programs.into_iter().map(|(program, part)| program.additions(part)).sum())
    }

    /// Returns the approximate bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let programs = [&self.steps, &self.rest, &self.dense, &self.corrections];
        let words = self.inactive.len() + self.places.len() + 2 * self.reach.rows.len();
        programs.iter().map(|program| program.bytes()).sum::<usize>() + 4 * words
    }
}

/// Returns the sums that give the peeled unknowns.
fn steps(from: &Elimination) -> Program {
    let mut program = Program::with_capacity(from.peeling.steps.len(), from.equations.terms.len());
    let places = &from.peeling.places;
    let mut inactive = Vec::new();
    for &(equation, unknown) in &from.peeling.steps {
        inactive.clear();
        let peeled = from.equations.terms(equation).iter().copied().filter(|&term| {
            let is_peeled = places[term as usize] == PEELED;
            if !is_peeled {
                inactive.push(term);
            }
            is_peeled && term != unknown
        });
        program.begin(unknown, from.equations.inputs[equation as usize]);
        program.add_first(peeled);
        program.add_last(inactive.iter().copied());
    }
    program
}

/// Returns the sums that give the echelon's pivots from its equations, whose slots begin at `first`.
fn dense(from: &Elimination, pivots: &[u32], first: u32, slots: &mut u32) -> Program {
    let mut program = Program::default();
    let (size, _) = Tables::fewest_additions(pivots.len(), pivots.len());
    let tables = Tables::new(pivots.len(), size, *slots);
    if size > 1 {
        let equations: Vec<u32> = (first..first + pivots.len() as u32).collect();
        tables.fill(&equations, &mut program);
        *slots += tables.slots();
    }
    for (row, &pivot) in pivots.iter().enumerate() {
        let made_of = from.echelon.made_of(row);
        if size > 1 {
            program.push(pivot, 0, tables.entries(made_of));
        } else {
            program.push(pivot, 0, bits::ones(made_of).map(|index| first + index as u32));
        }
    }
    program
}

/// Returns the sums that add the free unknowns to the pivots of the rows that have them.
fn correct(from: &Elimination, tail: &HeavyTail, pivots: &[u32]) -> Program {
    let mut program = Program::default();
    for (row, &pivot) in pivots.iter().enumerate() {
        let unknowns = from.echelon.unknowns(row);
        let free = tail.free.iter().filter(|&&free| bits::is_set(unknowns, free as usize));
        let sources: Vec<u32> = free.map(|&free| from.peeling.inactive[free as usize]).collect();
        if !sources.is_empty() {
            program.push(pivot, 0, std::iter::once(pivot).chain(sources));
        }
    }
    program
}
