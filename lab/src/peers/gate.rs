//! The common start of several transfers.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock;

/// Holds transfers until all of them are ready, and each until its time after that.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<BarrierState>,
    changed: Condvar,
}

#[derive(Debug)]
struct BarrierState {
    /// The transfers that are ready, or have failed.
    ready: Vec<bool>,
    /// When the gate opens, on `CLOCK_MONOTONIC`.
    opened: Option<Duration>,
    /// Whether all waiting has ended.
    is_over: bool,
}

impl Gate {
    /// Creates a closed gate for this number of transfers.
    pub fn new(transfers: usize) -> Self {
        Self {
            state: Mutex::new(BarrierState { ready: vec![false; transfers], opened: None, is_over: false }),
            changed: Condvar::new(),
        }
    }

    /// Records that a transfer is ready, or has failed.
    pub fn report(&self, transfer: usize) {
        self.state().ready[transfer] = true;
        self.changed.notify_all();
    }

    /// Waits at most `time` for all transfers to be ready, and returns whether they are.
    pub fn is_ready_within(&self, time: Duration) -> bool {
        let waits = |state: &mut BarrierState| state.ready.contains(&false);
        let result = self.changed.wait_timeout_while(self.state(), time, waits);
        !result.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Opens the gate at this time of `CLOCK_MONOTONIC`.
    pub fn open(&self, at: Duration) {
        self.state().opened = Some(at);
        self.changed.notify_all();
    }

    /// Returns when it opens, if known.
    pub fn opened(&self) -> Option<Duration> {
        self.state().opened
    }

    /// Ends all waiting.
    pub fn abandon(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Returns whether all waiting has ended.
    pub(super) fn is_over(&self) -> bool {
        self.state().is_over
    }

    /// Reports a transfer as ready and waits until `after` the opening.
    fn pass(&self, transfer: usize, after: Duration) {
        self.report(transfer);
        let closed = |state: &mut BarrierState| state.opened.is_none() && !state.is_over;
        let state = self.changed.wait_while(self.state(), closed).unwrap_or_else(PoisonError::into_inner);
        let left = (state.opened.unwrap_or_default() + after).saturating_sub(clock::now());
        drop(self.changed.wait_timeout_while(state, left, |state| !state.is_over));
    }

    fn state(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of one of several transfers.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The gate that holds it.
    pub gate: &'a Gate,
    /// Its number among those that the gate holds.
    pub transfer: usize,
    /// The time after the opening of the gate.
    pub after: Duration,
}

impl Start<'_> {
    /// Waits for it.
    pub(super) fn wait(&self) {
        self.gate.pass(self.transfer, self.after);
    }
}
