//! The plans of encoders, computed once per `K'`.

use std::sync::{Arc, Mutex, PoisonError};

use super::system::System;
use crate::linear::{Elimination, Plan};

/// Bytes of the plans that are kept; a single larger plan is kept alone.
const CACHED_BYTES: usize = 32 << 20;

/// Plans are the same whoever computes them, so the cache belongs to the process; it changes the time a call takes, never its result.
static CACHE: Mutex<Vec<(u32, Arc<Plan>)>> = Mutex::new(Vec::new());

/// The plan of the intermediate symbols of a block from its source symbols and padding: inputs `0..k` for any `k` of the same `K'`.
pub(super) fn encoding(system: &System) -> Arc<Plan> {
    let padded = system.parameters.padded;
    let cached = |cache: &mut Vec<(u32, Arc<Plan>)>| {
        let at = cache.iter().position(|&(symbols, _)| symbols == padded)?;
        cache[at..].rotate_left(1);
        cache.last().map(|(_, plan)| Arc::clone(plan))
    };
    if let Some(plan) = cached(&mut CACHE.lock().unwrap_or_else(PoisonError::into_inner)) {
        return plan;
    }
    // Computed without the lock: other blocks go on meanwhile, at worst the same plan is computed twice.
    let plan = Arc::new(compute(padded));
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = cached(&mut cache) {
        return plan;
    }
    cache.push((padded, Arc::clone(&plan)));
    let mut total: usize = cache.iter().map(|(_, plan)| plan.bytes()).sum();
    while total > CACHED_BYTES && cache.len() > 1 {
        total -= cache.remove(0).1.bytes();
    }
    plan
}

/// The plan of a block of `padded` symbols, without the cache.
fn compute(padded: u32) -> Plan {
    let system = System::new(padded);
    let mut equations = system.constraints();
    for esi in 0..padded {
        equations.push(&system.terms(esi), Some(esi));
    }
    // RFC 6330 chose J(K') so that this is so.
    Elimination::new(equations, Some(system.heavy())).into_plan()
}

/// Empties the cache.
pub fn forget() {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
