//! Results as they grow, whoever makes them.

use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::child::{Ended, Run};
use crate::exit::Code;
use crate::measured::{Measured, Outlook};
use crate::results::RECORDS;
use crate::web::lock;
use crate::web::results::pictures;
use crate::web::shelf::{Book, Shelf};
use crate::web::topic::{Keep, Topic};

/// How often viewers are told at most, and how much longer than the work for it a pause is: beside a run, that costs 5 % of a
/// core.
const TELL_EVERY: Duration = Duration::from_millis(500);
const REST: u32 = 19;
const LONGEST_REST: Duration = Duration::from_secs(10);
/// Runs that are listed.
const MOST_RUNS: usize = 40;

/// A folder of results that somebody watches, or that a run of this program fills.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) book: Book,
    pub(super) topic: Arc<Topic>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    run: Option<Run>,
    ended: Option<Ended>,
    /// Whether a thread looks after it.
    is_followed: bool,
    /// Rises with everything but results that changes what viewers see.
    changes: u64,
}

impl Followed {
    pub(super) fn new(book: Book) -> Arc<Self> {
        Arc::new(Self { book, topic: Topic::new(Keep::Last), state: Mutex::default() })
    }

    /// Returns whether a run of this program is there, and whether that needs the machine for itself.
    pub(super) fn is_running(&self) -> Option<bool> {
        lock(&self.state).run.as_ref().map(|run| run.needs_quiet)
    }

    /// Returns whether nobody would miss it.
    pub(super) fn is_idle(&self) -> bool {
        let state = lock(&self.state);
        state.run.is_none() && !state.is_followed
    }

    pub(super) fn begin(&self, run: Run) {
        let mut state = lock(&self.state);
        (state.run, state.ended) = (Some(run), None);
        state.changes += 1;
    }

    /// Tells its run to stop; returns whether there is one.
    pub(super) fn stop(&self) -> bool {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.run.as_mut().map(Run::stop).is_some()
    }

    /// Ends its run.
    pub(super) fn end(&self) {
        let run = lock(&self.state).run.take();
        if let Some(mut run) = run {
            run.end();
        }
    }

    /// Looks after it in a thread, unless one does, for as long as there is a run or a viewer.
    pub(super) fn follow(self: &Arc<Self>, shelf: &Arc<Shelf>) {
        if std::mem::replace(&mut lock(&self.state).is_followed, true) {
            return;
        }
        let (followed, shelf) = (Arc::clone(self), Arc::clone(shelf));
        std::thread::spawn(move || followed.look_after(&shelf));
    }

    fn look_after(&self, shelf: &Shelf) {
        let mut told = None;
        loop {
            let begun = Instant::now();
            if self.topic.viewers() > 0 {
                self.tell(shelf, &mut told);
            }
            let rest = (begun.elapsed() * REST).clamp(TELL_EVERY, LONGEST_REST);
            std::thread::sleep(rest);
            self.reap();
            let mut state = lock(&self.state);
            // Viewers come with this lock held or after it, and begin to follow again.
            if state.run.is_none() && self.topic.viewers() == 0 {
                state.is_followed = false;
                return;
            }
        }
    }

    /// Notices that a run has ended.
    fn reap(&self) {
        let mut state = lock(&self.state);
        if let Some(ended) = state.run.as_mut().and_then(Run::ended) {
            state.run = None;
            state.ended = Some(ended);
            state.changes += 1;
        }
    }

    /// Tells viewers what there is, if anything has changed since `told`.
    fn tell(&self, shelf: &Shelf, told: &mut Option<Seen>) {
        let seen = Seen::now(self);
        if told.as_ref() == Some(&seen) {
            return;
        }
        let event = match shelf.read(&self.book) {
            Ok(reading) => self.event(lock(&reading).measured(), seen.is_elsewhere),
            Err(refusal) => json!({ "name": self.book.name, "unreadable": refusal.to_string() }),
        };
        self.topic.tell(&event);
        *told = Some(seen);
    }

