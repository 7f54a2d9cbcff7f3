//! The loss estimate: the share of packets that the path loses before any code repairs them, and the length of bursts.

mod autoregressive;
mod averages;
mod packets;
mod ttp;

pub use autoregressive::AutoregressiveConfig;
pub use averages::{DynamicEwmaConfig, EwmaConfig};
pub use packets::PacketsConfig;
pub use ttp::TtpConfig;

use super::sent_packets::SentPacket;
use crate::settings::{Setting, Settings, Share, choices, field};
use crate::time::Time;
use autoregressive::Autoregressive;
use averages::{Average, Weight};
use packets::Packets;
use std::time::Duration;
use ttp::Ttp;

/// Number of packets below which an estimate is not trusted.
const CONFIDENT: u32 = 64;

/// Loss assumed until it is measured: 5 % (docs/design/recovery.md).
const INITIAL: f64 = 0.05;

/// How the share of lost packets is estimated.
#[derive(Clone, Debug, PartialEq)]
pub enum EstimatorConfig {
    /// Over the last packets, with exponentially decreasing weight.
    Packets(PacketsConfig),
    /// A moving average of samples with a fixed weight (lt-tcp §3.1).
    Ewma(EwmaConfig),
    /// A moving average whose weight depends on the sample, the first one in lt-tcp §3.1: it rises at once and falls
    /// slowly.
    DynamicEwma(DynamicEwmaConfig),
    /// A given value, whatever the losses (lt-tcp §2.3).
    Oracle(OracleConfig),
    /// A prediction of the next sample by a linear model of the last ones, fitted online (lt-tcp §5).
    Autoregressive(AutoregressiveConfig),
    /// The average of the loss over all packets and over the last ones (ttp §II-C).
    Ttp(TtpConfig),
}

choices! { "loss estimator", EstimatorConfig {
    "packets" => Packets(PacketsConfig),
    "ewma" => Ewma(EwmaConfig),
    "dynamic-ewma" => DynamicEwma(DynamicEwmaConfig),
    "oracle" => Oracle(OracleConfig),
    "autoregressive" => Autoregressive(AutoregressiveConfig),
    "ttp" => Ttp(TtpConfig),
} }

impl Default for EstimatorConfig {
    fn default() -> Self {
        Self::Packets(PacketsConfig::default())
    }
}

/// The number of the oracle.
#[derive(Clone, Debug, PartialEq)]
pub struct OracleConfig {
    /// The share of lost packets, 0 to 0.99: 5 %.
    pub loss: f64,
}

impl Default for OracleConfig {
    fn default() -> Self {
        Self { loss: INITIAL }
    }
}

impl Settings for OracleConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!(bare "loss", loss, Share(0.0, 0.99))];
}

/// The state of one algorithm.
#[derive(Clone, Debug)]
enum Estimator {
    Packets(Packets),
    Average(Average),
    Oracle(f64),
    Autoregressive(Box<Autoregressive>),
    Ttp(Ttp),
}

impl Estimator {
    /// Creates the estimator; `assumed` replaces the configured loss until it is measured.
    fn new(config: &EstimatorConfig, assumed: Option<f64>) -> Self {
        let initial = |configured: f64| assumed.unwrap_or(configured);
        match config {
            EstimatorConfig::Packets(c) => Self::Packets(Packets::new(initial(c.initial), c.half_life)),
            EstimatorConfig::Ewma(c) => {
                Self::Average(Average::new(Weight::Fixed(c.alpha), initial(c.initial), c.packets))
            }
            EstimatorConfig::DynamicEwma(c) => {
                Self::Average(Average::new(Weight::BySample, initial(c.initial), c.packets))
            }
            EstimatorConfig::Oracle(c) => Self::Oracle(c.loss),
            EstimatorConfig::Autoregressive(c) => {
                Self::Autoregressive(Box::new(Autoregressive::new(c, initial(c.initial))))
            }
            EstimatorConfig::Ttp(c) => Self::Ttp(Ttp::new(c, initial(c.initial))),
        }
    }
}

/// An estimate of the share of lost packets. Drops by a full queue count like any other loss.
#[derive(Clone, Debug)]
pub struct LossEstimate {
    estimator: Estimator,
    /// Packets delivered or lost, counted up to [`CONFIDENT`].
    known: u32,
    /// True losses: distinguishes a path that has never lost a packet from one that has not lost any for long.
    lost_ever: u64,
    bursts: Bursts,
}

impl LossEstimate {
    /// Creates an estimate without observations.
    pub(super) fn new(config: &EstimatorConfig) -> Self {
        Self { estimator: Estimator::new(config, None), known: 0, lost_ever: 0, bursts: Bursts::default() }
    }

    /// Replaces the algorithm; the new one starts from the current estimate, if any.
    pub(super) fn reconfigure(&mut self, config: &EstimatorConfig) {
        let assumed = (self.known >= CONFIDENT).then(|| self.loss());
        self.estimator = Estimator::new(config, assumed);
    }

    /// Counts `count` packets delivered.
    pub(super) fn on_delivered(&mut self, count: usize) {
        self.known = self.known.saturating_add(u32::try_from(count).unwrap_or(u32::MAX)).min(CONFIDENT);
        self.bursts.age(count);
        match &mut self.estimator {
            Estimator::Packets(packets) => packets.on_delivered(count),
            Estimator::Average(average) => average.samples.on_delivered(count),
            Estimator::Autoregressive(model) => model.samples.on_delivered(count),
            Estimator::Ttp(_) | Estimator::Oracle(_) => {}
        }
    }

