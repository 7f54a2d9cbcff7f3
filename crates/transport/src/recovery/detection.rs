//! When a packet counts as lost, and when silence calls for a probe (RFC 9002 section 6), with thresholds that adapt to
//! the reordering seen (as RFC 8985 section 6.2 adapts its window).

use super::flight::LossRule;
use super::rtt::RttEstimator;
use super::timeout::TimeoutConfig;
use crate::settings::{Count, Number, Setting, Settings, Span, choices, field};
use crate::time::Time;
use std::time::Duration;

/// Share of the raise above the configured thresholds that each quiet round trip takes away: half is gone after 11.
const DECAY: f64 = 1.0 / 16.0;

/// Doublings of the probe timeout that are counted; any cap is reached long before.
const MAX_BACKOFF: u32 = 20;

/// Persistent congestion is everything lost over so many probe timeouts (RFC 9002 section 7.6.1).
const PERSISTENT_TIMEOUTS: u32 = 3;

/// But over no less than this. Departs: RFC 9002 section 7.6.1 has no such floor, but adds a feedback delay of 25 ms to
/// each timeout. Ours is 1 ms, and on a short path a receiver that does not get to run for some milliseconds would
/// look like a network that carries nothing.
const PERSISTENT_LEAST: Duration = Duration::from_millis(100);

/// How losses are found.
#[derive(Clone, Debug, PartialEq)]
pub enum DetectionConfig {
    /// By how far, and for how long, later packets are ahead (RFC 9002 section 6.1).
    Threshold(Detection),
}

choices! { "loss detection", DetectionConfig { "threshold" => Threshold(Detection) } }

impl Default for DetectionConfig {
    fn default() -> Self {
        Self::Threshold(Detection::default())
    }
}

/// Numbers of loss detection.
#[derive(Clone, Debug, PartialEq)]
pub struct Detection {
    /// A packet is lost when one sent so many packets later has arrived, without reordering: 3 (RFC 9002 section 6.1.1).
    pub packet_threshold: u32,
    /// Reordering raises the packet threshold up to this. Time then decides alone, at a cost of RTT/8 per loss.
    pub max_packet_threshold: u32,
    /// A packet older than so many round trips is lost when a later one has arrived: 9/8 (RFC 9002 section 6.1.2).
    pub time_threshold: f64,
    /// Reordering raises the time threshold up to this: 2, a whole round trip late, as in RFC 8985.
    pub max_time_threshold: f64,
    /// Timer granularity: 1 ms (RFC 9002 section 6.1.2).
    pub granularity: Duration,
    /// How long the peer may hold feedback back: 1 ms, or a 32nd of the round trip if that is longer (design section 8).
    pub feedback_delay: Duration,
}

impl Default for Detection {
    fn default() -> Self {
        Self {
            packet_threshold: 3,
            max_packet_threshold: 1024,
            time_threshold: 9.0 / 8.0,
            max_time_threshold: 2.0,
            granularity: Duration::from_millis(1),
            feedback_delay: Duration::from_millis(1),
        }
    }
}

impl Settings for Detection {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("packets", packet_threshold, Count(1, 1 << 20)),
        field!("most-packets", max_packet_threshold, Count(1, 1 << 20)),
        field!("time", time_threshold, Number(1.0, 10.0)),
        field!("most-time", max_time_threshold, Number(1.0, 10.0)),
        field!("granularity", granularity, Span(Duration::from_micros(1), Duration::from_secs(1))),
        field!("feedback-delay", feedback_delay, Span(Duration::ZERO, Duration::from_secs(1))),
    ];
}

/// Loss detection at work: the present thresholds and the back-off of probes.
#[derive(Debug)]
pub(super) struct Detector {
    config: Detection,
    max_probe_timeout: Duration,
    packet_threshold: f64,
    time_threshold: f64,
    /// When the thresholds last rose or decayed.
    adapted: Time,
    /// Probe timeouts since something last arrived.
    backoff: u32,
    last_probe: Time,
}

impl Detector {
    pub(super) fn new(config: &DetectionConfig, timeout: &TimeoutConfig, now: Time) -> Self {
        let DetectionConfig::Threshold(config) = config.clone();
        Self {
            packet_threshold: f64::from(config.packet_threshold),
            time_threshold: config.time_threshold,
            config,
            max_probe_timeout: timeout.longest(),
            adapted: now,
            backoff: 0,
            last_probe: now,
        }
    }

    /// How long the peer may hold feedback back.
    pub(super) fn feedback_delay(&self, rtt: &RttEstimator) -> Duration {
        self.config.feedback_delay.max(rtt.smoothed() / 32)
    }

    /// The present rule. Departs: RFC 9002 section 6.1.2 does not add the feedback delay, as a QUIC receiver answers
    /// reordering at once. Ours keeps its rhythm, and on a path shorter than 8 ms a packet that has merely been
    /// overtaken would be called lost by age in the very feedback that shows it.
    pub(super) fn rule(&self, rtt: &RttEstimator) -> LossRule {
        let span = rtt.smoothed().max(rtt.latest()).mul_f64(self.time_threshold);
        LossRule {
            packets: self.packet_threshold as u64,
            age: span.max(self.config.granularity) + self.feedback_delay(rtt),
        }
    }

