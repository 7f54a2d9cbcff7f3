//! Reno and NewReno (arq §3, RFC 5681, RFC 6582). Loss detection decides when a loss is detected; one reduction for all
//! losses of a window makes it NewReno.

use super::inflation::Inflation;
use super::period::{Congestion, RecoveryPeriod};
use super::{CongestionControl, MIN_PACKETS, PathView};
use crate::recovery::report::{Cause, Report};
use crate::settings::{BitRate, IntegerRange, Itself, Number, Or, Setting, Settings, ValueFormat, field};
use crate::time::{Rate, Time};
use std::fmt;
use std::str::FromStr;

/// Numbers of Reno. The defaults are those of arq §3.1; those of RFC 5681 and RFC 6928 are `initial=10,threshold=none`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenoConfig {
    /// Initial cwnd in packets: 1 (arq §3.1).
    pub initial: u32,
    /// Initial ssthresh in packets: 64 (arq §3.1); `none` is infinite.
    pub threshold: Option<u32>,
    /// The factor by which a congestion event reduces the window: 0.5 (arq §3.1, RFC 5681 section 3.1).
    pub beta: f64,
    /// Packets by which the window is inflated at the start of fast recovery: 3, for three duplicate acknowledgements
    /// (arq §3.1, RFC 5681 section 3.2). 0 if feedback reports packets beyond a gap, which are then not in flight. CE
    /// marks do not inflate the window.
    pub inflation: u32,
    /// The signal that reduces the window.
    pub signal: Signal,
    /// An upper bound on the window.
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
        field!("initial", initial, IntegerRange(1, 1000)),
        field!("threshold", threshold, Or("none", IntegerRange(2, 1_000_000))),
        field!("beta", beta, Number(0.1, 0.95)),
        field!("inflation", inflation, IntegerRange(0, 100)),
        field!("signal", signal, Itself("loss or ecn")),
        field!("limit", limit, Itself("none, a number of packets, or told:RATE")),
    ];
}

/// The signal that reduces the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Losses, and CE marks, which count as losses (RFC 3168 section 6.1.2).
    Loss,
    /// CE marks alone: neither losses nor timeouts (lt-tcp §1.1, §3.5). The document requires ECN (§1.1), without which
    /// nothing would limit the window: on a path that fails ECN validation it responds to losses (RFC 9000 section
    /// 13.4.2.2), until a later test succeeds. A path that carries ECT marks but never sets CE cannot be distinguished
    /// from one without congestion; the window grows without limit.
    Ecn,
}

/// An upper bound on the window, in addition to congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowLimit {
    /// None.
    None,
    /// A number of packets: the receive window of NewReno in ttp §III-A has 20.
    Packets(u32),
    /// Dynamic right-sizing: the product of a given rate and the smallest round-trip time (ttp §III-A).
    FixedRate(Rate),
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
            Self::FixedRate(rate) => write!(f, "told:{}", BitRate.print(rate)),
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
            return BitRate.parse(rate).map(Self::FixedRate).ok_or(());
        }
        let packets = text.parse().ok().filter(|packets| *packets > 0);
        packets.map(Self::Packets).ok_or(())
    }
}

impl WindowLimit {
    /// Returns the limit in bytes.
    pub(super) fn bytes(self, path: &PathView<'_>) -> f64 {
        let packet = f64::from(path.max_packet);
        match self {
            Self::None => f64::INFINITY,
            Self::Packets(packets) => f64::from(packets) * packet,
            Self::FixedRate(rate) => (rate.bytes_per_second() * path.rtt.min().as_secs_f64()).max(packet),
        }
    }
}

/// The growth of the window in a round trip, and its reduction by a congestion event.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// The packets that a round trip without congestion adds to a window of so many packets.
    pub increase: fn(f64) -> f64,
    /// The share by which a congestion event reduces a window of so many packets; `None`: that of [`RenoConfig::beta`].
    pub decrease: Option<fn(f64) -> f64>,
}

