//! One connection, from its trace.

use std::collections::VecDeque;

use super::blocks::{FlowView, Flows};
use super::course::Course;
use super::record::{Data, Record};
use super::words;

/// A quantity drawn over time.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Its name, that of the trace if possible.
    pub(crate) key: &'static str,
    /// Its title with the unit in which it is drawn.
    pub(crate) title: &'static str,
    /// The factor from the trace's unit to that one.
    pub(crate) unit: f64,
}

const fn measured(key: &'static str, title: &'static str, unit: f64) -> Measured {
    Measured { key, title, unit }
}

/// The quantities, in the order of the panels.
pub(crate) const MEASURED: [Measured; 10] = [
    measured("delivered_rate", "Delivered, acknowledged to the sender, Mbit/s", 1e-6),
    measured("pacing_rate", "Pacing rate, Mbit/s", 1e-6),
    measured("congestion_window", "Congestion window, kB", 1e-3),
    measured("bytes_in_flight", "In flight, kB", 1e-3),
    measured("loss", "Loss estimate, %", 100.0),
    measured("redundancy", "Overhead, % of the source symbols", 100.0),
    measured("smoothed_rtt", "Round-trip time, smoothed, ms", 1.0),
    measured("latest_rtt", "Round-trip time, latest, ms", 1.0),
    measured("queue_delay", "Queueing delay (latest RTT minus least), ms", 1.0),
    measured("open_blocks", "Open blocks", 1.0),
];

/// The shortest time over which a rate is taken, in seconds; a round trip if that is longer.
const RATE_SPAN: f64 = 0.1;
/// The most reports over which a rate is taken.
const MOST_REPORTS: usize = 4096;
/// The most stored changes of the controller's state.
const MOST_CHANGES: usize = 50;

/// The data of a connection.
#[derive(Debug)]
pub(crate) struct TracedConnection {
    course: Course<{ MEASURED.len() }>,
    last: [Option<f64>; MEASURED.len()],
    arrivals: Arrivals,
    flows: Flows,
    controller: Option<String>,
    limit: Option<String>,
    doing: Option<String>,
    progress: Option<Progress>,
    changes: VecDeque<(f64, String)>,
    seconds: f64,
    /// Packets of data and others, as counted in the trace.
    sent: u64,
    received: u64,
    lost: u64,
    is_closed: bool,
}

impl TracedConnection {
    /// Creates one whose course has at most this number of buckets.
    pub(super) fn new(buckets: usize) -> Self {
        Self {
            course: Course::new(buckets),
            last: [None; MEASURED.len()],
            arrivals: Arrivals::default(),
            flows: Flows::default(),
            controller: None,
            limit: None,
            doing: None,
            progress: None,
            changes: VecDeque::new(),
            seconds: 0.0,
            sent: 0,
            received: 0,
            lost: 0,
            is_closed: false,
        }
    }

    /// Handles an event.
    pub(super) fn event(&mut self, record: &Record<'_>) {
        let (Some(name), Some(time)) = (record.name, record.time) else { return };
        let (time, data) = (time * 1e-3, &record.data);
        self.seconds = self.seconds.max(time);
        match name {
            "recovery:metrics_updated" => self.metrics(time, data),
            "recovery:congestion_state_updated" => self.change(time, data),
            "recovery:packet_lost" => self.lost += 1,
            "recovery:spurious_loss" => self.lost = self.lost.saturating_sub(1),
            "downpour:packet_sent" | "downpour:packet_received" => {
                let is_received = name == "downpour:packet_received";
                *(if is_received { &mut self.received } else { &mut self.sent }) += 1;
                if let Some(symbol) = data.symbol {
                    self.flows.symbols(symbol, is_received);
                }
            }
            "downpour:connection_closed" => self.is_closed = true,
            "downpour:progress" => self.progress(data),
            _ => self.flow(name, data),
        }
    }

    fn flow(&mut self, name: &str, data: &Data<'_>) {
        let Some(flow) = data.flow else { return };
        match (name, data.block) {
            ("downpour:flow_opened", _) => self.flows.open(flow, data.length, false),
            ("downpour:stream_opened", _) => self.flows.open(flow, None, false),
            ("downpour:flow_announced", _) => self.flows.open(flow, data.length, true),
            ("downpour:block_acknowledged", Some(block)) => self.flows.done(flow, block, false),
            ("downpour:block_stored", Some(block)) => self.flows.done(flow, block, true),
            ("downpour:flow_sent", _) => self.flows.over(flow, false),
            ("downpour:flow_received", _) => self.flows.over(flow, true),
            _ => {}
        }
    }

    fn metrics(&mut self, time: f64, data: &Data<'_>) {
        let rate = self.arrivals.rate(time, data);
        self.last = [
            rate,
            data.pacing_rate,
            data.congestion_window,
            data.bytes_in_flight,
            data.loss,
            data.redundancy,
            data.smoothed_rtt,
            data.latest_rtt,
            data.queue_delay,
            data.open_blocks,
        ];
        self.course.push(time, self.last);
        keep(&mut self.controller, data.congestion_control, words::shortened);
        // A program that reports its progress knows more than its engine.
        if self.progress.is_none() {
            keep(&mut self.limit, data.limited_by, words::limit);
        }
    }

