//! `downpour-lab run`.

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use super::default_directory;
use crate::codes::{self, CodePlan};
use crate::exit::{Code, Failure};
use crate::output::{say, warn};
use crate::plan::{LinkPlan, PlacedLink};
use crate::results::{OriginBuilder, PLAN, Store, keep, open};
use crate::runner::{
    Account, Agenda, Estimate, Measure, ProgressReporter, RunOptions, StopFlag, absent, run as run_all,
};
use crate::simulated::{self, SimPlan};

/// Run a plan.
///
/// Every result is appended to DIRECTORY/results.jsonl at once. After an interruption the same command resumes: cases
/// with a valid result are not measured again. Runs in which the emulator did not keep up are stored, marked as
/// invalid, and repeated.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The plan.
    #[arg(value_name = "PLAN.toml")]
    pub plan: PathBuf,
    /// The options of the run.
    #[command(flatten)]
    pub how: RunOptions,
}

/// Runs the command; returns the exit code of the run.
///
/// # Errors
/// One line and an exit code, if not everything could be measured.
pub fn run(args: &RunArgs, measure: &dyn Measure, stop: &StopFlag) -> Result<u8, Failure> {
    run_file(&args.plan, &args.how, measure, stop).map(|(code, _)| code)
}

/// Runs the plan of a file, of any kind; returns the exit code and the directory of the results.
pub(super) fn run_file(
    file: &Path,
    how: &RunOptions,
    measure: &dyn Measure,
    stop: &StopFlag,
) -> Result<(u8, PathBuf), Failure> {
    if let Some(plan) = CodePlan::read(file)? {
        let directory = how.out.clone().unwrap_or_else(|| default_directory(&plan.name));
        return Ok((codes::run(&plan, how, &directory, stop)?, directory));
    }
    if let Some(mut plan) = SimPlan::read(file)? {
        plan.seeds.truncate(if how.quick { 1 } else { usize::MAX });
        let directory = how.out.clone().unwrap_or_else(|| default_directory(&plan.name));
        return Ok((simulated::run(&plan, how, &directory, measure, stop)?, directory));
    }
    let mut plan = LinkPlan::read(file, &measure.peers())?;
    if how.quick {
        plan.seeds.truncate(1);
        plan.sweeps.iter_mut().for_each(|sweep| sweep.repeats = 1);
    }
    let directory = how.out.clone().unwrap_or_else(|| default_directory(&plan.name));
    Ok((run_plan(&plan, how, &directory, measure, stop)?, directory))
}

/// Runs a plan.
fn run_plan(
    plan: &LinkPlan,
    how: &RunOptions,
    directory: &Path,
    measure: &dyn Measure,
    stop: &StopFlag,
) -> Result<u8, Failure> {
    if how.dry_run {
        let agenda = Agenda::new(plan, &Store::read(directory)?, how.only.as_deref(), how.stale);
        if agenda.settled_of_total().1 == 0 {
            return Err(how.nothing_selected(&plan.name));
        }
        say(&list(plan, &agenda, how.jobs));
        absent(measure, agenda.cases().map(|case| case.peer.clone())).iter().for_each(|line| warn(line));
        return Ok(0);
    }
    measure.prepare().map_err(|error| Failure::new(Code::Lacking, error))?;
    let mut store: Store = open(directory)?;
    let agenda = Agenda::new(plan, store.records(), how.only.as_deref(), how.stale);
    let (settled, total) = agenda.settled_of_total();
    if total == 0 {
        return Err(how.nothing_selected(&plan.name));
    }
    keep_plan(plan, directory)?;
    let maker = OriginBuilder::new(&plan.file)?;
    let account = run_all(agenda, (&mut store, &maker), measure, how.jobs, &mut ProgressReporter::new(), stop)?;
    warn(&summary(&account, settled, total));
    say(&format!("{}\n", directory.display()));
    Ok(code(&account))
}

/// Copies the plan to its results, which can then be drawn without the original.
fn keep_plan(plan: &LinkPlan, directory: &Path) -> Result<(), Failure> {
    keep(&plan.file, directory, PLAN)?;
    let Some(PlacedLink { file, .. }) = &plan.topology else { return Ok(()) };
    let beside = plan.file.parent().unwrap_or(Path::new(""));
    keep(file, directory, file.strip_prefix(beside).unwrap_or(file))
}

/// Returns the cases that would be measured, one per line, and an estimate of the duration.
pub(super) fn list(plan: &LinkPlan, agenda: &Agenda, jobs: NonZeroUsize) -> String {
    let mut text = String::new();
    for case in agenda.cases() {
        writeln!(text, "{}", case.label()).expect("a string takes all");
    }
    let (settled, total) = agenda.settled_of_total();
    let Estimate { least, most } = Estimate::of(plan, agenda, jobs);
    let warm_ups = units::count(agenda.warm_ups().count(), "warm-up", "warm-ups");
    writeln!(
        text,
        "{} to measure of {total}, {settled} settled; {warm_ups}; at least {}, at most {} (every run at its cap)",
        units::count(total - settled, "case", "cases"),
        units::seconds(least),
        units::seconds(most)
    )
    .expect("a string takes all");
    text
}

pub(super) fn summary(account: &Account, settled: usize, total: usize) -> String {
    let mut text = format!("{} of {} settled", account.settled + settled, units::count(total, "case", "cases"));
    if settled > 0 {
        write!(text, ", {settled} of them before").expect("a string takes all");
    }
    if account.invalid > 0 {
        let runs = units::count(account.invalid, "run", "runs");
        write!(text, "; {runs} invalid").expect("a string takes all");
    }
    if !account.unsettled.is_empty() {
        let cases = units::count(account.unsettled.len(), "case", "cases");
        write!(text, "; {cases} without a valid run: use a quieter machine, or a slower link")
            .expect("a string takes all");
    }
    for (peer, install) in &account.absent {
        write!(text, "; {peer} is not installed: {install}").expect("a string takes all");
    }
    if account.interrupted {
        text.push_str("; stopped: run the same command to resume");
    }
    text
}

pub(super) fn code(account: &Account) -> u8 {
    match account {
        Account { interrupted: true, .. } => Code::Interrupted as u8,
        Account { absent, .. } if !absent.is_empty() => Code::Lacking as u8,
        Account { unsettled, .. } if !unsettled.is_empty() => Code::Invalid as u8,
        _ => Code::Done as u8,
    }
}
