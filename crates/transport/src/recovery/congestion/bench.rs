//! A controller driven by hand, for the tests of all controllers.

use super::{CongestionControl, PathView};
use crate::recovery::delivery_rate::RateSample;
use crate::recovery::loss_estimate::LossEstimate;
use crate::recovery::report::{Cause, Report};
use crate::recovery::rtt::{RttConfig, RttEstimator};
use crate::recovery::sent_packets::{Content, SentPacket};
use crate::time::Time;
use std::time::Duration;

/// A controller on a path of fixed round-trip time.
pub(super) struct Bench<C> {
    pub(super) controller: C,
    pub(super) rtt: RttEstimator,
    pub(super) loss: LossEstimate,
    pub(super) now: Time,
    /// In flight before a report; `None`: the whole window.
    pub(super) in_flight: Option<u64>,
    /// The path preserves marks, as far as is known.
    pub(super) ecn_usable: bool,
}

/// The content of a report.
#[derive(Clone, Copy, Default)]
pub(super) struct ReportSpec {
    pub(super) cause: Option<Cause>,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) spurious: u64,
    pub(super) marked: u64,
    pub(super) app_limited: bool,
    pub(super) persistent: bool,
    /// How long ago the packets were sent; 0: a round trip.
    pub(super) age_millis: u64,
    pub(super) rtt: Option<Duration>,
    pub(super) rate_sample: Option<RateSample>,
}

impl<C: CongestionControl> Bench<C> {
    pub(super) const PACKET: u32 = 1000;

    /// A path whose handshake took `rtt_millis`.
    pub(super) fn new(controller: C, rtt_millis: u64) -> Self {
        let mut rtt = RttEstimator::new(&RttConfig::default());
        rtt.sample(Time::ZERO, Duration::from_millis(rtt_millis), Duration::ZERO);
        let now = Time::ZERO + Duration::from_secs(100);
        let mut bench = Self {
            controller,
            rtt,
            loss: LossEstimate::new(&"packets:initial=0%".parse().unwrap()),
            now,
            in_flight: None,
            ecn_usable: true,
        };
        let Self { controller, rtt, loss, ecn_usable, .. } = &mut bench;
        let (max_packet, ecn_usable) = (Self::PACKET, *ecn_usable);
        controller.on_path(&PathView { rtt, loss, max_packet, persistent_congestion: false, ecn_usable, salt: 0 });
        bench
    }

    pub(super) fn later(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    pub(super) fn report(&mut self, event: ReportSpec) {
        let age = if event.age_millis == 0 { self.rtt.smoothed() } else { Duration::from_millis(event.age_millis) };
        let sent = SentPacket { number: 0, time: self.now - age, bytes: Self::PACKET, content: Content::Nothing };
        let packets = |count: u64| vec![sent; count as usize];
        self.report_of(event, &packets(event.delivered), &packets(event.lost), &packets(event.spurious));
    }

    /// Reports these packets, whatever `event` counts.
    pub(super) fn report_of(
        &mut self,
        event: ReportSpec,
        delivered: &[SentPacket],
        lost: &[SentPacket],
        spurious: &[SentPacket],
    ) {
        let report = Report {
            cause: event.cause.unwrap_or(Cause::Feedback),
            delivered,
            lost,
            spurious,
            delivered_bytes: delivered.len() as u64 * u64::from(Self::PACKET),
            lost_bytes: lost.len() as u64 * u64::from(Self::PACKET),
            newly_marked: event.marked,
            rtt: event.rtt,
            path_rtt: event.rtt,
            rate_sample: event.rate_sample,
            in_flight_before: self.in_flight.unwrap_or(self.controller.window()),
            app_limited: event.app_limited,
            ..Report::empty(self.now)
        };
        let Self { controller, rtt, loss, ecn_usable, .. } = self;
        let (max_packet, persistent_congestion, ecn_usable) = (Self::PACKET, event.persistent, *ecn_usable);
        controller.on_report(&report, &PathView { rtt, loss, max_packet, persistent_congestion, ecn_usable, salt: 0 });
    }

    /// Lets `time` pass with a full window and 32 reports per round trip.
    pub(super) fn run(&mut self, time: Duration, event: ReportSpec) {
        let step = self.rtt.smoothed() / 32;
        let end = self.now + time;
        let mut credit = 0.0;
        while self.now < end {
            self.now += step;
            credit += self.packets() / 32.0;
            let delivered = credit as u64;
            credit -= delivered as f64;
            // SentPacket a round trip ago, but never before the reduction.
            self.report(ReportSpec { delivered, ..event });
        }
    }

    /// Returns the window in packets.
    pub(super) fn packets(&self) -> f64 {
        self.controller.window() as f64 / f64::from(Self::PACKET)
    }
}
