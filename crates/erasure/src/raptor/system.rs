//! The equations of a block, RFC 5053, section 5.4.2.4.

use std::sync::Arc;

use super::structure::{MIN_K, Structure};
use crate::inactivation::System as _;
use crate::linear::{Cache, Elimination, Equations, Plan};
use crate::systematic::Systematic;

/// The plans of encoders, by K.
static CACHE: Cache = Cache::new();

/// The equations of blocks of `k` source symbols and the padding of those with fewer than 4.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RaptorSystem {
    k: u32,
    structure: Structure,
}

impl RaptorSystem {
    pub(crate) fn new(k: u32) -> Self {
        Self { k, structure: Structure::new(k.max(MIN_K)) }
    }

    /// Returns the number of padding symbols, between the source and the repair symbols.
    pub(super) fn padding(&self) -> u32 {
        MIN_K.saturating_sub(self.k)
    }
}

impl crate::inactivation::System for RaptorSystem {
    fn k(&self) -> u32 {
        self.k
    }

    /// Returns the equations of the LDPC and half symbols, and of the padding, which is zero.
    fn constraints(&self) -> Equations {
        let mut equations = self.lists();
        for set in self.structure.constraints() {
            equations.push(&set, None);
        }
        for symbol in self.k..self.k + self.padding() {
            equations.push_with(None, |terms| self.structure.terms(symbol, terms));
        }
        equations
    }

    /// For symbols drawn at random about 2.5 times the root are inactive; a sender that picks ids of high degree makes
    /// all of them so.
    fn most_inactive(&self) -> usize {
        64 + 8 * self.structure.intermediate().isqrt() as usize
    }

    fn lists(&self) -> Equations {
        Equations::new(self.structure.intermediate())
    }

    fn terms(&self, esi: u32, terms: &mut Vec<u32>) {
        self.structure.terms(if esi < self.k { esi } else { esi + self.padding() }, terms);
    }
}

impl Systematic for RaptorSystem {
    fn symbol_limit(&self) -> u32 {
        super::symbol_limit(self.k)
    }

    fn encoding_plan(&self) -> Arc<Plan> {
        CACHE.plan(self.k, || {
            let mut equations = self.constraints();
            for esi in 0..self.k {
                equations.push_with(Some(esi), |terms| self.terms(esi, terms));
            }
            // RFC 5053 chose J(K) to guarantee a solution.
            Elimination::new(equations, None).into_plan()
        })
    }

    fn encoding_inputs(&self) -> u32 {
        self.k
    }
}
