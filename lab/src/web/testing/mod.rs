//! The room `testing`: plans are made, run and watched in a browser.
//!
//! It is a front end of `run`: the page makes the text of a plan, the readers of plans check it, and a process of this
//! program runs it. The page shows the records stored by `run`, so a run from a terminal can be followed too, and a
//! stopped run can be resumed in either.

mod child;
mod choices;
mod follow;
mod holder;
mod plans;

use std::collections::BTreeMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::background::in_background;
use super::experiment_index::{Experiment, ExperimentIndex};
use super::lock;
use super::lock::{LockGuard, MeasurementLock};
use super::refusal::Refusal;
use crate::exit::Failure;
use crate::output::warn;
use crate::peers::Programs;
use crate::plan::read_text;
use crate::results::{PLAN, RECORDS, has_records, keep, write};
use crate::tables::{Measured, Outlook};
use child::LabProcess;
use follow::FollowedResults;
use holder::Locks;

/// The most followed or cached directories, and the most simulated plans that run at a time.
const MOST_FOLLOWED: usize = 32;
const MOST_RUNS: usize = 4;
/// The most runs of a plan at a time.
const MOST_JOBS: usize = 64;

type ApiResult = Result<Json<Value>, Refusal>;
type QueryResult<T> = Result<Json<T>, JsonRejection>;

/// The room.
#[derive(Debug)]
pub(super) struct Testing {
    experiments: Arc<ExperimentIndex>,
    /// The program that runs plans: this one.
    program: PathBuf,
    programs: Programs,
    open: Mutex<Open>,
    /// Serialises starts: others wait without a thread.
    starts: Semaphore,
    measurement_lock: Arc<MeasurementLock>,
}

/// The followed and running experiments.
#[derive(Debug, Default)]
struct Open {
    /// The experiments by name.
    followed: BTreeMap<String, Arc<FollowedResults>>,
    /// Whether the program is exiting, and starts no more runs.
    is_ending: bool,
}

/// A plan as text.
#[derive(Debug, Deserialize)]
struct PlanSource {
    text: String,
    /// The experiment or topology in whose directory its topologies are.
    #[serde(default)]
    beside: Option<String>,
    #[serde(default)]
    jobs: Option<usize>,
    /// Whether it replaces the plan of this name, whose results stay.
    #[serde(default)]
    again: bool,
}

/// An experiment, and options of its run.
#[derive(Debug, Deserialize)]
struct PlanQuery {
    name: String,
    #[serde(default)]
    jobs: Option<usize>,
    /// Repeats to add.
    #[serde(default)]
    more: u32,
}

impl Testing {
    pub(super) fn new(
        experiments: Arc<ExperimentIndex>,
        measurement_lock: Arc<MeasurementLock>,
        program: PathBuf,
        programs: Programs,
    ) -> Arc<Self> {
        Arc::new(Self {
            experiments,
            program,
            programs,
            open: Mutex::default(),
            starts: Semaphore::new(1),
            measurement_lock,
        })
    }