    /// Counts the loss of the `ordinal`th ack-eliciting packet, sent at `sent`. Returns the time over which the burst
    /// of losses that it ends was sent.
    pub(super) fn on_lost(&mut self, ordinal: u32, sent: Time) -> Duration {
        self.known = (self.known + 1).min(CONFIDENT);
        self.lost_ever += 1;
        match &mut self.estimator {
            Estimator::Packets(packets) => packets.on_lost(),
            Estimator::Average(average) => average.samples.on_lost(),
            Estimator::Autoregressive(model) => model.samples.on_lost(),
            Estimator::Ttp(_) | Estimator::Oracle(_) => {}
        }
        self.bursts.on_lost(ordinal, sent)
    }

    /// Takes back `count` spurious losses.
    pub(super) fn on_spurious(&mut self, count: usize) {
        self.lost_ever = self.lost_ever.saturating_sub(count as u64);
        self.bursts.on_spurious(count, self.lost_ever == 0);
        match &mut self.estimator {
            Estimator::Packets(packets) => packets.on_spurious(count, self.lost_ever == 0),
            Estimator::Average(average) => average.samples.on_spurious(count),
            Estimator::Autoregressive(model) => model.samples.on_spurious(count),
            Estimator::Ttp(ttp) => ttp.fates.on_spurious(count),
            Estimator::Oracle(_) => {}
        }
    }

    /// Ends a report, all of whose packets are counted: an estimator that works by samples may take one, and one that
    /// needs the order of losses gets it. Both slices are in the order of packet numbers.
    pub(super) fn close_report(&mut self, delivered: &[SentPacket], lost: &[SentPacket]) {
        match &mut self.estimator {
            Estimator::Average(average) => average.close_report(),
            Estimator::Autoregressive(model) => model.close_report(),
            Estimator::Ttp(ttp) => ttp.fates.on_report(delivered, lost, |_| {}),
            Estimator::Packets(_) | Estimator::Oracle(_) => {}
        }
    }

    /// Returns the share of lost packets, 0 to 1: the assumption before anything is measured, and exactly 0 after at
    /// least 64 packets without a loss.
    pub fn loss(&self) -> f64 {
        let never = self.lost_ever == 0 && self.known >= CONFIDENT;
        match &self.estimator {
            Estimator::Oracle(loss) => *loss,
            Estimator::Packets(packets) => packets.loss(),
            _ if never => 0.0,
            Estimator::Average(average) => average.loss(),
            Estimator::Autoregressive(model) => model.loss(),
            Estimator::Ttp(ttp) => ttp.loss(),
        }
    }

    /// Returns the mean number of packets lost in a row, at least 1 (and 1 when nothing was lost). Independent losses
    /// with probability p give 1 / (1 - p).
    pub fn mean_burst(&self) -> f64 {
        self.bursts.mean()
    }
}

/// Packets after which a burst of losses has half its weight.
const HALF_LIFE: f64 = 2000.0;

/// The length of bursts, with exponentially decreasing weight.
#[derive(Clone, Debug, Default)]
struct Bursts {
    lost: f64,
    runs: f64,
    run: Option<LossBurst>,
}

/// Consecutive lost packets.
#[derive(Clone, Copy, Debug)]
struct LossBurst {
    began: Time,
    last: u32,
}

impl Bursts {
    fn age(&mut self, count: usize) {
        let factor = (-(count as f64) / HALF_LIFE).exp2();
        self.lost *= factor;
        self.runs *= factor;
    }

    fn on_lost(&mut self, ordinal: u32, sent: Time) -> Duration {
        self.age(1);
        self.lost += 1.0;
        let began = match self.run {
            Some(run) if run.last.wrapping_add(1) == ordinal => run.began,
            _ => {
                self.runs += 1.0;
                sent
            }
        };
        self.run = Some(LossBurst { began, last: ordinal });
        sent.since(began)
    }

    fn on_spurious(&mut self, count: usize, none_left: bool) {
        // Their weight has decayed since: an error of at most the share of a half-life by which they were late.
        self.lost = if none_left { 0.0 } else { (self.lost - count as f64).max(0.0) };
        self.runs = self.runs.min(self.lost);
    }

    fn mean(&self) -> f64 {
        if self.runs > 0.0 { (self.lost / self.runs).max(1.0) } else { 1.0 }
    }
}

/// Counts packets until there are enough for a sample of the loss (lt-tcp §3.3). The document leaves the time of a
/// sample open: it is the end of a report with at least `packets` packets since the last sample, so that a small window
/// does not give samples of 0 and 1.
#[derive(Clone, Debug)]
struct Samples {
    packets: u32,
    known: u32,
    lost: u32,
}

impl Samples {
    const fn new(packets: u32) -> Self {
        Self { packets, known: 0, lost: 0 }
    }

    fn on_delivered(&mut self, count: usize) {
        self.known = self.known.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    const fn on_lost(&mut self) {
        self.known = self.known.saturating_add(1);
        self.lost = self.lost.saturating_add(1);
    }

    /// Handles spurious losses: those that a sample has counted already cannot be taken back (lt-tcp §3.3).
    fn on_spurious(&mut self, count: usize) {
        self.lost = self.lost.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Returns the sample, if one is due.
    fn take(&mut self) -> Option<f64> {
        if self.known < self.packets {
            return None;
        }
        let sample = f64::from(self.lost) / f64::from(self.known);
        (self.known, self.lost) = (0, 0);
        Some(sample)
    }
}

#[cfg(test)]
mod tests;
