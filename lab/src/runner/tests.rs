use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::plan::{LinkCase, LinkPlan};
use crate::results::tests::record;
use crate::simulated::{SimCase, SimRecord};

const PLAN: &str = r#"
name = "e"
title = "t"
link = "rate=10M,delay=5ms"
size = "1MB"
peers = ["a", "b"]
repeats = 2
cap = "60s"
shuffle = 5
[[sweep]]
name = "loss"
vary = "loss"
values = ["0%", "1%", "2%"]
"#;

fn plan() -> LinkPlan {
    LinkPlan::parse(Path::new("p.toml"), PLAN, &["a".into(), "b".into()]).expect("a plan")
}

/// The outcome of a run depends only on the case and the number of the attempt.
#[derive(Default)]
struct Scripted {
    /// Peers whose first attempts at each case are invalid, and how many.
    invalid: HashMap<&'static str, u32>,
    /// Peers that are not installed.
    absent: Vec<&'static str>,
    /// Stops after this many runs.
    stop_after: Option<usize>,
    /// The number of runs after which the machine fails.
    breaks_after: Option<usize>,
    /// Every run waits until this many are in progress.
    together: usize,
    under_way: AtomicUsize,
    seen: Mutex<Vec<String>>,
}

impl Measure for Scripted {
    fn peers(&self) -> Vec<String> {
        vec!["a".into(), "b".into()]
    }

    fn lacks(&self, peer: &str) -> Option<String> {
        self.absent.contains(&peer).then(|| "apt install it".to_owned())
    }

    fn measure(&self, case: &LinkCase, stop: &StopFlag) -> Result<RunOutcome, MeasureError> {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        while self.under_way.load(Ordering::SeqCst) < self.together {
            thread::yield_now();
        }
        let mut seen = self.seen.lock().expect("no run panics");
        if stop.is_set() {
            return Err(MeasureError::Stopped);
        }
        seen.push(case.id());
        if let Some(missing) = self.lacks(&case.peer) {
            return Err(MeasureError::Absent(missing));
        }
        if self.stop_after == Some(seen.len()) {
            stop.set();
        }
        if self.breaks_after.is_some_and(|runs| seen.len() > runs) {
            return Err(MeasureError::Machine("no namespaces".into()));
        }
        let tries = seen.iter().filter(|id| **id == case.id()).count() as u32;
        let mut outcome = record(1.0 + case.repeat as f64).outcome;
        if self.invalid.get(case.peer.as_str()).is_some_and(|invalid| tries <= *invalid) {
            outcome.verdict.reasons.push(format!("try {tries}"));
        }
        Ok(outcome)
    }

    fn measure_flows(&self, case: &SimCase, attempt: u32, _stop: &StopFlag) -> Result<SimRecord, MeasureError> {
        Err(MeasureError::Run(format!("{} unexpected measurement, {attempt}", case.label())))
    }
}

fn execute(plan: &LinkPlan, directory: &Path, measure: &Scripted, jobs: usize) -> Result<Account, RunError> {
    let mut store = Store::open(directory)?;
    let agenda = Agenda::new(plan, store.records(), None, false);
    let jobs = NonZeroUsize::new(jobs).expect("some");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let maker = OriginBuilder::new(file.path()).expect("a plan");
    run(agenda, (&mut store, &maker), measure, jobs, &mut ProgressReporter::none(), &StopFlag::default())
}

fn cold(mut plan: LinkPlan) -> LinkPlan {
    plan.warm_up = 0;
    plan
}

#[test]
fn warm_ups_discarded_and_cases_shuffled_by_seed() {
    let directory = tempfile::tempdir().expect("a directory");
    let measure = Scripted::default();
    let account = execute(&plan(), directory.path(), &measure, 1).expect("runs");
    assert_eq!(account, Account { settled: 12, ..Account::default() });
    let seen = measure.seen.into_inner().expect("no run panics");
    let records = Store::read(directory.path()).expect("records");
    assert_eq!((seen.len(), records.len()), (14, 12));
    let kept: Vec<_> = records.iter().map(|record| record.id.clone()).collect();
    assert_eq!(seen[2..], kept[..]);
    for (warm_up, peer) in seen[..2].iter().zip(["a", "b"]) {
        let shortest = plan().cases().into_iter().find(|case| case.peer == peer).expect("a case");
        assert_eq!(*warm_up, shortest.id(), "the case without loss");
    }
    let in_order: Vec<_> = plan().cases().iter().map(LinkCase::id).collect();
    let order = |seed| {
        let agenda = Agenda::new(&LinkPlan { shuffle: seed, ..plan() }, &[], None, false);
        agenda.cases().map(LinkCase::id).collect::<Vec<_>>()
    };
    assert_eq!(kept, order(5));
    assert_ne!(kept, in_order);
    assert_ne!(kept, order(6));
    let mut sorted = (kept, in_order);
    sorted.0.sort();
    sorted.1.sort();
    assert_eq!(sorted.0, sorted.1);
    assert_eq!((records[0].attempt, &*records[0].kernel), (1, &*kernel()));
    assert!(records[0].date.len() == "2026-01-02T03:04:05Z".len() && records[0].date.ends_with('Z'));
}