    fn progress(&mut self, data: &Data<'_>) {
        let (Some(bytes), Some(known_bytes)) = (data.bytes, data.known_bytes) else { return };
        let (files, known_files) = (data.files.unwrap_or_default(), data.known_files.unwrap_or_default());
        let is_all = data.known_is_all == Some(true);
        self.progress = Some(Progress { bytes, known_bytes, files, known_files, is_all, left: data.left });
        self.limit = data.limited_by.map(words::bottleneck);
    }

    fn change(&mut self, time: f64, data: &Data<'_>) {
        let Some(new) = data.new else { return };
        self.doing = Some(words::action(new));
        if self.changes.len() == MOST_CHANGES {
            self.changes.pop_front();
        }
        self.changes.push_back((time, words::state(new, data.constraint.unwrap_or_default())));
    }

    pub(crate) fn course(&self) -> &Course<{ MEASURED.len() }> {
        &self.course
    }

    /// Returns the values of the last moment, in the units of the trace.
    pub(crate) fn last(&self) -> [Option<f64>; MEASURED.len()] {
        self.last
    }

    /// Returns the time of the last event, in seconds since the trace began.
    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Returns the packets sent, received, and lost.
    pub(crate) fn packets(&self) -> [u64; 3] {
        [self.sent, self.received, self.lost]
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns the controller's name.
    pub(crate) fn controller(&self) -> Option<&str> {
        self.controller.as_deref()
    }

    /// Returns the bottleneck of the sender, in words.
    pub(crate) fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    /// Returns the action of the controller, in words.
    pub(crate) fn doing(&self) -> Option<&str> {
        self.doing.as_deref()
    }

    /// Returns the progress of the transfer, if its program reported it.
    pub(crate) fn reported_progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }

    /// Returns the last changes of the controller: the time in seconds, and the action in words.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &(f64, String)> {
        self.changes.iter()
    }

    pub(crate) fn flows(&self) -> Vec<FlowView> {
        self.flows.views()
    }
}

/// The progress of a transfer, as last reported by its program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Progress {
    bytes: f64,
    known_bytes: f64,
    files: f64,
    known_files: f64,
    /// Whether further files may become known.
    is_all: bool,
    /// Seconds.
    left: Option<f64>,
}

impl Progress {
    /// Returns the percentage of the known bytes that have arrived.
    pub(crate) fn percent(&self) -> f64 {
        (self.bytes / self.known_bytes.max(1.0) * 100.0).floor().clamp(0.0, 100.0)
    }

    /// Formats `42 %, 1.82 GB of 4.23 GB, 12 of 31 files, 24 s left`.
    pub(crate) fn words(&self) -> String {
        let more = if self.is_all { "" } else { "+" };
        let bytes = [self.bytes, self.known_bytes].map(|bytes| units::bytes(bytes as u64));
        let mut words = format!("{} %, {} of {}{more}", self.percent(), bytes[0], bytes[1]);
        if self.known_files > 1.0 || !self.is_all {
            words += &format!(", {:.0} of {:.0}{more} files", self.files, self.known_files);
        }
        match self.left.map(f64::ceil) {
            Some(left) if left < 100.0 => words += &format!(", {left:.0} s left"),
            Some(left) => words += &format!(", {} left", units::seconds(left)),
            None => {}
        }
        words
    }
}

/// Replaces a text if it has changed.
fn keep(kept: &mut Option<String>, name: Option<&str>, words: impl Fn(&str) -> String) {
    if let Some(name) = name {
        let new = words(name);
        if kept.as_ref() != Some(&new) {
            *kept = Some(new);
        }
    }
}

/// The bytes acknowledged to the sender in the last round trip.
#[derive(Debug, Default)]
struct Arrivals {
    /// Times and bytes.
    reports: VecDeque<(f64, f64)>,
    /// The sum of these bytes.
    bytes: f64,
    /// The time of the report before these.
    since: f64,
}

impl Arrivals {
    /// Returns the rate in bits per second.
    fn rate(&mut self, time: f64, data: &Data<'_>) -> Option<f64> {
        let bytes = data.delivered?;
        let span = data.smoothed_rtt.map_or(RATE_SPAN, |rtt| RATE_SPAN.max(rtt * 1e-3));
        self.reports.push_back((time, bytes));
        self.bytes += bytes;
        while let Some(&(first, bytes)) = self.reports.front()
            && self.reports.len() > 1
            && (first <= time - span || self.reports.len() > MOST_REPORTS)
        {
            self.reports.pop_front();
            self.bytes -= bytes;
            self.since = first;
        }
        (time > self.since).then(|| self.bytes * 8.0 / (time - self.since))
    }
}
