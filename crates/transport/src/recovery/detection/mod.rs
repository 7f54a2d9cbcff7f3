//! How packets are found to be lost: by what has overtaken them, or by duplicate acknowledgements.

mod duplicates;
mod threshold;

pub use duplicates::DuplicatesConfig;
pub use threshold::ThresholdConfig;

use super::ack_info::AckInfo;
use super::rtt::{RttEstimator, Slack};
use super::sent_packets::SentPacket;
use super::sent_packets::{Entry, SentPackets};
use crate::settings::choices;
use crate::time::Time;
use duplicates::Duplicates;
use std::time::Duration;
use threshold::Threshold;

/// Persistent congestion is everything lost over so many probe timeouts (RFC 9002 section 7.6.1).
const PERSISTENT_TIMEOUTS: u32 = 3;

/// But over no less than this. Departs: RFC 9002 section 7.6.1 has no such floor, but adds a feedback delay of 25 ms to
/// each timeout. Ours is 1 ms, and on a short path a receiver that does not get to run for some milliseconds would
/// look like a network that carries nothing.
const PERSISTENT_LEAST: Duration = Duration::from_millis(100);

/// Timer granularity where no other is set: 1 ms (RFC 9002 section 6.1.2; RFC 6298 calls it G).
const GRANULARITY: Duration = Duration::from_millis(1);

/// How losses are found.
#[derive(Clone, Debug, PartialEq)]
pub enum DetectionConfig {
    /// By how far, and for how long, later packets are ahead (RFC 9002 section 6.1, lt-tcp §3.3).
    Threshold(ThresholdConfig),
    /// By duplicate acknowledgements (arq §2.1, RFC 5681 section 3.2), where feedback tells packets in order.
    Duplicates(DuplicatesConfig),
}

choices! { "loss detection", DetectionConfig { "threshold" => Threshold(ThresholdConfig), "duplicates" => Duplicates(DuplicatesConfig) } }

impl Default for DetectionConfig {
    fn default() -> Self {
        Self::Threshold(ThresholdConfig::default())
    }
}

/// Feedback, as far as loss detection looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewAcks<'a> {
    pub(super) told: AckInfo<'a>,
    /// Packets newly said to have arrived, where that is said.
    pub(super) arrived: u64,
    /// Packets newly named, in time or late.
    pub(super) named: u64,
    /// Whether symbols were among them.
    pub(super) symbols: bool,
    /// The highest number newly named.
    pub(super) newest: Option<u64>,
}

/// Loss detection at work.
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

    /// What timers add to a round trip. Who counts duplicates has every packet answered: nothing is held back.
    pub(super) fn slack(&self, rtt: &RttEstimator) -> Slack {
        match self {
            Self::Threshold(threshold) => threshold.slack(rtt),
            Self::Duplicates(_) => Slack { granularity: GRANULARITY, feedback_delay: Duration::ZERO },
        }
    }

    /// The shortest run of losses that is persistent congestion.
    pub(super) fn persistent_duration(&self, rtt: &RttEstimator) -> Duration {
        (rtt.probe_timeout(self.slack(rtt)) * PERSISTENT_TIMEOUTS).max(PERSISTENT_LEAST)
    }

    pub(super) fn on_sent(&mut self, sent: &SentPacket) {
        if let Self::Duplicates(duplicates) = self {
            duplicates.on_sent(sent);
        }
    }

    /// A packet called lost arrived `age` after it left; the newest arrival known before was `overtaken_by` numbers ahead.
    pub(super) fn on_spurious(&mut self, now: Time, overtaken_by: u64, age: Duration, rtt: &RttEstimator) {
        if let Self::Threshold(threshold) = self {
            threshold.on_spurious(now, overtaken_by, age, rtt);
        }
    }

    /// Feedback came: finds the losses that it shows, in `flight`. Returns when the next packet will be lost by its age.
    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        heard: NewAcks<'_>,
        flight: &mut SentPackets,
        rtt: &RttEstimator,
        lost: impl FnMut(&Entry),
    ) -> Option<Time> {
        match self {
            Self::Threshold(threshold) => {
                threshold.on_feedback(now, rtt);
                flight.detect(now, threshold.rule(rtt), lost)
            }
            Self::Duplicates(duplicates) => {
                duplicates.on_feedback(now, heard, flight, lost);
                None
            }
        }
    }

    /// The next packet may be lost by its age now.
    pub(super) fn on_loss_timer(
        &self,
        now: Time,
        flight: &mut SentPackets,
        rtt: &RttEstimator,
        lost: impl FnMut(&Entry),
    ) -> Option<Time> {
        match self {
            Self::Threshold(threshold) => flight.detect(now, threshold.rule(rtt), lost),
            Self::Duplicates(_) => None,
        }
    }

    /// Silence calls for a question: numbers from `next_number` on are sent after it.
    pub(super) fn on_probe(&mut self, next_number: u64) {
        if let Self::Duplicates(duplicates) = self {
            duplicates.on_probe(next_number);
        }
    }

    /// Everything in flight was called lost: numbers from `next_number` on are sent after that.
    pub(super) fn on_empty(&mut self, next_number: u64) {
        if let Self::Duplicates(duplicates) = self {
            duplicates.on_empty(next_number, next_number);
        }
    }

    /// Packets in flight that are known to have arrived although nothing named them yet.
    pub(super) const fn arrived_unnamed(&self) -> u64 {
        match self {
            Self::Threshold(_) => 0,
            Self::Duplicates(duplicates) => duplicates.withheld(),
        }
    }

    /// Whether a loss lets one packet out whatever the window says: a fast retransmit does not wait for the window that it has halved
    /// (RFC 5681 section 3.2 step 3; RFC 9002 section 7.3.2 allows it), and the retransmission timer reckons with that.
    pub(super) const fn resends_at_once(&self) -> bool {
        matches!(self, Self::Duplicates(_))
    }

    /// Whether the oldest packet holds up the names of later ones.
    pub(super) const fn is_in_order(&self) -> bool {
        matches!(self, Self::Duplicates(_))
    }

    /// Whether the round trip of packet `newest`, the highest now named, is its own.
    pub(super) fn times_truly(&self, newest: u64) -> bool {
        match self {
            Self::Threshold(_) => true,
            Self::Duplicates(duplicates) => duplicates.times_truly(newest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::rtt::RttConfig;

    #[test]
    fn persistent_congestion_is_three_probe_timeouts_but_not_a_moment() {
        for (smoothed, least) in [(64_000, 3 * 67_000), (100, 100_000)] {
            let mut rtt = RttEstimator::new(&RttConfig::default());
            (0..200).for_each(|_| rtt.sample(Time::ZERO, Duration::from_micros(smoothed), Duration::ZERO));
            let detector = Detector::new(&DetectionConfig::default(), Time::ZERO);
            assert_eq!(detector.persistent_duration(&rtt), Duration::from_micros(least));
        }
    }
}
