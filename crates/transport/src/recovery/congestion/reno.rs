//! Reno and NewReno, as the arq document and RFC 5681 and 6582 have them. Which loss is found when is loss detection's: one reduction
//! for all losses of a window is NewReno.

use super::highspeed;
use super::period::{Congestion, RecoveryPeriod};
use super::{CongestionControl, MIN_PACKETS, PathView};
use crate::recovery::report::{Cause, Report};
use crate::settings::{BitRate, Count, Form, Itself, Number, Or, Setting, Settings, field};
use crate::time::{Rate, Time};
use std::fmt;
use std::str::FromStr;

/// Numbers of Reno. They stand as the arq document has them (§3.1); RFC 5681 and 6928 are `initial=10,threshold=none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoConfig {
    /// cwnd at first, in packets: 1 (arq §3.1).
    pub initial: u32,
    /// ssthresh at first, in packets: 64 (arq §3.1); none: until the first loss.
    pub threshold: Option<u32>,
    /// What a congestion event leaves of the window: 0.5 (arq §3.1, RFC 5681 section 3.1).
    pub beta: f64,
    /// By how many packets the window is inflated when a loss begins fast recovery: 3, for three duplicate acknowledgements (arq §3.1, RFC 5681
    /// section 3.2). 0 where feedback names what has arrived beyond a gap: those packets are out of the flight already. A mark inflates
    /// nothing, for nothing has left the path that is not named.
    pub inflation: u32,
    /// What the window falls for.
    pub signal: Signal,
    /// What the window never passes.
    pub limit: WindowLimit,
}

impl Default for RenoConfig {
    fn default() -> Self {
        let (signal, limit) = (Signal::Loss, WindowLimit::None);
        Self { initial: 1, threshold: Some(64), beta: 0.5, inflation: 3, signal, limit }
    }
}

impl Settings for RenoConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("initial", initial, Count(1, 1000)),
        field!("threshold", threshold, Or("none", Count(2, 1_000_000))),
        field!("beta", beta, Number(0.1, 0.95)),
        field!("inflation", inflation, Count(0, 100)),
        field!("signal", signal, Itself("loss or ecn")),
        field!("limit", limit, Itself("none, a number of packets, or told: and a rate")),
    ];
}

/// What a window falls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Loss, and CE marks, which count like a loss (RFC 3168 section 6.1.2).
    Loss,
    /// CE marks alone: neither loss nor a timeout (lt-tcp §1.1, §3.5). The document wants ECN deployed (§1.1), and nothing else would
    /// govern the window: where the path fails ECN's validation it is loss, as on any path without ECN (RFC 9000 section 13.4.2.2), until a later
    /// test succeeds. A path that passes the marks of hosts and makes none of its own looks like one without congestion: the window
    /// grows there without end.
    Ecn,
}

/// A window that is never passed, beside the one that is controlled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLimit {
    /// There is none.
    None,
    /// So many packets: TTP's NewReno has a receive window of 20 (ttp §III-A).
    Packets(u32),
    /// Dynamic right-sizing: the product of a given rate and the smallest round-trip time (ttp §III-A).
    Told(Rate),
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "loss",
            Self::Ecn => "ecn",
        })
    }
}

impl FromStr for Signal {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "loss" => Ok(Self::Loss),
            "ecn" => Ok(Self::Ecn),
            _ => Err(()),
        }
    }
}

impl fmt::Display for WindowLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Packets(packets) => packets.fmt(f),
            Self::Told(rate) => write!(f, "told:{}", BitRate.print(rate)),
        }
    }
}

impl FromStr for WindowLimit {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text == "none" {
            return Ok(Self::None);
        }
        if let Some(rate) = text.strip_prefix("told:") {
            return BitRate.parse(rate).map(Self::Told).ok_or(());
        }
        let packets = text.parse().ok().filter(|packets| *packets > 0);
        packets.map(Self::Packets).ok_or(())
    }
}

impl WindowLimit {
    /// In bytes.
    pub(super) fn bytes(self, path: &PathView<'_>) -> f64 {
        let packet = f64::from(path.max_packet);
        match self {
            Self::None => f64::INFINITY,
            Self::Packets(packets) => f64::from(packets) * packet,
            Self::Told(rate) => (rate.bytes_per_second() * path.rtt.min().as_secs_f64()).max(packet),
        }
    }
}

/// How much the window grows in a round trip, and what a congestion event takes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// One packet, and a share that is the same at any window.
    Standard,
    /// HighSpeed TCP: more and less with the window ([`highspeed`]).
    HighSpeed,
}

/// Additive increase, multiplicative decrease.
#[derive(Debug)]
pub(super) struct Reno {
    name: &'static str,
    config: RenoConfig,
    response: Response,
    /// Bytes of a full packet.
    packet: f64,
    /// cwnd less its inflation, in bytes.
    window: f64,
    /// ssthresh.
    threshold: f64,
    /// What stands in for packets that have arrived beyond a gap and that no feedback names.
    inflation: f64,
    /// The limit, in bytes.
    most: f64,
    period: RecoveryPeriod,
    started: bool,
    /// Losses are what the window falls for now.
    by_loss: bool,
}

