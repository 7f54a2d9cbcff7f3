//! The commands about plans and results: their arguments and their work.

mod pack;
mod report;
mod reproduce;
mod run;
mod verdicts;

use std::path::{Path, PathBuf};

pub use pack::{PackArgs, pack};
pub use report::{ReportArgs, pictures, report};
pub use reproduce::{ReproduceArgs, reproduce};
pub use run::{RunArgs, run};
pub use verdicts::{RecordsArgs, VerdictsArgs, passages, records, verdict_text, verdicts};

use crate::exit::{Code, Failure};
use crate::plan::PlanError;
use crate::results::StoreError;
use crate::runner::RunError;

/// The default directory for results.
pub(crate) const RESULTS: &str = "lab-results";

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::new(Code::Usage, error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(Code::Other, error)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => error.into(),
            RunError::Machine(message) => Self::new(Code::Lacking, message),
        }
    }
}

/// Returns the default directory for results of a plan of this name: below the current directory.
fn default_directory(name: &str) -> PathBuf {
    Path::new(RESULTS).join(name)
}

#[cfg(test)]
mod tests;
