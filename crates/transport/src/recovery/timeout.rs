//! What a sender does when nothing comes back: it asks, or it takes everything in flight for lost.

use super::rtt::{RttEstimator, Slack};
use crate::settings::{Number, Setting, Settings, Span, choices, field};
use crate::time::Time;
use std::time::Duration;

/// Doublings of the timeout that are counted; any cap is reached long before.
const MAX_BACKOFF: u32 = 20;

/// What a sender does when nothing comes back.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeoutConfig {
    /// Asks (RFC 9002 section 6.2): a packet or two go out whatever the window says; nothing is called lost for the silence alone.
    Probe(ProbeConfig),
    /// Takes everything in flight for lost (RFC 6298): the network is empty (lt-tcp §3.5). What arrives after all is late.
    Rto(RtoConfig),
}

choices! { "timeout", TimeoutConfig { "probe" => Probe(ProbeConfig), "rto" => Rto(RtoConfig) } }

impl Default for TimeoutConfig {
    fn default() -> Self {
        Self::Probe(ProbeConfig::default())
    }
}

impl TimeoutConfig {
    /// What it backs off to.
    pub const fn longest(&self) -> Duration {
        match self {
            Self::Probe(probe) => probe.max,
            Self::Rto(rto) => rto.max,
        }
    }
}

/// Numbers of probing.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeConfig {
    /// Probe timeouts back off to at most this: 1 s (docs/design/recovery.md).
    pub max: Duration,
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self { max: Duration::from_secs(1) }
    }
}

const LONGEST: Duration = Duration::from_secs(600);

impl Settings for ProbeConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("max", max, Span(Duration::from_millis(1), LONGEST))];
}

/// Numbers of the retransmission timeout.
#[derive(Clone, Debug, PartialEq)]
pub struct RtoConfig {
    /// It is no shorter than this: 0, as arq §2.1.1 has it; RFC 6298 section 2.4 says 1 s.
    pub min: Duration,
    /// It doubles up to this: 60 s (RFC 6298 section 2.5); lt-tcp has 5 s (§2.2).
    pub max: Duration,
    /// Deviations from the average round trip that it waits for: 4 (RFC 6298 section 2.3, arq §2.1.1).
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
}

/// What came due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Ask.
    Probe,
    /// Everything in flight is lost.
    Empty,
}

/// The timer at work.
#[derive(Debug)]
pub(super) struct Timer {
    config: TimeoutConfig,
    /// Timeouts since something last arrived.
    backoff: u32,
    /// When it last ran out, or for a retransmission timeout was last started again.
    since: Time,
    /// When the oldest packet in flight became the oldest.
    advanced: Time,
}

impl Timer {
    pub(super) const fn new(config: TimeoutConfig, now: Time) -> Self {
        Self { config, backoff: 0, since: now, advanced: now }
    }

    /// A packet left; `first`: nothing else was in flight. A retransmission timer that does not run is started (RFC 6298 section
    /// 5.1).
    pub(super) fn on_sent(&mut self, now: Time, first: bool) {
        if first {
            self.advance(now);
        }
    }

    /// Feedback came that told of deliveries in time, which end the back-off; `advanced`: the oldest packet in flight is another
    /// one now, which starts a retransmission timer again (RFC 6298 section 5.3). Numbers are never used twice, so Karn's doubt about
    /// which copy was acknowledged (RFC 6298 section 3) does not arise.
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

    /// When the oldest packet in flight became the oldest.
    pub(super) const fn advanced(&self) -> Time {
        self.advanced
    }

    /// It ran out.
    pub(super) fn on_expiry(&mut self, now: Time) -> Expiry {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.since = now;
        match self.config {
            TimeoutConfig::Probe(_) => Expiry::Probe,
            TimeoutConfig::Rto(_) => Expiry::Empty,
        }
    }

    /// When silence since `last_sent` has lasted too long; a retransmission timeout is counted from the last progress.
    pub(super) fn due(&self, last_sent: Time, rtt: &RttEstimator, slack: Slack) -> Time {
        let (from, once) = match &self.config {
            TimeoutConfig::Probe(_) => (last_sent.max(self.since), rtt.probe_timeout(slack)),
            TimeoutConfig::Rto(rto) => (self.since, retransmission_timeout(rto, rtt, slack)),
        };
        from + self.backed_off(once)
    }

    /// How long after everything was called lost its late arrival is still likely: another timeout.
    pub(super) fn patience(&self, rtt: &RttEstimator, slack: Slack) -> Duration {
        match &self.config {
            TimeoutConfig::Probe(_) => Duration::ZERO,
            TimeoutConfig::Rto(rto) => self.backed_off(retransmission_timeout(rto, rtt, slack)) * 2,
        }
    }

    /// A timeout after those that went before it. The cap bounds the back-off, never the timeout itself: on a path longer than the cap,
    /// to ask or to give up before an answer can come would be useless. Departs: RFC 6298 section 2.5 caps both.
    fn backed_off(&self, once: Duration) -> Duration {
        once.saturating_mul(1 << self.backoff).min(self.config.longest().max(once))
    }
}

/// RTO without back-off (RFC 6298 section 2.3, arq §2.1.1): EstimatedRTT + 4 DevRTT, and what the peer may hold feedback back, since
/// that is not in the samples.
fn retransmission_timeout(config: &RtoConfig, rtt: &RttEstimator, slack: Slack) -> Duration {
    let deviation = rtt.variance().mul_f64(config.variance).max(slack.granularity);
    (rtt.smoothed() + deviation + slack.feedback_delay).max(config.min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::rtt::RttConfig;

    const SLACK: Slack = Slack { granularity: Duration::from_millis(1), feedback_delay: Duration::from_millis(2) };

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

    fn timer(text: &str) -> Timer {
        Timer::new(text.parse().expect("a timeout"), Time::ZERO)
    }

    fn waits(timer: &mut Timer, rtt: &RttEstimator) -> Vec<u128> {
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
        assert_eq!(timer.due(at(50), &rtt, SLACK), at(77), "nor does what leaves the oldest missing");
        timer.on_feedback(at(74), true, true);
        assert_eq!(timer.due(at(50), &rtt, SLACK), at(141));
        assert_eq!(timer.on_expiry(at(141)), Expiry::Empty);
        timer.on_feedback(at(150), false, true);
        assert_eq!(timer.due(at(50), &rtt, SLACK), at(150 + 134), "late arrivals leave the back-off");
    }
}
