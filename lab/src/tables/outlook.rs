//! What is left to run.

use std::num::NonZeroUsize;

use super::Measured;
use crate::codes;
use crate::runner::{Agenda, Estimate};
use crate::simulated;

/// How much of a plan is done, and how long the rest takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outlook {
    /// Cases that need no further run.
    pub(crate) settled: usize,
    /// All of them.
    pub(crate) total: usize,
    /// Seconds that the others take at least, if every run is as fast as its link allows.
    pub(crate) least: Option<f64>,
    /// Seconds that they take at most, if every run goes on to its cap.
    pub(crate) most: Option<f64>,
    /// Seconds that they take if they are like those so far.
    pub(crate) about: Option<f64>,
}

impl Measured {
    /// Returns what is left of it with so many runs at a time.
    pub(crate) fn outlook(&self, jobs: NonZeroUsize) -> Outlook {
        match self {
            Self::Links(plan, records) => {
                let agenda = Agenda::new(plan, records, None, false);
                let (settled, total) = agenda.settled_of_total();
                let Estimate { least, most } = Estimate::of(plan, &agenda, jobs);
                Outlook { settled, total, least: Some(least), most: Some(most), about: None }
            }
            Self::Codes(plan, records) => codes::outlook(plan, records),
            Self::Simulated(plan, records) => simulated::outlook(plan, records, jobs),
        }
    }
}
