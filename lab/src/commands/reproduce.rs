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
/// NAME is a plan in the folder `experiments`, such as tornado-transfer/fig2. The folder is searched from the current
/// folder upwards.
#[derive(Clone, Debug, Args)]
pub struct ReproduceArgs {
    /// The experiment, such as tornado-transfer/fig2.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The folder of experiments, instead of searching for it.
    #[arg(long, value_name = "FOLDER")]
    pub experiments: Option<PathBuf>,
    /// How it is run.
    #[command(flatten)]
    pub how: RunOptions,
}

/// Runs the command; the exit code of the run.
///
/// # Errors
/// One line and an exit code.
pub fn reproduce(args: &ReproduceArgs, measure: &dyn Measure, stop: &StopFlag) -> Result<u8, Failure> {
    let here = std::env::current_dir().map_err(Failure::at(Path::new(".")))?;
    let file = find(&args.name, args.experiments.as_deref(), &here)?;
    let (code, folder) = run_file(&file, &args.how, measure, stop)?;
    if !args.how.dry_run && !stop.is_set() {
        let page = folder.join("report.html");
        write_up(&[folder], &page)?;
        say(&format!("{}\n", page.display()));
    }
    Ok(code)
}

/// Returns the plan of an experiment: NAME.toml, or NAME/plan.toml.
pub(super) fn find(name: &str, experiments: Option<&Path>, here: &Path) -> Result<PathBuf, Failure> {
    let folder = match experiments {
        Some(folder) => folder.to_owned(),
        None => {
            let mut all = here.ancestors().map(|folder| folder.join(EXPERIMENTS));
            all.find(|folder| folder.is_dir()).ok_or_else(|| {
                Failure::new(Code::Usage, "there is no folder experiments here or above: name it with --experiments")
            })?
        }
    };
    let places = [folder.join(format!("{name}.toml")), folder.join(name).join(PLAN)];
    if let Some(plan) = places.into_iter().find(|plan| plan.is_file()) {
        return Ok(plan);
    }
    let names = names(&folder);
    let what = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(Failure::new(
        Code::Usage,
        format_args!("there is no experiment {name:?} in {}: there are {what}", folder.display()),
    ))
}

/// Returns the experiments of a folder: plans in its folders, except those stored with results.
pub(super) fn names(experiments: &Path) -> Vec<String> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
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
