//! How many packets the path loses, before any code repairs them, and how many in a row.

use crate::settings::{Number, Setting, Settings, Share, choices, field};
use crate::time::Time;
use std::time::Duration;

/// How the share of packets lost is estimated.
#[derive(Clone, Debug, PartialEq)]
pub enum EstimatorConfig {
    /// Over the last packets, newer ones weighing more.
    Packets(PacketsConfig),
}

choices! { "loss estimator", EstimatorConfig { "packets" => Packets(PacketsConfig) } }

impl Default for EstimatorConfig {
    fn default() -> Self {
        Self::Packets(PacketsConfig::default())
    }
}

/// Numbers of the estimate over the last packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketsConfig {
    /// Loss assumed until the path has shown its own, 0 to 1: 5 % (design section 8).
    pub initial: f64,
    /// After so many further packets an observation counts half: 2000. The memory is then about 2,900 packets: enough to tell
    /// 1 % from 2 % (29 against 58 losses), short enough to follow a path that changes within a transfer.
    pub half_life: f64,
}

impl Default for PacketsConfig {
    fn default() -> Self {
        Self { initial: 0.05, half_life: 2000.0 }
    }
}

impl Settings for PacketsConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("initial", initial, Share(0.0, 0.99)), field!("half-life", half_life, Number(1.0, 1e9))];
}

/// Below so many packets the assumption still counts, with the weight of the packets that are missing.
const CONFIDENT: f64 = 64.0;

/// A moving estimate of the share of packets lost. Drops by a full queue count like any other loss.
#[derive(Clone, Debug)]
pub struct LossEstimate {
    assumed: f64,
    half_life: f64,
    /// Packets whose fate is known, newer ones weighing more.
    known: f64,
    /// Of these, the lost ones.
    lost: f64,
    /// Runs of consecutive losses, weighed alike.
    runs: f64,
    /// Losses that no late arrival has refuted, unweighed: tells "never" from "long ago".
    lost_ever: u64,
    run: Option<Run>,
}

/// Consecutive lost packets.
#[derive(Clone, Copy, Debug)]
struct Run {
    began: Time,
    last: u32,
}

impl LossEstimate {
    pub(super) const fn new(config: &EstimatorConfig) -> Self {
        let EstimatorConfig::Packets(PacketsConfig { initial: assumed, half_life }) = *config;
        Self { assumed, half_life, known: 0.0, lost: 0.0, runs: 0.0, lost_ever: 0, run: None }
    }

    /// `count` packets arrived.
    pub(super) fn on_delivered(&mut self, count: usize) {
        self.age(count);
    }

    /// A packet was lost: the `ordinal`th of those that ask for feedback, sent at `sent`. Returns over what time the
    /// run of losses that it ends was sent.
    pub(super) fn on_lost(&mut self, ordinal: u32, sent: Time) -> Duration {
        self.age(1);
        self.lost += 1.0;
        self.lost_ever += 1;
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

    /// `count` packets called lost arrived after all.
    pub(super) fn on_spurious(&mut self, count: usize) {
        self.lost_ever = self.lost_ever.saturating_sub(count as u64);
        // Their weight has decayed since; the difference is at most the share of a half-life they were late.
        self.lost = if self.lost_ever == 0 { 0.0 } else { (self.lost - count as f64).max(0.0) };
        self.runs = self.runs.min(self.lost);
    }

    fn age(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let factor = (-(count as f64) / self.half_life).exp2();
        self.known = self.known * factor + count as f64;
        self.lost *= factor;
        self.runs *= factor;
    }

    /// The share of packets lost, 0 to 1: the assumption before anything is known, exactly 0 when at least 64 packets
    /// are known and none was ever lost.
    pub fn loss(&self) -> f64 {
        let missing = (CONFIDENT - self.known).max(0.0);
        (self.lost + missing * self.assumed) / (self.known + missing)
    }

    /// Mean number of packets lost in a row, at least 1 (and 1 when nothing was lost). Independent losses with
    /// probability p give 1 / (1 - p).
    pub fn mean_burst(&self) -> f64 {
        if self.runs > 0.0 { (self.lost / self.runs).max(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assumption_gives_way_to_what_is_known() {
        let mut loss = LossEstimate::new(&EstimatorConfig::default());
        assert_eq!(loss.loss(), 0.05);
        loss.on_delivered(32);
        assert!((loss.loss() - 0.025).abs() < 1e-9, "{}", loss.loss());
        loss.on_delivered(33);
        assert_eq!(loss.loss(), 0.0);
        assert_eq!(loss.mean_burst(), 1.0);
    }

    #[test]
    fn one_loss_among_few_packets_is_damped_and_never_forgotten_entirely() {
        let mut loss = LossEstimate::new(&EstimatorConfig::default());
        loss.on_lost(0, Time::ZERO);
        assert!((loss.loss() - 4.15 / 64.0).abs() < 1e-9, "{}", loss.loss());
        loss.on_delivered(20_000);
        assert!(loss.loss() > 0.0 && loss.loss() < 1e-6, "{}", loss.loss());
    }

    #[test]
    fn follows_the_path_with_its_half_life() {
        let mut loss = LossEstimate::new(&EstimatorConfig::default());
        let mut ordinal = 0;
        for _ in 0..2000 {
            loss.on_delivered(9);
            loss.on_lost(ordinal, Time::ZERO);
            ordinal += 10;
        }
        assert!((loss.loss() - 0.1).abs() < 0.001, "{}", loss.loss());
        let sum = loss.known;
        loss.on_delivered(2000);
        assert!((loss.loss() - 0.1 * (sum / 2.0) / (sum / 2.0 + 2000.0)).abs() < 0.001, "{}", loss.loss());
    }

    #[test]
    fn bursts_are_runs_of_consecutive_losses() {
        let mut loss = LossEstimate::new(&EstimatorConfig::default());
        let mut ordinal = 0;
        for _ in 0..200 {
            for _ in 0..4 {
                loss.on_lost(ordinal, Time::ZERO);
                ordinal += 1;
            }
            loss.on_delivered(16);
            ordinal += 16;
        }
        assert!((loss.mean_burst() - 4.0).abs() < 0.01, "{}", loss.mean_burst());
        assert!((loss.loss() - 0.2).abs() < 0.01, "{}", loss.loss());
    }

    #[test]
    fn a_run_tells_over_what_time_it_was_sent() {
        let mut loss = LossEstimate::new(&EstimatorConfig::default());
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        assert_eq!(loss.on_lost(7, at(10)), Duration::ZERO);
        assert_eq!(loss.on_lost(8, at(30)), Duration::from_millis(20));
        assert_eq!(loss.on_lost(9, at(90)), Duration::from_millis(80));
        assert_eq!(loss.on_lost(11, at(95)), Duration::ZERO);
    }

    #[test]
    fn a_refuted_loss_leaves_exactly_nothing() {
        let mut loss = LossEstimate::new(&EstimatorConfig::default());
        loss.on_delivered(1000);
        loss.on_lost(3, Time::ZERO);
        loss.on_delivered(1000);
        assert!(loss.loss() > 0.0);
        loss.on_spurious(1);
        assert_eq!(loss.loss(), 0.0);
        assert_eq!(loss.mean_burst(), 1.0);
    }
}
