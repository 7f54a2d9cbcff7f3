//! The seam between the runner and what is measured.

use super::StopFlag;
use crate::plan::LinkCase;
use crate::results::RunOutcome;

/// Makes one run. The runner calls it from several threads when runs are made side by side.
pub trait Measure: Sync {
    /// The peers it can measure, whether they are installed or not.
    fn peers(&self) -> Vec<String>;

    /// Gets what every run takes. Called once before the first of them, while there is one thread.
    ///
    /// # Errors
    /// [`MeasureError::Machine`] where this machine lacks it.
    fn prepare(&self) -> Result<(), MeasureError> {
        Ok(())
    }

    /// Makes a run of its own, whatever runs beside it. It looks at `stop` at least every 100 ms and then ends what it started.
    ///
    /// # Errors
    /// See [`MeasureError`]. A run that does not finish, and a peer that fails, are outcomes and no errors.
    fn measure(&self, case: &LinkCase, stop: &StopFlag) -> Result<RunOutcome, MeasureError>;
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// The peer is not installed; the line that installs it. Its cases are left out.
    #[error("{0}")]
    Absent(String),
    /// The machine lacks what every run takes. No other case is tried.
    #[error("{0}")]
    Machine(String),
    /// This run could not be made; another try may go well.
    #[error("{0}")]
    Run(String),
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}
