//! Segments that are due one after the other, gathered into runs.

use netsim::{Ecn, Time};

use super::packet::Segment;
use super::run::SegmentRun;

/// What is on its way out of an emulator at one host: the last run, which more may join until it is handed over.
#[derive(Debug, Default)]
pub struct Gather {
    run: Option<SegmentRun>,
    /// When each of the run is due.
    due: Vec<Time>,
}

impl Gather {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next segment, due `at`.
    ///
    /// # Errors
    /// The segment again, if it cannot join the run that is open: that is to be handed over and cleared first.
    pub fn push(&mut self, at: Time, segment: Segment, ecn: Ecn, corrupt: Option<u64>) -> Result<(), Segment> {
        match &mut self.run {
            None => self.run = Some(SegmentRun::of(segment, ecn, corrupt)),
            Some(run) => run.extend(segment, ecn, corrupt)?,
        }
        self.due.push(at);
        Ok(())
    }

    /// The open run, and when each of its segments is due.
    pub fn open(&self) -> Option<(&SegmentRun, &[Time])> {
        self.run.as_ref().map(|run| (run, &*self.due))
    }

    /// Forgets the run that was open.
    pub fn clear(&mut self) {
        self.run = None;
        self.due.clear();
    }
}