    fn event(&self, measured: &Measured, is_elsewhere: bool) -> Value {
        let mut state = lock(&self.state);
        let jobs = state.run.as_ref().map_or(NonZeroUsize::MIN, |run| run.jobs);
        let outlook = measured.outlook(jobs);
        let left = state.run.as_mut().and_then(|run| left(run, outlook));
        let said = match (&state.run, &state.ended) {
            (Some(run), _) => run.said(),
            (None, Some(ended)) => ended.said.clone(),
            (None, None) => Vec::new(),
        };
        let now = Stage::of(&state, is_elsewhere, outlook);
        drop(state);
        let (title, plan) = measured.title_and_name();
        json!({
            "name": self.book.name, "title": title, "plan": plan, "isOwn": self.book.is_own(), "stage": now.name(),
            "says": now.says(), "said": said, "settled": outlook.settled, "total": outlook.total, "least": outlook.least,
            "most": outlook.most, "about": outlook.about, "left": left, "records": measured.count(),
            "tables": measured.tables(), "pictures": pictures(measured), "runs": measured.last_runs(MOST_RUNS),
        })
    }
}

/// Returns the seconds that a run still takes, if it goes on as until now.
fn left(run: &mut Run, outlook: Outlook) -> Option<f64> {
    let before = *run.settled.get_or_insert(outlook.settled);
    let made = outlook.settled.saturating_sub(before);
    let each = run.begun.elapsed().as_secs_f64() / made as f64;
    (made > 0).then(|| each * (outlook.total - outlook.settled) as f64)
}

/// Where a plan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    Stopping,
    /// A process that was not started here writes.
    Elsewhere,
    Done,
    Partial,
    Empty,
    Failed(Option<i32>),
}

impl Stage {
    fn of(state: &State, is_elsewhere: bool, outlook: Outlook) -> Self {
        const INTERRUPTED: i32 = Code::Interrupted as i32;
        match (&state.run, &state.ended) {
            (Some(run), _) if run.is_stopping => Self::Stopping,
            (Some(_), _) => Self::Running,
            (None, _) if is_elsewhere => Self::Elsewhere,
            (None, Some(Ended { code, .. })) if !matches!(code, Some(0 | INTERRUPTED)) => Self::Failed(*code),
            _ if outlook.settled == outlook.total => Self::Done,
            _ if outlook.settled == 0 => Self::Empty,
            _ => Self::Partial,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Elsewhere => "elsewhere",
            Self::Done => "done",
            Self::Partial => "partial",
            Self::Empty => "empty",
            Self::Failed(_) => "failed",
        }
    }

    fn says(self) -> &'static str {
        match self {
            Self::Running => "It runs.",
            Self::Stopping => "It stops after the present runs.",
            Self::Elsewhere => "Another process runs it: what that stores is shown here.",
            Self::Done => "Every case has its run.",
            Self::Partial => "Cases are left.",
            Self::Empty => "Nothing has been run yet.",
            Self::Failed(Some(code)) => match code {
                3 => "It ended early: this machine lacks something.",
                4 => "It ended, and cases are without a valid run.",
                _ => "It ended with an error.",
            },
            Self::Failed(None) => "It was killed.",
        }
    }
}

/// What viewers have been told of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    changes: u64,
    files: [Option<(u64, u64, i64, i64)>; 2],
    is_elsewhere: bool,
}

impl Seen {
    fn now(followed: &Followed) -> Self {
        let stamp = |file: &Path| {
            let found = fs::metadata(file).ok()?;
            Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        };
        let records = followed.book.folder.join(RECORDS);
        let state = lock(&followed.state);
        Self {
            changes: state.changes,
            files: [stamp(&followed.book.plan), stamp(&records)],
            is_elsewhere: state.run.is_none() && is_locked(&records),
        }
    }
}

/// Returns whether a process holds the lock of a file of records, which it does for as long as it runs a plan. To try the lock
/// could refuse it to a run that begins.
pub(super) fn is_locked(records: &Path) -> bool {
    let Ok(file) = fs::metadata(records) else { return false };
    // "1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF"
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let inode = |line: &str| line.split_whitespace().nth(5)?.rsplit(':').next()?.parse::<u64>().ok();
    locks.lines().any(|line| line.contains(" FLOCK ") && inode(line) == Some(file.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Store;

    #[test]
    fn a_run_elsewhere_shows_in_the_locks() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = folder.path().join(RECORDS);
        assert!(!is_locked(&records));
        let store = Store::open(folder.path()).expect("a new folder");
        assert!(is_locked(&records));
        drop(store);
        assert!(!is_locked(&records));
    }
}
