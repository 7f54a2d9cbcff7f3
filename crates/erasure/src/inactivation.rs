//! Decoding by inactivation over the whole block, for every code that is a system of linear equations (RFC 6330, section 5.4.2; RFC 5053,
//! section 5.5.2).

use std::fmt::Debug;

use crate::Block;
use crate::kernel::program::Inputs;
use crate::linear::{Elimination, Equations, Heavy};
use crate::repairs::Repairs;

/// A code as equations of unknown symbols.
pub(crate) trait System: Send + Debug {
    /// Source symbols of a block.
    fn k(&self) -> u32;

    /// The equations that hold for any block.
    fn constraints(&self) -> Equations;

    /// The dense equations that hold for any block.
    fn heavy(&self) -> Option<Heavy> {
        None
    }

    /// No equations yet, of this system's unknowns.
    fn lists(&self) -> Equations;

    /// Appends the unknowns that add up to encoding symbol `esi` to `terms`.
    fn terms(&self, esi: u32, terms: &mut Vec<u32>);

    /// The unknowns of each of these encoding symbols.
    fn symbols(&self, esis: impl IntoIterator<Item = u32>) -> Equations
    where
        Self: Sized,
    {
        let mut lists = self.lists();
        for esi in esis {
            lists.push_with(None, |terms| self.terms(esi, terms));
        }
        lists
    }
}

/// The elimination of an attempt, and what is in it.
#[derive(Debug)]
pub(crate) struct Inactivation {
    elimination: Option<Elimination>,
    /// The source symbols that were missing at first and are not in the elimination yet.
    missing: Vec<u32>,
    /// How many of the repair symbols held are in it.
    used: usize,
}

impl Inactivation {
    pub(crate) fn new(block: &Block) -> Self {
        Self { elimination: None, missing: block.missing().collect(), used: 0 }
    }

    /// Adds the symbols that came since the last call: how many more are needed, at least. Repair symbols that say nothing new are
    /// dropped, so that no peer can make this hold more than `k` symbols and one for each unknown.
    pub(crate) fn add_symbols(&mut self, system: &impl System, repairs: &mut Repairs, block: &Block) -> u32 {
        let k = system.k();
        let Some(elimination) = &mut self.elimination else {
            let mut equations = system.constraints();
            for esi in (0..k).filter(|&esi| block.is_present(esi)) {
                equations.push_with(Some(esi), |terms| system.terms(esi, terms));
            }
            for ((esi, _), input) in repairs.iter().zip(k..) {
                equations.push_with(Some(input), |terms| system.terms(esi, terms));
            }
            self.used = repairs.count() as usize;
            let elimination = self.elimination.insert(Elimination::new(equations, system.heavy()));
            return elimination.lacking();
        };
        self.missing.retain(|&esi| {
            let came = block.is_present(esi);
            if came {
                elimination.push_with(Some(esi), |terms| system.terms(esi, terms));
            }
            !came
        });
        repairs.retain(self.used, |place, esi| {
            elimination.push_with(Some(k + place as u32), |terms| system.terms(esi, terms))
        });
        self.used = repairs.count() as usize;
        elimination.lacking()
    }

    /// Writes the missing symbols into the block, when none is lacking.
    pub(crate) fn fill(self, system: &impl System, repairs: &Repairs, block: &mut Block) {
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
