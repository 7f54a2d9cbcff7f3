//! `downpour-lab run`.

use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{PLAN, default_folder, say, warn, write};
use crate::codes::{self, CodePlan};
use crate::exit::{Code, Failure};
use crate::plan::{Plan, Topology};
use crate::results::{Store, StoreOf};
use crate::runner::{Account, Agenda, Estimate, Measure, Progress, Stop, run as run_all};
use crate::simulated::{self, SimPlan};
use crate::words;

/// Measure what a plan says.
///
/// Every result is kept as it comes, in FOLDER/results.jsonl. The same command goes on after an interruption: what has a valid result is
/// not measured again. Runs that the emulator cannot vouch for are kept, marked, and made again.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The plan.
    #[arg(value_name = "PLAN.toml")]
    pub plan: PathBuf,
    /// How it is run.
    #[command(flatten)]
    pub how: HowRun,
}

/// How a plan is run.
#[derive(Clone, Debug, Args)]
pub struct HowRun {
    /// List the cases and how long they may take, and measure nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Measure so many cases side by side.
    ///
    /// Each has links of its own, but they share the processor. Each run's verdict tells whether the links bore that; whether the programs
    /// had processor time enough it does not.
    #[arg(long, value_name = "N", default_value = "1")]
    pub jobs: NonZeroUsize,
    /// Where results go [default: lab-results/ and the plan's name].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// Only cases whose line in the list of --dry-run holds this.
    #[arg(long, value_name = "SUBSTRING")]
    pub only: Option<String>,
}

/// Runs the command; the exit code of a run that was made.
///
/// # Errors
/// One line and an exit code, where nothing or not everything could be measured.
pub fn run(args: &RunArgs, measure: &dyn Measure, stop: &Stop) -> Result<u8, Failure> {
    run_file(&args.plan, &args.how, measure, stop).map(|(code, _)| code)
}

/// Runs the plan of a file, of any kind; the exit code, and where the results are.
pub(super) fn run_file(
    file: &Path,
    how: &HowRun,
    measure: &dyn Measure,
    stop: &Stop,
) -> Result<(u8, PathBuf), Failure> {
    if let Some(plan) = CodePlan::read(file)? {
        let folder = how.out.clone().unwrap_or_else(|| default_folder(&plan.name));
        return Ok((codes::run(&plan, how, &folder, stop)?, folder));
    }
    if let Some(plan) = SimPlan::read(file)? {
        let folder = how.out.clone().unwrap_or_else(|| default_folder(&plan.name));
        return Ok((simulated::run(&plan, how, &folder, stop)?, folder));
    }
    let plan = Plan::read(file, &measure.peers())?;
    let folder = how.out.clone().unwrap_or_else(|| default_folder(&plan.name));
    Ok((run_plan(&plan, how, &folder, measure, stop)?, folder))
}

/// Runs a plan.
fn run_plan(plan: &Plan, how: &HowRun, folder: &Path, measure: &dyn Measure, stop: &Stop) -> Result<u8, Failure> {
    if how.dry_run {
        let agenda = Agenda::new(plan, &Store::read(folder)?, how.only.as_deref());
        if agenda.settled_of_total().1 == 0 {
            return Err(nothing(&plan.name, how));
        }
        say(&list(plan, &agenda, how.jobs));
        return Ok(0);
    }
    measure.prepare().map_err(|error| Failure::new(Code::Lacking, error))?;
    let mut store: Store = open(folder)?;
    let agenda = Agenda::new(plan, store.records(), how.only.as_deref());
    let (settled, total) = agenda.settled_of_total();
    if total == 0 {
        return Err(nothing(&plan.name, how));
    }
    keep_plan(plan, folder)?;
    let account = run_all(agenda, &mut store, measure, how.jobs, &mut Progress::new(), stop)?;
    warn(&summary(&account, settled, total));
    say(&format!("{}\n", folder.display()));
    Ok(code(&account))
}

/// No case of a plan of this name is wanted.
pub(crate) fn nothing(name: &str, how: &HowRun) -> Failure {
    let only = how.only.as_deref().unwrap_or_default();
    Failure::new(
        Code::Usage,
        format_args!("no case of {name} holds {only:?}: see what there is with --dry-run, without --only"),
    )
}

/// The records of a folder, open to take more.
pub(crate) fn open<R: Serialize + DeserializeOwned>(folder: &Path) -> Result<StoreOf<R>, Failure> {
    let store = StoreOf::open(folder)?;
    if store.cut() > 0 {
        warn("the last result had not been written whole: it is cut off, and its case run again");
    }
    Ok(store)
}

/// The plan goes with its results, so that they can be drawn without it.
fn keep_plan(plan: &Plan, folder: &Path) -> Result<(), Failure> {
    keep(&plan.file, folder, PLAN)?;
    let Some(Topology { file, .. }) = &plan.topology else { return Ok(()) };
    let beside = plan.file.parent().unwrap_or(Path::new(""));
    keep(file, folder, file.strip_prefix(beside).unwrap_or(file))
}

/// Puts a copy of a file into a folder, under a name there.
pub(crate) fn keep(file: &Path, folder: &Path, name: impl AsRef<Path>) -> Result<(), Failure> {
    let text = fs::read(file).map_err(Failure::at(file))?;
    let path = folder.join(name);
    if fs::read(&path).ok().as_ref() == Some(&text) {
        return Ok(());
    }
    write(&path, &text)
}

/// What would be measured, one case a line, and how long it may take.
pub(super) fn list(plan: &Plan, agenda: &Agenda, jobs: NonZeroUsize) -> String {
    let mut text = String::new();
    for case in agenda.cases() {
        writeln!(text, "{}", case.label()).expect("a string takes all");
    }
    let (settled, total) = agenda.settled_of_total();
    let Estimate { least, most } = Estimate::of(plan, agenda, jobs);
    let warm_ups = words::count(agenda.warm_ups().count(), "warm-up", "warm-ups");
    writeln!(
        text,
        "{} to measure of {total}, {settled} settled; {warm_ups}; at least {}, at most {} (every run at its cap)",
        words::count(total - settled, "case", "cases"),
        words::seconds(least),
        words::seconds(most)
    )
    .expect("a string takes all");
    text
}

pub(super) fn summary(account: &Account, settled: usize, total: usize) -> String {
    let mut text = format!("{} of {} settled", account.settled + settled, words::count(total, "case", "cases"));
    if settled > 0 {
        write!(text, ", {settled} of them before").expect("a string takes all");
    }
    if account.invalid > 0 {
        let runs = words::count(account.invalid, "run", "runs");
        write!(text, "; {runs} invalid").expect("a string takes all");
    }
    if !account.unsettled.is_empty() {
        let cases = words::count(account.unsettled.len(), "case", "cases");
        write!(text, "; {cases} without a valid run: a quieter machine, or a slower link").expect("a string takes all");
    }
    for (peer, install) in &account.absent {
        write!(text, "; {peer} is not here: {install}").expect("a string takes all");
    }
    if account.interrupted {
        text.push_str("; stopped: the same command goes on");
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
