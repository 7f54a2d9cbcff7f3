//! At most one reduction per round trip (RFC 9002 section 7.3.2).

use super::PathView;
use crate::recovery::report::Report;
use crate::time::Time;

/// The recovery period that a reduction starts: losses and marks of packets sent before it do not cause another
/// reduction. It ends with the first acknowledgement of a packet sent later, when the window may grow again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryPeriod {
    start: Option<Time>,
}

/// A report's signals of congestion for packets sent after the last reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congestion {
    /// One of them was lost.
    pub lost: bool,
    /// One of them was marked CE.
    pub marked: bool,
}

impl RecoveryPeriod {
    /// Begins a recovery period: the controller reduces its window.
    pub const fn begin(&mut self, now: Time) {
        self.start = Some(now);
    }

    /// Clears the period: the last reduction was undone.
    pub const fn clear(&mut self) {
        self.start = None;
    }

    /// Returns when the last reduction was.
    pub const fn start(&self) -> Option<Time> {
        self.start
    }

    /// Returns whether a packet sent at `sent` was sent after the last reduction.
    pub fn is_new(&self, sent: Time) -> bool {
        self.start.is_none_or(|start| sent > start)
    }

    /// Returns whether `report` calls for a reduction, and why.
    pub fn congestion(&self, report: &Report<'_>, path: &PathView<'_>) -> Congestion {
        let lost = report.lost.last().is_some_and(|sent| self.is_new(sent.time));
        // Feedback with marks that names no packet concerns packets sent a round trip ago.
        let round_trip_ago = report.now - path.rtt.smoothed();
        let marked_time = report.delivered.last().map_or(round_trip_ago, |sent| sent.time);
        Congestion { lost, marked: report.newly_marked > 0 && self.is_new(marked_time) }
    }

    /// Returns the IP bytes delivered of packets sent after the last reduction, by which a window grows.
    pub fn acknowledged(&self, report: &Report<'_>) -> u64 {
        let first = report.delivered.partition_point(|sent| !self.is_new(sent.time));
        report.delivered[first..].iter().map(|sent| u64::from(sent.bytes)).sum()
    }
}
