//! Loss detection: by overtaken packets, or by duplicate acknowledgements.

mod duplicates;
mod threshold;

pub use duplicates::DuplicatesConfig;
pub use threshold::ThresholdConfig;

use super::ack_info::AckInfo;
use super::rtt::{RttEstimator, Slack};
use super::sent_packets::SentPacket;
use super::sent_packets::{SentPackets, TrackedPacket};
use crate::settings::choices;
use crate::time::Time;
use duplicates::Duplicates;
use std::time::Duration;
use threshold::Threshold;

/// kPersistentCongestionThreshold: probe timeouts over which everything was lost (RFC 9002 section 7.6.1).
const PERSISTENT_TIMEOUTS: u32 = 3;

/// The shortest persistent congestion. Departs: RFC 9002 section 7.6.1 has no such bound, but adds a maximum ack delay
/// of 25 ms to each timeout. Downpour's is 1 ms: on a short path, a receiver not scheduled for a few milliseconds would
/// look like persistent congestion.
const SHORTEST_PERSISTENT: Duration = Duration::from_millis(100);

/// Standard timer granularity: 1 ms (RFC 9002 section 6.1.2; G in RFC 6298).
const GRANULARITY: Duration = Duration::from_millis(1);

/// How losses are detected.
#[derive(Clone, Debug, PartialEq)]
pub enum DetectionConfig {
    /// By packet and time thresholds (RFC 9002 section 6.1, lt-tcp §3.3).
    Threshold(ThresholdConfig),
    /// By duplicate acknowledgements (arq §2.1, RFC 5681 section 3.2), with feedback in order.
    Duplicates(DuplicatesConfig),
}

choices! { "loss detection", DetectionConfig { "threshold" => Threshold(ThresholdConfig), "duplicates" => Duplicates(DuplicatesConfig) } }

impl Default for DetectionConfig {
    fn default() -> Self {
        Self::Threshold(ThresholdConfig::default())
    }
}

/// The packets that feedback newly acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewAcks<'a> {
    pub(super) info: AckInfo<'a>,
    /// Packets newly counted as received, if feedback counts them.
    pub(super) arrived: u64,
    /// Packets newly named, outstanding or declared lost.
    pub(super) named: u64,
    /// Whether any of them carried symbols.
    pub(super) symbols: bool,
    /// The largest number newly named.
    pub(super) newest: Option<u64>,
}

/// The loss detector of a path.
#[derive(Debug)]
pub(super) enum Detector {
    Threshold(Threshold),
    Duplicates(Duplicates),
}

impl Detector {
    pub(super) fn new(config: &DetectionConfig, now: Time) -> Self {
        match config {
            DetectionConfig::Threshold(config) => Self::Threshold(Threshold::new(config.clone(), now)),
            DetectionConfig::Duplicates(config) => Self::Duplicates(Duplicates::new(config.clone())),
        }
    }

    /// Returns the addition of timers to the round-trip time. Duplicate acknowledgements require an answer to every
    /// packet at once.
    pub(super) fn slack(&self, rtt: &RttEstimator) -> Slack {
        match self {
            Self::Threshold(threshold) => threshold.slack(rtt),
            Self::Duplicates(_) => {
                Slack { granularity: GRANULARITY, feedback_delay: Duration::ZERO, hold: Duration::ZERO }
            }
        }
    }

    /// Returns the shortest duration of persistent congestion.
    pub(super) fn persistent_duration(&self, rtt: &RttEstimator) -> Duration {
        (rtt.probe_timeout(self.slack(rtt)) * PERSISTENT_TIMEOUTS).max(SHORTEST_PERSISTENT)
    }

    pub(super) fn on_sent(&mut self, sent: &SentPacket) {
        if let Self::Duplicates(duplicates) = self {
            duplicates.on_sent(sent);
        }
    }

    /// Handles the acknowledgement of a packet declared lost, `age` after it was sent and with a packet `overtaken_by`
    /// numbers ahead acknowledged before it.
    pub(super) fn on_spurious(&mut self, now: Time, overtaken_by: u64, age: Duration, rtt: &RttEstimator) {
        if let Self::Threshold(threshold) = self {
            threshold.on_spurious(now, overtaken_by, age, rtt);
        }
    }

    /// Handles feedback: declares packets lost. Returns when the next one will be lost by its age.
    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        acks: NewAcks<'_>,
        sent_packets: &mut SentPackets,
        rtt: &RttEstimator,
        lost: impl FnMut(&TrackedPacket),
    ) -> Option<Time> {
        match self {
            Self::Threshold(threshold) => {
                threshold.on_feedback(now, rtt);
                sent_packets.detect(now, threshold.rule(rtt), lost)
            }
            Self::Duplicates(duplicates) => {
                duplicates.on_feedback(now, acks, sent_packets, lost);
                None
            }
        }
    }

    /// Handles an expired loss timer: declares packets lost by their age.
    pub(super) fn on_loss_timer(
        &self,
        now: Time,
        sent_packets: &mut SentPackets,
        rtt: &RttEstimator,
        lost: impl FnMut(&TrackedPacket),
    ) -> Option<Time> {
        match self {
            Self::Threshold(threshold) => sent_packets.detect(now, threshold.rule(rtt), lost),
            Self::Duplicates(_) => None,
        }
    }

    /// Handles an expired probe timeout; the probe has number `next_number` or a later one.
    pub(super) fn on_probe(&mut self, next_number: u64) {
        if let Self::Duplicates(duplicates) = self {
            duplicates.on_probe(next_number);
        }
    }

    /// Handles the loss of everything in flight; the next packet has number `next_number`.
    pub(super) fn on_all_lost(&mut self, next_number: u64) {
        if let Self::Duplicates(duplicates) = self {
            duplicates.on_all_lost(next_number, next_number);
        }
    }

    /// Returns the packets in flight counted as received but not yet acknowledged.
    pub(super) const fn received_unnamed(&self) -> u64 {
        match self {
            Self::Threshold(_) => 0,
            Self::Duplicates(duplicates) => duplicates.withheld(),
        }
    }

    /// Returns whether a loss allows one packet beyond the window: a fast retransmit does not wait for the window that
    /// it has just halved (RFC 5681 section 3.2 step 3, RFC 9002 section 7.3.2), and the retransmission timer relies on
    /// it.
    pub(super) const fn allows_fast_retransmit(&self) -> bool {
        matches!(self, Self::Duplicates(_))
    }

    /// Returns whether later packets are not named before the oldest.
    pub(super) const fn is_in_order(&self) -> bool {
        matches!(self, Self::Duplicates(_))
    }

    /// Returns whether packet `newest`, the largest newly acknowledged, gives a round-trip time sample.
    pub(super) fn gives_rtt_sample(&self, newest: u64) -> bool {
        match self {
            Self::Threshold(_) => true,
            Self::Duplicates(duplicates) => duplicates.gives_rtt_sample(newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::rtt::RttConfig;

    #[test]
    fn persistent_congestion_is_three_probe_timeouts_but_not_a_moment() {
        for (smoothed, least) in [(64_000, 3 * 69_000), (100, 100_000)] {
            let mut rtt = RttEstimator::new(&RttConfig::default());
            (0..200).for_each(|_| rtt.sample(Time::ZERO, Duration::from_micros(smoothed), Duration::ZERO));
            let detector = Detector::new(&DetectionConfig::default(), Time::ZERO);
            assert_eq!(detector.persistent_duration(&rtt), Duration::from_micros(least));
        }
    }
}
