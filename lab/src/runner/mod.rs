//! Runs the cases of a plan: in a shuffled order, in parallel if requested, and resumed after a stop.

mod agenda;
mod estimate;
mod measure;
mod options;
mod progress;
mod stop;

use std::collections::BTreeMap;
use std::iter;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};
use std::time::Instant;

use jiff::{Timestamp, Unit};

use crate::peers::profile_text;
use crate::results::{Ending, Engine, OriginBuilder, Record, RunOutcome, SCHEMA, Store, StoreError, TRIES};

pub use agenda::Agenda;
use agenda::Task;
pub use estimate::Estimate;
pub use measure::{Measure, MeasureError};
pub(crate) use measure::{absent, guarded};
pub use options::RunOptions;
pub use progress::ProgressReporter;
pub(crate) use progress::ended;
pub use stop::StopFlag;

/// The results of running a plan's cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Cases that now have a valid run.
    pub settled: usize,
    /// Invalid runs, which are stored and marked.
    pub invalid: usize,
    /// Cases without a valid run after all attempts, and the reason of the last one.
    pub unsettled: Vec<(String, String)>,
    /// Peers that are not installed, and the commands that install them.
    pub absent: BTreeMap<String, String>,
    /// Whether it was stopped before everything was done.
    pub interrupted: bool,
}

/// An error that ends the measurement. Existing results are kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Results cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The machine lacks a requirement.
    #[error("{0}")]
    Machine(String),
}

/// Runs the agenda, up to `jobs` runs at a time, and stores every result as it arrives.
///
/// An invalid run is stored, marked, and repeated at the end, up to [`TRIES`] times. When `stop` is set, current runs
/// are aborted and no further ones start.
///
/// # Errors
/// See [`RunError`]. Current runs are aborted then.
pub(crate) fn run(
    agenda: Agenda,
    (store, maker): (&mut Store, &OriginBuilder),
    measure: &dyn Measure,
    jobs: NonZeroUsize,
    progress: &mut ProgressReporter,
    stop: &StopFlag,
) -> Result<Account, RunError> {
    thread::scope(|scope| {
        let (sender, results) = channel();
        let mut runner = Runner {
            scope,
            sender,
            results,
            agenda,
            measure,
            stop,
            jobs: jobs.get(),
            warming: 0,
            running: 0,
            kernel: kernel(),
            maker,
            account: Account::default(),
        };
        let result = runner.all(store, progress);
        if result.is_err() {
            stop.set();
        }
        progress.finish();
        result.map(|()| runner.account)
    })
}

/// A run that ended.
struct FinishedRun {
    task: Task,
    seconds: f64,
    result: Result<RunOutcome, MeasureError>,
}

struct Runner<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    sender: Sender<FinishedRun>,
    results: Receiver<FinishedRun>,
    agenda: Agenda,
    measure: &'scope dyn Measure,
    stop: &'scope StopFlag,
    jobs: usize,
    /// Warm-ups in progress.
    warming: usize,
    /// Runs in progress, including warm-ups.
    running: usize,
    kernel: String,
    maker: &'scope OriginBuilder,
    account: Account,
}

impl Runner<'_, '_> {
    fn all(&mut self, store: &mut Store, progress: &mut ProgressReporter) -> Result<(), RunError> {
        loop {
            while self.running < self.jobs && !self.stop.is_set() && self.start_next() {}
            progress.show(&self.agenda, self.jobs);
            if self.running == 0 {
                self.account.interrupted |= self.stop.is_set() && !self.agenda.is_empty();
                return Ok(());
            }
            let ended = self.results.recv().expect("the sender is kept");
            self.running -= 1;
            self.warming -= usize::from(ended.task.is_warm_up);
            self.take(ended, store, progress)?;
        }
    }

    /// Starts the next run, if one may start: only warm-ups before the last warm-up has ended.
    fn start_next(&mut self) -> bool {
        let Some(task) = self.agenda.next(self.warming == 0) else { return false };
        self.running += 1;
        self.warming += usize::from(task.is_warm_up);
        let (measure, stop, sender) = (self.measure, self.stop, self.sender.clone());
        self.scope.spawn(move || {
            let start = Instant::now();
            let result = guarded(|| measure.measure(&task.case, stop));
            // The receiver is gone when results cannot be stored.
            let _ = sender.send(FinishedRun { task, seconds: start.elapsed().as_secs_f64(), result });
        });
        true
    }

    fn take(&mut self, ended: FinishedRun, store: &mut Store, progress: &mut ProgressReporter) -> Result<(), RunError> {
        let FinishedRun { task, seconds, result } = ended;
        self.agenda.took(&task, seconds);
        match result {
            Err(MeasureError::Machine(why)) => Err(RunError::Machine(why)),
            Err(MeasureError::Stopped) => {
                self.account.interrupted = true;
                Ok(())
            }
            Err(MeasureError::Absent(install)) => {
                let peer = task.case.peer;
                progress.note(&format!("{peer} is not installed, its cases are skipped: {install}"));
                self.agenda.remove_peer(&peer);
                self.account.absent.insert(peer, install);
                Ok(())
            }
            Ok(_) | Err(MeasureError::Run(_)) if task.is_warm_up => Ok(()),
            Err(MeasureError::Run(why)) => {
                self.again(task, why, progress);
                Ok(())
            }
            Ok(outcome) => self.keep(task, outcome, store, progress),
        }
    }

    fn keep(
        &mut self,
        task: Task,
        outcome: RunOutcome,
        store: &mut Store,
        progress: &mut ProgressReporter,
    ) -> Result<(), RunError> {
        let record = Record {
            schema: SCHEMA,
            id: task.case.id(),
            case: task.case.clone(),
            attempt: task.attempt,
            date: Timestamp::now().round(Unit::Second).unwrap_or_default().to_string(),
            kernel: self.kernel.clone(),
            made: Some(self.maker.made(
                Engine::of_peers(iter::once(task.case.peer.as_str())),
                profile_text(&task.case.peer).into_iter().collect(),
            )),
            outcome,
        };
        progress.ran(&record);
        let (valid, why) = (record.is_valid(), record.outcome.verdict.reasons.join("; "));
        let failed = matches!(record.outcome.ending, Ending::Failed { .. });
        store.append(record)?;
        match valid {
            // A failure may be accidental until it happens every time.
            true if failed && task.attempt < TRIES => self.again(task, "the peer failed".to_owned(), progress),
            true => self.account.settled += 1,
            false => {
                self.account.invalid += 1;
                self.again(task, why, progress);
            }
        }
        Ok(())
    }

    fn again(&mut self, mut task: Task, why: String, progress: &mut ProgressReporter) {
        if task.attempt < TRIES {
            task.attempt += 1;
            self.agenda.requeue(task);
        } else {
            progress.note(&format!("no valid run of {}: {why}", task.case.label()));
            self.account.unsettled.push((task.case.label(), why));
        }
    }
}

/// Returns the kernel's release, as `uname -r` prints it.
pub(crate) fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
