//! `downpour-lab pack`.

use std::path::PathBuf;

use clap::Args;

use crate::exit::{Code, Failure};
use crate::results;

/// Compress the records of finished experiments.
///
/// Replaces results.jsonl in each folder of results by results.jsonl.zst, which takes a twentieth of the space. Every command
/// reads it as it is, runs append to a new results.jsonl beside it, and `zstdcat` shows its lines.
#[derive(Clone, Debug, Args)]
pub struct PackArgs {
    /// Folders of results.
    #[arg(value_name = "FOLDER", required = true)]
    pub folders: Vec<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// One line and an exit code, where there are no results in a folder or a file cannot be read or written.
pub fn pack(args: &PackArgs) -> Result<u8, Failure> {
    if let Some(folder) = args.folders.iter().find(|folder| !results::has_records(folder)) {
        let message = format!("there are no results in {}: measure them with downpour-lab run", folder.display());
        return Err(Failure::new(Code::Usage, message));
    }
    args.folders.iter().try_for_each(|folder| results::pack(folder))?;
    Ok(0)
}
