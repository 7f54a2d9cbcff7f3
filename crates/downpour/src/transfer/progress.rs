//! The progress of a transfer while it runs.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use transport::ConnectionStats;

use super::bottleneck::Bottleneck;

/// Smoothing time of the displayed goodput.
const SMOOTHING: Duration = Duration::from_secs(2);

/// Maximum remaining time that is predicted. A goodput that leads to more is that of a stalled transfer and predicts
/// nothing.
const FORESEEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// The progress of a transfer, reported about five times a second while there is a connection.
/// Read by other releases: a new field needs a default.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes of files that are done: acknowledged at the sender, written at the receiver, or not wanted.
    pub bytes_done: u64,
    /// Bytes among them that were present before the transfer.
    pub bytes_present: u64,
    /// Bytes not among `bytes_done` that have arrived in blocks which are incomplete, or not written yet.
    #[serde(default)]
    pub bytes_underway: u64,
    /// Bytes of all files known so far.
    pub bytes_known: u64,
    /// Whether `bytes_known` and `files_known` are final; otherwise the sender is still scanning its directories.
    pub total_is_final: bool,
    /// Regular files that are done: published at the receiver; at the sender, those before the bytes that have arrived.
    pub files_done: u64,
    /// All regular files known so far; 0 from a release that does not report it.
    #[serde(default)]
    pub files_known: u64,
    /// Name of the file that is being read or written.
    #[serde(default, with = "crate::base64::name")]
    pub current: Option<Vec<u8>>,
    /// Goodput in bits per second, smoothed over two seconds.
    pub goodput: f64,
    /// Smoothed round-trip time, once measured.
    pub rtt: Option<Duration>,
    /// Share of sent packets that the path loses, as estimated by the sender. The receiver cannot estimate it: it sends
    /// too little, and sees only the packets that arrive.
    pub loss: Option<f64>,
    /// The local bottleneck; a receiver knows only its own processor.
    pub limited_by: Option<Bottleneck>,
    /// Time since the first datagram.
    pub elapsed: Duration,
    /// All counters of the engine; empty for a transfer between two remote hosts.
    #[serde(skip)]
    pub connection: ConnectionStats,
}

impl Progress {
    /// Returns the bytes that are done or have arrived, which grow evenly also where blocks are large.
    #[must_use]
    pub fn bytes_arrived(&self) -> u64 {
        self.bytes_done.saturating_add(self.bytes_underway).min(self.bytes_known.max(self.bytes_done))
    }

    /// Returns the time for the remaining known bytes at this goodput; `None` if almost nothing arrives.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let left = self.bytes_known.saturating_sub(self.bytes_arrived());
        let seconds = left as f64 * 8.0 / self.goodput;
        Duration::try_from_secs_f64(seconds).ok().filter(|left| *left <= FORESEEN)
    }
}

/// Smooths the goodput.
#[derive(Debug)]
pub(super) struct Meter {
    at: Instant,
    bytes: u64,
    goodput: Option<f64>,
}

impl Meter {
    pub(super) const fn new(now: Instant) -> Self {
        Self { at: now, bytes: 0, goodput: None }
    }

    /// Adds the total of bytes that have arrived at `now`; returns the goodput in bits per second. The arrived part of
    /// a block may be dropped: it then counts once.
    pub(super) fn update(&mut self, now: Instant, bytes: u64) -> f64 {
        let bytes = bytes.max(self.bytes);
        let span = now.saturating_duration_since(self.at).as_secs_f64();
        if span > 0.0 {
            let sample = bytes.saturating_sub(self.bytes) as f64 * 8.0 / span;
            let weight = 1.0 - (-span / SMOOTHING.as_secs_f64()).exp();
            self.goodput = Some(self.goodput.map_or(sample, |old| old + (sample - old) * weight));
            (self.at, self.bytes) = (now, bytes);
        }
        self.goodput.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_follows_the_bytes() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        let mut last = 0.0;
        for step in 1..=50 {
            last = meter.update(start + Duration::from_millis(200 * step), step * 250_000);
        }
        assert!((last - 10e6).abs() < 1.0, "{last}");
        for step in 51..=60 {
            last = meter.update(start + Duration::from_millis(200 * step), 50 * 250_000);
        }
        assert!((last - 10e6 * (-1.0f64).exp()).abs() < 1e5, "{last}");
    }

    #[test]
    fn progress_remaining_time_from_arrived_bytes() {
        let mut progress = Progress {
            bytes_done: 1_000,
            bytes_present: 0,
            bytes_underway: 1_000,
            bytes_known: 4_000,
            total_is_final: true,
            files_done: 0,
            files_known: 1,
            current: None,
            goodput: 8_000.0,
            rtt: None,
            loss: None,
            limited_by: None,
            elapsed: Duration::ZERO,
            connection: ConnectionStats::default(),
        };
        assert_eq!((progress.bytes_arrived(), progress.left()), (2_000, Some(Duration::from_secs(2))));
        // Padding, and repair beyond the need.
        progress.bytes_underway = 9_000;
        assert_eq!((progress.bytes_arrived(), progress.left()), (4_000, Some(Duration::ZERO)));
        (progress.bytes_underway, progress.goodput) = (0, 1e-7);
        assert_eq!(progress.left(), None, "the remainder of an average, long after the last byte");
        let text = serde_json::to_string(&Progress { current: Some(b"\xff".to_vec()), ..progress }).unwrap();
        let again: Progress = serde_json::from_str(&text).unwrap();
        assert_eq!(again.current.as_deref(), Some(&b"\xff"[..]));
        let older = text.replace("\"current\":\"/w\",", "").replace("\"files_known\":1,", "");
        assert!(older.len() + 30 < text.len(), "{text}");
        let older: Progress = serde_json::from_str(&older).unwrap();
        assert_eq!((older.current, older.files_known), (None, 0));
    }
}
