//! BBR's model of the path (draft-ietf-ccwg-bbr section 2): the maximum bandwidth, the minimum round-trip time, and the
//! degree of aggregation.

use crate::recovery::delivery_rate::RateSample;
use crate::time::Time;
use std::collections::VecDeque;
use std::time::Duration;

/// MinRTTFilterLen and ProbeRTTInterval.
const MIN_RTT_LIFE: Duration = Duration::from_secs(10);
/// ExtraAckedFilterLen, in round trips.
const EXTRA_ACKED_ROUNDS: u64 = 10;

/// The maximum bandwidth of the last two probing cycles, in bytes per second (section 5.5.5).
#[derive(Debug, Default)]
pub(super) struct MaxBandwidth {
    cycles: [f64; 2],
}

impl MaxBandwidth {
    pub(super) const fn get(&self) -> f64 {
        self.cycles[0].max(self.cycles[1])
    }

    pub(super) fn on_sample(&mut self, sample: &RateSample) {
        let rate = bandwidth(sample);
        if !sample.app_limited || rate >= self.get() {
            self.cycles[1] = self.cycles[1].max(rate);
        }
    }

    /// Ends a cycle; one that measured nothing discards nothing.
    pub(super) fn advance(&mut self) {
        if self.cycles[1] > 0.0 {
            self.cycles = [self.cycles[1], 0.0];
        }
    }
}

/// Returns the bandwidth of a sample, in bytes per second.
pub(super) fn bandwidth(sample: &RateSample) -> f64 {
    sample.delivered as f64 / sample.interval.as_secs_f64().max(1e-9)
}

/// The minimum round-trip time: over 10 s, and since the queue was last drained to measure it (section 5.5.7 and
/// 5.3.4.3).
#[derive(Debug)]
pub(super) struct MinRtt {
    least: Option<Duration>,
    since: Time,
    /// Since the last ProbeRTT, or since a lower one was seen.
    recent: Option<Duration>,
    recent_since: Time,
    /// It is time for ProbeRTT.
    pub(super) expired: bool,
}

impl MinRtt {
    pub(super) const fn new() -> Self {
        Self { least: None, since: Time::ZERO, recent: None, recent_since: Time::ZERO, expired: false }
    }

    /// Returns the minimum in seconds; `None` before the first sample.
    pub(super) fn get(&self) -> Option<f64> {
        self.least.map(|rtt| rtt.as_secs_f64().max(1e-6))
    }

    pub(super) fn on_sample(&mut self, now: Time, rtt: Option<Duration>, probe_every: Duration) {
        self.expired = self.recent.is_some() && now.since(self.recent_since) > probe_every;
        if let Some(rtt) = rtt
            && (self.expired || self.recent.is_none_or(|recent| rtt < recent))
        {
            self.recent = Some(rtt);
            self.recent_since = now;
        }
        let old = now.since(self.since) > MIN_RTT_LIFE;
        if let Some(recent) = self.recent
            && (old || self.least.is_none_or(|least| recent < least))
        {
            self.least = Some(recent);
            self.since = self.recent_since;
        }
    }

    /// Notes that the queue has just been empty.
    pub(super) const fn measured(&mut self, now: Time) {
        self.recent_since = now;
        self.expired = false;
    }
}

/// The excess of deliveries over the bandwidth: acknowledgements arrive in bunches (section 5.5.9).
#[derive(Debug, Default)]
pub(super) struct Aggregation {
    since: Time,
    delivered: f64,
    /// The largest value of each of the last ten round trips.
    extra: VecDeque<(u64, f64)>,
}

impl Aggregation {
    pub(super) fn get(&self) -> f64 {
        self.extra.front().map_or(0.0, |(_, extra)| *extra)
    }

    pub(super) fn on_delivered(&mut self, now: Time, round: u64, bytes: f64, bandwidth: f64, most: f64) {
        let mut expected = bandwidth * now.since(self.since).as_secs_f64();
        if self.delivered <= expected {
            (self.since, self.delivered, expected) = (now, 0.0, 0.0);
        }
        self.delivered += bytes;
        let extra = (self.delivered - expected).min(most);
        while self.extra.front().is_some_and(|(at, _)| at + EXTRA_ACKED_ROUNDS <= round) {
            self.extra.pop_front();
        }
        while self.extra.back().is_some_and(|(_, other)| *other <= extra) {
            self.extra.pop_back();
        }
        self.extra.push_back((round, extra));
    }
}
