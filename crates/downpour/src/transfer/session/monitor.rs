//! Computes progress reports from the counts of a side and the statistics of its connection.

use std::time::{Duration, Instant};

use net::Stats;
use transport::{ConnectionStats, Rate};

use super::strains::Strains;
use crate::transfer::bottleneck::{LoadMonitor, Overload};
use crate::transfer::progress::{Meter, Progress};
use crate::transfer::totals::SideProgress;

/// The data of progress reports.
#[derive(Debug)]
pub(in crate::transfer) struct Monitor {
    /// Counts as last reported.
    counts: SideProgress,
    meter: Meter,
    watch: LoadMonitor,
    overload: Overload,
}

impl Monitor {
    /// Creates the monitor of a session that begins now.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            counts: SideProgress::default(),
            meter: Meter::new(now),
            watch: LoadMonitor::new(now),
            overload: Overload::default(),
        }
    }

    /// Takes the counts of a side.
    pub(super) fn on_counts(&mut self, counts: SideProgress) {
        self.counts = counts;
    }

    /// Returns the bytes of files that the target had before, as last reported.
    pub(super) const fn bytes_present(&self) -> u64 {
        self.counts.bytes_present
    }

    /// Returns a new note to the user about the fixed rate, if there is one.
    pub(super) fn note(&mut self, fixed: Option<Rate>, stats: &ConnectionStats) -> Option<String> {
        self.overload.note(fixed, stats)
    }

    /// Returns the progress of a transfer that has taken `elapsed` so far; `sends`: this side sends the files.
    pub(super) fn progress(
        &mut self,
        now: Instant,
        stats: &Stats,
        strains: &Strains,
        sends: bool,
        elapsed: Duration,
    ) -> Progress {
        let counts = &self.counts;
        let goodput = self.meter.update(now, counts.bytes_done + counts.bytes_underway);
        let (ours, theirs) = strains.of_both();
        let limited_by = self.watch.bottleneck(now, stats, ours, theirs);
        let mut connection = stats.connection;
        if !sends {
            // A receiver's few packets do not measure the path.
            connection.congestion.controller = None;
        }
        Progress {
            bytes_done: counts.bytes_done + counts.bytes_present,
            bytes_present: counts.bytes_present,
            bytes_underway: counts.bytes_underway,
            bytes_known: counts.bytes_known,
            total_is_final: counts.total_is_final,
            files_done: counts.files_done,
            files_known: counts.files_known,
            current: counts.current.clone(),
            goodput,
            rtt: stats.connection.path.rtt,
            loss: sends.then_some(stats.connection.path.loss),
            limited_by,
            elapsed,
            connection,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_present_bytes_without_goodput() {
        let start = Instant::now();
        let mut monitor = Monitor::new(start);
        monitor.on_counts(SideProgress {
            bytes_done: 1_000,
            bytes_present: 5_000,
            bytes_underway: 250,
            ..SideProgress::default()
        });
        let second = Duration::from_secs(1);
        let mut progress =
            |sends| monitor.progress(start + second, &Stats::default(), &Strains::default(), sends, second);
        let received = progress(false);
        assert_eq!((received.bytes_done, received.bytes_arrived(), received.loss), (6_000, 6_000, None));
        assert!((received.goodput - 10_000.0).abs() < 1e-6, "{}", received.goodput);
        assert_eq!(progress(true).loss, Some(0.0));
    }
}
