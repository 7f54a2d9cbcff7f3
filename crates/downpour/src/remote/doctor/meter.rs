//! The counters of one side of a probe, and their evaluation.

use std::time::{Duration, Instant};

use net::{ThreadClock, ThreadTime};
use serde::{Deserialize, Serialize};
use transport::congestion::CongestionConfig;
use transport::{ConnectionStats, SendLimit};

/// Interval between two samples of a connection.
pub(super) const TICK: Duration = Duration::from_millis(50);

/// Maximum number of samples kept: more than are ever taken.
const MAX_LOOKS: usize = 4096;

/// Bytes of a source symbol's packet in addition to the symbol.
const SYMBOL_OVERHEAD: usize = transport::wire::SYMBOL_OVERHEAD;

/// A rate in IP bits per second that no path has: remote figures beyond it are not believed.
const MAX_RATE: f64 = 1e14;

/// Bytes that arrive are at most this many times those sent at the same time: a queue may have existed before.
const MOST_ARRIVING: f64 = 1.5;

/// Counters of one side, sent over the connection that they describe. Those that an earlier release lacks are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ProbeCounters {
    /// Microseconds of the second half of the probe, when the controller has found its rate...
    half_micros: u64,
    /// ... and IP bytes received in it, ...
    half_received: u64,
    /// ... IP bytes and packets sent, and packets declared lost.
    half_bytes_sent: u64,
    half_packets_sent: u64,
    half_packets_lost: u64,
    bytes_sent: u64,
    bytes_received: u64,
    packets_sent: u64,
    packets_lost: u64,
    packets_received: u64,
    surplus_symbols: u64,
    marked: u64,
    ecn: Option<bool>,
    datagram: usize,
    rtt_micros: Option<u64>,
    limited_by: SendLimit,
    running_micros: Option<u64>,
    waiting_micros: Option<u64>,
    micros: u64,
}

/// Measured traffic of one direction. The receiver counts arrivals, the sender losses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// The congestion controller, or `fixed-rate`.
    pub control: String,
    /// The fixed rate in IP bits per second.
    pub set_bits_per_second: Option<u64>,
    /// IP bits per second sent in the second half of the probe; `None` if the peer did not report it.
    pub sent_bits_per_second: Option<u64>,
    /// IP bits per second that arrived in the second half of the probe: the rate of `control`, which may be less than
    /// the capacity.
    pub rate_bits_per_second: u64,
    /// The corresponding goodput in bytes of files per second.
    pub goodput: u64,
    /// Share of packets lost in the second half of the probe...
    pub loss: f64,
    /// ... of this many.
    pub packets: u64,
    /// Share of packets marked for congestion (CE).
    pub marked: f64,
    /// Whether the path preserves ECN marks, if known.
    pub ecn: Option<bool>,
    /// Smoothed round-trip time at the end in seconds, including queues filled by the probe.
    pub loaded_rtt: Option<f64>,
    /// The most frequent limit of the sender.
    pub limited_by: SendLimit,
    /// The network thread of the sender.
    pub sender: Option<ThreadShare>,
    /// The network thread of the receiver.
    pub receiver: Option<ThreadShare>,
    /// IP bytes sent during the whole probe; the bytes that arrived if an earlier release sent them.
    pub bytes_sent: u64,
}

/// A thread's shares of a core's time, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ThreadShare {
    /// Time it ran.
    pub running: f64,
    /// Time it was ready to run, but other work had every core.
    pub waiting: f64,
}

/// The counters of one side at one time.
#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    bytes_received: u64,
    bytes_sent: u64,
    packets_sent: u64,
    packets_lost: u64,
}

/// Samples one side of a probe while it runs.
pub(super) struct Meter {
    began: Instant,
    /// The driver's thread.
    thread: ThreadClock,
    before: Option<ThreadTime>,
    looks: Vec<Look>,
    last: ConnectionStats,
    /// How often each limit was sampled.
    limits: [(SendLimit, u32); 5],
}

