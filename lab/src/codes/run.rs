//! `run` for a plan that times codes.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

use erasure::BlockCode;
use fastrand::Rng;
use jiff::{Timestamp, Unit};

use super::trial::Trial;
use super::{CodeCase, CodePlan, CodeRecord, CodeStore, CodeSweep, Measured, Setting};
use crate::exit::{Code, Failure};
use crate::output::{say, warn};
use crate::results::{Engine, OriginBuilder, PLAN, SCHEMA, keep, open, processor};
use crate::runner::{RunOptions, StopFlag};
use crate::tables::Outlook;

/// Times the cases that have no record yet, point by point; returns the exit code.
pub(crate) fn run(plan: &CodePlan, how: &RunOptions, directory: &Path, stop: &StopFlag) -> Result<u8, Failure> {
    if how.jobs.get() > 1 {
        return Err(Failure::new(Code::Usage, "--jobs has no effect on timed codes: omit it"));
    }
    let wanted = |case: &CodeCase| how.only.as_deref().is_none_or(|only| case.label().contains(only));
    let points = points(plan, wanted);
    let total = points.iter().map(|(_, _, cases)| cases.len()).sum::<usize>();
    if total == 0 {
        return Err(how.nothing_selected(&plan.name));
    }
    if how.dry_run {
        say(&list(&points, &CodeStore::read(directory)?));
        return Ok(0);
    }
    let mut store: CodeStore = open(directory)?;
    keep(&plan.file, directory, PLAN)?;
    let maker = OriginBuilder::new(&plan.file)?;
    for (sweep, setting, cases) in points {
        // Sweeps with a common point share its records.
        let is_done = |record: &CodeRecord| !how.stale || !record.is_stale();
        let is_new = |case: &CodeCase| !store.records().iter().any(|record| record.id == case.id() && is_done(record));
        let cases: Vec<CodeCase> = cases.into_iter().filter(is_new).collect();
        for mut record in time(sweep, setting, cases, stop)? {
            record.made = Some(maker.made(Engine::Codes, Vec::new()));
            warn(&line(&record));
            store.append(record)?;
        }
        if stop.is_set() {
            warn("stopped: run the same command to resume");
            return Ok(Code::Interrupted as u8);
        }
    }
    say(&format!("{}\n", directory.display()));
    Ok(Code::Done as u8)
}

/// A point of a sweep, and its cases.
type Point<'a> = (&'a CodeSweep, &'a Setting, Vec<CodeCase>);

/// Returns the points of a plan, with the selected cases.
fn points(plan: &CodePlan, wanted: impl Fn(&CodeCase) -> bool) -> Vec<Point<'_>> {
    let points = plan.sweeps.iter().flat_map(|sweep| sweep.points.iter().map(move |(_, setting)| (sweep, setting)));
    let with_cases = |(sweep, setting): (_, _)| {
        let sweep: &CodeSweep = sweep;
        (sweep, setting, sweep.cases(plan, setting).into_iter().filter(&wanted).collect())
    };
    points.map(with_cases).collect()
}

/// Times the codes of one point in round-robin order; returns `None` if stopped before they are done.
fn time(
    sweep: &CodeSweep,
    setting: &Setting,
    cases: Vec<CodeCase>,
    stop: &StopFlag,
) -> Result<Vec<CodeRecord>, Failure> {
    let failed = |message: String| Failure::new(Code::Invalid, message);
    let mut trials = Vec::new();
    for case in cases {
        let code: BlockCode = case.code.parse().map_err(|error| Failure::new(Code::Other, error))?;
        let mut trial = Trial::new(code, setting, &mut Rng::with_seed(case.seed));
        // Tables and plans are made once per process, which is not counted in any run.
        once(&mut trial, sweep.measured, setting, &mut Rng::with_seed(case.seed)).map_err(failed)?;
        trials.push((case, trial, Vec::new()));
    }
    let started = Instant::now();
    for run in 0..sweep.runs {
        if stop.is_set() {
            return Ok(Vec::new());
        }
        if run > 0 && started.elapsed() > sweep.cap {
            break;
        }
        for (case, trial, nanoseconds) in &mut trials {
            // All codes have the same drops in a run.
            let mut rng = Rng::with_seed(case.seed ^ (u64::from(run) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let took = once(trial, sweep.measured, setting, &mut rng).map_err(failed)?;
            nanoseconds.push(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }
    let record = |(case, _, nanoseconds): (CodeCase, Trial, Vec<u64>)| CodeRecord {
        schema: SCHEMA,
        id: case.id(),
        case,
        date: Timestamp::now().round(Unit::Second).unwrap_or_default().to_string(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        processor: processor(),
        made: None,
        nanoseconds,
    };
    Ok(trials.into_iter().map(record).collect())
}

fn once(
    trial: &mut Trial,
    measured: Measured,
    setting: &Setting,
    rng: &mut Rng,
) -> Result<std::time::Duration, String> {
    let [least, most] = setting.drops;
    match measured {
        Measured::Encode => Ok(trial.encode()),
        Measured::Decode => trial.decode(least + (most - least) * rng.f64(), rng),
    }
}

/// Returns the cases of each point without a record, and the most seconds that they take.
fn left<'a>(points: &'a [Point<'_>], records: &[CodeRecord]) -> (Vec<&'a CodeCase>, f64) {
    let (mut left, mut most) = (Vec::new(), 0.0);
    for (sweep, _, cases) in points {
        let new: Vec<_> = cases.iter().filter(|case| !records.iter().any(|record| record.id == case.id())).collect();
        most += if new.is_empty() { 0.0 } else { sweep.cap.as_secs_f64() };
        left.extend(new);
    }
    (left, most)
}

/// Returns the remaining work of a plan.
pub(crate) fn outlook(plan: &CodePlan, records: &[CodeRecord]) -> Outlook {
    let points = points(plan, |_| true);
    let total = points.iter().map(|(_, _, cases)| cases.len()).sum();
    let (left, most) = left(&points, records);
    Outlook { settled: total - left.len(), total, most: Some(most), ..Outlook::default() }
}

fn list(points: &[Point<'_>], records: &[CodeRecord]) -> String {
    let mut text = String::new();
    let (left, most) = left(points, records);
    for case in &left {
        writeln!(text, "{}, {} runs", case.label(), case.runs).expect("a string takes all");
    }
    let left = left.len();
    let cases = units::count(left, "case", "cases");
    writeln!(text, "{cases} to measure; about {} at most", units::seconds(most)).expect("a string takes all");
    text
}

/// Returns a line such as `paper/fig3/encode-size raptorq ...: 1234.56 us (1000 runs)`.
fn line(record: &CodeRecord) -> String {
    format!("{}: {}", record.case.label(), ended(record))
}

/// Returns the median of the runs and their number.
pub(crate) fn ended(record: &CodeRecord) -> String {
    let runs = units::count(record.nanoseconds.len(), "run", "runs");
    format!("{:.2} us ({runs})", record.quantile(0.5) / 1e3)
}
