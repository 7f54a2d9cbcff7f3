//! The plans of encoders, computed once per `K'`.

use std::sync::Arc;

use super::system::System;
use crate::inactivation::System as _;
use crate::linear::{Cache, Elimination, Plan};

static CACHE: Cache = Cache::new();

/// The plan of the intermediate symbols of a block from its source symbols and padding: inputs `0..k` for any `k` of the same `K'`.
pub(super) fn encoding(system: &System) -> Arc<Plan> {
    let padded = system.parameters.padded;
    CACHE.plan(padded, || compute(padded))
}

/// The plan of a block of `padded` symbols, without the cache.
fn compute(padded: u32) -> Plan {
    let system = System::new(padded);
    let mut equations = system.constraints();
    for esi in 0..padded {
        equations.push_with(Some(esi), |terms| system.terms(esi, terms));
    }
    // RFC 6330 chose J(K') so that this is so.
    Elimination::new(equations, system.heavy()).into_plan()
}

/// Empties the cache.
pub fn forget() {
    CACHE.forget();
}