impl Meter {
    /// Starts at the beginning of a probe.
    pub(super) fn new(thread: ThreadClock) -> Self {
        use SendLimit::{Nothing, Pacing, Receiver, Source, Window};
        Self {
            began: runtime::now(),
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
            self.looks.push(Look {
                at: runtime::now(),
                bytes_received: stats.packets.bytes_received,
                bytes_sent: stats.packets.bytes_sent,
                packets_sent: stats.packets.sent,
                packets_lost: stats.packets.lost,
            });
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
    pub(super) fn counts(&self) -> ProbeCounters {
        let last = &self.last;
        let (from, to) = self.second_half();
        let half = |of: fn(Look) -> u64| to.map_or(0, of).saturating_sub(from.map_or(0, of));
        let half_time = from.zip(to).map(|(from, to)| to.at.saturating_duration_since(from.at));
        let now = self.thread.time();
        let share = |of: fn(ThreadTime) -> Duration| Some(micros(of(now?).saturating_sub(of(self.before?))));
        // Of limits sampled equally often, the first in the list explains most.
        let most = self.limits.iter().rev().max_by_key(|(_, times)| *times);
        ProbeCounters {
            half_micros: half_time.map_or(0, micros),
            half_received: half(|look| look.bytes_received),
            half_bytes_sent: half(|look| look.bytes_sent),
            half_packets_sent: half(|look| look.packets_sent),
            half_packets_lost: half(|look| look.packets_lost),
            bytes_sent: last.packets.bytes_sent,
            bytes_received: last.packets.bytes_received,
            packets_sent: last.packets.sent,
            packets_lost: last.packets.lost,
            packets_received: last.packets.received,
            surplus_symbols: last.symbols.surplus,
            marked: last.packets.marked,
            ecn: last.path.ecn,
            datagram: last.path.datagram,
            rtt_micros: last.path.rtt.map(micros),
            limited_by: most.map_or(SendLimit::Nothing, |(limit, _)| *limit),
            running_micros: share(|time| time.running),
            waiting_micros: share(|time| time.waiting),
            micros: micros(runtime::since(self.began)),
        }
    }

    /// Returns the first and the last sample of the second half.
    fn second_half(&self) -> (Option<Look>, Option<Look>) {
        let last = self.looks.last().copied();
        let middle = last.map(|last| self.began + last.at.saturating_duration_since(self.began) / 2);
        (self.looks.iter().copied().find(|look| middle.is_some_and(|middle| look.at >= middle)), last)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64).clamp(0.0, 1.0) }
}

impl ProbeCounters {
    fn thread(&self) -> Option<ThreadShare> {
        let (running, waiting) = (self.running_micros?, self.waiting_micros?);
        Some(ThreadShare { running: share(running, self.micros), waiting: share(waiting, self.micros) })
    }

    /// Returns the bits per second of this many bytes in the second half.
    fn rate(&self, bytes: u64) -> f64 {
        if self.half_micros == 0 { 0.0 } else { (bytes as f64 * 8e6 / self.half_micros as f64).min(MAX_RATE) }
    }

    /// Returns the share of packets lost in the second half, or in the whole probe if that is unknown.
    fn loss(&self) -> f64 {
        let lost = if self.half_packets_sent == 0 { self.packets_lost } else { self.half_packets_lost };
        share(lost, self.judged())
    }

    fn judged(&self) -> u64 {
        if self.half_packets_sent == 0 { self.packets_sent } else { self.half_packets_sent }
    }
}

impl Traffic {
    /// Computes the traffic from the counters of both sides; `headers` are the bytes that IP and UDP add to a datagram.
    /// One side is remote: with any counters, no rate exceeds that of possible paths, and no more arrives than was
    /// sent.
    pub(super) fn of(
        control: &CongestionConfig,
        sender: &ProbeCounters,
        receiver: &ProbeCounters,
        headers: usize,
    ) -> Self {
        let sent = sender.rate(sender.half_bytes_sent);
        let most = if sent > 0.0 { MOST_ARRIVING * sent } else { MAX_RATE };
        let arrived = receiver.rate(receiver.half_received).min(most);
        let datagram = sender.datagram.clamp(SYMBOL_OVERHEAD, 1 << 16);
        let useful = (datagram - SYMBOL_OVERHEAD) as f64 / (datagram + headers) as f64
            * (1.0 - share(receiver.surplus_symbols, receiver.packets_received));
        Self {
            control: control.to_string().split(':').next().unwrap_or_default().to_owned(),
            set_bits_per_second: match control {
                CongestionConfig::FixedRate(config) => Some(config.rate.bits_per_second()),
                _ => None,
            },
            sent_bits_per_second: (sent > 0.0).then_some(sent as u64),
            rate_bits_per_second: arrived as u64,
            goodput: (arrived / 8.0 * useful) as u64,
            loss: sender.loss(),
            packets: sender.judged(),
            marked: share(sender.marked, sender.packets_sent),
            ecn: sender.ecn,
            loaded_rtt: sender.rtt_micros.map(|micros| micros as f64 / 1e6),
            limited_by: sender.limited_by,
            sender: sender.thread(),
            receiver: receiver.thread(),
            bytes_sent: if sender.bytes_sent == 0 { receiver.bytes_received } else { sender.bytes_sent },
        }
    }
}
