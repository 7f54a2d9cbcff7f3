//! Round-trip time as RFC 9002 section 5 estimates it.

use crate::settings::{Number, Setting, Settings, choices, field};
use std::time::Duration;

/// Assumed before the first sample (RFC 9002 section 6.2.2). The handshake normally gives a sample before any data leaves.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// How the round-trip time is smoothed.
#[derive(Clone, Debug, PartialEq)]
pub enum RttConfig {
    /// A moving average, each sample weighing less the older it is (RFC 6298, RFC 9002 section 5.3).
    Ewma(RttWeights),
}

choices! { "round-trip estimator", RttConfig { "ewma" => Ewma(RttWeights) } }

impl Default for RttConfig {
    fn default() -> Self {
        Self::Ewma(RttWeights::default())
    }
}

/// Weights of a new sample.
#[derive(Clone, Debug, PartialEq)]
pub struct RttWeights {
    /// In the average: 1/8 (RFC 9002 section 5.3, RFC 6298 section 2.3, arq §2.1.1).
    pub alpha: f64,
    /// In the mean deviation from it: 1/4 (the same).
    pub beta: f64,
}

impl Default for RttWeights {
    fn default() -> Self {
        Self { alpha: 0.125, beta: 0.25 }
    }
}

impl Settings for RttWeights {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("alpha", alpha, Number(0.001, 1.0)), field!("beta", beta, Number(0.001, 1.0))];
}

/// Weights are kept in this many parts of one: whole numbers, so that a duration is averaged exactly.
const PARTS: u32 = 1 << 16;

fn parts(weight: f64) -> u32 {
    (weight * f64::from(PARTS)).round() as u32
}

/// The average, in which a new value weighs `parts`.
fn weigh(average: Duration, value: Duration, parts: u32) -> Duration {
    (average * (PARTS - parts) + value * parts) / PARTS
}

/// Smoothed round-trip time, its variation and its minimum (RFC 9002 section 5).
#[derive(Clone, Debug)]
pub struct RttEstimator {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    has_sample: bool,
    alpha: u32,
    beta: u32,
}

impl RttEstimator {
    pub(super) fn new(config: &RttConfig) -> Self {
        let RttConfig::Ewma(weights) = config;
        Self {
            alpha: parts(weights.alpha),
            beta: parts(weights.beta),
            latest: INITIAL_RTT,
            smoothed: INITIAL_RTT,
            variance: Duration::from_nanos(INITIAL_RTT.as_nanos() as u64 / 2),
            min: INITIAL_RTT,
            has_sample: false,
        }
    }

    /// Other weights from the next sample on.
    pub(super) fn reconfigure(&mut self, config: &RttConfig) {
        let RttConfig::Ewma(weights) = config;
        self.alpha = parts(weights.alpha);
        self.beta = parts(weights.beta);
    }

    /// Takes one sample: `latest` as measured, of which the peer says it spent `delay` before it answered.
    pub(super) fn sample(&mut self, latest: Duration, delay: Duration) {
        self.latest = latest;
        if !self.has_sample {
            self.has_sample = true;
            self.min = latest;
            self.smoothed = latest;
            self.variance = latest / 2;
            return;
        }
        self.min = self.min.min(latest);
        // A delay that would take the sample below the minimum cannot be true: the sample then counts as it is.
        let adjusted = if latest >= self.min.saturating_add(delay) { latest - delay } else { latest };
        self.variance = weigh(self.variance, self.smoothed.abs_diff(adjusted), self.beta);
        self.smoothed = weigh(self.smoothed, adjusted, self.alpha);
    }

    /// Starts the minimum afresh from the latest sample: the path may have changed (RFC 9002 section 5.2).
    pub(super) fn forget_minimum(&mut self) {
        self.min = self.latest;
    }

    /// The last sample, as measured: the peer's delay is in it.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// `smoothed_rtt`: the moving average, without the peer's delay.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// `rttvar`: the mean deviation from the average.
    pub fn variance(&self) -> Duration {
        self.variance
    }

    /// The smallest sample so far.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// Whether there was a sample. Until then every value derives from [`INITIAL_RTT`].
    pub fn has_sample(&self) -> bool {
        self.has_sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn first_sample_replaces_the_assumption() {
        let mut rtt = RttEstimator::new(&RttConfig::default());
        assert_eq!(
            (rtt.smoothed(), rtt.variance(), rtt.has_sample()),
            (millis(333), Duration::from_micros(166_500), false)
        );
        rtt.sample(millis(80), millis(5));
        assert_eq!(
            (rtt.latest(), rtt.smoothed(), rtt.variance(), rtt.min()),
            (millis(80), millis(80), millis(40), millis(80))
        );
        assert!(rtt.has_sample());
    }

    #[test]
    fn later_samples_lose_the_delay_but_not_below_the_minimum() {
        let mut rtt = RttEstimator::new(&RttConfig::default());
        rtt.sample(millis(80), Duration::ZERO);
        rtt.sample(millis(104), millis(8)); // adjusted to 96
        assert_eq!(rtt.smoothed(), millis(82)); // (80 * 7 + 96) / 8
        assert_eq!(rtt.variance(), millis(34)); // (40 * 3 + 16) / 4
        rtt.sample(millis(84), millis(20)); // would be 64, below the minimum of 80
        assert_eq!(rtt.smoothed(), Duration::from_micros(82_250));
        assert_eq!(rtt.min(), millis(80));
        rtt.sample(millis(84), Duration::MAX);
        assert_eq!(rtt.latest(), millis(84));
        rtt.forget_minimum();
        assert_eq!(rtt.min(), millis(84));
    }

    #[test]
    fn weights_can_be_others() {
        let mut rtt = RttEstimator::new(&"ewma:alpha=0.5,beta=1".parse().unwrap());
        rtt.sample(millis(80), Duration::ZERO);
        rtt.sample(millis(100), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variance()), (millis(90), millis(20)));
        rtt.reconfigure(&RttConfig::default());
        rtt.sample(millis(98), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variance()), (millis(91), millis(17))); // (90 * 7 + 98) / 8, (20 * 3 + 8) / 4
    }
}
