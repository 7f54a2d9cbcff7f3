//! The expected duration of a plan.

use std::num::NonZeroUsize;

use super::Agenda;
use super::agenda::floors;
use crate::plan::LinkPlan;

/// Bounds in seconds on the duration of an agenda's runs, without the emulator's start and repetitions of invalid runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Every run takes the least time that its link allows.
    pub least: f64,
    /// No run finishes before its cap.
    pub most: f64,
}

impl Estimate {
    /// Estimates the agenda's duration with `jobs` runs at a time.
    pub fn of(plan: &LinkPlan, agenda: &Agenda, jobs: NonZeroUsize) -> Self {
        let floors = floors(plan);
        let cases = || agenda.warm_ups().chain(agenda.cases());
        let jobs = jobs.get() as f64;
        let least: f64 = cases().map(|case| floors.get(&case.id()).copied().unwrap_or(0.0).min(case.cap_seconds)).sum();
        let most: f64 = cases().map(|case| case.cap_seconds).sum();
        Self { least: least / jobs, most: most / jobs }
    }
}
