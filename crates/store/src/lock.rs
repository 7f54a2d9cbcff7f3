//! Locks of shared state.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a thread that held the lock has panicked: each use leaves the state whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
