//! `downpour-lab reproduce`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::report::write_up;
use super::run::run_file;
use crate::exit::{Code, Failure};
use crate::output::say;
use crate::results::PLAN;
use crate::runner::{Measure, RunOptions, StopFlag};

const EXPERIMENTS: &str = "experiments";

/// Repeat an experiment from a paper, plot it and write a report.
///
/// NAME is a plan in the directory `experiments`, such as tornado-transfer/fig2. The directory is searched for in the
/// current directory and its parents.
#[derive(Clone, Debug, Args)]
pub struct ReproduceArgs {
    /// The experiment, such as tornado-transfer/fig2.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The directory of experiments [default: searched for].
    #[arg(long, value_name = "DIRECTORY")]
    pub experiments: Option<PathBuf>,
    /// The options of the run.
    #[command(flatten)]
    pub how: RunOptions,
}

/// Runs the command; the exit code of the run.
///
/// # Errors
/// One line and an exit code.
pub fn reproduce(args: &ReproduceArgs, measure: &dyn Measure, stop: &StopFlag) -> Result<u8, Failure> {
    let current = std::env::current_dir().map_err(Failure::at(Path::new(".")))?;
    let file = find(&args.name, args.experiments.as_deref(), &current)?;
    let (code, directory) = run_file(&file, &args.how, measure, stop)?;
    if !args.how.dry_run && !stop.is_set() {
        let page = directory.join("report.html");
        write_up(&[directory], &page)?;
        say(&format!("{}\n", page.display()));
    }
    Ok(code)
}

/// Returns the plan of an experiment: NAME.toml, or NAME/plan.toml.
pub(super) fn find(name: &str, experiments: Option<&Path>, current: &Path) -> Result<PathBuf, Failure> {
    let directory = match experiments {
        Some(directory) => directory.to_owned(),
        None => {
            let mut all = current.ancestors().map(|directory| directory.join(EXPERIMENTS));
            all.find(|directory| directory.is_dir()).ok_or_else(|| {
                Failure::new(
                    Code::Usage,
                    "no directory experiments in the current directory or its parents: use --experiments",
                )
            })?
        }
    };
    let places = [directory.join(format!("{name}.toml")), directory.join(name).join(PLAN)];
    if let Some(plan) = places.into_iter().find(|plan| plan.is_file()) {
        return Ok(plan);
    }
    let names = names(&directory);
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Failure::new(Code::Usage, format_args!("no experiment {name:?} in {}: one of {known}", directory.display())))
}

/// Returns the experiments of a directory: plans in its directories, except those stored with results.
pub(super) fn names(experiments: &Path) -> Vec<String> {
    let entries = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut names: Vec<String> = entries(experiments)
        .filter(|paper| paper.is_dir())
        .flat_map(|paper| entries(&paper).collect::<Vec<_>>())
        .filter(|file| file.extension().is_some_and(|extension| extension == "toml") && file.is_file())
        .map(|file| match file.file_name() {
            Some(name) if name == PLAN => file.parent().unwrap_or(&file).to_owned(),
            _ => file.with_extension(""),
        })
        .filter_map(|name| Some(name.strip_prefix(experiments).ok()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}
