//! Round trips, as controllers count them.

use crate::recovery::report::Report;
use crate::time::Time;

/// Counts round trips: one ends with the acknowledgement of a packet sent after it began (draft-ietf-ccwg-bbr section
/// 5.5.1).
#[derive(Debug, Default)]
pub(super) struct Rounds {
    start: Time,
    pub(super) count: u64,
    /// The current report ends one.
    pub(super) ended: bool,
}

impl Rounds {
    /// Begins another one.
    pub(super) const fn begin(&mut self, now: Time) {
        self.start = now;
    }

    pub(super) fn on_report(&mut self, report: &Report<'_>) {
        self.ended = report.delivered.last().is_some_and(|sent| sent.time >= self.start);
        if self.ended {
            self.count += 1;
            self.begin(report.now);
        }
    }
}
