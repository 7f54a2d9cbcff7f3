//! The timeout without feedback: a probe timeout (RFC 9002 section 6.2) or a retransmission timeout (RFC 6298).

use super::rtt::{RttEstimator, Slack};
use crate::settings::{IntegerRange, Number, Setting, Settings, Span, choices, field};
use crate::time::Time;
use std::time::Duration;

/// Limit on the doublings of the timeout; any cap is reached long before.
const MAX_BACKOFF: u32 = 20;

/// A sender's action without feedback.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeoutConfig {
    /// Sends one or two probes, whatever the window allows (RFC 9002 section 6.2). No packet is declared lost.
    Probe(ProbeConfig),
    /// Declares everything in flight lost (RFC 6298): the network is taken to be empty (lt-tcp §3.5).
    Rto(RtoConfig),
}

choices! { "timeout", TimeoutConfig { "probe" => Probe(ProbeConfig), "rto" => Rto(RtoConfig) } }

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self::Probe(ProbeConfig::default())
    }
}

impl TimeoutConfig {
    /// Returns the cap on its back-off.
    pub const fn longest(&self) -> Duration {
        match self {
            Self::Probe(probe) => probe.max,
            Self::Rto(rto) => rto.max,
        }
    }

    /// Returns the timeouts in a row before it begins to double.
    const fn steady(&self) -> u32 {
        match self {
            Self::Probe(probe) => probe.steady,
            Self::Rto(_) => 0,
        }
    }
}

/// Numbers of the probe timeout.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeConfig {
    /// Cap on the back-off: 1 s (docs/design/recovery.md).
    pub max: Duration,
    /// Timeouts in a row before it begins to double: 0 (RFC 9002 section 6.2.1). Two packets in each timeout are no more than
    /// the smallest window sends (docs/design/recovery.md).
    pub steady: u32,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self { max: Duration::from_secs(1), steady: 0 }
    }
}

const LONGEST: Duration = Duration::from_secs(600);

impl Settings for ProbeConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("max", max, Span(Duration::from_millis(1), LONGEST)),
        field!("steady", steady, IntegerRange(0, MAX_BACKOFF as u64)),
    ];
}

/// Numbers of the retransmission timeout.
#[derive(Clone, Debug, PartialEq)]
pub struct RtoConfig {
    /// Lower bound: 0, as in arq §2.1.1; RFC 6298 section 2.4 has 1 s.
    pub min: Duration,
    /// Cap on the back-off: 60 s (RFC 6298 section 2.5); lt-tcp §2.2 has 5 s.
    pub max: Duration,
    /// K, the multiple of `rttvar` in the timeout: 4 (RFC 6298 section 2.3, arq §2.1.1).
    pub variance: f64,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self { min: Duration::ZERO, max: Duration::from_secs(60), variance: 4.0 }
    }
}

impl Settings for RtoConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("min", min, Span(Duration::ZERO, LONGEST)),
        field!("max", max, Span(Duration::from_millis(1), LONGEST)),
        field!("variance", variance, Number(1.0, 100.0)),
    ];

    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        (self.min > self.max).then_some(("min", "max"))
    }
}

/// The action that an expired timeout requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Probes must be sent.
    Probe,
    /// Everything in flight is lost.
    AllLost,
}

/// The timer and its back-off.
#[derive(Debug)]
pub(super) struct TimeoutTimer {
    config: TimeoutConfig,
    /// Timeouts since something was last acknowledged.
    backoff: u32,
    /// When it last expired, or when a retransmission timer was last restarted.
    since: Time,
    /// When the oldest packet in flight became the oldest.
    advanced: Time,
}

impl TimeoutTimer {
    pub(super) const fn new(config: TimeoutConfig, now: Time) -> Self {
        Self { config, backoff: 0, since: now, advanced: now }
    }

    /// Handles the sending of a packet; `first` if nothing else was in flight. Starts a stopped retransmission timer
    /// (RFC 6298 section 5.1).
    pub(super) fn on_sent(&mut self, now: Time, first: bool) {
        if first {
            self.advance(now);
        }
    }

