//! Options for running a plan.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::exit::{Code, Failure};

/// Options for running a plan.
#[derive(Clone, Debug, Args)]
pub struct RunOptions {
    /// List the cases, an estimate of their duration, and the missing peers, without measuring.
    #[arg(long)]
    pub dry_run: bool,
    /// Measure this many cases in parallel.
    ///
    /// Each case has its own links, but all share the processor. The verdict of each run covers the links, but not
    /// whether the programs had enough processor time.
    #[arg(long, value_name = "N", default_value = "1")]
    pub jobs: NonZeroUsize,
    /// Also run cases again whose results are of another build of downpour.
    #[arg(long)]
    pub stale: bool,
    /// Only the first run at each point. Codes are timed as often as without this option.
    #[arg(long)]
    pub quick: bool,
    /// Directory for results [default: lab-results/ and the plan's name].
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
    /// Only cases whose line in --dry-run contains this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
}

impl RunOptions {
    /// Returns the failure for a plan of this name of which no case is selected.
    pub(crate) fn nothing_selected(&self, name: &str) -> Failure {
        let only = self.only.as_deref().unwrap_or_default();
        Failure::new(
            Code::Usage,
            format_args!("no case of {name} contains {only:?}: list the cases with --dry-run, without --only"),
        )
    }
}
