//! The commands about plans and results: what each takes, and what it does.

mod report;
mod reproduce;
mod run;

use std::path::{Path, PathBuf};

pub use report::{ReportArgs, report};
pub use reproduce::{ReproduceArgs, reproduce};
pub use run::{RunArgs, run};

use crate::exit::{Code, Failure};
use crate::plan::PlanError;
use crate::results::StoreError;
use crate::runner::RunError;

/// Where results go that are given no folder.
const RESULTS: &str = "lab-results";

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

/// Where the results of a plan of this name lie if nothing else is said: below the current folder.
fn default_folder(name: &str) -> PathBuf {
    Path::new(RESULTS).join(name)
}

#[cfg(test)]
mod tests;
