//! Feedback that the peer or the path has withheld and then delivers at once: the window has to cover the time between.

use crate::recovery::report::Report;
use std::collections::VecDeque;
use std::time::Duration;

/// Rounds for which it is remembered.
const ROUNDS: u64 = 10;
/// Reports of no more packets than this are usual at any rate.
const FEW: usize = 8;

/// How much more than its rate feedback delivers at once.
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    round: u64,
    /// Bytes beyond the average rate, with their rounds; the largest of the last rounds is first.
    excesses: VecDeque<(u64, f64)>,
}

impl Aggregation {
    /// Forgets excesses that are ten rounds old in this round.
    pub(super) fn forget(&mut self, round: u64) {
        self.round = round;
        while self.excesses.front().is_some_and(|(then, _)| then + ROUNDS <= round) {
            self.excesses.pop_front();
        }
    }

    /// Learns from a report received `since` the last one, while `average` bytes per second were delivered.
    pub(super) fn on_report(
        &mut self,
        report: &Report<'_>,
        since: Duration,
        smoothed: Duration,
        average: f64,
        window: f64,
    ) {
        let usual = (smoothed / 32).max(Duration::from_millis(1));
        if report.delivered.len() <= FEW || since <= usual * 2 {
            return;
        }
        let expected = average * since.min(smoothed).as_secs_f64();
        let excess = (report.delivered_bytes as f64 - expected).clamp(0.0, window);
        while self.excesses.back().is_some_and(|(_, other)| *other <= excess) {
            self.excesses.pop_back();
        }
        self.excesses.push_back((self.round, excess));
    }

    /// Returns the bytes that the window needs beyond the capacity of the path.
    pub(super) fn bytes(&self) -> f64 {
        self.excesses.front().map_or(0.0, |(_, excess)| *excess)
    }
}
