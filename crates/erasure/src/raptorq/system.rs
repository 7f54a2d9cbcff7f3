//! The equations of a block: RFC 6330, sections 5.3.3 and 5.4.2.1.

use std::sync::Arc;

use super::SYMBOL_LIMIT;
use super::parameters::Parameters;
use crate::inactivation::System as _;
use crate::linear::{Cache, Elimination, Equations, Heavy, Plan};
use crate::systematic::Systematic;

/// The plans of encoders, by K'.
static CACHE: Cache = Cache::new();

/// Average number of intermediate symbols in an encoding symbol, and in the LDPC rows for each symbol, rounded up: for
/// reserving lists.
const TERMS: usize = 11;

/// The equations of blocks of `k` source symbols. Their inputs are the source symbols, then any that a caller adds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RaptorqSystem {
    /// Source symbols without padding.
    pub(super) k: u32,
    pub(super) parameters: Parameters,
}

impl RaptorqSystem {
    pub(super) fn new(k: u32) -> Self {
        Self { k, parameters: Parameters::new(k) }
    }

    /// Returns the internal symbol id of an encoding symbol, section 5.3.1: padding symbols lie between source and
    /// repair symbols.
    fn internal(&self, esi: u32) -> u32 {
        if esi < self.k { esi } else { esi + (self.parameters.padded - self.k) }
    }
}

impl crate::inactivation::System for RaptorqSystem {
    fn k(&self) -> u32 {
        self.k
    }

    /// Returns the equations of the LDPC rows, and of the padding symbols, which are zero.
    fn constraints(&self) -> Equations {
        let Parameters { padded, ldpc, lt, .. } = self.parameters;
        let mut equations = Equations::new(self.parameters.intermediate()).inactive_from(lt);
        equations.reserve((padded + ldpc) as usize, TERMS * (padded + ldpc) as usize);
        let mut terms = Vec::new();
        for row in 0..ldpc {
            self.parameters.ldpc_row(row, &mut terms);
            equations.push(&terms, None);
        }
        for id in self.k..padded {
            equations.push_with(None, |terms| self.parameters.terms(id, terms));
        }
        equations
    }

    /// Returns the HDPC rows.
    fn heavy(&self) -> Option<Heavy> {
        let span = self.parameters.padded + self.parameters.ldpc;
        let taps = (0..span - 1).map(|column| self.parameters.hdpc_taps(column)).collect();
        Some(Heavy { rows: self.parameters.hdpc, span, taps })
    }

    /// For symbols drawn at random about 2.5 times the root are inactive; a sender that picks ids of high degree makes
    /// all of them so.
    fn most_inactive(&self) -> usize {
        64 + 8 * self.parameters.intermediate().isqrt() as usize
    }

    fn lists(&self) -> Equations {
        Equations::new(self.parameters.intermediate())
    }

    fn terms(&self, esi: u32, terms: &mut Vec<u32>) {
        self.parameters.terms(self.internal(esi), terms);
    }
}

impl Systematic for RaptorqSystem {
    fn symbol_limit(&self) -> u32 {
        SYMBOL_LIMIT
    }

    /// Returns the plan of a block without padding: it serves every `k` with the same K'.
    fn encoding_plan(&self) -> Arc<Plan> {
        let padded = self.parameters.padded;
        CACHE.plan(padded, || {
            let system = Self::new(padded);
            let mut equations = system.constraints();
            for esi in 0..padded {
                equations.push_with(Some(esi), |terms| system.terms(esi, terms));
            }
            // RFC 6330 chose J(K') to guarantee a solution.
            Elimination::new(equations, system.heavy()).into_plan()
        })
    }

    fn encoding_inputs(&self) -> u32 {
        self.parameters.padded
    }
}

/// Empties the cache of plans.
pub fn forget_plans() {
    CACHE.forget();
}
