//! Systems of linear equations of whole symbols, solved in two steps: first for the structure alone, then for the data.
//!
//! The unknowns are intermediate symbols; each equation lists those that add up to a known symbol. An [`Elimination`]
//! uses the structure only and results in a [`Plan`]: the additions of symbols and their order. The plan then runs on
//! the bytes, strip by strip ([`run`]), and may be kept and run on other bytes. That is inactivation decoding (RFC
//! 6330, section 5.4.2) with two differences: the peeled unknowns are never expressed in the rows of the matrix but in
//! the contributions of the inactive unknowns (`Reach`), and the data of peeled unknowns is computed from the sparse
//! equations themselves, once with the inactive unknowns assumed to be zero, and again when these are known, if enough
//! of them are requested.

mod bits;
mod cache;
mod echelon;
mod elimination;
mod heavy;
mod peeling;
mod plan;
mod run;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use cache::Cache;
pub(crate) use elimination::Elimination;
pub(crate) use heavy::Heavy;
pub(crate) use plan::Plan;
pub(crate) use run::Solved;

/// Sparse equations over GF(2): the exclusive or of some unknowns is an input symbol, or zero.
#[derive(Clone, Debug)]
pub(crate) struct Equations {
    unknowns: u32,
    /// Unknowns from this one on are inactive from the start.
    active: u32,
    /// The end of each equation's terms; those of equation `i` begin at `ends[i]`.
    ends: Vec<u32>,
    terms: Vec<u32>,
    /// 1 + the number of the input, 0 for zero.
    inputs: Vec<u32>,
}

impl Equations {
    /// Creates an empty list of equations of `unknowns` unknowns.
    pub(crate) fn new(unknowns: u32) -> Self {
        Self { unknowns, active: unknowns, ends: vec![0], terms: Vec::new(), inputs: Vec::new() }
    }

    /// Declares the unknowns from `first` on inactive: they are in so many equations that peeling never reaches them.
    pub(crate) fn inactive_from(mut self, first: u32) -> Self {
        self.active = first;
        self
    }

    /// Makes room for `equations` of `terms` terms in all.
    pub(crate) fn reserve(&mut self, equations: usize, terms: usize) {
        self.ends.reserve(equations);
        self.inputs.reserve(equations);
        self.terms.reserve(terms);
    }

    /// Adds an equation: the unknowns `terms`, each named once, add up to input `input`, or to zero.
    ///
    /// # Panics
    ///
    /// For an unknown out of range.
    pub(crate) fn push(&mut self, terms: &[u32], input: Option<u32>) {
        self.push_with(input, |list| list.extend_from_slice(terms));
    }

    /// Adds an equation whose terms `append` appends to a list; see [`Equations::push`].
    pub(crate) fn push_with(&mut self, input: Option<u32>, append: impl FnOnce(&mut Vec<u32>)) {
        let start = self.terms.len();
        append(&mut self.terms);
        let unknowns = self.unknowns;
        assert!(self.terms[start..].iter().all(|&term| term < unknowns), "unknowns are below {unknowns}");
        self.ends.push(self.terms.len() as u32);
        self.inputs.push(input.map_or(0, |input| input + 1));
    }

    /// Removes the last equation.
    fn pop(&mut self) {
        self.inputs.pop();
        self.ends.pop();
        self.terms.truncate(self.ends.last().map_or(0, |&end| end as usize));
    }

    /// Returns the number of unknowns, and the terms of each equation.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> (u32, Vec<Vec<u32>>) {
        (self.unknowns, (0..self.count() as u32).map(|equation| self.terms(equation).to_vec()).collect())
    }

    /// Returns the number of equations.
    fn count(&self) -> usize {
        self.inputs.len()
    }

    fn terms(&self, equation: u32) -> &[u32] {
        &self.terms[self.ends[equation as usize] as usize..self.ends[equation as usize + 1] as usize]
    }
}