#[test]
fn invalid_runs_stored_and_repeated_up_to_three_times() {
    let directory = tempfile::tempdir().expect("a directory");
    let measure = Scripted { invalid: [("a", 2), ("b", 9)].into(), ..Scripted::default() };
    let account = execute(&cold(plan()), directory.path(), &measure, 1).expect("runs");
    assert_eq!((account.settled, account.invalid, account.unsettled.len()), (6, 6 * 2 + 6 * 3, 6));
    let (label, why) = &account.unsettled[0];
    assert!(label.contains(" b 1000000 B over ") && why == "try 3", "{label}: {why}");
    let records = Store::read(directory.path()).expect("records");
    let attempts =
        |peer, attempt| records.iter().filter(|record| record.case.peer == peer && record.attempt == attempt).count();
    for attempt in 1..=3 {
        assert_eq!((attempts("a", attempt), attempts("b", attempt)), (6, 6));
    }
    assert_eq!(records.iter().filter(|record| record.is_valid()).count(), 6);
}

#[test]
fn failing_peer_is_tried_three_times() {
    let case = cold(plan()).cases().remove(0);
    let mut record = record(1.0);
    record.outcome.ending = Ending::Failed { reason: "it failed".into() };
    for (attempt, settles) in [(1, false), (2, false), (3, true)] {
        record.attempt = attempt;
        assert_eq!(record.settles(&case), settles, "{attempt}");
    }
}

#[test]
fn stopped_run_resumes() {
    let directory = tempfile::tempdir().expect("a directory");
    let plan = cold(plan());
    let first = Scripted { stop_after: Some(5), ..Scripted::default() };
    let account = execute(&plan, directory.path(), &first, 1).expect("runs");
    assert_eq!((account.settled, account.interrupted), (5, true));
    let second = Scripted::default();
    let account = execute(&plan, directory.path(), &second, 1).expect("runs");
    assert_eq!((account.settled, account.interrupted), (7, false));
    let all = [first.seen.into_inner().expect("ids"), second.seen.into_inner().expect("ids")].concat();
    let expected: Vec<_> = Agenda::new(&plan, &[], None, false).cases().map(LinkCase::id).collect();
    assert_eq!(all, expected, "in the same order, each once");
    assert!(Agenda::new(&plan, &Store::read(directory.path()).expect("records"), None, false).is_empty());
}

#[test]
fn absent_peer_is_reported_and_skipped() {
    let directory = tempfile::tempdir().expect("a directory");
    let measure = Scripted { absent: vec!["a"], ..Scripted::default() };
    let account = execute(&plan(), directory.path(), &measure, 1).expect("runs");
    assert_eq!(account.absent, [("a".to_owned(), "apt install it".to_owned())].into());
    let peers = ["b", "a", "b", "a"].map(str::to_owned).into_iter();
    assert_eq!(absent(&measure, peers), ["a is not installed: apt install it"], "known before the first run");
    assert_eq!((account.settled, account.interrupted), (6, false));
    assert_eq!(measure.seen.into_inner().expect("ids").len(), 1 + 1 + 6, "tried once");
}

#[test]
fn runner_machine_error_keeps_results() {
    let directory = tempfile::tempdir().expect("a directory");
    let measure = Scripted { breaks_after: Some(4), ..Scripted::default() };
    let error = execute(&cold(plan()), directory.path(), &measure, 1).expect_err("no namespaces");
    assert_eq!(error.to_string(), "no namespaces");
    assert_eq!(Store::read(directory.path()).expect("records").len(), 4);
    assert_eq!(measure.seen.into_inner().expect("ids").len(), 5);
}

#[test]
fn jobs_run_in_parallel() {
    let directory = tempfile::tempdir().expect("a directory");
    // Ends only if three runs are in progress at the same time.
    let measure = Scripted { together: 3, ..Scripted::default() };
    let account = execute(&cold(plan()), directory.path(), &measure, 3).expect("runs");
    assert_eq!(account.settled, 12);
    assert_eq!(Store::read(directory.path()).expect("records").len(), 12);
}

#[test]
fn agenda_only_and_estimate() {
    let plan = plan();
    let agenda = Agenda::new(&plan, &[], Some(" b 1000000 B over rate=10M,delay=5ms,loss=2%"), false);
    assert_eq!((agenda.cases().count(), agenda.warm_ups().count(), agenda.settled_of_total()), (2, 1, (0, 2)));
    let estimate = Estimate::of(&plan, &agenda, NonZeroUsize::MIN);
    // Three runs of 0.8 s of bytes with headers, 2 % lost, and 10 ms of round trip.
    assert!((estimate.least - 3.0 * (0.8 * 1500.0 / 1472.0 / 0.98 + 0.01)).abs() < 1e-9, "{estimate:?}");
    assert_eq!(estimate.most, 180.0);
    let two = NonZeroUsize::new(2).expect("two");
    assert_eq!(Estimate::of(&plan, &agenda, two).most, 90.0);
}

#[test]
fn agenda_left_scales_with_caps() {
    let mut agenda = Agenda::new(&cold(plan()), &[], None, false);
    assert_eq!(agenda.left(), (12, None));
    let task = agenda.next(true).expect("a case");
    agenda.took(&task, 6.0);
    assert_eq!(agenda.left(), (11, Some(66.0)), "a tenth of 11 x 60 s");
}
