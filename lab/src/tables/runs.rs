//! Single runs: those behind a number, and a summary of each.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::Value;

use super::Measured;
use crate::codes::{self, CodeRecord};
use crate::plan::LinkCase;
use crate::results::{Origin, Record};
use crate::runner;
use crate::simulated::{self, SimCase, SimEnding, SimRecord};

/// The position of a number: the indices of a sweep, a row of its table and a point of its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellPosition {
    pub(crate) sweep: usize,
    pub(crate) row: usize,
    pub(crate) point: usize,
}

/// A record in short.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunEntry {
    /// Its index among the records.
    pub(crate) index: usize,
    pub(crate) id: String,
    /// The line of its case, in which `--only` searches.
    pub(crate) label: String,
    pub(crate) system: String,
    pub(crate) seed: u64,
    pub(crate) link: String,
    /// When it ended, in UTC.
    pub(crate) date: String,
    /// Its outcome, in words.
    pub(crate) ended: String,
    /// Its value, if it is one of those behind a number.
    pub(crate) value: Option<super::table::Number>,
    pub(crate) is_valid: bool,
    /// The reasons why it is invalid, and why programs gave up.
    pub(crate) reasons: Vec<String>,
    /// The build, the machine and its load.
    pub(crate) made: String,
    /// Whether another build made it.
    pub(crate) is_stale: bool,
}

impl Measured {
    /// Returns the ids of the cases at a position; `None` if it does not exist.
    pub(super) fn cases(&self, place: CellPosition) -> Option<HashSet<String>> {
        let CellPosition { sweep, row, point } = place;
        Some(match self {
            Self::Links(plan, _) => {
                let sweep = plan.sweeps.get(sweep)?;
                let (point, peer) = (sweep.points.get(point)?, sweep.peers.get(row)?);
                plan.cases_at(sweep, point, peer).map(|case| case.id()).collect()
            }
            Self::Codes(plan, _) => {
                let sweep = plan.sweeps.get(sweep)?;
                let (_, setting) = sweep.points.get(point)?;
                std::iter::once(sweep.cases(plan, setting).get(row)?.id()).collect()
            }
            Self::Simulated(plan, _) => {
                let sweep = plan.sweeps.get(sweep)?;
                let (point, lines) = (sweep.points.get(point)?, simulated::lines(plan, sweep));
                plan.ids_at(point, lines.get(row)?.series).collect()
            }
        })
    }

    /// Returns all runs of the cases at a position, with the values of the counting ones; `None` if it does not exist.
    pub(crate) fn runs_at(&self, place: CellPosition) -> Option<Vec<RunEntry>> {
        let ids = self.cases(place)?;
        let found = self.found_at(place).into_iter().flat_map(|cell| cell.runs);
        let is_over_time =
            matches!(self, Self::Simulated(plan, _) if plan.sweeps[place.sweep].vary == simulated::Vary::Time);
        let values = found.filter(|_| !is_over_time).map(|run| (run.id, run.value)).collect();
        Some(self.runs_with(|id| ids.contains(id), &values))
    }

    /// Returns the runs with these ids, with the values of the counting ones.
    pub(crate) fn runs_with(
        &self,
        wanted: impl Fn(&str) -> bool,
        values: &HashMap<String, crate::results::Bound>,
    ) -> Vec<RunEntry> {
        let labels = self.labels();
        let mut runs: Vec<RunEntry> =
            (0..self.count()).filter(|index| wanted(self.id(*index))).map(|index| self.run(index)).collect();
        // Of several valid runs of a case the last counts.
        let mut seen = HashSet::new();
        for run in runs.iter_mut().rev() {
            if run.is_valid && seen.insert(run.id.clone()) && !matches!(self, Self::Codes(..)) {
                run.value = values.get(&run.id).map(|value| (*value).into());
            }
        }
        for run in &mut runs {
            if let Some(label) = labels.get(&run.id) {
                run.label.clone_from(label);
            }
        }
        runs
    }