    pub(super) fn measurement_lock(&self) -> Arc<MeasurementLock> {
        Arc::clone(&self.measurement_lock)
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn experiments(&self) -> Arc<ExperimentIndex> {
        Arc::clone(&self.experiments)
    }

    pub(super) fn routes(self: Arc<Self>) -> Router {
        let room = Router::new()
            .route("/choices", get(choices))
            .route("/plan", get(plan))
            .route("/check", post(check))
            .route("/start", post(start))
            .route("/stop", post(stop))
            .route("/more", post(more))
            .route("/watch", get(watch))
            .layer(DefaultBodyLimit::max(2 * plans::LONGEST));
        Router::new().nest("/testing", room.with_state(self))
    }

    /// Stops all runs at an orderly exit of the program; their results are kept. After a crash they continue.
    pub(super) fn end(&self) {
        let mut all: Vec<_> = {
            let mut open = lock(&self.open);
            open.is_ending = true;
            open.followed.values().cloned().collect()
        };
        all.retain(|followed| followed.is_running().is_some());
        for followed in &all {
            warn(&format!("stopping {}: stored records are kept", followed.experiment.name));
        }
        thread::scope(|scope| {
            for followed in &all {
                scope.spawn(|| followed.end());
            }
        });
    }

    /// Returns the directory of a plan's topologies.
    fn beside(&self, name: Option<&str>) -> Result<PathBuf, Refusal> {
        let Some(name) = name else { return Ok(PathBuf::new()) };
        let topology = self.experiments.topologies().into_iter().find(|file| file.name == name).map(|file| file.path);
        let file = topology.map_or_else(|| self.experiments.find(name).map(|experiment| experiment.plan), Ok)?;
        Ok(file.parent().map(PathBuf::from).unwrap_or_default())
    }

    fn check(&self, written: &PlanSource) -> Result<Value, Refusal> {
        let measured = plans::read(&written.text, &self.beside(written.beside.as_deref())?, &self.experiments)?;
        let (title, plan) = measured.title_and_name();
        let jobs = jobs(written.jobs)?;
        let Outlook { total, least, most, about, .. } = measured.outlook(jobs);
        let name = ExperimentIndex::name(plan);
        let has_results = has_records(&self.experiments.directory(plan));
        Ok(json!({
            "name": name, "title": title, "runs": total, "least": least, "most": most, "about": about,
            "needsQuiet": measured.needs_quiet(), "lacking": plans::lacking(&measured, &self.programs), "isThere": has_results,
        }))
    }

    /// Writes a plan to its directory, and starts it.
    fn start(&self, written: &PlanSource) -> Result<Value, Refusal> {
        let jobs = jobs(written.jobs)?;
        let beside = self.beside(written.beside.as_deref())?;
        let measured = plans::read(&written.text, &beside, &self.experiments)?;
        let (_, plan) = measured.title_and_name();
        let (directory, name) = (self.experiments.directory(plan), ExperimentIndex::name(plan));
        let _turn = self.start_guard(&name, &directory.join(RECORDS), measured.needs_quiet())?;
        if !written.again && has_records(&directory) {
            return Err(Refusal::conflict(format_args!(
                "results of {plan} exist: open them and continue, or rename this plan"
            )));
        }
        for (file, place) in plans::topologies(&measured, &beside) {
            keep(&file, &directory, place).map_err(unwritten)?;
        }
        write(&directory.join(PLAN), written.text.as_bytes()).map_err(unwritten)?;
        let plan = directory.join(PLAN);
        let has_results = has_records(&directory);
        let experiment = Experiment { name, source: plan.clone(), plan, directory, has_results };
        self.run(experiment, &measured, jobs)
    }

    /// Continues a plan, with more repeats if requested.
    fn resume(&self, named: &PlanQuery) -> Result<Value, Refusal> {
        let jobs = jobs(named.jobs)?;
        let experiment = self.experiments.find(&named.name)?;
        if !experiment.is_own() {
            return Err(Refusal::bad("stored experiments are read-only: start this plan to run a copy"));
        }
        let text = read_text(&experiment.plan).map_err(Refusal::failed)?;
        let text = if named.more > 0 { plans::with_more_repeats(&text, named.more)? } else { text };
        let measured = plans::read(&text, &experiment.directory, &self.experiments)?;
        // With unreadable records no run starts, and the plan is unchanged.
        self.experiments.read(&experiment)?;
        let _turn = self.start_guard(&experiment.name, &experiment.directory.join(RECORDS), measured.needs_quiet())?;
        write(&experiment.plan, text.as_bytes()).map_err(unwritten)?;
        self.run(experiment, &measured, jobs)
    }

    /// Starts a run, and waits until it holds the lock of its records.
    fn run(&self, experiment: Experiment, measured: &Measured, jobs: NonZeroUsize) -> Result<Value, Refusal> {
        // Codes are timed one after the other, without this option.
        let jobs = if matches!(measured, Measured::Codes(..)) { None } else { Some(jobs) };
        let settled = {
            let reading = self.experiments.read(&experiment)?;
            lock(&reading).measured().outlook(NonZeroUsize::MIN).settled
        };
        let mut open = lock(&self.open);
        if open.is_ending {
            return Err(Refusal::conflict("downpour-lab web is exiting: no run was started"));
        }
        let entry = entry(&mut open.followed, experiment)?;
        let files = [entry.experiment.plan.as_path(), entry.experiment.directory.as_path()];
        let run = LabProcess::start(&self.program, files, jobs, measured.needs_quiet(), settled)
            .map_err(|error| Refusal::failed(format_args!("cannot start {}: {error}", self.program.display())))?;
        entry.begin(run);
        drop(open);
        entry.follow(&self.experiments);
        entry.until_begun();
        Ok(json!({ "name": entry.experiment.name }))
    }

    /// Checks that no other run would disturb this one or be disturbed by it, and prevents other starts until the
    /// returned value is dropped.
    fn start_guard(&self, name: &str, records: &Path, needs_quiet: bool) -> Result<(File, Option<LockGuard>), Refusal> {
        let start_guard = holder::start_guard(self.experiments.results())?;
        let own = lock(&self.open).followed.clone();
        let own = own.into_iter().filter_map(|(name, followed)| Some((name, followed.is_running()?)));
        let mut running: BTreeMap<String, bool> = own.collect();
        // Runs started by others, or by this lab before a restart.
        running.extend(self::running(&self.experiments));
        if running.contains_key(name) || Locks::now().holder(records).is_some() {
            return Err(Refusal::conflict(format_args!("{name} is already running: stop it first")));
        }
        if let Some((other, _)) = running.iter().find(|(_, is_quiet)| **is_quiet || needs_quiet) {
            return Err(Refusal::conflict(format_args!(
                "{other} is running, and real programs and timed codes are measured alone: wait until it has ended, or stop it"
            )));
        }
        if running.len() >= MOST_RUNS {
            return Err(Refusal::conflict(format_args!("{MOST_RUNS} plans are already running: stop one first")));
        }
        Ok((start_guard, needs_quiet.then(|| self.measurement_lock.measure()).transpose()?))
    }
}

fn is_running(locks: &Locks, experiment: &Experiment) -> bool {
    experiment.has_results && locks.holder(&experiment.directory.join(RECORDS)).is_some()
}

/// Returns the running experiments of the index, and whether each needs the machine for itself.
pub(super) fn running(experiments: &ExperimentIndex) -> BTreeMap<String, bool> {
    let locks = Locks::now();
    let mut running = experiments.list();
    running.retain(|experiment| is_running(&locks, experiment));
    let needs_quiet =
        |experiment: &Experiment| Measured::of_plan(&experiment.plan).map_or(true, |measured| measured.needs_quiet());
    running.into_iter().map(|experiment| (experiment.name.clone(), needs_quiet(&experiment))).collect()
}

/// Returns the refusal of a plan that cannot be written.
fn unwritten(failure: Failure) -> Refusal {
    Refusal::failed(format_args!(
        "{}; no run was started: free disk space, or start downpour-lab web in a writable directory",
        failure.message
    ))
}

/// Returns the experiment of this name, which is followed from now on.
fn entry(
    followed: &mut BTreeMap<String, Arc<FollowedResults>>,
    experiment: Experiment,
) -> Result<Arc<FollowedResults>, Refusal> {
    if let Some(known) = followed.get(&experiment.name).filter(|known| known.experiment.plan == experiment.plan) {
        return Ok(Arc::clone(known));
    }
    if followed.len() >= MOST_FOLLOWED {
        followed.retain(|_, followed| !followed.is_idle());
    }
    if followed.len() >= MOST_FOLLOWED {
        return Err(Refusal::conflict("too many open results: close some pages"));
    }
    let new = FollowedResults::new(experiment);
    followed.insert(new.experiment.name.clone(), Arc::clone(&new));
    Ok(new)
}

fn jobs(asked: Option<usize>) -> Result<NonZeroUsize, Refusal> {
    let jobs = NonZeroUsize::new(asked.unwrap_or(1)).filter(|jobs| jobs.get() <= MOST_JOBS);
    jobs.ok_or_else(|| Refusal::bad(format_args!("invalid number of runs at a time: write 1 to {MOST_JOBS}")))
}

/// Returns the request, or the refusal of an invalid one.
fn asked<T>(body: QueryResult<T>) -> Result<T, Refusal> {
    match body {
        Ok(Json(asked)) => Ok(asked),
        Err(JsonRejection::BytesRejection(_)) => {
            Err(Refusal::bad(format_args!("plan too long: at most {} KiB", plans::LONGEST >> 10)))
        }
        Err(other) => Err(Refusal::bad(other.body_text())),
    }
}

async fn choices(State(room): State<Arc<Testing>>) -> ApiResult {
    let of = Arc::clone(&room);
    room.experiments.work(move || Ok(Json(choices::all(&of.experiments, &of.programs)))).await
}

async fn plan(State(room): State<Arc<Testing>>, Query(named): Query<PlanQuery>) -> ApiResult {
    let of = Arc::clone(&room);
    let found = move || {
        let experiment = of.experiments.find(&named.name)?;
        let text = read_text(&experiment.plan).map_err(Refusal::failed)?;
        Ok(Json(json!({ "name": experiment.name, "text": text, "isOwn": experiment.is_own() })))
    };
    room.experiments.work(found).await
}

async fn check(State(room): State<Arc<Testing>>, body: QueryResult<PlanSource>) -> ApiResult {
    let (of, written) = (Arc::clone(&room), asked(body)?);
    room.experiments.work(move || of.check(&written).map(Json)).await
}

async fn start(State(room): State<Arc<Testing>>, body: QueryResult<PlanSource>) -> ApiResult {
    let (of, written) = (Arc::clone(&room), asked(body)?);
    let _start = room.starts.acquire().await;
    in_background(move || of.start(&written).map(Json)).await
}

async fn more(State(room): State<Arc<Testing>>, body: QueryResult<PlanQuery>) -> ApiResult {
    let (of, named) = (Arc::clone(&room), asked(body)?);
    let _start = room.starts.acquire().await;
    in_background(move || of.resume(&named).map(Json)).await
}

async fn stop(State(room): State<Arc<Testing>>, body: QueryResult<PlanQuery>) -> ApiResult {
    let (of, named) = (Arc::clone(&room), asked(body)?);
    let stopped = move || {
        let experiment = of.experiments.find(&named.name)?;
        let followed = entry(&mut lock(&of.open).followed, experiment)?;
        followed.stop().map(|()| Json(json!({})))
    };
    room.experiments.work(stopped).await
}

async fn watch(
    State(room): State<Arc<Testing>>,
    Query(named): Query<PlanQuery>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let of = Arc::clone(&room);
    // Viewers ask often, and finding an experiment reads all of them.
    let known = lock(&room.open).followed.get(&named.name).cloned();
    let find = move || {
        let experiment = of.experiments.find(&named.name)?;
        entry(&mut lock(&of.open).followed, experiment)
    };
    let followed = match known {
        Some(followed) => followed,
        None => room.experiments.work(find).await?,
    };
    let answer = followed.topic.watch(&headers);
    followed.follow(&room.experiments);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A room whose runs fail immediately.
    fn room(directory: &Path) -> Arc<Testing> {
        let experiments = ExperimentIndex::of(None, directory.join("lab-results"));
        let experiments = Arc::new(experiments);
        Testing::new(
            Arc::clone(&experiments),
            MeasurementLock::new(experiments),
            "false".into(),
            Programs::beside("false".into()),
        )
    }

    #[test]
    fn codes_wait_for_demonstrations() {
        let directory = tempfile::tempdir().expect("a directory");
        let room = room(directory.path());
        let playing = room.measurement_lock().play().expect("nothing runs");
        let codes = "name = \"codes\"\ntitle = \"x\"\ncodes = [\"raptorq\"]\nsize = \"10KB\"\nsymbol = \"1024B\"\n\
                     repair = \"15%\"\ndrops = [\"0%\", \"10%\"]\nruns = 2\ncap = \"5s\"\n[[sweep]]\nname = \"size\"\nmeasure = \"encode\"\n\
                     vary = \"size\"\nvalues = [\"10KB\"]\n";
        let refused = room.start(&written(codes)).expect_err("it would be disturbed").to_string();
        assert!(refused.starts_with("a demonstration plays"), "{refused}");
        room.start(&written(plans::tests::PLAN)).expect("it runs in virtual time");
        drop(playing);
        room.start(&written(codes)).expect("nothing plays");
    }

    fn written(text: &str) -> PlanSource {
        PlanSource { text: text.to_owned(), beside: None, jobs: None, again: false }
    }

    /// A plan may be read while the program is exiting.
    #[test]
    fn start_refused_while_exiting() {
        let directory = tempfile::tempdir().expect("a directory");
        let room = room(directory.path());
        room.end();
        let refused = room.start(&written(plans::tests::PLAN)).expect_err("too late").to_string();
        assert_eq!(refused, "downpour-lab web is exiting: no run was started");
        assert!(lock(&room.open).followed.is_empty());
    }
}
