//! How many packets the path loses, before any code repairs them, and how many in a row.

mod autoregressive;
mod averages;
mod packets;
mod ttp;

pub use autoregressive::AutoregressiveConfig;
pub use averages::{DynamicEwmaConfig, EwmaConfig};
pub use packets::PacketsConfig;
pub use ttp::TtpConfig;

use crate::settings::{Setting, Settings, Share, choices, field};
use crate::time::Time;
use autoregressive::Autoregressive;
use averages::{Average, Weight};
use packets::Packets;
use std::time::Duration;
use ttp::Ttp;

/// Below so many packets what is known is not yet trusted.
const CONFIDENT: u32 = 64;

/// Loss assumed until the path has shown its own: 5 % (docs/design/recovery.md).
const INITIAL: f64 = 0.05;

/// How the share of packets lost is estimated.
#[derive(Clone, Debug, PartialEq)]
pub enum EstimatorConfig {
    /// Over the last packets, newer ones weighing more.
    Packets(PacketsConfig),
    /// A moving average of samples with a fixed weight (lt-tcp §3.1).
    Ewma(EwmaConfig),
    /// A moving average whose weight follows the sample, as lt-tcp had it first (§3.1): it rises at once and falls slowly.
    DynamicEwma(DynamicEwmaConfig),
    /// Told, whatever is lost (lt-tcp §2.3).
    Oracle(OracleConfig),
    /// The next sample, predicted from the last ones by a linear model fitted meanwhile (lt-tcp §5).
    Autoregressive(AutoregressiveConfig),
    /// The average of what was lost in all and of what was lost lately (ttp II-C).
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
    /// The share of packets lost, 0 to 0.99: 5 %.
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

/// One algorithm at work.
#[derive(Clone, Debug)]
enum Estimator {
    Packets(Packets),
    Average(Average),
    Oracle(f64),
    Autoregressive(Box<Autoregressive>),
    Ttp(Ttp),
}

impl Estimator {
    /// `assumed`: the loss until the path has shown its own, in place of the configured one.
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

/// A moving estimate of the share of packets lost. Drops by a full queue count like any other loss.
#[derive(Clone, Debug)]
pub struct LossEstimate {
    estimator: Estimator,
    /// Packets whose fate is known, counted up to [`CONFIDENT`].
    known: u32,
    /// Losses that no late arrival has refuted: tells "never" from "long ago".
    lost_ever: u64,
    bursts: Bursts,
}

impl LossEstimate {
    /// Nothing is known yet.
    pub(super) fn new(config: &EstimatorConfig) -> Self {
        Self { estimator: Estimator::new(config, None), known: 0, lost_ever: 0, bursts: Bursts::default() }
    }

    /// Another algorithm goes on from where this one stands, if it knows anything.
    pub(super) fn reconfigure(&mut self, config: &EstimatorConfig) {
        let assumed = (self.known >= CONFIDENT).then(|| self.loss());
        self.estimator = Estimator::new(config, assumed);
    }

    /// `count` packets arrived.
    pub(super) fn on_delivered(&mut self, count: usize) {
        self.known = self.known.saturating_add(u32::try_from(count).unwrap_or(u32::MAX)).min(CONFIDENT);
        self.bursts.age(count);
        match &mut self.estimator {
            Estimator::Packets(packets) => packets.on_delivered(count),
            Estimator::Average(average) => average.samples.on_delivered(count),
            Estimator::Autoregressive(model) => model.samples.on_delivered(count),
            Estimator::Ttp(ttp) => ttp.fates.on_delivered(count),
            Estimator::Oracle(_) => {}
        }
    }

    /// A packet was lost: the `ordinal`th of those that ask for feedback, sent at `sent`. Returns over what time the
    /// run of losses that it ends was sent.
    pub(super) fn on_lost(&mut self, ordinal: u32, sent: Time) -> Duration {
        self.known = (self.known + 1).min(CONFIDENT);
        self.lost_ever += 1;
        match &mut self.estimator {
            Estimator::Packets(packets) => packets.on_lost(),
            Estimator::Average(average) => average.samples.on_lost(),
            Estimator::Autoregressive(model) => model.samples.on_lost(),
            Estimator::Ttp(ttp) => ttp.fates.on_lost(),
            Estimator::Oracle(_) => {}
        }
        self.bursts.on_lost(ordinal, sent)
    }

    /// `count` packets called lost arrived after all.
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

    /// All that one report tells has been told: whoever samples may do so now.
    pub(super) fn close_report(&mut self) {
        match &mut self.estimator {
            Estimator::Average(average) => average.close_report(),
            Estimator::Autoregressive(model) => model.close_report(),
            Estimator::Packets(_) | Estimator::Oracle(_) | Estimator::Ttp(_) => {}
        }
    }

    /// The share of packets lost, 0 to 1: the assumption before anything is known, exactly 0 when at least 64 packets
    /// are known and none was ever lost.
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

    /// Mean number of packets lost in a row, at least 1 (and 1 when nothing was lost). Independent losses with
    /// probability p give 1 / (1 - p).
    pub fn mean_burst(&self) -> f64 {
        self.bursts.mean()
    }
}

/// After so many further packets a run of losses counts half.
const HALF_LIFE: f64 = 2000.0;

/// Losses in a row, newer ones weighing more.
#[derive(Clone, Debug, Default)]
struct Bursts {
    lost: f64,
    runs: f64,
    run: Option<Run>,
}

/// Consecutive lost packets.
#[derive(Clone, Copy, Debug)]
struct Run {
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
        self.run = Some(Run { began, last: ordinal });
        sent.since(began)
    }

    fn on_spurious(&mut self, count: usize, none_left: bool) {
        // Their weight has decayed since; the difference is at most the share of a half-life they were late.
        self.lost = if none_left { 0.0 } else { (self.lost - count as f64).max(0.0) };
        self.runs = self.runs.min(self.lost);
    }

    fn mean(&self) -> f64 {
        if self.runs > 0.0 { (self.lost / self.runs).max(1.0) } else { 1.0 }
    }
}

/// Packets counted until there are enough for a sample of the loss (lt-tcp §3.3). Open in the document: when it samples. Here whenever
/// a report ends with at least `packets` known since the last sample, so that a small window does not give samples of 0 and 1.
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

    /// lt-tcp §3.3: what a sample has counted already cannot be taken back.
    fn on_spurious(&mut self, count: usize) {
        self.lost = self.lost.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// The sample that is due, if one is.
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
