//! The interface between the runner and the measurement.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::StopFlag;
use crate::plan::LinkCase;
use crate::results::RunOutcome;
use crate::simulated::{SimCase, SimRecord};

/// Makes one run. The runner calls it from several threads when runs are made in parallel.
pub trait Measure: Sync {
    /// Returns the peers that it can measure, installed or not.
    fn peers(&self) -> Vec<String>;

    /// Returns a peer's missing requirement, and the command that installs it; `None` if it can be measured.
    fn lacks(&self, _peer: &str) -> Option<String> {
        None
    }

    /// Acquires the requirements of all runs. Called once before the first, while there is only one thread.
    ///
    /// # Errors
    /// [`MeasureError::Machine`] if this machine lacks it.
    fn prepare(&self) -> Result<(), MeasureError> {
        Ok(())
    }

    /// Makes a run, independent of others in parallel. It checks `stop` at least every 100 ms and then kills all
    /// processes that it started.
    ///
    /// # Errors
    /// See [`MeasureError`]. A run that does not finish, and a peer that fails, are outcomes and not errors.
    fn measure(&self, case: &LinkCase, stop: &StopFlag) -> Result<RunOutcome, MeasureError>;

    /// Makes a run with several programs at once, under the same conditions.
    ///
    /// # Errors
    /// Those of [`Measure::measure`].
    fn measure_flows(&self, case: &SimCase, attempt: u32, stop: &StopFlag) -> Result<SimRecord, MeasureError>;
}

/// Returns one line for each of these peers that cannot be measured.
pub(crate) fn absent(measure: &dyn Measure, peers: impl Iterator<Item = String>) -> Vec<String> {
    let peers: BTreeSet<String> = peers.collect();
    peers
        .iter()
        .filter_map(|peer| measure.lacks(peer).map(|install| format!("{peer} is not installed: {install}")))
        .collect()
}

/// Makes a run; a panic ends only that run.
pub(crate) fn guarded<T>(make: impl FnOnce() -> Result<T, MeasureError>) -> Result<T, MeasureError> {
    let made = catch_unwind(AssertUnwindSafe(make));
    made.unwrap_or_else(|_| Err(MeasureError::Run("internal error: the measurement panicked".to_owned())))
}

/// The reason for a missing outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// The peer's missing requirement, and the command that installs it. Its cases are skipped.
    #[error("{0}")]
    Absent(String),
    /// The machine lacks a requirement of all runs. No other case is tried.
    #[error("{0}")]
    Machine(String),
    /// This run could not be made; another attempt may succeed.
    #[error("{0}")]
    Run(String),
    /// The stop flag was set.
    #[error("stopped")]
    Stopped,
}
