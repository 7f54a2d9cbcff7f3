//! Packet and time thresholds (RFC 9002 section 6.1) that adapt to reordering, as the window of RFC 8985 section 6.2
//! does.

use super::GRANULARITY;
use crate::recovery::rtt::{RttEstimator, Slack};
use crate::recovery::sent_packets::LossRule;
use crate::settings::{IntegerRange, Number, Setting, Settings, Span, Switch, field};
use crate::time::Time;
use std::time::Duration;

/// The share of their increase that the thresholds lose in each round trip without spurious losses: half of it in 11
/// round trips.
const DECAY: f64 = 1.0 / 16.0;

/// Numbers of loss detection by thresholds. A packet threshold of 1 without adaptation is the first detector of lt-tcp
/// §3.3: everything below the largest acknowledged packet is lost until it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdConfig {
    /// kPacketThreshold: 3 (RFC 9002 section 6.1.1).
    pub packet_threshold: u32,
    /// Reordering raises the packet threshold to at most this. Beyond it only the time threshold applies, which detects
    /// a loss RTT/8 later.
    pub max_packet_threshold: u32,
    /// kTimeThreshold, in round trips: 9/8 (RFC 9002 section 6.1.2).
    pub time_threshold: f64,
    /// Whether reordering raises the thresholds: on.
    pub adapt: bool,
    /// Reordering raises the time threshold to at most this: 2 round trips, as in RFC 8985.
    pub max_time_threshold: f64,
    /// Timer granularity: 1 ms (RFC 9002 section 6.1.2).
    pub granularity: Duration,
    /// The longest delay of feedback: 1 ms, or 1/32 of the round-trip time if that is longer (docs/design/feedback.md).
    pub feedback_delay: Duration,
}

impl Default for ThresholdConfig {
    fn default() -> Self {
        Self {
            packet_threshold: 3,
            max_packet_threshold: 1024,
            time_threshold: 9.0 / 8.0,
            adapt: true,
            max_time_threshold: 2.0,
            granularity: GRANULARITY,
            feedback_delay: Duration::from_millis(1),
        }
    }
}

impl Settings for ThresholdConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("packets", packet_threshold, IntegerRange(1, 1 << 20)),
        field!("adapt", adapt, Switch),
        field!("most-packets", max_packet_threshold, IntegerRange(1, 1 << 20)),
        field!("time", time_threshold, Number(1.0, 10.0)),
        field!("most-time", max_time_threshold, Number(1.0, 10.0)),
        field!("granularity", granularity, Span(Duration::from_micros(1), Duration::from_secs(1))),
        field!("feedback-delay", feedback_delay, Span(Duration::ZERO, Duration::from_secs(1))),
    ];
}

/// The current thresholds.
#[derive(Debug)]
pub(in crate::recovery) struct Threshold {
    config: ThresholdConfig,
    packet_threshold: f64,
    time_threshold: f64,
    /// When the thresholds last rose or decayed.
    adapted: Time,
}

impl Threshold {
    pub(super) fn new(config: ThresholdConfig, now: Time) -> Self {
        Self {
            packet_threshold: f64::from(config.packet_threshold),
            time_threshold: config.time_threshold,
            config,
            adapted: now,
        }
    }

    /// Returns the addition of timers to a round trip.
    pub(super) fn slack(&self, rtt: &RttEstimator) -> Slack {
        let (feedback_delay, hold) = (self.feedback_delay(rtt), rtt.smoothed() / 16);
        Slack { granularity: self.config.granularity, feedback_delay, hold }
    }

    fn feedback_delay(&self, rtt: &RttEstimator) -> Duration {
        self.config.feedback_delay.max(rtt.smoothed() / 32)
    }

