//! Growing results, from this program or others.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::ClockId;
use serde_json::{Value, json};

use super::child::{ExitState, LabProcess};
use super::holder::{Holder, Locks};
use crate::clock;
use crate::exit::Code;
use crate::results::RECORDS;
use crate::tables::{Measured, Outlook, Stamp};
use crate::web::experiment_index::{Experiment, ExperimentIndex};
use crate::web::lock;
use crate::web::refusal::Refusal;
use crate::web::results::pictures;
use crate::web::topic::{Retention, Topic};

/// The shortest interval of updates, and the factor from processor time to the pause, which costs 2.5 % of a core
/// during a run.
const TELL_EVERY: Duration = Duration::from_millis(500);
const REST: u32 = 39;
const LONGEST_REST: Duration = Duration::from_secs(10);
/// The time limit for a run to take the lock of its records.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The most listed runs.
const MOST_RUNS: usize = 40;

/// A directory of results with viewers, or with a run of this program.
#[derive(Debug)]
pub(super) struct FollowedResults {
    pub(super) experiment: Experiment,
    pub(super) topic: Arc<Topic>,
    state: Mutex<ResultsView>,
}

#[derive(Debug, Default)]
struct ResultsView {
    run: Option<LabProcess>,
    /// The end of the last run of this program, and the length of the records then. It is obsolete once they grow, or
    /// another process runs.
    ended: Option<(ExitState, u64)>,
    /// The interrupted process that was not started by this program.
    interrupted: Option<Holder>,
    /// Whether a thread updates it.
    is_followed: bool,
    /// Incremented with each visible change except of results.
    changes: u64,
}

impl FollowedResults {
    pub(super) fn new(experiment: Experiment) -> Arc<Self> {
        Arc::new(Self { experiment, topic: Topic::new(Retention::Last), state: Mutex::default() })
    }

    /// Returns whether this program runs it, and whether the run needs the machine for itself.
    pub(super) fn is_running(&self) -> Option<bool> {
        self.reap();
        lock(&self.state).run.as_ref().map(|run| run.needs_quiet)
    }

