//! The remaining work of a plan.

use std::num::NonZeroUsize;

use super::Measured;
use crate::codes;
use crate::runner::{Agenda, Estimate};
use crate::simulated;

/// The finished part of a plan, and the time for the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outlook {
    /// Cases that need no further run.
    pub(crate) settled: usize,
    /// All cases.
    pub(crate) total: usize,
    /// The least seconds for the others, if every run is as fast as its link allows.
    pub(crate) least: Option<f64>,
    /// The most seconds for them, if every run lasts to its cap.
    pub(crate) most: Option<f64>,
    /// The seconds for them if they are like those so far.
    pub(crate) about: Option<f64>,
}

impl Measured {
    /// Returns its remaining work with this number of parallel runs.
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
