//! The counters of one end of a probe, and what both ends' counters say about the path.

use std::time::{Duration, Instant};

use net::{Thread, ThreadTime};
use serde::{Deserialize, Serialize};
use transport::{ConnectionStats, LimitedBy};

/// Interval between two samples of a connection.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Maximum number of samples kept: more than are ever taken.
const MAX_LOOKS: usize = 4096;

/// Bytes of a source symbol's packet in addition to the symbol.
const SYMBOL_OVERHEAD: usize = transport::wire::SYMBOL_OVERHEAD;

/// One end's counters, as sent over the connection that they describe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Microseconds of the second half of the probe, when the controller has found its rate...
    half_micros: u64,
    /// ... and IP bytes received in it.
    half_received: u64,
    packets_sent: u64,
    packets_lost: u64,
    packets_received: u64,
    surplus_symbols: u64,
    marked: u64,
    ecn: Option<bool>,
    datagram: usize,
    rtt_micros: Option<u64>,
    limited_by: LimitedBy,
    running_micros: Option<u64>,
    waiting_micros: Option<u64>,
    micros: u64,
}

/// Measured traffic in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// IP bits per second that arrived in the second half of the probe.
    pub rate_bits_per_second: u64,
    /// The corresponding bytes of files per second.
    pub goodput: u64,
    /// Share of packets lost during the whole probe.
    pub loss: f64,
    /// Share of packets marked for congestion (CE).
    pub marked: f64,
    /// Whether the path preserves ECN marks, if known.
    pub ecn: Option<bool>,
    /// Smoothed round-trip time at the end in seconds, including queues filled by the probe.
    pub loaded_rtt: Option<f64>,
    /// What limited the sender most of the time.
    pub limited_by: LimitedBy,
    /// The network thread of the sender.
    pub sender: Option<ThreadShare>,
    /// The network thread of the receiver.
    pub receiver: Option<ThreadShare>,
}

/// A thread's shares of a core's time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadShare {
    /// Time it ran.
    pub running: f64,
    /// Time it was ready to run, but other work had every core.
    pub waiting: f64,
}

/// Samples one end of a probe while it runs.
pub(super) struct Meter {
    began: Instant,
    /// The driver's thread.
    thread: Thread,
    before: Option<ThreadTime>,
    /// Times, and IP bytes received until then.
    looks: Vec<(Instant, u64)>,
    last: ConnectionStats,
    /// How often each limit was found.
    limits: [(LimitedBy, u32); 5],
}

impl Meter {
    /// Starts at the beginning of a probe.
    pub(super) fn new(thread: Thread) -> Self {
        use LimitedBy::{Nothing, Pacing, Receiver, Source, Window};
        Self {
            began: Instant::now(),
            before: thread.time(),
            thread,
            looks: Vec::new(),
            last: ConnectionStats::default(),
            limits: [Window, Pacing, Source, Receiver, Nothing].map(|limit| (limit, 0)),
        }
    }

    /// Returns a new meter that starts now.
    pub(super) fn again(&self) -> Self {
        Self::new(self.thread.clone())
    }

    pub(super) fn look(&mut self, stats: ConnectionStats) {
        if self.looks.len() < MAX_LOOKS {
            self.looks.push((Instant::now(), stats.bytes_received));
        }
        if let Some((_, times)) = self.limits.iter_mut().find(|(limit, _)| *limit == stats.limited_by) {
            *times += 1;
        }
        self.last = stats;
    }

    /// Returns the last sample.
    pub(super) fn last(&self) -> Option<ConnectionStats> {
        self.looks.last().map(|_| self.last)
    }

    /// Returns the counters so far.
    pub(super) fn counts(&self) -> Counts {
        let last = &self.last;
        let (half_micros, half_received) = self.second_half();
        let now = self.thread.time();
        let share = |of: fn(ThreadTime) -> Duration| Some(micros(of(now?).saturating_sub(of(self.before?))));
        // Of limits found equally often, the first in the list explains most.
        let most = self.limits.iter().rev().max_by_key(|(_, times)| *times);
        Counts {
            half_micros,
            half_received,
            packets_sent: last.packets_sent,
            packets_lost: last.packets_lost,
            packets_received: last.packets_received,
            surplus_symbols: last.surplus_symbols,
            marked: last.marked,
            ecn: last.ecn,
            datagram: last.datagram,
            rtt_micros: last.rtt.map(micros),
            limited_by: most.map_or(LimitedBy::Nothing, |(limit, _)| *limit),
            running_micros: share(|time| time.running),
            waiting_micros: share(|time| time.waiting),
            micros: micros(self.began.elapsed()),
        }
    }

    fn second_half(&self) -> (u64, u64) {
        let Some(&(end, total)) = self.looks.last() else { return (0, 0) };
        let middle = self.began + end.saturating_duration_since(self.began) / 2;
        let (from, before) = self.looks.iter().copied().find(|(at, _)| *at >= middle).unwrap_or((end, total));
        (micros(end.saturating_duration_since(from)), total.saturating_sub(before))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

impl Counts {
    fn thread(&self) -> Option<ThreadShare> {
        let (running, waiting) = (self.running_micros?, self.waiting_micros?);
        Some(ThreadShare { running: share(running, self.micros), waiting: share(waiting, self.micros) })
    }
}

impl Traffic {
    /// Computes the traffic from both ends' counters; `headers` is what IP and UDP add to a datagram.
    pub(super) fn of(sender: &Counts, receiver: &Counts, headers: usize) -> Self {
        let seconds = receiver.half_micros as f64 / 1e6;
        let bytes = if seconds > 0.0 { receiver.half_received as f64 / seconds } else { 0.0 };
        let datagram = sender.datagram.clamp(SYMBOL_OVERHEAD, 1 << 16);
        let useful = (datagram - SYMBOL_OVERHEAD) as f64 / (datagram + headers) as f64
            * (1.0 - share(receiver.surplus_symbols, receiver.packets_received));
        Self {
            rate_bits_per_second: (bytes * 8.0) as u64,
            goodput: (bytes * useful) as u64,
            loss: share(sender.packets_lost, sender.packets_sent),
            marked: share(sender.marked, sender.packets_sent),
            ecn: sender.ecn,
            loaded_rtt: sender.rtt_micros.map(|micros| micros as f64 / 1e6),
            limited_by: sender.limited_by,
            sender: sender.thread(),
            receiver: receiver.thread(),
        }
    }
}
