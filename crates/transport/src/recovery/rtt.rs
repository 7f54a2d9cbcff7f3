//! Round-trip time estimation (RFC 9002 section 5), with a choice of averages.

use crate::settings::{IntegerRange, Number, Setting, Settings, choices, field};
use crate::time::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// Assumed before the first sample (RFC 9002 section 6.2.2). The handshake normally gives a sample before any data is
/// sent.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);

/// How the round-trip time is smoothed.
#[derive(Clone, Debug, PartialEq)]
pub enum RttConfig {
    /// An exponentially weighted moving average of the samples (RFC 6298, RFC 9002 section 5.3).
    Ewma(RttWeights),
    /// The same, with the samples of a round trip sharing the weight of one, so that many samples do not shorten its
    /// memory (RFC 7323 appendix G). For receivers that answer every packet, as in lt-tcp and arq.
    PerRound(RttWeights),
    /// The same over the median of the last samples, which ignores outliers such as those that lt-tcp §2.2 observes.
    Median(MedianConfig),
    /// `ewma`, of which retransmission timeouts see a multiple: the fault of lt-tcp §2.2, whose timeouts are nearly all
    /// the longest allowed.
    Overestimated(OverestimatedConfig),
}

choices! { "round-trip estimator", RttConfig {
    "ewma" => Ewma(RttWeights),
    "per-round" => PerRound(RttWeights),
    "median" => Median(MedianConfig),
    "overestimated" => Overestimated(OverestimatedConfig),
} }

impl Default for RttConfig {
    fn default() -> Self {
        Self::Ewma(RttWeights::default())
    }
}

impl RttConfig {
    const fn weights(&self) -> &RttWeights {
        match self {
            Self::Ewma(weights)
            | Self::PerRound(weights)
            | Self::Median(MedianConfig { weights, .. })
            | Self::Overestimated(OverestimatedConfig { weights, .. }) => weights,
        }
    }

    /// Returns the number of samples remembered.
    const fn memory(&self) -> usize {
        match self {
            Self::Ewma(_) | Self::PerRound(_) | Self::Overestimated(_) => 0,
            Self::Median(config) => config.samples as usize,
        }
    }
}

/// Weights of a new sample.
#[derive(Clone, Debug, PartialEq)]
pub struct RttWeights {
    /// Weight in the average: 1/8 (RFC 9002 section 5.3, RFC 6298 section 2.3, arq §2.1.1).
    pub alpha: f64,
    /// Weight in the mean deviation: 1/4 (the same sources).
    pub beta: f64,
}

impl Default for RttWeights {
    fn default() -> Self {
        Self { alpha: 0.125, beta: 0.25 }
    }
}

const WEIGHT: Number = Number(0.001, 1.0);

impl Settings for RttWeights {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("alpha", alpha, WEIGHT), field!("beta", beta, WEIGHT)];
}

/// Numbers of the median.
#[derive(Clone, Debug, PartialEq)]
pub struct MedianConfig {
    /// Samples in the median: 5, so that two outliers in a row have no effect (chosen).
    pub samples: u32,
    /// Weights of the median in the averages.
    pub weights: RttWeights,
}

impl Default for MedianConfig {
    fn default() -> Self {
        Self { samples: 5, weights: RttWeights::default() }
    }
}

impl Settings for MedianConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("samples", samples, IntegerRange(1, 99)),
        field!("alpha", weights.alpha, WEIGHT),
        field!("beta", weights.beta, WEIGHT),
    ];
}

/// Numbers of the overestimate.
#[derive(Clone, Debug, PartialEq)]
pub struct OverestimatedConfig {
    /// The multiple that retransmission timeouts see: 1000, "extremely large values" (lt-tcp §2.2 has no number).
    pub factor: f64,
    /// Weights of a sample in the averages.
    pub weights: RttWeights,
}

impl Default for OverestimatedConfig {
    fn default() -> Self {
        Self { factor: 1000.0, weights: RttWeights::default() }
    }
}

impl Settings for OverestimatedConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("factor", factor, Number(1.0, 1e6)),
        field!("alpha", weights.alpha, WEIGHT),
        field!("beta", weights.beta, WEIGHT),
    ];
}

/// Weights are whole multiples of 1/`PARTS`, so that durations are averaged exactly.
const PARTS: u32 = 1 << 16;

fn parts(weight: f64) -> u32 {
    (weight * f64::from(PARTS)).round() as u32
}

/// Returns the average with a new value of weight `parts`.
fn weigh(average: Duration, value: Duration, parts: u32) -> Duration {
    (average * (PARTS - parts) + value * parts) / PARTS
}

/// Counts the samples in a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// When the round trip began.
    start: Time,
    /// Samples in it so far.
    samples: u32,
    /// Samples in the previous round trip.
    last: u32,
}

