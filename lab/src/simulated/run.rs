//! `run` for a plan with flows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::{Display, Write as _};
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{Timestamp, Unit};

use super::{FlowRecord, FlowText, SimCase, SimEnding, SimPlan, SimRecord, SimStore};
use crate::exit::{Code, Failure};
use crate::output::{say, warn};
use crate::results::{OriginBuilder, PLAN, TRIES, keep, open};
use crate::runner::{Measure, MeasureError, RunOptions, StopFlag, absent, guarded};
use crate::tables::Outlook;

/// Runs the cases that have no record yet, with the requested number of runs in parallel; returns the exit code.
pub(crate) fn run(
    plan: &SimPlan,
    how: &RunOptions,
    directory: &Path,
    measure: &dyn Measure,
    stop: &StopFlag,
) -> Result<u8, Failure> {
    let wanted = |case: &SimCase| how.only.as_deref().is_none_or(|only| case.label().contains(only));
    let cases: Vec<SimCase> = plan.cases().into_iter().filter(wanted).collect();
    if cases.is_empty() {
        return Err(how.nothing_selected(&plan.name));
    }
    if how.dry_run {
        let records = SimStore::read(directory)?;
        let cases = left(cases, &records, how.stale);
        say(&list(plan, &cases, how.jobs.get(), &records));
        let peers = cases.iter().flat_map(|case| &case.scenario.flows).filter_map(|flow| flow.peer.clone());
        absent(measure, peers).iter().for_each(|line| warn(line));
        return Ok(0);
    }
    let is_emulated = plan.base.is_emulated();
    if is_emulated {
        measure.prepare().map_err(|error| Failure::new(Code::Lacking, error))?;
    }
    let mut store: SimStore = open(directory)?;
    keep(&plan.file, directory, PLAN)?;
    for file in plan.topology_files() {
        keep(&file, directory, file.file_name().unwrap_or_default())?;
    }
    let make = |case: SimCase, made: &mut dyn FnMut(SimRecord)| match is_emulated {
        true => emulate(&case, measure, stop, made),
        false => {
            simulate(case).map(made).map_err(|message| UnsettledCase { code: Code::Invalid, message, ends_all: false })
        }
    };
    let maker = OriginBuilder::new(&plan.file)?;
    let cases = left(cases, store.records(), how.stale);
    let account = all(cases, how.jobs.get(), (&mut store, &maker), stop, &make)?;
    say(&format!("{}\n", directory.display()));
    Ok(account)
}

/// Returns the cases that no record settles. With `stale`, records of another build do not.
fn left(cases: Vec<SimCase>, records: &[SimRecord], stale: bool) -> VecDeque<SimCase> {
    let mut by_id: HashMap<&str, Vec<&SimRecord>> = HashMap::new();
    for record in records {
        by_id.entry(&record.id).or_default().push(record);
    }
    let is_new = |case: &SimCase| {
        let is_done = |record: &&SimRecord| record.settles(case.cap_seconds) && (!stale || !record.is_stale());
        !by_id.get(case.id().as_str()).is_some_and(|records| records.iter().any(is_done))
    };
    cases.into_iter().filter(is_new).collect()
}

/// Returns the remaining work of a plan.
pub(crate) fn outlook(plan: &SimPlan, records: &[SimRecord], jobs: NonZeroUsize) -> Outlook {
    let cap = plan.cap.as_secs_f64();
    let done: HashSet<&str> =
        records.iter().filter(|record| record.settles(cap)).map(|record| record.id.as_str()).collect();
    let ids = plan.ids();
    let settled = ids.iter().filter(|id| done.contains(id.as_str())).count();
    Outlook { settled, total: ids.len(), ..seconds(plan, ids.len() - settled, jobs.get(), records) }
}

/// Returns the seconds for this number of cases.
fn seconds(plan: &SimPlan, cases: usize, jobs: usize, records: &[SimRecord]) -> Outlook {
    if plan.base.is_emulated() {
        let most = cases as f64 * plan.cap.as_secs_f64() / jobs as f64;
        return Outlook { most: Some(most), ..Outlook::default() };
    }
    let took = records.iter().map(|record| record.took_seconds).sum::<f64>() / records.len() as f64;
    let about = took * cases as f64 / jobs as f64;
    Outlook { about: Some(about).filter(|about| about.is_finite()), ..Outlook::default() }
}

/// Makes the runs of a case, until one of them settles it.
type Make<'a> = dyn Fn(SimCase, &mut dyn FnMut(SimRecord)) -> Result<(), UnsettledCase> + Sync + 'a;

