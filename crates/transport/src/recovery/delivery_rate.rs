//! Delivery rate estimation (draft-cheng-iccrg-delivery-rate-estimation).

use super::sent_packets::SentPacket;
use crate::time::Time;
use std::time::Duration;

/// A delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes delivered over `interval`.
    pub delivered: u64,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Duration,
    /// The sender was application-limited during the sample, which is then a lower bound.
    pub app_limited: bool,
    /// Bytes in flight when the newest packet of the sample was sent, including it.
    pub in_flight: u64,
    /// Bytes declared lost since then, up to the previous report.
    pub lost: u64,
}

/// State of the sampler when a packet was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    delivered: u64,
    delivered_time: Time,
    first_sent_time: Time,
    app_limited: bool,
    /// Bytes in flight, including the packet.
    in_flight: u64,
    /// Bytes declared lost before.
    lost: u64,
}

/// The sampler: compares the bytes delivered with those when the newest delivered packet was sent.
#[derive(Debug)]
pub(super) struct DeliveryRate {
    delivered: u64,
    lost: u64,
    delivered_time: Time,
    first_sent_time: Time,
    /// Application-limited until this many bytes are delivered.
    app_limited_until: Option<u64>,
    sample: Option<(Snapshot, Time)>,
}

impl DeliveryRate {
    pub(super) fn new(now: Time) -> Self {
        Self { delivered: 0, lost: 0, delivered_time: now, first_sent_time: now, app_limited_until: None, sample: None }
    }

    /// Takes a snapshot for a packet of `bytes` sent while `in_flight` bytes are in flight.
    pub(super) fn on_sent(&mut self, now: Time, bytes: u32, in_flight: u64) -> Snapshot {
        if in_flight == 0 {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            app_limited: self.is_app_limited(),
            in_flight: in_flight + u64::from(bytes),
            lost: self.lost,
        }
    }

    pub(super) fn set_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// Returns whether packets sent before the end of an application-limited phase are in flight.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Handles packets declared lost, which leaves `in_flight` bytes: the end of an application-limited phase does not
    /// wait for them.
    pub(super) fn on_lost(&mut self, lost: &[SentPacket], in_flight: u64) {
        self.lost += lost.iter().map(|sent| u64::from(sent.bytes)).sum::<u64>();
        let all_gone = self.delivered + in_flight;
        self.app_limited_until = self.app_limited_until.map(|until| until.min(all_gone));
    }

    pub(super) fn on_delivered(&mut self, now: Time, sent: Time, bytes: u32, snapshot: Snapshot) {
        self.delivered += u64::from(bytes);
        self.delivered_time = now;
        if self.sample.is_none_or(|(newest, _)| snapshot.delivered >= newest.delivered) {
            self.sample = Some((snapshot, sent));
            self.first_sent_time = sent;
        }
    }

    /// Returns the sample of a feedback frame, after all its deliveries. `None` if it covers less than `min_rtt`.
    pub(super) fn take_sample(&mut self, min_rtt: Duration) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let (newest, sent) = self.sample.take()?;
        let interval = sent.since(newest.first_sent_time).max(self.delivered_time.since(newest.delivered_time));
        (interval >= min_rtt && !interval.is_zero()).then(|| RateSample {
            delivered: self.delivered - newest.delivered,
            interval,
            app_limited: newest.app_limited,
            in_flight: newest.in_flight,
            lost: self.lost - newest.lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sent_packets::Content;
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn measures_the_slower_of_sending_and_delivering() {
        let mut rate = DeliveryRate::new(Time::ZERO);
        // One packet of 1000 bytes each millisecond; delivered 100 ms later at half that pace.
        let snapshots: Vec<_> = (0..10).map(|i| rate.on_sent(at(i), 1000, i * 1000)).collect();
        let lost = SentPacket { number: 10, time: at(10), bytes: 3000, content: Content::Nothing };
        rate.on_lost(&[lost], 10_000);
        for (i, snapshot) in (0..10).zip(snapshots) {
            rate.on_delivered(at(100 + 2 * i), at(i), 1000, snapshot);
        }
        let sample = rate.take_sample(Duration::from_millis(100)).unwrap();
        let interval = Duration::from_millis(118);
        assert_eq!(
            sample,
            RateSample { delivered: 10_000, interval, app_limited: false, in_flight: 10_000, lost: 3000 }
        );
        assert_eq!(rate.take_sample(Duration::ZERO), None);
    }

    #[test]
    fn marks_samples_of_an_idle_sender() {
        let mut rate = DeliveryRate::new(Time::ZERO);
        let before = rate.on_sent(at(0), 1000, 0);
        rate.set_app_limited(1000);
        let during = rate.on_sent(at(1), 1000, 1000);
        rate.on_delivered(at(100), at(0), 1000, before);
        assert!(!rate.take_sample(Duration::ZERO).unwrap().app_limited);
        assert!(rate.is_app_limited());
        rate.on_delivered(at(101), at(1), 1000, during);
        assert!(rate.take_sample(Duration::ZERO).unwrap().app_limited);
        assert!(!rate.is_app_limited());
    }
}
