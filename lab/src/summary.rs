//! A summary of a run over an emulated network, for people and as JSON.

use std::fmt;
use std::time::Duration;

use netsim::{LinkStats, PacketCount};
use serde::Serialize;

use crate::emulated::Observation;
use crate::emulator::Scheduling;
use crate::verdict::RunValidity;

/// A run, in plain numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// The link in text form.
    pub link: String,
    /// Whether the run agrees with the model.
    pub valid: bool,
    /// The reasons why not.
    pub faults: Vec<String>,
    /// The links' summaries.
    pub links: Vec<LinkSummary>,
    /// Median lateness of packets, in milliseconds.
    pub late_50_ms: f64,
    /// 99th percentile of the lateness, in milliseconds.
    pub late_99_ms: f64,
    /// Maximum lateness, in milliseconds.
    pub latest_ms: f64,
    /// 99th percentile of the wait before the emulator saw a packet, in milliseconds; zero with stamps of the kernel.
    pub unseen_99_ms: f64,
    /// Maximum wait before the emulator saw a packet, in milliseconds.
    pub unseen_ms: f64,
    /// Share of one processor that the emulator used, 0 to 1.
    pub emulator_cpu: f64,
    /// Whether the emulator's thread had real-time priority.
    pub real_time: bool,
    /// Time from the start of the emulator to its stop, in seconds.
    pub seconds: f64,
}

/// The summary of a link, in packets, except for `offered_bytes` and `delivered_bytes`, which count IP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSummary {
    /// Its name.
    pub name: String,
    /// Packets offered to it.
    pub offered: u64,
    /// The same in bytes.
    pub offered_bytes: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// The same in bytes.
    pub delivered_bytes: u64,
    /// The events of its impairments and limits, by name; those without occurrence are omitted.
    pub events: Vec<(&'static str, u64)>,
}

impl RunSummary {
    /// Creates the summary of a run over a link with this text form.
    pub fn new(link: &str, run: &Observation, verdict: &RunValidity) -> Self {
        let report = &run.report;
        let lateness = report.lateness_of_all();
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let seconds = report.elapsed.as_secs_f64();
        Self {
            link: link.to_owned(),
            valid: verdict.is_valid(),
            faults: verdict.faults.iter().map(ToString::to_string).collect(),
            links: run.links.iter().zip(&report.links).map(|(name, stats)| LinkSummary::new(name, stats)).collect(),
            late_50_ms: millis(lateness.percentile(50)),
            late_99_ms: millis(lateness.percentile(99)),
            latest_ms: millis(lateness.largest()),
            unseen_99_ms: millis(report.unseen.percentile(99)),
            unseen_ms: millis(report.unseen.largest()),
            emulator_cpu: if seconds > 0.0 { report.cpu.as_secs_f64() / seconds } else { 0.0 },
            real_time: report.scheduling == Scheduling::RealTime,
            seconds,
        }
    }
}

impl LinkSummary {
    /// Creates the summary of a link with these counts.
    pub fn new(name: &str, stats: &LinkStats) -> Self {
        let events: [(&str, PacketCount); 10] = [
            ("lost at random", stats.dropped_random),
            ("dropped by the full queue", stats.dropped_queue_full),
            ("dropped by CoDel", stats.dropped_codel),
            ("dropped by the policer", stats.dropped_policed),
            ("dropped while down", stats.dropped_down),
            ("dropped as too large", stats.dropped_too_large),
            ("marked", stats.marked),
            ("reordered", stats.reordered),
            ("duplicated", stats.duplicated),
            ("corrupted", stats.corrupted),
        ];
        Self {
            name: name.to_owned(),
            offered: stats.offered.packets,
            offered_bytes: stats.offered.bytes,
            delivered: stats.delivered.packets,
            delivered_bytes: stats.delivered.bytes,
            events: events
                .into_iter()
                .map(|(name, count)| (name, count.packets))
                .filter(|&(_, packets)| packets > 0)
                .collect(),
        }
    }
}

impl fmt::Display for LinkSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9}: {} packets, {} bytes", self.name, self.offered, self.offered_bytes)?;
        for &(name, packets) in &self.events {
            let share = 100.0 * packets as f64 / self.offered as f64;
            write!(f, ", {packets} {name} ({share:.3} %)")?;
        }
        Ok(())
    }
}

impl fmt::Display for RunSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "link: {}", self.link)?;
        for link in &self.links {
            writeln!(f, "{link}")?;
        }
        writeln!(
            f,
            " emulator: late by {:.3} ms (50 %), {:.3} ms (99 %), {:.3} ms at most; {:.0} % of a processor, {}",
            self.late_50_ms,
            self.late_99_ms,
            self.latest_ms,
            self.emulator_cpu * 100.0,
            if self.real_time { "real-time priority" } else { "no real-time priority (see ulimit -r)" },
        )?;
        if self.unseen_ms > 0.0 {
            writeln!(f, " arrivals: seen within {:.3} ms (99 %), {:.3} ms at most", self.unseen_99_ms, self.unseen_ms)?;
        }
        if self.links.iter().all(|link| link.offered == 0) {
            writeln!(f, "  verdict: none: no packets passed")
        } else if self.valid {
            writeln!(f, "  verdict: valid: the run agrees with the model")
        } else {
            writeln!(f, "  verdict: INVALID: {}", self.faults.join("; "))
        }
    }
}