impl Reno {
    pub(super) fn new(name: &'static str, config: RenoConfig, response: Response, max_packet: u32) -> Self {
        let packet = f64::from(max_packet);
        let window = f64::from(config.initial) * packet;
        let (period, most, by_loss) = (RecoveryPeriod::default(), f64::INFINITY, config.signal == Signal::Loss);
        let (threshold, inflation, started) = (f64::INFINITY, 0.0, false);
        let mut reno =
            Self { name, config, response, packet, window, threshold, inflation, most, period, started, by_loss };
        reno.threshold = reno.first_threshold();
        reno
    }

    /// ssthresh before anything is known.
    fn first_threshold(&self) -> f64 {
        self.config.threshold.map_or(f64::INFINITY, |packets| f64::from(packets) * self.packet)
    }

    /// What the window falls for now. Where marks say again what losses had to stand in for, the window that losses took is looked for as
    /// at first: a mark will end that.
    fn choose_signal(&mut self, path: &PathView<'_>) {
        let by_loss = self.config.signal == Signal::Loss || !path.ecn_usable;
        if self.by_loss && !by_loss {
            self.threshold = self.first_threshold();
        }
        self.by_loss = by_loss;
    }

    /// What a congestion event leaves of the window, and packets that a round trip adds.
    fn response(&self) -> (f64, f64) {
        match self.response {
            Response::Standard => (self.config.beta, 1.0),
            Response::HighSpeed => {
                let packets = self.window / self.packet;
                (1.0 - highspeed::decrease(packets), highspeed::increase(packets))
            }
        }
    }

    /// ssthresh after an event now. Departs: RFC 5681 (4) has half the flight; this is the share of the window, as arq §3.1 has it,
    /// which does not grow unused here.
    fn reduced(&self) -> f64 {
        let (left, _) = self.response();
        (self.window * left).max(f64::from(MIN_PACKETS) * self.packet)
    }

    /// Fast recovery begins (RFC 5681 section 3.2 step 2 and 3) for a loss; a mark only halves (RFC 3168 section 6.1.2).
    fn reduce(&mut self, now: Time, lost: bool) {
        self.threshold = self.reduced();
        self.window = self.threshold;
        self.inflation = if lost { f64::from(self.config.inflation) * self.packet } else { 0.0 };
        self.period.begin(now);
    }

    /// arq §3.1: one packet, and slow start again. A timeout after a timeout leaves ssthresh (RFC 5681 section 3.1).
    fn collapse(&mut self, now: Time) {
        if self.window > self.packet {
            self.threshold = self.reduced();
        }
        self.window = self.packet;
        self.inflation = 0.0;
        self.period.begin(now);
    }

    /// In fast recovery a duplicate acknowledgement adds a packet (RFC 5681 section 3.2 step 4), a partial one takes away what it
    /// acknowledges but one packet (RFC 6582 section 3.2 step 5), and the first arrival of what was sent since ends it (step 6).
    fn recover(&mut self, report: &Report<'_>, acked: u64) {
        if self.inflation == 0.0 {
            return;
        }
        let duplicate = report.cause == Cause::Feedback && report.delivered.is_empty() && report.lost.is_empty();
        if acked > 0 {
            self.inflation = 0.0;
        } else if duplicate {
            // No more can have left than were in the window.
            self.inflation = (self.inflation + self.packet).min(self.window / self.config.beta);
        } else if report.delivered_bytes > 0 {
            self.inflation = (self.inflation - report.delivered_bytes as f64 + self.packet).max(self.packet);
        }
    }

    fn grow(&mut self, acked: f64) {
        let slow = acked.min((self.threshold - self.window).max(0.0));
        self.window += slow;
        let (_, increase) = self.response();
        // arq §3.1: max(MSS^2 / cwnd, 1) for each packet acknowledged.
        let step = (increase * self.packet * self.packet / self.window).max(1.0);
        self.window += step * (acked - slow) / self.packet;
        self.window = self.window.min(self.most);
    }
}

impl CongestionControl for Reno {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = f64::from(path.max_packet);
        self.most = self.config.limit.bytes(path);
        if !self.started {
            self.window = f64::from(self.config.initial) * self.packet;
            self.threshold = self.first_threshold();
        }
        self.window = self.window.max(self.packet);
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {
        self.started = true;
    }

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        self.most = self.config.limit.bytes(path);
        self.choose_signal(path);
        let silent = report.cause == Cause::Timeout || path.persistent_congestion;
        // lt-tcp §1.1, §3.5: where losses are no sign of congestion, that all of a window is lost is none either.
        if silent && self.by_loss {
            self.collapse(report.now);
            return;
        }
        let Congestion { lost, marked } = self.period.congestion(report, path);
        let lost = lost && self.by_loss;
        if lost || marked {
            self.reduce(report.now, lost);
        }
        let acked = self.period.acknowledged(report);
        self.recover(report, acked);
        if acked > 0 && !report.app_limited {
            self.grow(acked as f64);
        }
    }

    fn window(&self) -> u64 {
        (self.window + self.inflation).min(self.most) as u64
    }

    fn inflation(&self) -> u64 {
        self.window() - self.window.min(self.most) as u64
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }
}

#[cfg(test)]
mod tests;