    /// A packet called lost arrived `age` after it left. `overtaken_by` is how far the newest arrival known before
    /// was ahead of it. Raises what would have called it lost so that it would have waited.
    pub(super) fn on_spurious(&mut self, now: Time, overtaken_by: u64, age: Duration, rtt: &RttEstimator) {
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

    /// Feedback came: a quiet round trip lowers raised thresholds a little; `delivered` ends the back-off.
    pub(super) fn on_feedback(&mut self, now: Time, delivered: bool, rtt: &RttEstimator) {
        if delivered {
            self.backoff = 0;
        }
        if now.since(self.adapted) >= rtt.smoothed() {
            self.adapted = now;
            let lowest = f64::from(self.config.packet_threshold);
            self.packet_threshold -= (self.packet_threshold - lowest) * DECAY;
            self.time_threshold -= (self.time_threshold - self.config.time_threshold) * DECAY;
        }
    }

    pub(super) fn on_probe_timeout(&mut self, now: Time) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.last_probe = now;
    }

    /// PTO without back-off (RFC 9002 section 6.2.1). Before the first sample it is 1 s, from the assumed 333 ms.
    pub(super) fn probe_timeout(&self, rtt: &RttEstimator) -> Duration {
        rtt.smoothed() + (rtt.variance() * 4).max(self.config.granularity) + self.feedback_delay(rtt)
    }

    /// What the back-off of probes is capped at.
    pub(super) const fn max_probe_timeout(&self) -> Duration {
        self.max_probe_timeout
    }

    /// When silence after `last_sent` calls for a probe. The cap bounds the back-off, never the timeout itself: on a
    /// path longer than the cap a probe before the answer can come would be useless.
    pub(super) fn probe_at(&self, last_sent: Time, rtt: &RttEstimator) -> Time {
        let once = self.probe_timeout(rtt);
        let backed_off = once.saturating_mul(1 << self.backoff);
        last_sent.max(self.last_probe) + backed_off.min(self.max_probe_timeout.max(once))
    }

    /// The shortest run of losses that is persistent congestion.
    pub(super) fn persistent_duration(&self, rtt: &RttEstimator) -> Duration {
        (self.probe_timeout(rtt) * PERSISTENT_TIMEOUTS).max(PERSISTENT_LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(time: u64) -> Time {
        Time::ZERO + millis(time)
    }

    fn detector(smoothed: Duration) -> (Detector, RttEstimator) {
        let mut rtt = RttEstimator::new();
        (0..200).for_each(|_| rtt.sample(smoothed, Duration::ZERO));
        (Detector::new(&DetectionConfig::default(), &TimeoutConfig::default(), Time::ZERO), rtt)
    }

    #[test]
    fn thresholds_without_reordering() {
        let (detector, rtt) = detector(millis(64));
        assert_eq!(detector.rule(&rtt), LossRule { packets: 3, age: millis(72 + 2) });
        assert_eq!(detector.persistent_duration(&rtt), millis(3 * 67));
        let (detector, rtt) = self::detector(Duration::from_micros(100));
        assert_eq!(detector.rule(&rtt), LossRule { packets: 3, age: millis(1 + 1) });
        assert_eq!(detector.persistent_duration(&rtt), millis(100));
    }

    #[test]
    fn spurious_losses_raise_what_was_too_low_and_quiet_lowers_it() {
        let (mut detector, rtt) = detector(millis(64));
        detector.on_spurious(at(100), 9, millis(66), &rtt);
        assert_eq!(detector.rule(&rtt), LossRule { packets: 10, age: millis(74) });
        detector.on_spurious(at(100), 2, millis(98), &rtt);
        assert_eq!(detector.rule(&rtt), LossRule { packets: 10, age: millis(98) });
        detector.on_spurious(at(100), u64::MAX, millis(5000), &rtt);
        assert_eq!(detector.rule(&rtt), LossRule { packets: 1024, age: millis(130) });
        for round in 1..=11 {
            detector.on_feedback(at(100 + 64 * round), true, &rtt);
            detector.on_feedback(at(101 + 64 * round), true, &rtt);
        }
        let rule = detector.rule(&rtt);
        assert!((500..515).contains(&rule.packets), "half is gone after 11 round trips: {rule:?}");
        assert!((millis(100)..millis(103)).contains(&rule.age), "{rule:?}");
    }

    #[test]
    fn probes_back_off_to_the_cap_and_no_further() {
        let (mut detector, rtt) = detector(millis(64));
        let mut now = at(1000);
        let mut waits = Vec::new();
        for _ in 0..8 {
            let next = detector.probe_at(at(1000), &rtt);
            waits.push(next.since(now).as_millis());
            now = next;
            detector.on_probe_timeout(now);
        }
        // 64 + 1 + 2 ms, doubling.
        assert_eq!(waits, [67, 134, 268, 536, 1000, 1000, 1000, 1000]);
        detector.on_feedback(now, true, &rtt);
        assert_eq!(detector.probe_at(now, &rtt).since(now), millis(67));
    }

    #[test]
    fn before_a_sample_and_on_long_paths() {
        let detector = Detector::new(&DetectionConfig::default(), &TimeoutConfig::default(), Time::ZERO);
        let wait = detector.probe_at(Time::ZERO, &RttEstimator::new()).since(Time::ZERO);
        assert!((millis(999)..millis(1011)).contains(&wait), "{wait:?}");
        let (mut detector, rtt) = self::detector(millis(3200));
        for _ in 0..3 {
            assert!(detector.probe_at(at(10_000), &rtt).since(at(10_000)) >= millis(3301));
            detector.on_probe_timeout(at(10_000));
        }
    }
}