    /// Returns the current rule. Departs: RFC 9002 section 6.1.2 does not add the feedback delay, since a QUIC receiver
    /// acknowledges reordered packets at once. Downpour's keeps its interval: on a path shorter than 8 ms, the first
    /// feedback after a reordered packet would already declare it lost by age.
    pub(super) fn rule(&self, rtt: &RttEstimator) -> LossRule {
        let span = rtt.smoothed().max(rtt.latest()).mul_f64(self.time_threshold);
        LossRule {
            packets: self.packet_threshold as u64,
            age: span.max(self.config.granularity) + self.feedback_delay(rtt),
        }
    }

    /// Handles the acknowledgement of a packet declared lost, `age` after it was sent and with a packet `overtaken_by`
    /// numbers ahead acknowledged before it. Raises the threshold if it was too low.
    pub(super) fn on_spurious(&mut self, now: Time, overtaken_by: u64, age: Duration, rtt: &RttEstimator) {
        if !self.config.adapt {
            return;
        }
        let rule = self.rule(rtt);
        if overtaken_by >= rule.packets {
            let wanted = overtaken_by.saturating_add(1).min(u64::from(self.config.max_packet_threshold));
            self.packet_threshold = self.packet_threshold.max(wanted as f64);
        }
        if age >= rule.age {
            let span = rtt.smoothed().max(rtt.latest()).as_secs_f64();
            let wanted = (age.saturating_sub(self.feedback_delay(rtt))).as_secs_f64() / span.max(1e-9);
            self.time_threshold = self.time_threshold.max(wanted.min(self.config.max_time_threshold));
        }
        self.adapted = now;
    }

    /// Handles feedback: raised thresholds decay with each round trip.
    pub(super) fn on_feedback(&mut self, now: Time, rtt: &RttEstimator) {
        if now.since(self.adapted) >= rtt.smoothed() {
            self.adapted = now;
            let lowest = f64::from(self.config.packet_threshold);
            self.packet_threshold -= (self.packet_threshold - lowest) * DECAY;
            self.time_threshold -= (self.time_threshold - self.config.time_threshold) * DECAY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::rtt::RttConfig;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(time: u64) -> Time {
        Time::ZERO + millis(time)
    }

    fn detector(smoothed: Duration) -> (Threshold, RttEstimator) {
        let mut rtt = RttEstimator::new(&RttConfig::default());
        (0..200).for_each(|_| rtt.sample(Time::ZERO, smoothed, Duration::ZERO));
        (Threshold::new(ThresholdConfig::default(), Time::ZERO), rtt)
    }

    #[test]
    fn thresholds_without_reordering() {
        let (detector, rtt) = detector(millis(64));
        assert_eq!(detector.rule(&rtt), LossRule { packets: 3, age: millis(72 + 2) });
        let (detector, rtt) = self::detector(Duration::from_micros(100));
        assert_eq!(detector.rule(&rtt), LossRule { packets: 3, age: millis(1 + 1) });
    }

    #[test]
    fn spurious_losses_raise_the_threshold_and_quiet_lowers_it() {
        let (mut detector, rtt) = detector(millis(64));
        detector.on_spurious(at(100), 9, millis(66), &rtt);
        assert_eq!(detector.rule(&rtt), LossRule { packets: 10, age: millis(74) });
        detector.on_spurious(at(100), 2, millis(98), &rtt);
        assert_eq!(detector.rule(&rtt), LossRule { packets: 10, age: millis(98) });
        detector.on_spurious(at(100), u64::MAX, millis(5000), &rtt);
        assert_eq!(detector.rule(&rtt), LossRule { packets: 1024, age: millis(130) });
        for round in 1..=11 {
            detector.on_feedback(at(100 + 64 * round), &rtt);
            detector.on_feedback(at(101 + 64 * round), &rtt);
        }
        let rule = detector.rule(&rtt);
        assert!((500..515).contains(&rule.packets), "half remains after 11 round trips: {rule:?}");
        assert!((millis(100)..millis(103)).contains(&rule.age), "{rule:?}");
    }
}