/// A case without a run that settles it.
struct UnsettledCase {
    code: Code,
    message: String,
    /// Whether all other cases would fail too.
    ends_all: bool,
}

/// A report of a thread.
enum News {
    Origin(Box<SimRecord>),
    /// The thread continues with the next case.
    Next(Result<(), UnsettledCase>),
}

/// Runs the cases on `jobs` threads, and stores every record as it arrives.
fn all(
    cases: VecDeque<SimCase>,
    jobs: usize,
    (store, maker): (&mut SimStore, &OriginBuilder),
    stop: &StopFlag,
    make: &Make<'_>,
) -> Result<u8, Failure> {
    let total = cases.len();
    let agenda = Mutex::new(cases);
    let next = || match stop.is_set() {
        true => None,
        false => agenda.lock().unwrap_or_else(PoisonError::into_inner).pop_front(),
    };
    let mut code = Code::Done;
    thread::scope(|scope| {
        let (sender, results) = channel();
        for _ in 0..jobs.min(total) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(case) = next() {
                    // The receiver is gone when results cannot be stored.
                    let made = make(case, &mut |record| drop(sender.send(News::Origin(Box::new(record)))));
                    if sender.send(News::Next(made)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut done = 0;
        for news in results {
            match news {
                News::Origin(mut record) => {
                    let scenario = &record.case.scenario;
                    record.made = Some(maker.made(scenario.engine(), scenario.profiles()));
                    warn(&format!("{} of {total}: {}", done + 1, line(&record)));
                    if record.ending == SimEnding::Failed {
                        code = Code::Invalid;
                    }
                    store.append(*record)?;
                }
                News::Next(made) => {
                    done += 1;
                    if let Err(unmade) = made {
                        warn(&format!("{done} of {total}: {}", unmade.message));
                        code = unmade.code;
                        if unmade.ends_all {
                            agenda.lock().unwrap_or_else(PoisonError::into_inner).clear();
                        }
                    }
                }
            }
        }
        Ok::<(), Failure>(())
    })?;
    if stop.is_set() && (code == Code::Interrupted || has_unstarted(&agenda)) {
        warn("stopped: run the same command to resume");
        return Ok(Code::Interrupted as u8);
    }
    Ok(code as u8)
}

/// Returns whether unstarted runs are left.
fn has_unstarted(agenda: &Mutex<VecDeque<SimCase>>) -> bool {
    !agenda.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Makes one run in the simulator; the error is a defect of the engine.
fn simulate(case: SimCase) -> Result<SimRecord, String> {
    let label = case.label();
    let [span, cap] = [case.span_seconds, case.cap_seconds].map(Duration::from_secs_f64);
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        case.scenario.case(case.seed, span, cap)?.run(case.seed).map_err(|error| error.to_string())
    }));
    let outcome = outcome.unwrap_or_else(|_| Err("internal error: the engine panicked".to_owned()));
    let outcome = outcome.map_err(|error| format!("{label}: {error}"))?;
    Ok(SimRecord::of(case, &outcome, now(), start.elapsed().as_secs_f64()))
}

/// Returns the time of day, in UTC.
pub(crate) fn now() -> String {
    Timestamp::now().round(Unit::Second).unwrap_or_default().to_string()
}

/// Makes a run with real programs, and repeats invalid runs and those in which a program gave up.
fn emulate(
    case: &SimCase,
    measure: &dyn Measure,
    stop: &StopFlag,
    made: &mut dyn FnMut(SimRecord),
) -> Result<(), UnsettledCase> {
    let unmade = |code, message: &dyn Display| {
        Err(UnsettledCase { code, message: format!("{}: {message}", case.label()), ends_all: false })
    };
    let mut why = "no valid run";
    for attempt in 1..=TRIES {
        match guarded(|| measure.measure_flows(case, attempt, stop)) {
            Ok(record) => {
                let is_settled = record.settles(case.cap_seconds) || record.ending == SimEnding::Failed;
                why = if record.is_valid() { "a program gave up" } else { "no valid run" };
                made(record);
                if is_settled {
                    return Ok(());
                }
            }
            Err(MeasureError::Stopped) => return unmade(Code::Interrupted, &"stopped"),
            Err(MeasureError::Machine(error)) => {
                return unmade(Code::Lacking, &error).map_err(|unmade| UnsettledCase { ends_all: true, ..unmade });
            }
            Err(MeasureError::Absent(install)) => return unmade(Code::Lacking, &install),
            Err(MeasureError::Run(error)) if attempt == TRIES => return unmade(Code::Invalid, &error),
            Err(MeasureError::Run(_)) => {}
        }
    }
    unmade(Code::Invalid, &why)
}

