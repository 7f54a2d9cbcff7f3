//! `downpour-lab verdicts` and `downpour-lab records`.

use std::path::{Path, PathBuf};

use clap::Args;

use super::report::{directory, measured};
use crate::claims;
use crate::exit::{Code, Failure};
use crate::output::say;
use crate::results::COMMIT;

/// Judge results by their documents' claims.
///
/// Prints a table in Markdown: each claim, the measured numbers, and whether it is reproduced. Both follow from the
/// results and their verdict.toml.
#[derive(Clone, Debug, Args)]
pub struct VerdictsArgs {
    /// Directories of results, or plans whose results are in lab-results.
    #[arg(value_name = "DIRECTORY|PLAN.toml", required = true)]
    pub from: Vec<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// One line and an exit code, if results or verdicts cannot be read.
pub fn verdicts(args: &VerdictsArgs) -> Result<u8, Failure> {
    let mut all = Vec::new();
    for from in &args.from {
        let directory = directory(from)?;
        let measured = measured(&directory)?;
        if let Some(judged) = claims::read(&directory, &measured)? {
            all.push((measured.title_and_name().1.to_owned(), judged, measured.stale() > 0));
        }
    }
    let named: Vec<_> = all.iter().map(|(name, judged, is_stale)| (name.as_str(), judged, *is_stale)).collect();
    say(&claims::markdown(&named));
    if let Some(commit) = COMMIT.filter(|_| named.iter().any(|(.., is_stale)| *is_stale)) {
        say(&format!("\n\"Older build\": measured by a build of other sources than those of commit {commit}.\n"));
    }
    Ok(0)
}

/// Returns the verdicts on the results of a directory, if any, as the text that `report` writes to verdict.txt.
///
/// # Errors
/// One line and an exit code, if results or verdicts cannot be read.
pub fn verdict_text(directory: &Path) -> Result<Option<String>, Failure> {
    let judged = claims::read(directory, &measured(directory)?)?;
    Ok(judged.map(|judged| judged.to_string()))
}

/// Returns the passages of documents about measurements: each document's path, relative to the parent of `experiments`,
/// and the text that it must contain, with every number from the results. The file `passages.toml` has them.
///
/// # Errors
/// One line and an exit code, if that file or results cannot be read.
pub fn passages(experiments: &Path) -> Result<Vec<(PathBuf, String)>, Failure> {
    claims::passages(experiments, measured)
}

/// List the records behind a number of a verdict.
///
/// The number is named as in verdict.toml: SERIES SWEEP POINT, or an expression of such names. Prints the id of each
/// record, which is a line of results.jsonl, and its value.
#[derive(Clone, Debug, Args)]
pub struct RecordsArgs {
    /// Directory of results, or a plan whose results are in lab-results.
    #[arg(value_name = "DIRECTORY|PLAN.toml")]
    pub from: PathBuf,
    /// The number, such as 'cubic loss 5%'.
    #[arg(value_name = "EXPRESSION")]
    pub query: String,
}

/// Runs the command.
///
/// # Errors
/// One line and an exit code, if results cannot be read or the expression is invalid.
pub fn records(args: &RecordsArgs) -> Result<u8, Failure> {
    let directory = directory(&args.from)?;
    let measured = measured(&directory)?;
    let found = claims::behind(&args.query, &directory, &measured)?;
    if found.is_empty() {
        return Err(Failure::new(Code::Usage, format_args!("no valid runs for {:?}", args.query)));
    }
    for (id, value) in found {
        let sign = if value.is_bound() { "at least " } else { "" };
        say(&format!("{id} {sign}{}\n", value.value()));
    }
    Ok(0)
}