    /// Returns whether it has neither a run nor viewers.
    pub(super) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        state.run.is_none() && !state.is_followed
    }

    pub(super) fn begin(&self, run: LabProcess) {
        let mut state = lock(&self.state);
        (state.run, state.ended) = (Some(run), None);
        state.changes += 1;
    }

    /// Waits until the run has the lock of its records, or has ended.
    pub(super) fn until_begun(&self) {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE
            && self.is_running().is_some()
            && Locks::now().holder(&self.records()).is_none()
        {
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Interrupts the run, even if it was started in a terminal.
    ///
    /// # Errors
    /// There is none, or it is another user's.
    pub(super) fn stop(&self) -> Result<(), Refusal> {
        self.reap();
        let mut state = lock(&self.state);
        state.changes += 1;
        if let Some(run) = &mut state.run {
            run.stop();
            return Ok(());
        }
        let records = self.records();
        let holder = Locks::now().holder(&records);
        let holder =
            holder.ok_or_else(|| Refusal::conflict(format_args!("{} is not running", self.experiment.name)))?;
        holder.interrupt(&records)?;
        state.interrupted = Some(holder);
        Ok(())
    }

    fn records(&self) -> PathBuf {
        self.experiment.directory.join(RECORDS)
    }

    /// Stops its run.
    pub(super) fn end(&self) {
        let run = lock(&self.state).run.take();
        if let Some(mut run) = run {
            run.end();
        }
    }

    /// Updates it in a thread, unless one exists, while there is a run or a viewer.
    pub(super) fn follow(self: &Arc<Self>, experiments: &Arc<ExperimentIndex>) {
        if std::mem::replace(&mut lock(&self.state).is_followed, true) {
            return;
        }
        let (followed, experiments) = (Arc::clone(self), Arc::clone(experiments));
        thread::spawn(move || followed.update_until_idle(&experiments));
    }

    fn update_until_idle(&self, experiments: &ExperimentIndex) {
        let mut last_sent = None;
        loop {
            let begun = clock::read(ClockId::ThreadCPUTime);
            if self.topic.is_viewed() {
                self.publish(experiments, &mut last_sent);
            }
            let spent = clock::read(ClockId::ThreadCPUTime) - begun;
            let rest = (spent * REST).clamp(TELL_EVERY, LONGEST_REST);
            thread::sleep(rest);
            self.reap();
            let mut state = lock(&self.state);
            // A viewer that arrives with this lock or later starts to follow again.
            if state.run.is_none() && !self.topic.is_viewed() {
                state.is_followed = false;
                return;
            }
        }
    }

    /// Notices that a run has ended.
    fn reap(&self) {
        let mut state = lock(&self.state);
        if let Some(ended) = state.run.as_mut().and_then(LabProcess::ended) {
            state.run = None;
            state.ended = Some((ended, Stamp::of(&self.records()).map_or(0, |records| records.length)));
            state.changes += 1;
        }
    }

    /// Sends the state to viewers, if it has changed since `last_sent`.
    fn publish(&self, experiments: &ExperimentIndex, last_sent: &mut Option<SentState>) {
        let seen = SentState::now(self);
        if last_sent.as_ref() == Some(&seen) {
            return;
        }
        let event = match experiments.read(&self.experiment) {
            Ok(reading) => self.event(lock(&reading).measured(), seen.foreign),
            Err(refusal) => {
                let runs = lock(&self.state).run.is_some() || seen.foreign.is_some();
                json!({ "name": self.experiment.name, "unreadable": refusal.to_string(), "runs": runs })
            }
        };
        self.topic.publish(&event);
        *last_sent = Some(seen);
    }

    fn event(&self, measured: &Measured, foreign: Option<Holder>) -> Value {
        let state = lock(&self.state);
        let jobs = state.run.as_ref().map_or(NonZeroUsize::MIN, |run| run.jobs);
        let outlook = measured.outlook(jobs);
        let left = state.run.as_ref().and_then(|run| left(run.begun.elapsed(), run.settled, outlook));
        let said = match (&state.run, &state.ended) {
            (Some(run), _) => run.said(),
            (None, Some((ended, _))) => ended.said.clone(),
            (None, None) => Vec::new(),
        };
        let now = PlanProgress::of(&state, foreign, (outlook, measured.count()));
        drop(state);
        let (title, plan) = measured.title_and_name();
        json!({
            "name": self.experiment.name, "title": title, "plan": plan, "isOwn": self.experiment.is_own(), "stage": now.name(),
            "says": now.says(), "said": said, "settled": outlook.settled, "total": outlook.total, "least": outlook.least,
            "most": outlook.most, "about": outlook.about, "left": left, "records": measured.count(),
            "tables": measured.tables(), "pictures": pictures(measured), "runs": measured.last_runs(MOST_RUNS),
        })
    }
}

/// Returns the remaining seconds of a run at its present pace: it began this long ago with this number of settled
/// cases.
fn left(passed: Duration, before: usize, outlook: Outlook) -> Option<f64> {
    let made = outlook.settled.saturating_sub(before);
    let each = passed.as_secs_f64() / made as f64;
    (made > 0).then(|| each * (outlook.total - outlook.settled) as f64)
}

/// The progress of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlanProgress {
    Running,
    Stopping,
    /// Run by a process that this program did not start, and whether that was interrupted.
    Foreign(Holder, bool),
    Done,
    Partial,
    Empty,
    Failed(Option<i32>),
}

impl PlanProgress {
    fn of(state: &ResultsView, foreign: Option<Holder>, (outlook, records): (Outlook, usize)) -> Self {
        const INTERRUPTED: i32 = Code::Interrupted as i32;
        match (&state.run, foreign, &state.ended) {
            (Some(run), ..) if run.is_stopping => Self::Stopping,
            (Some(_), ..) => Self::Running,
            (None, Some(holder), _) => Self::Foreign(holder, state.interrupted == Some(holder)),
            // A killed run may also be complete.
            (None, None, Some((ExitState { code: Some(code), .. }, _))) if !matches!(*code, 0 | INTERRUPTED) => {
                Self::Failed(Some(*code))
            }
            _ if outlook.settled == outlook.total => Self::Done,
            (None, None, Some((ExitState { code: None, .. }, _))) => Self::Failed(None),
            _ if records == 0 => Self::Empty,
            _ => Self::Partial,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Running | Self::Foreign(_, false) => "running",
            Self::Stopping | Self::Foreign(_, true) => "stopping",
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Empty => "empty",
            Self::Failed(_) => "failed",
        }
    }