    /// Handles feedback. Packets delivered in time (`delivered`) end the back-off; another oldest packet in flight
    /// (`advanced`) restarts a retransmission timer (RFC 6298 section 5.3). Packet numbers are never reused, so that
    /// Karn's algorithm (RFC 6298 section 3) is not needed.
    pub(super) fn on_feedback(&mut self, now: Time, delivered: bool, advanced: bool) {
        if delivered {
            self.backoff = 0;
        }
        if advanced {
            self.advance(now);
        }
    }

    const fn advance(&mut self, now: Time) {
        self.advanced = now;
        if matches!(self.config, TimeoutConfig::Rto(_)) {
            self.since = now;
        }
    }

    /// Returns when the oldest packet in flight became the oldest.
    pub(super) const fn advanced(&self) -> Time {
        self.advanced
    }

    /// Returns whether no packet has arrived for at least three timeouts: two if the second was twice as long.
    pub(super) const fn is_silent(&self) -> bool {
        let has_doubled = self.config.steady() == 0;
        self.backoff > if has_doubled { 1 } else { 2 }
    }

    /// Handles the timer's expiry.
    pub(super) fn on_expiry(&mut self, now: Time) -> Expiry {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.since = now;
        match self.config {
            TimeoutConfig::Probe(_) => Expiry::Probe,
            TimeoutConfig::Rto(_) => Expiry::AllLost,
        }
    }

    /// Returns when it expires: a probe timeout runs from the last ack-eliciting packet, a retransmission timeout from
    /// the last progress.
    pub(super) fn due(&self, last_sent: Time, rtt: &RttEstimator, slack: Slack) -> Time {
        let (from, once) = match &self.config {
            TimeoutConfig::Probe(_) => (last_sent.max(self.since), rtt.probe_timeout(slack)),
            TimeoutConfig::Rto(rto) => (self.since, retransmission_timeout(rto, rtt, slack)),
        };
        from + self.backed_off(once)
    }

    /// Returns how long packets may still arrive after all were declared lost: two more timeouts.
    pub(super) fn late_arrival_time(&self, rtt: &RttEstimator, slack: Slack) -> Duration {
        match &self.config {
            TimeoutConfig::Probe(_) => Duration::ZERO,
            TimeoutConfig::Rto(rto) => self.backed_off(retransmission_timeout(rto, rtt, slack)) * 2,
        }
    }

    /// Returns a timeout with its back-off. Departs: RFC 6298 section 2.5 caps the timeout itself. Only the back-off is
    /// capped: on a path longer than the cap, the timeout would expire before any feedback could arrive.
    fn backed_off(&self, once: Duration) -> Duration {
        let doublings = self.backoff.saturating_sub(self.config.steady());
        once.saturating_mul(1 << doublings).min(self.config.longest().max(once))
    }
}

