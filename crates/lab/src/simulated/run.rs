//! `run` for a plan that is simulated.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::{Timestamp, Unit};

use super::{SimCase, SimEnding, SimPlan, SimRecord, SimStore};
use crate::exit::{Code, Failure};
use crate::output::{say, warn};
use crate::results::{PLAN, keep, open};
use crate::runner::{RunOptions, StopFlag};

/// Simulates the cases that have no record yet, with the requested number of runs in parallel; returns the exit code.
pub(crate) fn run(plan: &SimPlan, how: &RunOptions, folder: &Path, stop: &StopFlag) -> Result<u8, Failure> {
    let wanted = |case: &SimCase| how.only.as_deref().is_none_or(|only| case.label().contains(only));
    let cases: Vec<SimCase> = plan.cases().into_iter().filter(wanted).collect();
    if cases.is_empty() {
        return Err(how.nothing_selected(&plan.name));
    }
    let left = |records: &[SimRecord]| {
        let is_new = |case: &&SimCase| {
            let id = case.id();
            !records.iter().any(|record| record.id == id && record.settles(case))
        };
        cases.iter().filter(is_new).cloned().collect::<VecDeque<_>>()
    };
    if how.dry_run {
        say(&list(&left(&SimStore::read(folder)?)));
        return Ok(0);
    }
    let mut store: SimStore = open(folder)?;
    keep(&plan.file, folder, PLAN)?;
    let account = all(left(store.records()), how.jobs.get(), &mut store, stop)?;
    say(&format!("{}\n", folder.display()));
    Ok(account)
}

/// Runs the cases on `jobs` threads, and stores every record as it arrives.
fn all(cases: VecDeque<SimCase>, jobs: usize, store: &mut SimStore, stop: &StopFlag) -> Result<u8, Failure> {
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
                // There is no receiver any more when results cannot be stored.
                while let Some(case) = next() {
                    if sender.send(simulate(case)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (done, result) in (1..).zip(results) {
            match result {
                Ok(record) => {
                    warn(&format!("{done} of {total}: {}", line(&record)));
                    if record.ending == SimEnding::Failed {
                        code = Code::Invalid;
                    }
                    store.append(record)?;
                }
                Err(message) => {
                    warn(&format!("{done} of {total}: {message}"));
                    code = Code::Invalid;
                }
            }
        }
        Ok::<(), Failure>(())
    })?;
    if stop.is_set() && some_are_left(&agenda) {
        warn("stopped: the same command goes on");
        return Ok(Code::Interrupted as u8);
    }
    Ok(code as u8)
}

/// Returns whether runs are left that were not begun.
fn some_are_left(agenda: &Mutex<VecDeque<SimCase>>) -> bool {
    !agenda.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// Makes one run; returns why there is no record of it if the engine is at fault.
fn simulate(case: SimCase) -> Result<SimRecord, String> {
    let label = case.label();
    let times = [case.span_seconds, case.cap_seconds].map(Duration::from_secs_f64);
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        case.scenario.case(times[0], times[1])?.run(case.seed).map_err(|error| error.to_string())
    }));
    let outcome = outcome.unwrap_or_else(|_| Err("the engine broke".to_owned()));
    let outcome = outcome.map_err(|error| format!("{label}: {error}"))?;
    let date = Timestamp::now().round(Unit::Second).unwrap_or_default().to_string();
    Ok(SimRecord::of(case, &outcome, date, start.elapsed().as_secs_f64()))
}

fn list(cases: &VecDeque<SimCase>) -> String {
    let mut text = String::new();
    for case in cases {
        writeln!(text, "{}", case.label()).expect("a string takes all");
    }
    writeln!(text, "{} to simulate", units::count(cases.len(), "case", "cases")).expect("a string takes all");
    text
}

/// Returns `paper/fig6/delay cubic 20ms seed 1: near 12.3 s, far 15.0 s (1200000 packets in 3.1 s)`.
fn line(record: &SimRecord) -> String {
    let flow = |flow: &super::FlowRecord| match flow.seconds {
        Some(seconds) => format!("{} {}", flow.name, units::seconds(seconds)),
        None if record.ending == SimEnding::GaveUp => format!("{} gave up", flow.name),
        None => format!("{} not finished", flow.name),
    };
    let flows: Vec<String> = record.flows.iter().map(flow).collect();
    let failed = if record.ending == SimEnding::Failed { "FAILED, " } else { "" };
    let took = units::seconds(record.took_seconds);
    format!("{}: {failed}{} ({} packets in {took})", record.case.label(), flows.join(", "), record.packets)
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::super::record::tests::record;
    use super::*;

    /// Half of all chunks cannot be decoded, and none is mended (ttp §I).
    #[test]
    fn a_flow_that_gives_up_is_told_from_one_that_takes_too_long() {
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
}
