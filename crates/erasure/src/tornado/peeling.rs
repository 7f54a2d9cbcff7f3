//! Iterative decoding without data: which symbols follow from which.

use std::sync::Arc;

use super::graph::Graph;

/// How a lost symbol became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeelStep {
    /// It is the only unknown of an equation.
    Equation { equation: u32, symbol: u32 },
    /// The final code has enough symbols: all its unknown source symbols, [`Peeling::by_end`].
    End,
}

/// The known symbols of a block, updated with each arrival. Works both ways through the cascade: a known check finds a
/// lost left, and known lefts find a lost check, which is a left of the next level.
#[derive(Debug)]
pub(super) struct Peeling {
    pub(super) graph: Arc<Graph>,
    known: Vec<bool>,
    /// By equation: how many of its symbols are unknown, and the exclusive or of their esis, which in the end is the
    /// last one's.
    unknown: Vec<(u32, u32)>,
    /// Equations that had one unknown when added.
    ready: Vec<u32>,
    /// How many symbols of the end are known.
    end_known: u32,
    by_end: Vec<u32>,
    missing: u32,
    steps: Vec<PeelStep>,
}

impl Peeling {
    pub(super) fn new(graph: Arc<Graph>) -> Self {
        let unknown = graph
            .equations()
            .map(|equation| {
                let lefts = graph.lefts(equation);
                let sum = lefts.iter().fold(graph.k + equation, |sum, left| sum ^ left);
                (lefts.len() as u32 + 1, sum)
            })
            .collect();
        let known = vec![false; graph.cascade.symbol_limit() as usize];
        let missing = graph.k;
        Self { graph, known, unknown, ready: Vec::new(), end_known: 0, by_end: Vec::new(), missing, steps: Vec::new() }
    }

    /// Returns the number of unknown source symbols.
    pub(super) const fn missing(&self) -> u32 {
        self.missing
    }

    /// Returns the steps, in an order in which each uses only earlier results.
    pub(super) fn steps(&self) -> &[PeelStep] {
        &self.steps
    }

    /// Returns the symbols that [`PeelStep::End`] gives.
    pub(super) fn by_end(&self) -> &[u32] {
        &self.by_end
    }

    /// Learns a symbol that arrived, and all that follows from it.
    pub(super) fn learn(&mut self, symbol: u32) {
        self.mark(symbol);
        while let Some(equation) = self.ready.pop() {
            if let (1, symbol) = self.unknown[equation as usize] {
                self.steps.push(PeelStep::Equation { equation, symbol });
                self.mark(symbol);
            }
        }
    }

    fn mark(&mut self, symbol: u32) {
        if self.count(symbol) && self.end_known == self.graph.cascade.end.len() as u32 {
            self.solve_end();
        }
    }

    /// Removes a symbol from its equations. Returns true if it is one of the end and was unknown.
    fn count(&mut self, symbol: u32) -> bool {
        if std::mem::replace(&mut self.known[symbol as usize], true) {
            return false;
        }
        self.missing -= u32::from(symbol < self.graph.k);
        for equation in self.graph.equations_of(symbol) {
            let (unknown, sum) = &mut self.unknown[equation as usize];
            *unknown -= 1;
            *sum ^= symbol;
            if *unknown == 1 {
                self.ready.push(equation);
            }
        }
        let in_end = symbol >= self.graph.cascade.end.start;
        self.end_known += u32::from(in_end);
        in_end
    }

    fn solve_end(&mut self) {
        self.by_end = self.graph.cascade.end.clone().filter(|&symbol| !self.known[symbol as usize]).collect();
        if !self.by_end.is_empty() {
            self.steps.push(PeelStep::End);
        }
        for at in 0..self.by_end.len() {
            self.count(self.by_end[at]);
        }
    }
}