impl Round {
    /// Counts a sample, and returns the number of samples in a round trip. Departs: RFC 7323 appendix G derives it from
    /// the packets in flight, of which TCP acknowledges every second. Feedback may be rarer, so samples are counted.
    fn shares(&mut self, now: Time, smoothed: Duration) -> u32 {
        if now.since(self.start) >= smoothed {
            *self = Self { start: now, samples: 0, last: self.samples };
        }
        self.samples += 1;
        self.last.max(1)
    }
}

/// The allowances that timers add to the round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slack {
    /// Timer granularity.
    pub(super) granularity: Duration,
    /// The longest delay of feedback (max_ack_delay).
    pub(super) feedback_delay: Duration,
    /// How long feedback is delayed if little is sent (docs/design/feedback.md).
    pub(super) hold: Duration,
}

/// Smoothed round-trip time, its variation and its minimum (RFC 9002 section 5).
#[derive(Clone, Debug)]
pub struct RttEstimator {
    config: RttConfig,
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    min: Duration,
    has_sample: bool,
    round: Round,
    /// The last samples, for the median.
    recent: VecDeque<Duration>,
}

impl RttEstimator {
    pub(super) fn new(config: &RttConfig) -> Self {
        Self {
            config: config.clone(),
            latest: INITIAL_RTT,
            smoothed: INITIAL_RTT,
            variance: Duration::from_nanos(INITIAL_RTT.as_nanos() as u64 / 2),
            min: INITIAL_RTT,
            has_sample: false,
            round: Round::default(),
            recent: VecDeque::new(),
        }
    }

    /// Changes the estimator from the next sample on; the current estimates stay.
    pub(super) fn reconfigure(&mut self, config: &RttConfig) {
        self.config = config.clone();
    }

    /// Takes a sample at `now`: `latest` was measured, and the peer reports to have delayed its feedback by `delay`.
    pub fn sample(&mut self, now: Time, latest: Duration, delay: Duration) {
        self.latest = latest;
        if !self.has_sample {
            self.has_sample = true;
            self.min = latest;
            self.smoothed = latest;
            self.variance = latest / 2;
            self.settle(latest);
            return;
        }
        self.min = self.min.min(latest);
        // A delay that would take the sample below the minimum is ignored (RFC 9002 section 5.3).
        let adjusted = if latest >= self.min.saturating_add(delay) { latest - delay } else { latest };
        let value = self.settle(adjusted);
        let shares = match self.config {
            RttConfig::PerRound(_) => self.round.shares(now, self.smoothed),
            RttConfig::Ewma(_) | RttConfig::Median(_) | RttConfig::Overestimated(_) => 1,
        };
        let RttWeights { alpha, beta } = *self.config.weights();
        let share = |weight| (parts(weight) / shares).max(1);
        self.variance = weigh(self.variance, self.smoothed.abs_diff(value), share(beta));
        self.smoothed = weigh(self.smoothed, value, share(alpha));
    }

    /// Returns the value to average for a sample: itself, or the median of the last ones including it.
    fn settle(&mut self, sample: Duration) -> Duration {
        let memory = self.config.memory();
        if memory == 0 {
            self.recent.clear();
            return sample;
        }
        self.recent.truncate(memory - 1);
        self.recent.push_front(sample);
        let mut sorted: Vec<Duration> = self.recent.iter().copied().collect();
        sorted.sort_unstable();
        // With an even number, the larger of the two in the middle: a timeout is better too long than too short.
        sorted[sorted.len() / 2]
    }

    /// Resets the minimum to the latest sample after persistent congestion: the path may have changed (RFC 9002 section
    /// 5.2).
    pub(super) fn forget_minimum(&mut self) {
        self.min = self.latest;
    }

    /// Returns `latest_rtt`: the last sample as measured, including the delay of feedback.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// Returns `smoothed_rtt`: the moving average, without the delay of feedback.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// Returns `rttvar`: the mean deviation.
    pub fn variance(&self) -> Duration {
        self.variance
    }

    /// Returns `min_rtt`: the smallest sample.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// Returns the multiple of the round-trip time that retransmission timeouts see, if it is not the same.
    pub(super) const fn overestimate(&self) -> Option<f64> {
        match &self.config {
            RttConfig::Overestimated(config) => Some(config.factor),
            _ => None,
        }
    }

    /// Returns whether a sample was taken. Until then every value derives from [`INITIAL_RTT`].
    pub fn has_sample(&self) -> bool {
        self.has_sample
    }

