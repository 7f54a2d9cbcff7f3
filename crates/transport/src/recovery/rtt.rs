//! Round-trip time as RFC 9002 section 5 estimates it.

use std::time::Duration;

/// Assumed before the first sample (RFC 9002 section 6.2.2). The handshake normally gives a sample before any data leaves.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Smoothed round-trip time, its variation and its minimum (RFC 9002 section 5).
#[derive(Clone, Debug)]
pub struct RttEstimator {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    has_sample: bool,
}

impl RttEstimator {
    pub(super) const fn new() -> Self {
        Self {
            latest: INITIAL_RTT,
            smoothed: INITIAL_RTT,
            variance: Duration::from_nanos(INITIAL_RTT.as_nanos() as u64 / 2),
            min: INITIAL_RTT,
            has_sample: false,
        }
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
        self.variance = (self.variance * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Starts the minimum afresh from the latest sample: the path may have changed (RFC 9002 section 5.2).
    pub(super) fn forget_minimum(&mut self) {
        self.min = self.latest;
    }

    /// The last sample, as measured: the peer's delay is in it.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// `smoothed_rtt`: the moving average with weight 1/8, without the peer's delay.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// `rttvar`: the mean deviation from the average, weight 1/4.
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
        let mut rtt = RttEstimator::new();
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
        let mut rtt = RttEstimator::new();
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
}
