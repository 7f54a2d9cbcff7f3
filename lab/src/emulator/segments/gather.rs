//! Gathers consecutive due segments into runs.

use netsim::{Ecn, Time};

use super::packet::Segment;
use super::run::SegmentRun;

/// The last run of segments from an emulator to one host, which further segments may join until it is delivered.
#[derive(Debug, Default)]
pub struct Gather {
    run: Option<SegmentRun>,
    /// When each segment of the run is due.
    due: Vec<Time>,
}

impl Gather {
    /// Creates an empty gatherer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next segment, due `at`.
    ///
    /// # Errors
    /// The segment again, if it cannot join the open run, which must be delivered and cleared first.
    pub fn push(&mut self, at: Time, segment: Segment, ecn: Ecn, corrupt: Option<u64>) -> Result<(), Segment> {
        match &mut self.run {
            None => self.run = Some(SegmentRun::of(segment, ecn, corrupt)),
            Some(run) => run.extend(segment, ecn, corrupt)?,
        }
        self.due.push(at);
        Ok(())
    }

    /// Returns the open run, and when each of its segments is due.
    pub fn open(&self) -> Option<(&SegmentRun, &[Time])> {
        self.run.as_ref().map(|run| (run, &*self.due))
    }

    /// Drops the open run.
    pub fn clear(&mut self) {
        self.run = None;
        self.due.clear();
    }
}