    /// Returns the probe timeout (PTO) without back-off (RFC 9002 section 6.2.1). Before the first sample it is 1 s,
    /// from the assumed 333 ms.
    pub(super) fn probe_timeout(&self, slack: Slack) -> Duration {
        self.smoothed + (self.variance * 4).max(slack.granularity) + slack.feedback_delay.max(slack.hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::ZERO;

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
        rtt.sample(NOW, millis(80), millis(5));
        assert_eq!(
            (rtt.latest(), rtt.smoothed(), rtt.variance(), rtt.min()),
            (millis(80), millis(80), millis(40), millis(80))
        );
        assert!(rtt.has_sample());
    }

    #[test]
    fn later_samples_lose_the_delay_but_not_below_the_minimum() {
        let mut rtt = RttEstimator::new(&RttConfig::default());
        rtt.sample(NOW, millis(80), Duration::ZERO);
        rtt.sample(NOW, millis(104), millis(8)); // adjusted to 96
        assert_eq!(rtt.smoothed(), millis(82)); // (80 * 7 + 96) / 8
        assert_eq!(rtt.variance(), millis(34)); // (40 * 3 + 16) / 4
        rtt.sample(NOW, millis(84), millis(20)); // would be 64, below the minimum of 80
        assert_eq!(rtt.smoothed(), Duration::from_micros(82_250));
        assert_eq!(rtt.min(), millis(80));
        rtt.sample(NOW, millis(84), Duration::MAX);
        assert_eq!(rtt.latest(), millis(84));
        rtt.forget_minimum();
        assert_eq!(rtt.min(), millis(84));
    }

    #[test]
    fn weights_can_be_others() {
        let mut rtt = RttEstimator::new(&"ewma:alpha=0.5,beta=1".parse().unwrap());
        rtt.sample(NOW, millis(80), Duration::ZERO);
        rtt.sample(NOW, millis(100), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variance()), (millis(90), millis(20)));
        rtt.reconfigure(&RttConfig::default());
        rtt.sample(NOW, millis(98), Duration::ZERO);
        assert_eq!((rtt.smoothed(), rtt.variance()), (millis(91), millis(17))); // (90 * 7 + 98) / 8, (20 * 3 + 8) / 4
    }

    /// RFC 7323 appendix G: the average follows a step equally fast whether a round trip has one sample or fifty.
    #[test]
    fn samples_of_a_round_trip_share_its_weight() {
        let after_a_step = |text: &str, samples: u32| {
            let mut rtt = RttEstimator::new(&text.parse().unwrap());
            let mut now = NOW;
            rtt.sample(now, millis(100), Duration::ZERO);
            for value in [100, 150] {
                // Four round trips.
                for _ in 0..4 * samples {
                    now += millis(value) / samples;
                    rtt.sample(now, millis(value), Duration::ZERO);
                }
            }
            rtt.smoothed().as_millis()
        };
        // 150 - 50 x (7/8)^4 = 120.7; the first round trip of a step is a longer one.
        let spread = [1, 10, 50].map(|samples| after_a_step("per-round", samples));
        assert!(spread.iter().all(|smoothed| (118..127).contains(smoothed)), "{spread:?}");
        assert_eq!([1, 50].map(|samples| after_a_step("ewma", samples)), [120, 149]);
    }

    /// lt-tcp §2.2: its estimator sometimes reaches extremely large values. The median of five ignores two of them.
    #[test]
    fn a_median_takes_no_note_of_wild_samples() {
        let mut rtt = RttEstimator::new(&"median".parse().unwrap());
        (0..100).for_each(|_| rtt.sample(NOW, millis(80), Duration::ZERO));
        let settled = (rtt.smoothed(), rtt.variance());
        (0..2).for_each(|_| rtt.sample(NOW, millis(9000), Duration::ZERO));
        assert_eq!((rtt.smoothed(), rtt.variance(), rtt.latest()), (settled.0, settled.1 * 9 / 16, millis(9000)));
        rtt.sample(NOW, millis(9000), Duration::ZERO);
        assert_eq!(rtt.smoothed(), millis(80) + (millis(9000) - millis(80)) / 8, "three are the path");
    }

    /// A change on a live path keeps the measurements, and the memory follows the choice.
    #[test]
    fn another_rtt_estimator_keeps_the_estimate() {
        let mut rtt = RttEstimator::new(&"median:samples=9".parse().unwrap());
        (0..20).for_each(|_| rtt.sample(NOW, millis(80), Duration::ZERO));
        let known = (rtt.smoothed(), rtt.variance(), rtt.min());
        for (text, kept) in [("median:samples=3", 3), ("per-round", 0), ("ewma:alpha=0.5", 0), ("median", 1)] {
            rtt.reconfigure(&text.parse().unwrap());
            assert_eq!((rtt.smoothed(), rtt.min()), (known.0, known.2), "{text}");
            rtt.sample(NOW, millis(80), Duration::ZERO);
            assert_eq!((rtt.smoothed(), rtt.recent.len()), (millis(80), kept), "{text}");
        }
        for text in ["ewma", "per-round:alpha=0.5", "median", "median:samples=9,beta=0.5", "overestimated:factor=20"] {
            assert_eq!(text.parse::<RttConfig>().unwrap().to_string(), text);
        }
    }
}