    /// Returns the last runs, the very last first.
    pub(crate) fn last_runs(&self, most: usize) -> Vec<RunEntry> {
        (0..self.count()).rev().take(most).map(|index| self.run(index)).collect()
    }

    /// Returns a full record.
    pub(crate) fn record(&self, index: usize) -> Option<Value> {
        match self {
            Self::Links(_, records) => serde_json::to_value(records.get(index)?),
            Self::Codes(_, records) => serde_json::to_value(records.get(index)?),
            Self::Simulated(_, records) => serde_json::to_value(records.get(index)?),
        }
        .ok()
    }

    fn id(&self, index: usize) -> &str {
        match self {
            Self::Links(_, records) => &records[index].id,
            Self::Codes(_, records) => &records[index].id,
            Self::Simulated(_, records) => &records[index].id,
        }
    }

    /// Returns the lines by which the plan's cases are selected; a case of several sweeps has that of the first.
    fn labels(&self) -> HashMap<String, String> {
        match self {
            Self::Links(plan, _) => plan.cases().iter().map(|case: &LinkCase| (case.id(), case.label())).collect(),
            Self::Codes(..) => HashMap::new(),
            Self::Simulated(plan, _) => plan.cases().iter().map(|case: &SimCase| (case.id(), case.label())).collect(),
        }
    }

    fn run(&self, index: usize) -> RunEntry {
        match self {
            Self::Links(_, records) => of_link(index, &records[index]),
            Self::Codes(_, records) => of_code(index, &records[index]),
            Self::Simulated(_, records) => of_flows(index, &records[index]),
        }
    }
}

fn of_link(index: usize, record: &Record) -> RunEntry {
    let case = &record.case;
    RunEntry {
        index,
        id: record.id.clone(),
        label: case.label(),
        system: case.peer.clone(),
        seed: case.seed,
        link: case.link.clone(),
        date: record.date.clone(),
        ended: runner::ended(record),
        value: None,
        is_valid: record.is_valid(),
        reasons: record.outcome.verdict.reasons.clone(),
        made: made(record.made.as_ref()),
        is_stale: record.is_stale(),
    }
}

fn of_flows(index: usize, record: &SimRecord) -> RunEntry {
    let SimCase { series, point, seed, scenario, .. } = &record.case;
    let is_faulty = record.ending == SimEnding::Failed;
    let fault = is_faulty
        .then(|| "internal error of the engine or of a program: the bytes differ, or it did not end".to_owned());
    RunEntry {
        index,
        id: record.id.clone(),
        label: record.case.label(),
        system: if point.is_empty() { series.clone() } else { format!("{series} at {point}") },
        seed: *seed,
        link: scenario.link.clone(),
        date: record.date.clone(),
        ended: simulated::ended(record),
        value: None,
        is_valid: record.is_valid() && !is_faulty,
        reasons: simulated::reasons(record).map(str::to_owned).chain(fault).collect(),
        made: made(record.made.as_ref()),
        is_stale: record.is_stale(),
    }
}

fn of_code(index: usize, record: &CodeRecord) -> RunEntry {
    RunEntry {
        index,
        id: record.id.clone(),
        label: record.case.label(),
        system: record.case.code.clone(),
        seed: record.case.seed,
        link: String::new(),
        date: record.date.clone(),
        ended: codes::ended(record),
        value: None,
        is_valid: true,
        reasons: Vec::new(),
        made: made(record.made.as_ref()),
        is_stale: record.is_stale(),
    }
}

/// Returns the origin of a record in one line; empty if it is not known.
fn made(made: Option<&Origin>) -> String {
    let Some(Origin { commit, machine, load, .. }) = made else { return String::new() };
    let commit = commit.get(..12).map_or(commit.as_str(), |_| &commit[..12]);
    let build = if commit.is_empty() { String::new() } else { format!("commit {commit}, ") };
    format!("{build}{machine}, load {load:.2}")
}
