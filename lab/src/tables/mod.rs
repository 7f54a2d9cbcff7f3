//! A plan of any kind with its runs, and their presentation: pictures, tables of points and systems, single runs, and
//! remaining work.

mod outlook;
mod reading;
mod runs;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use crate::codes::{self, CodePlan, CodeRecord, CodeSweep};
use crate::picture::Chart;
use crate::plan::{LinkPlan, PlanError, Published, Sweep, read_text};
use crate::results::{Origin, Record, csv};
use crate::simulated::{self, SimPlan, SimRecord, SimSweep};

pub(crate) use outlook::Outlook;
pub(crate) use reading::{ResultsReader, Stamp};
pub(crate) use runs::{CellPosition, RunEntry};

/// A plan of any kind, and its runs.
#[derive(Clone, Debug)]
pub enum Measured {
    /// Files moved over links.
    Links(Box<LinkPlan>, Vec<Record>),
    /// Timed codes.
    Codes(Box<CodePlan>, Vec<CodeRecord>),
    /// Simulated or emulated flows.
    Simulated(Box<SimPlan>, Vec<SimRecord>),
}

impl Measured {
    /// Reads a plan of any kind, without runs; peers may be unknown.
    ///
    /// # Errors
    /// One line with the file, the line in it, the error, and advice.
    pub(crate) fn of_plan(file: &Path) -> Result<Self, PlanError> {
        Self::parse(file, &read_text(file)?, None)
    }

    /// Parses a plan from the text of its file; without runs. `peers` are the known names; `None` for existing results,
    /// which may have others.
    ///
    /// # Errors
    /// Those of [`Measured::of_plan`].
    pub(crate) fn parse(file: &Path, text: &str, peers: Option<&[String]>) -> Result<Self, PlanError> {
        if let Some(plan) = CodePlan::parse(file, text)? {
            return Ok(Self::Codes(Box::new(plan), Vec::new()));
        }
        if let Some(plan) = SimPlan::parse(file, text)? {
            return Ok(Self::Simulated(Box::new(plan), Vec::new()));
        }
        let plan = match peers {
            Some(peers) => LinkPlan::parse(file, text, peers)?,
            None => LinkPlan::of_results(file, text)?,
        };
        Ok(Self::Links(Box::new(plan), Vec::new()))
    }

    pub(crate) fn title_and_name(&self) -> (&str, &str) {
        match self {
            Self::Links(plan, _) => (&plan.title, &plan.name),
            Self::Codes(plan, _) => (&plan.title, &plan.name),
            Self::Simulated(plan, _) => (&plan.title, &plan.name),
        }
    }

    /// Returns the number of records.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Links(_, records) => records.len(),
            Self::Codes(_, records) => records.len(),
            Self::Simulated(_, records) => records.len(),
        }
    }

    /// Returns whether a run needs the machine for itself: programs in real time, or timed codes.
    pub(crate) fn needs_quiet(&self) -> bool {
        match self {
            Self::Links(..) | Self::Codes(..) => true,
            Self::Simulated(plan, _) => plan.base.is_emulated(),
        }
    }

    /// Returns the number of cases with records of another build only.
    pub(crate) fn stale(&self) -> usize {
        fn of<'a>(records: impl Iterator<Item = (&'a str, bool)>) -> usize {
            let mut fresh: BTreeMap<&str, bool> = BTreeMap::new();
            for (id, is_stale) in records {
                *fresh.entry(id).or_default() |= !is_stale;
            }
            fresh.into_values().filter(|is_fresh| !is_fresh).count()
        }
        match self {
            Self::Links(_, records) => of(records.iter().map(|record| (record.id.as_str(), record.is_stale()))),
            Self::Codes(_, records) => of(records.iter().map(|record| (record.id.as_str(), record.is_stale()))),
            Self::Simulated(_, records) => of(records.iter().map(|record| (record.id.as_str(), record.is_stale()))),
        }
    }

    /// Iterates over the origins of the records.
    pub(crate) fn made(&self) -> Vec<Option<&Origin>> {
        match self {
            Self::Links(_, records) => records.iter().map(|record| record.made.as_ref()).collect(),
            Self::Codes(_, records) => records.iter().map(|record| record.made.as_ref()).collect(),
            Self::Simulated(_, records) => records.iter().map(|record| record.made.as_ref()).collect(),
        }
    }

    /// Returns the document's claims, and their sections.
    pub(crate) fn claims(&self) -> Vec<(&str, &str)> {
        let (claims, published) = match self {
            Self::Links(plan, _) => (&plan.claims, &plan.published[..]),
            Self::Codes(plan, _) => (&plan.claims, &[][..]),
            Self::Simulated(plan, _) => (&plan.claims, &[][..]),
        };
        let said = claims.iter().map(|claim| (claim.text.as_str(), claim.section.as_str()));
        let published =
            published.iter().filter_map(|Published { claim, section, .. }| Some((claim.as_deref()?, section.as_str())));
        said.chain(published).collect()
    }

    /// Returns the picture of each sweep by its name.
    pub(crate) fn charts(&self) -> Vec<(String, Chart)> {
        fn each<S>(sweeps: &[S], chart: impl Fn(&S) -> (String, Chart)) -> Vec<(String, Chart)> {
            sweeps.iter().map(chart).collect()
        }
        match self {
            Self::Codes(plan, records) => {
                each(&plan.sweeps, |sweep: &CodeSweep| (sweep.name.clone(), codes::picture(plan, sweep, records)))
            }
            Self::Simulated(plan, records) => {
                each(&plan.sweeps, |sweep: &SimSweep| (sweep.name.clone(), simulated::picture(plan, sweep, records)))
            }
            Self::Links(plan, records) => {
                each(&plan.sweeps, |sweep: &Sweep| (sweep.name.clone(), Chart::new(plan, sweep, records)))
            }
        }
    }

    /// Returns all records as a table of comma-separated values.
    pub(crate) fn csv(&self) -> String {
        match self {
            Self::Codes(_, records) => codes::csv(records),
            Self::Simulated(_, records) => simulated::csv(records),
            Self::Links(_, records) => csv(records),
        }
    }
}
