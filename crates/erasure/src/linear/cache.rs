//! A cache of plans, which depend only on the number of symbols.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Plan;

/// Bytes of the plans that a cache keeps; a single larger plan is kept alone.
const CACHED_BYTES: usize = 32 << 20;

/// Plans by their number of symbols, the last used at the end. Plans are deterministic, so a cache
/// belongs to the process; it changes the time a call takes, never its result.
#[derive(Debug)]
pub(crate) struct Cache(Mutex<Vec<(u32, Arc<Plan>)>>);

impl Cache {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// Returns the plan of `symbols` symbols, from the cache or by `compute`.
    pub(crate) fn plan(&self, symbols: u32, compute: impl FnOnce() -> Plan) -> Arc<Plan> {
        if let Some(plan) = cached(&mut self.lock(), symbols) {
            return plan;
        }
        // Computed without the lock: other blocks continue meanwhile; at worst the same plan is computed twice.
        let plan = Arc::new(compute());
        let mut plans = self.lock();
        if let Some(plan) = cached(&mut plans, symbols) {
            return plan;
        }
        plans.push((symbols, Arc::clone(&plan)));
        let mut total: usize = plans.iter().map(|(_, plan)| plan.bytes()).sum();
        while total > CACHED_BYTES && plans.len() > 1 {
            total -= plans.remove(0).1.bytes();
        }
        plan
    }

    /// Empties the cache.
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(u32, Arc<Plan>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the plan, and marks it as the last used.
fn cached(plans: &mut [(u32, Arc<Plan>)], symbols: u32) -> Option<Arc<Plan>> {
    let at = plans.iter().position(|&(of, _)| of == symbols)?;
    plans[at..].rotate_left(1);
    plans.last().map(|(_, plan)| Arc::clone(plan))
}
