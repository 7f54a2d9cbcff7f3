//! `downpour-lab pack`.

use std::path::PathBuf;

use clap::Args;

use crate::exit::{Code, Failure};
use crate::results;

/// Compress the records of finished experiments.
///
/// Replaces results.jsonl in each directory of results by results.jsonl.zst, which takes a twentieth of the space.
/// Every command reads it, runs append to a new results.jsonl beside it, and `zstdcat` shows its lines.
#[derive(Clone, Debug, Args)]
pub struct PackArgs {
    /// Directories of results.
    #[arg(value_name = "DIRECTORY", required = true)]
    pub directories: Vec<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// One line and an exit code, if a directory has no results, or a file cannot be read or written.
pub fn pack(args: &PackArgs) -> Result<u8, Failure> {
    if let Some(directory) = args.directories.iter().find(|directory| !results::has_records(directory)) {
        let message = format!("no results in {}: measure them with downpour-lab run", directory.display());
        return Err(Failure::new(Code::Usage, message));
    }
    args.directories.iter().try_for_each(|directory| results::pack(directory))?;
    Ok(0)
}