impl Response {
    /// One packet, and a fixed factor.
    pub const STANDARD: Self = Self { increase: |_| 1.0, decrease: None };
}

/// Additive increase, multiplicative decrease.
#[derive(Debug)]
pub struct Reno {
    name: &'static str,
    config: RenoConfig,
    response: Response,
    /// Bytes of a full packet.
    packet: f64,
    /// cwnd less its inflation, in bytes.
    window: f64,
    /// ssthresh.
    threshold: f64,
    inflation: Inflation,
    /// The limit, in bytes.
    most: f64,
    period: RecoveryPeriod,
    started: bool,
    /// Whether losses currently reduce the window.
    by_loss: bool,
}

impl Reno {
    /// Creates the controller, with a name for traces. A full packet has `max_packet` IP bytes.
    pub fn new(name: &'static str, config: RenoConfig, response: Response, max_packet: u32) -> Self {
        let packet = f64::from(max_packet);
        let window = f64::from(config.initial) * packet;
        let (period, most, by_loss) = (RecoveryPeriod::default(), f64::INFINITY, config.signal == Signal::Loss);
        let (threshold, inflation, started) = (f64::INFINITY, Inflation::default(), false);
        let mut reno =
            Self { name, config, response, packet, window, threshold, inflation, most, period, started, by_loss };
        reno.threshold = reno.first_threshold();
        reno
    }

    /// Returns the initial ssthresh.
    fn first_threshold(&self) -> f64 {
        self.config.threshold.map_or(f64::INFINITY, |packets| f64::from(packets) * self.packet)
    }

    /// Updates the signal that reduces the window. When ECN works again after losses had replaced it, the window grows
    /// as in the first slow start, until a mark ends it.
    fn choose_signal(&mut self, path: &PathView<'_>) {
        let by_loss = self.config.signal == Signal::Loss || !path.ecn_usable;
        if self.by_loss && !by_loss {
            self.threshold = self.first_threshold();
        }
        self.by_loss = by_loss;
    }

    /// Returns the factor of a congestion event, and the packets that a round trip adds.
    fn response(&self) -> (f64, f64) {
        let packets = self.window / self.packet;
        let left = self.response.decrease.map_or(self.config.beta, |decrease| 1.0 - decrease(packets));
        (left, (self.response.increase)(packets))
    }

    /// Returns ssthresh after a congestion event. Departs: RFC 5681 equation 4 halves FlightSize; this is a share of
    /// the window as in arq §3.1, and an unused window does not grow.
    fn reduced(&self) -> f64 {
        let (left, _) = self.response();
        (self.window * left).max(f64::from(MIN_PACKETS) * self.packet)
    }

    /// A loss starts fast recovery (RFC 5681 section 3.2 steps 2 and 3); a mark only reduces the window (RFC 3168
    /// section 6.1.2).
    fn reduce(&mut self, now: Time, lost: bool) {
        self.threshold = self.reduced();
        self.window = self.threshold;
        self.inflation.begin(if lost { self.config.inflation } else { 0 }, self.packet);
        self.period.begin(now);
    }

    /// arq §3.1: one packet, then slow start. A second timeout in a row leaves ssthresh unchanged (RFC 5681 section
    /// 3.1).
    fn collapse(&mut self, now: Time) {
        if self.window > self.packet {
            self.threshold = self.reduced();
        }
        self.window = self.packet;
        self.inflation.clear();
        self.period.begin(now);
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
        // lt-tcp §1.1, §3.5: where losses do not signal congestion, the loss of a whole window does not either.
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
        self.inflation.on_report(report, acked, self.packet, self.window / self.config.beta);
        if acked > 0 && !report.app_limited {
            self.grow(acked as f64);
        }
    }

    fn window(&self) -> u64 {
        (self.window + self.inflation.bytes()).min(self.most) as u64
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