/// Returns the retransmission timeout without back-off (RFC 6298 section 2.3; arq §2.1.1: EstimatedRTT + 4 DevRTT),
/// plus the longest delay of feedback, which the samples do not contain. An overestimate goes as far as the cap.
fn retransmission_timeout(config: &RtoConfig, rtt: &RttEstimator, slack: Slack) -> Duration {
    let deviation = rtt.variance().mul_f64(config.variance).max(slack.granularity);
    let once = rtt.smoothed() + deviation + slack.feedback_delay;
    let over = rtt.overestimate().map_or(once, |factor| once.mul_f64(factor).min(config.max));
    once.max(over).max(config.min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::rtt::RttConfig;

    const SLACK: Slack = Slack { granularity: millis(1), feedback_delay: millis(2), hold: Duration::ZERO };

    const fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(time: u64) -> Time {
        Time::ZERO + millis(time)
    }

    fn settled(smoothed: Duration) -> RttEstimator {
        let mut rtt = RttEstimator::new(&RttConfig::default());
        (0..200).for_each(|_| rtt.sample(Time::ZERO, smoothed, Duration::ZERO));
        rtt
    }

    fn timer(text: &str) -> TimeoutTimer {
        TimeoutTimer::new(text.parse().expect("a timeout"), Time::ZERO)
    }

    fn waits(timer: &mut TimeoutTimer, rtt: &RttEstimator) -> Vec<u128> {
        let mut now = at(1000);
        let mut waits = Vec::new();
        timer.on_sent(now, true);
        for _ in 0..8 {
            let next = timer.due(at(1000), rtt, SLACK);
            waits.push(next.since(now).as_millis());
            now = next;
            timer.on_expiry(now);
        }
        waits
    }

    #[test]
    fn probes_back_off_to_the_cap_and_no_further() {
        let (mut timer, rtt) = (timer("probe"), settled(millis(64)));
        // 64 + 1 + 2 ms, doubling.
        assert_eq!(waits(&mut timer, &rtt), [67, 134, 268, 536, 1000, 1000, 1000, 1000]);
        let now = at(9000);
        timer.on_feedback(now, true, true);
        assert_eq!(timer.due(now, &rtt, SLACK).since(now), millis(67));
        assert_eq!(timer.on_expiry(now), Expiry::Probe);
    }

    #[test]
    fn probes_may_begin_to_back_off_later() {
        let rtt = settled(millis(64));
        assert_eq!(waits(&mut timer("probe:steady=3"), &rtt), [67, 67, 67, 67, 134, 268, 536, 1000]);
    }

    #[test]
    fn before_a_sample_and_on_long_paths() {
        let none = RttEstimator::new(&RttConfig::default());
        for text in ["probe", "rto"] {
            let wait = timer(text).due(Time::ZERO, &none, SLACK).since(Time::ZERO);
            assert_eq!(wait, millis(333 + 4 * 166 + 2 + 2), "{text}");
        }
        let (mut timer, rtt) = (timer("probe"), settled(millis(3200)));
        for _ in 0..3 {
            assert_eq!(timer.due(at(10_000), &rtt, SLACK).since(at(10_000)), millis(3203));
            timer.on_expiry(at(10_000));
        }
    }

    /// lt-tcp §2.2: the overestimate makes every timeout the longest.
    #[test]
    fn an_overestimated_round_trip_takes_the_timeout_to_its_cap() {
        let mut rtt = RttEstimator::new(&"overestimated".parse().unwrap());
        (0..200).for_each(|_| rtt.sample(Time::ZERO, millis(64), Duration::ZERO));
        assert_eq!(rtt.smoothed(), millis(64), "the rest of the engine sees the measured value");
        assert_eq!(waits(&mut timer("rto:min=200ms,max=5s"), &rtt)[..3], [5000, 5000, 5000]);
        assert_eq!(waits(&mut timer("probe"), &rtt)[..3], [67, 134, 268]);
        rtt.reconfigure(&"overestimated:factor=10".parse().unwrap());
        assert_eq!(waits(&mut timer("rto:min=200ms,max=5s"), &rtt)[..4], [670, 1340, 2680, 5000]);
    }

    #[test]
    fn the_retransmission_timeout_runs_from_the_last_progress_and_doubles() {
        let rtt = settled(millis(64));
        assert_eq!(waits(&mut timer("rto:max=5s"), &rtt), [67, 134, 268, 536, 1072, 2144, 4288, 5000]);
        assert_eq!(waits(&mut timer("rto:min=1s"), &rtt)[..3], [1000, 2000, 4000], "RFC 6298 section 2.4");
        let mut timer = timer("rto");
        timer.on_sent(at(10), true);
        timer.on_sent(at(50), false);
        assert_eq!(timer.due(at(50), &rtt, SLACK), at(77), "later packets do not hold it up");
        timer.on_feedback(at(70), true, false);
        assert_eq!(timer.due(at(50), &rtt, SLACK), at(77), "nor does feedback without the oldest");
        timer.on_feedback(at(74), true, true);
        assert_eq!(timer.due(at(50), &rtt, SLACK), at(141));
        assert_eq!(timer.on_expiry(at(141)), Expiry::AllLost);
        timer.on_feedback(at(150), false, true);
        assert_eq!(timer.due(at(50), &rtt, SLACK), at(150 + 134), "late arrivals leave the back-off");
    }
}
