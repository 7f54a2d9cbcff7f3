//! Inactivation decoding over the whole block, RFC 6330, section 5.4.

use super::system::System;
use crate::Block;
use crate::kernel::program::Inputs;
use crate::linear::Elimination;
use crate::repairs::Repairs;

/// The elimination of an attempt, and what is in it.
#[derive(Debug)]
pub(super) struct Inactivation {
    elimination: Option<Elimination>,
    /// The source symbols that were missing at first and are not in the elimination yet.
    missing: Vec<u32>,
    /// How many of the repair symbols held are in it.
    used: usize,
}

impl Inactivation {
    pub(super) fn new(_: &System, block: &Block) -> Self {
        Self { elimination: None, missing: block.missing().collect(), used: 0 }
    }

    /// Adds the symbols that came since the last call: how many more are needed, at least.
    pub(super) fn add_symbols(&mut self, system: &System, repairs: &Repairs, block: &Block) -> u32 {
        let repaired = repairs.iter().zip(system.k..);
        let Some(elimination) = &mut self.elimination else {
            let mut equations = system.constraints();
            for esi in (0..system.k).filter(|&esi| block.is_present(esi)) {
                equations.push(&system.terms(esi), Some(esi));
            }
            for ((esi, _), input) in repaired {
                equations.push(&system.terms(esi), Some(input));
            }
            self.used = repairs.count() as usize;
            let elimination = self.elimination.insert(Elimination::new(equations, Some(system.heavy())));
            return elimination.lacking();
        };
        self.missing.retain(|&esi| {
            let came = block.is_present(esi);
            if came {
                elimination.push(&system.terms(esi), Some(esi));
            }
            !came
        });
        for ((esi, _), input) in repaired.skip(self.used) {
            elimination.push(&system.terms(esi), Some(input));
        }
        self.used = repairs.count() as usize;
        elimination.lacking()
    }

    /// Writes the missing symbols into the block, when none is lacking.
    pub(super) fn fill(self, system: &System, repairs: &Repairs, block: &mut Block) {
        let Some(elimination) = self.elimination else { return };
        let plan = elimination.into_plan();
        let lists = system.symbols(block.missing());
        let size = block.symbol_size();
        let (present, mut missing) = block.split_missing();
        let symbols = present.into_iter().chain(repairs.iter().map(|(_, symbol)| Some(symbol)));
        plan.solve(&Inputs::new(size, symbols), &lists, &mut missing);
        block.set_complete();
    }
}