fn list(plan: &SimPlan, cases: &VecDeque<SimCase>, jobs: usize, records: &[SimRecord]) -> String {
    let mut text = String::new();
    for case in cases {
        writeln!(text, "{}", case.label()).expect("a string takes all");
    }
    let count = units::count(cases.len(), "case", "cases");
    match seconds(plan, cases.len(), jobs, records) {
        Outlook { most: Some(most), .. } => {
            writeln!(text, "{count} to measure; at most {} (every run at its cap)", units::seconds(most))
        }
        Outlook { about, .. } => {
            let about = about.map_or_else(String::new, |about| format!("; about {}", units::seconds(about)));
            writeln!(text, "{count} to simulate{about}")
        }
    }
    .expect("a string takes all");
    text
}

/// Returns `paper/fig6/delay cubic 20ms seed 1: near 12.3 s, far 15.0 s (1200000 packets in 3.1 s)`.
fn line(record: &SimRecord) -> String {
    let failed = if record.ending == SimEnding::Failed { "FAILED, " } else { "" };
    let (took, ended) = (units::seconds(record.took_seconds), ended(record));
    let mut line = format!("{}: {failed}{ended} ({} packets in {took})", record.case.label(), record.packets);
    for reason in reasons(record) {
        write!(line, "; {reason}").expect("a string takes all");
    }
    if record.is_valid() { line } else { format!("{line}; INVALID") }
}

/// Returns the outcome of each flow: `near 12.3 s, far not finished`.
pub(crate) fn ended(record: &SimRecord) -> String {
    let gave_up = |flow: &FlowRecord| match &flow.program {
        Some(program) => program.failure.is_some(),
        None => record.ending == SimEnding::GaveUp,
    };
    let flow = |(text, flow): (&FlowText, &FlowRecord)| match flow.seconds {
        Some(seconds) => format!("{} {}", flow.name, units::seconds(seconds)),
        None if gave_up(flow) => format!("{} gave up", flow.name),
        None if !text.has_to_finish() => format!("{} {:.2} Mbit/s", flow.name, flow.throughput.unwrap_or_default()),
        None => format!("{} not finished", flow.name),
    };
    record.case.scenario.flows.iter().zip(&record.flows).map(flow).collect::<Vec<_>>().join(", ")
}

