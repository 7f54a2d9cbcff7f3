//! The commands about plans and results: what each takes, and what it does.

mod report;
mod reproduce;
mod run;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

pub use report::{ReportArgs, report};
pub use reproduce::{ReproduceArgs, reproduce};
pub use run::{HowRun, RunArgs, run};

use crate::plan::{Plan, PlanError};
use crate::results::StoreError;
use crate::runner::RunError;

/// Exit code of a plan or an option that makes no sense.
pub const USAGE: u8 = 2;
/// Exit code of a machine, or a peer, that lacks what it takes.
pub const LACKING: u8 = 3;
/// Exit code of runs of which some case has no valid one.
pub const INVALID: u8 = 4;
/// Exit code of a program that was stopped; the same command goes on.
pub const INTERRUPTED: u8 = 75;
const OTHER: u8 = 1;

/// The plan that results were measured by, in their folder.
pub(crate) const PLAN: &str = "plan.toml";
/// Where results go that are given no folder.
const RESULTS: &str = "lab-results";

/// Why a command did not end well: one line, and the exit code.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// What is wrong and what to do.
    pub message: String,
    /// The exit code.
    pub code: u8,
}

impl Failure {
    fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: USAGE }
    }

    fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self { message: format!("{}: {error}", path.display()), code: OTHER }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self { message: error.to_string(), code: OTHER }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => error.into(),
            RunError::Machine(message) => Self { message, code: LACKING },
        }
    }
}

/// Where the results of a plan lie if nothing else is said: below the current folder, under the plan's name.
fn default_folder(plan: &Plan) -> PathBuf {
    Path::new(RESULTS).join(&plan.name)
}

/// Writes a file whole, or leaves what was there.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
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

/// A reader that is gone is no reason to fail.
fn say(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests;
