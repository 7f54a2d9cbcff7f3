//! The loss estimate: the share of packets that the path loses before any code repairs them, and the length of bursts.

mod packets;

pub use packets::PacketsConfig;

use super::sent_packets::SentPacket;
use crate::settings::{choices, seam};
use crate::time::Time;
use packets::Packets;
use std::fmt::Debug;
use std::time::Duration;

/// Number of packets below which an estimate is not trusted.
pub const CONFIDENT: u32 = 64;

/// Loss assumed until it is measured: 5 % (docs/design/recovery.md).
pub const INITIAL_LOSS: f64 = 0.05;

/// How the share of lost packets is estimated.
#[derive(Clone, Debug, PartialEq)]
pub enum EstimatorConfig {
    /// Over the last packets, with exponentially decreasing weight.
    Packets(PacketsConfig),
    /// An estimator of another crate: [`EstimatorConfig::custom`].
    Custom(CustomEstimator),
}

choices! { "loss estimator", EstimatorConfig { "packets" => Packets(PacketsConfig) } else Custom }

/// Estimates the share of packets that the path loses. Drops by a full queue count like any other loss.
pub trait LossEstimator: Debug + Send {
    /// Counts `count` packets delivered.
    fn on_delivered(&mut self, _count: usize) {}

    /// Counts a lost packet.
    fn on_lost(&mut self) {}

    /// Takes back `count` spurious losses; `none_left`: no others are known.
    fn on_spurious(&mut self, _count: usize, _none_left: bool) {}

    /// Ends a report, all of whose packets are counted: an estimator that works by samples may take one, and one that
    /// needs the order of losses gets it. Both slices are in the order of packet numbers.
    fn close_report(&mut self, _delivered: &[SentPacket], _lost: &[SentPacket]) {}

    /// Returns the share of lost packets, 0 to 1.
    fn loss(&self) -> f64;

    /// Returns whether the estimate is exactly 0 after at least 64 packets without a loss, whatever [`Self::loss`]
    /// returns.
    fn zero_without_loss(&self) -> bool {
        true
    }
}

seam! {
    /// Numbers of an estimator that another crate implements, and its constructor.
    EstimatorFactory, DynEstimator, CustomEstimator, EstimatorConfig;
    required {
        /// Builds the estimator; `assumed` replaces the configured loss until it is measured.
        fn build(&self, assumed: Option<f64>) -> Box<dyn LossEstimator>;
    }
    provided {}
}

impl Default for EstimatorConfig {
    fn default() -> Self {
        Self::Packets(PacketsConfig::default())
    }
}

impl EstimatorConfig {
    fn build(&self, assumed: Option<f64>) -> Box<dyn LossEstimator> {
        match self {
            Self::Packets(config) => Box::new(Packets::new(assumed.unwrap_or(config.initial), config.half_life)),
            Self::Custom(custom) => custom.0.build(assumed),
        }
    }
}

/// An estimate of the share of lost packets, and of the length of bursts.
#[derive(Debug)]
pub struct LossEstimate {
    estimator: Box<dyn LossEstimator>,
    /// Packets delivered or lost, counted up to [`CONFIDENT`].
    known: u32,
    /// True losses: distinguishes a path that has never lost a packet from one that has not lost any for long.
    lost_ever: u64,
    bursts: Bursts,
}

impl LossEstimate {
    /// Creates an estimate without observations.
    pub fn new(config: &EstimatorConfig) -> Self {
        Self { estimator: config.build(None), known: 0, lost_ever: 0, bursts: Bursts::default() }
    }

    /// Replaces the algorithm; the new one starts from the current estimate, if any.
    pub fn reconfigure(&mut self, config: &EstimatorConfig) {
        let assumed = (self.known >= CONFIDENT).then(|| self.loss());
        self.estimator = config.build(assumed);
    }

    /// Counts `count` packets delivered.
    pub fn on_delivered(&mut self, count: usize) {
        self.known = self.known.saturating_add(u32::try_from(count).unwrap_or(u32::MAX)).min(CONFIDENT);
        self.bursts.age(count);
        self.estimator.on_delivered(count);
    }

    /// Counts the loss of the `ordinal`th ack-eliciting packet, sent at `sent`. Returns the time over which the burst
    /// of losses that it ends was sent.
    pub fn on_lost(&mut self, ordinal: u32, sent: Time) -> Duration {
        self.known = (self.known + 1).min(CONFIDENT);
        self.lost_ever += 1;
        self.estimator.on_lost();
        self.bursts.on_lost(ordinal, sent)
    }

    /// Takes back `count` spurious losses.
    pub fn on_spurious(&mut self, count: usize) {
        self.lost_ever = self.lost_ever.saturating_sub(count as u64);
        let none_left = self.lost_ever == 0;
        self.bursts.on_spurious(count, none_left);
        self.estimator.on_spurious(count, none_left);
    }

    /// Ends a report, all of whose packets are counted. Both slices are in the order of packet numbers.
    pub fn close_report(&mut self, delivered: &[SentPacket], lost: &[SentPacket]) {
        self.estimator.close_report(delivered, lost);
    }

    /// Returns the share of lost packets, 0 to 1: the assumption before anything is measured, and exactly 0 after at
    /// least 64 packets without a loss.
    pub fn loss(&self) -> f64 {
        let never = self.lost_ever == 0 && self.known >= CONFIDENT;
        if never && self.estimator.zero_without_loss() { 0.0 } else { self.estimator.loss() }
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

#[cfg(test)]
mod tests;