/// Iterates over the reasons why programs gave up, and why the run is invalid.
pub(crate) fn reasons(record: &SimRecord) -> impl Iterator<Item = &str> {
    let failures = record.flows.iter().filter_map(|flow| flow.program.as_ref()?.failure.as_deref());
    let reasons = record.emulation.iter().flat_map(|emulation| emulation.verdict.reasons.iter().map(String::as_str));
    failures.chain(reasons)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::super::{Scenario, SimQuantity};
    use super::*;
    use crate::plan::LinkCase;
    use crate::results::RunOutcome;

    /// A measurement that panics.
    struct Broken;

    impl Measure for Broken {
        fn peers(&self) -> Vec<String> {
            Vec::new()
        }

        fn measure(&self, _case: &LinkCase, _stop: &StopFlag) -> Result<RunOutcome, MeasureError> {
            panic!("unexpected measurement of a link")
        }

        fn measure_flows(&self, _case: &SimCase, _attempt: u32, _stop: &StopFlag) -> Result<SimRecord, MeasureError> {
            panic!("a simulated defect")
        }
    }

    #[test]
    fn panic_in_a_case_keeps_the_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut store: SimStore = open(directory.path()).expect("a new directory");
        let stop = StopFlag::default();
        let [first, second] = [1, 2].map(|seed| SimCase { seed, ..record().case });
        let make = |case: SimCase, made: &mut dyn FnMut(SimRecord)| match case.seed {
            1 => emulate(&case, &Broken, &stop, made),
            _ => {
                made(SimRecord { id: case.id(), case, ..record() });
                Ok(())
            }
        };
        let plan = tempfile::NamedTempFile::new().expect("a file");
        let maker = OriginBuilder::new(plan.path()).expect("a plan");
        let code =
            all([first, second.clone()].into(), 1, (&mut store, &maker), &stop, &make).expect("results are stored");
        assert_eq!(code, Code::Invalid as u8);
        assert_eq!(store.records().iter().map(|record| record.case.clone()).collect::<Vec<_>>(), [second]);
    }

    /// Half of all chunks cannot be decoded, and none is repaired (ttp §I).
    #[test]
    fn gave_up_differs_from_not_finished() {
        let scenario: Scenario = toml::from_str(
            r#"
            link = "rate=20M,delay=5ms,loss=10%"
            access = "perfect"
            flows = [{ name = "chunks", profile = "ttp", size = "1MB", set = { schedule = "chunks:padding=document,mend=off" } }]
            "#,
        )
        .expect("a scenario");
        for (cap_seconds, ending, said) in
            [(60.0, SimEnding::GaveUp, "gave up"), (0.05, SimEnding::NotFinished, "not finished")]
        {
            let case = SimCase { scenario: scenario.clone(), cap_seconds, ..record().case };
            let record = simulate(case).expect("it runs");
            assert_eq!(record.ending, ending);
            assert!(line(&record).contains(&format!(": chunks {said} (")), "{}", line(&record));
        }
    }

    #[test]
    fn endless_flow_may_give_up() {
        let scenario: Scenario = toml::from_str(
            r#"
            link = "rate=8M,delay=5ms,queue=30KB,down=3s..200s"
            access = "perfect"
            flows = [{ name = "endless", profile = "arq" }]
            "#,
        )
        .expect("a scenario");
        for (cap_seconds, ending) in [(100.0, SimEnding::GaveUp), (3.0, SimEnding::Finished)] {
            let case = SimCase { scenario: scenario.clone(), cap_seconds, ..record().case };
            assert_eq!(simulate(case).expect("it runs").ending, ending);
        }
    }

    #[test]
    fn codel_drops_are_queue_drops() {
        let scenario: Scenario = toml::from_str(
            r#"
            link = "rate=8M,delay=5ms,codel=5ms:100ms"
            access = "perfect"
            flows = [{ name = "cubic", profile = "arq", set = { congestion = "cubic:initial=64,threshold=none,hystart=off" } }]
            "#,
        )
        .expect("a scenario");
        let record = simulate(SimCase { scenario, cap_seconds: 10.0, ..record().case }).expect("it runs");
        assert!(
            record.queue_drops > 0 && record.random_drops == 0,
            "{} and {}",
            record.queue_drops,
            record.random_drops
        );
        assert!(record.queue_drops >= record.flows[0].packets_lost, "only the queue drops: {:?}", record.flows[0]);
    }

    #[test]
    fn endless_flows_share_the_link_to_the_cap() {
        let scenario: Scenario = toml::from_str(
            r#"
            link = "rate=8M,delay=5ms,queue=30KB"
            access = "perfect"
            warm-up = "5s"
            flows = [{ name = "cubic", profile = "arq", set = { congestion = "cubic" } }, { name = "late", profile = "arq", start = "10s", start-within = "1s", stop = "12s" }]
            "#,
        )
        .expect("a scenario");
        let mut case = SimCase { scenario, cap_seconds: 15.0, ..record().case };
        let record = simulate(case.clone()).expect("it runs");
        assert_eq!(record.ending, SimEnding::Finished, "the stopped flow has ended");
        let of = |record: &SimRecord, quantity: SimQuantity, flow| quantity.of(record, flow).expect("known").value();
        let [cubic, late] = [0, 1].map(|flow| of(&record, SimQuantity::Share, flow));
        // In any 10 s the link finishes at most its capacity and one packet begun before, of at
        // most 1500 B; each throughput is rounded to 1 kbit/s.
        let most = 1.0 + (1_500.0 * 8e-6 / 10.0 + 2.0 * 0.0005) / 8.0;
        assert!(0.02 < late && late < 0.3 && cubic + late > 0.9 && cubic + late <= most, "{cubic} {late}");
        // 30 ms of queue.
        let wait = of(&record, SimQuantity::QueueP95, 0);
        assert!((15.0..35.0).contains(&wait), "{wait} ms");
        assert!(line(&record).contains(": cubic ") && line(&record).contains(" Mbit/s, late "), "{}", line(&record));

        case.scenario.flows.pop();
        let alone = simulate(case).expect("it runs");
        assert_eq!(alone.ending, SimEnding::Finished);
        assert!(of(&alone, SimQuantity::Share, 0) > 0.9);
        assert_eq!(alone.flows[0].arrived.len(), 15, "seconds");
    }
}