    fn says(self) -> String {
        let says = match self {
            Self::Running => "Running.",
            Self::Stopping => "Stopping after the current runs.",
            Self::Foreign(holder, false) => {
                let number = holder.number();
                return format!(
                    "Running in process {number}, which this lab did not start. Stop interrupts it as Ctrl-C does."
                );
            }
            Self::Foreign(holder, true) => {
                return format!("Process {} is stopping after the current runs.", holder.number());
            }
            Self::Done => "Complete.",
            Self::Partial => "Incomplete.",
            Self::Empty => "Not started.",
            Self::Failed(Some(code)) => match code {
                3 => "Stopped: a requirement is missing on this machine.",
                4 => "Ended with cases without a valid run: use a quieter machine or a slower link.",
                _ => "Failed. Stored records are kept.",
            },
            Self::Failed(None) => "Killed. Stored records are kept; Continue runs the rest.",
        };
        says.to_owned()
    }
}

/// The state last sent to viewers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SentState {
    changes: u64,
    files: [Option<Stamp>; 2],
    foreign: Option<Holder>,
}

impl SentState {
    fn now(followed: &FollowedResults) -> Self {
        let records = followed.records();
        let files = [&followed.experiment.plan, &records].map(|file| Stamp::of(file));
        let mut state = lock(&followed.state);
        let foreign = if state.run.is_none() { Locks::now().holder(&records) } else { None };
        let length = files[1].map_or(0, |records| records.length);
        state.ended.take_if(|(_, before)| foreign.is_some() || length > *before);
        Self { changes: state.changes, files, foreign }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::results::{PLAN, Store};
    use crate::web::testing::plans;

    fn followed(directory: &Path) -> Arc<FollowedResults> {
        let plan = directory.join(PLAN);
        let name = "lab-results/x".to_owned();
        FollowedResults::new(Experiment {
            name,
            source: plan.clone(),
            plan,
            directory: directory.to_owned(),
            has_results: false,
        })
    }

    /// Its number may belong to another process by then.
    #[test]
    fn stop_sends_no_signal_to_an_exited_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let followed = followed(directory.path());
        let files = [followed.experiment.plan.as_path(), directory.path()];
        let run = LabProcess::start(Path::new("false"), files, None, false, 0).expect("it starts");
        followed.begin(run);
        let begun = Instant::now();
        while followed.stop().is_ok() {
            assert!(begun.elapsed() < PATIENCE, "it ended long ago");
            thread::sleep(LOOK_EVERY);
        }
        assert_eq!(followed.stop().expect_err("it has ended").to_string(), "lab-results/x is not running");
    }

    #[test]
    fn left_follows_from_the_pace_of_the_run() {
        let outlook = Outlook { settled: 150, total: 400, ..Outlook::default() };
        assert_eq!(left(Duration::from_secs(10), 100, outlook), Some(50.0));
        assert_eq!(left(Duration::from_secs(10), 150, outlook), None, "it has made nothing yet");
    }

    /// The run was continued in a terminal, with or without an update meanwhile.
    #[test]
    fn follow_foreign_results_no_failure() {
        let directory = tempfile::tempdir().expect("a directory");
        let followed = followed(directory.path());
        let records = directory.path().join(RECORDS);
        let left = plans::tests::alone(plans::tests::PLAN).expect("a plan").outlook(NonZeroUsize::MIN);
        let stage = |outlook, count| {
            let seen = SentState::now(&followed);
            PlanProgress::of(&lock(&followed.state), seen.foreign, (outlook, count))
        };
        let ends = |code| {
            let said = vec!["of that run".to_owned()];
            lock(&followed.state).ended = Some((ExitState { code, said }, 4));
        };
        std::fs::write(&records, "one\n").expect("written");
        ends(None);
        assert_eq!(stage(left, 1), PlanProgress::Failed(None));
        assert_eq!(stage(Outlook { settled: left.total, ..left }, 1), PlanProgress::Done, "no remaining cases");
        std::fs::write(&records, "one\ntwo\n").expect("written");
        assert_eq!(stage(left, 2), PlanProgress::Partial, "it has grown");

        ends(Some(1));
        std::fs::write(&records, "").expect("written");
        assert_eq!(stage(left, 1), PlanProgress::Failed(Some(1)));
        let store = Store::open(directory.path()).expect("records");
        assert!(matches!(stage(left, 0), PlanProgress::Foreign(..)));
        drop(store);
        assert_eq!(stage(left, 0), PlanProgress::Empty, "another process ran it");
    }
}
