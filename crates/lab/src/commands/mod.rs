//! The commands about plans and results: what each takes, and what it does.

mod report;
mod reproduce;
mod run;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

pub use report::{ReportArgs, report};
pub use reproduce::{ReproduceArgs, reproduce};
pub use run::{HowRun, RunArgs, run};
pub(crate) use run::{keep, nothing, open};

pub(crate) use crate::output::{say, warn};

use crate::exit::{Code, Failure};
use crate::plan::PlanError;
use crate::results::StoreError;
use crate::runner::RunError;

/// The plan that results were measured by, in their folder.
pub(crate) const PLAN: &str = "plan.toml";
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

/// Writes a file whole, or leaves what was there.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(Failure::at(folder))?;
    let written = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.persist(path).map_err(|error| error.error)
        });
    written.map(drop).map_err(Failure::at(path))
}

#[cfg(test)]
mod tests;
