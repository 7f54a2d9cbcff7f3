//! A controller driven by hand, for the tests of all controllers.

use super::{CongestionControl, ControllerFactory, PathView};
use crate::recovery::delivery_rate::RateSample;
use crate::recovery::loss_estimate::LossEstimate;
use crate::recovery::report::{Cause, Report};
use crate::recovery::rtt::{RttConfig, RttEstimator};
use crate::recovery::sent_packets::{Content, SentPacket};
use crate::settings::{IntegerRange, Setting, Settings, field};
use crate::time::{Rate, Time};
use std::time::Duration;

/// A controller on a path of fixed round-trip time.
pub struct Bench<C> {
    /// The controller.
    pub controller: C,
    /// The round-trip time of the path.
    pub rtt: RttEstimator,
    /// The loss that the controller sees: none.
    pub loss: LossEstimate,
    /// The time.
    pub now: Time,
    /// In flight before a report; `None`: the whole window.
    pub in_flight: Option<u64>,
    /// The path preserves marks, as far as is known.
    pub ecn_usable: bool,
}

/// The content of a report.
#[derive(Clone, Copy, Default)]
pub struct ReportSpec {
    /// `None`: feedback.
    pub cause: Option<Cause>,
    /// Packets delivered.
    pub delivered: u64,
    /// Packets lost.
    pub lost: u64,
    /// Packets whose loss is taken back.
    pub spurious: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// The program has nothing to send.
    pub app_limited: bool,
    /// Persistent congestion.
    pub persistent: bool,
    /// How long ago the packets were sent; 0: a round trip.
    pub age_millis: u64,
    /// A round-trip time sample.
    pub rtt: Option<Duration>,
    /// A delivery rate sample.
    pub rate_sample: Option<RateSample>,
}

impl<C: CongestionControl> Bench<C> {
    /// IP bytes of a full packet.
    pub const PACKET: u32 = 1000;

    /// A path whose handshake took `rtt_millis`.
    pub fn new(controller: C, rtt_millis: u64) -> Self {
        let mut rtt = RttEstimator::new(&RttConfig::default());
        rtt.sample(Time::ZERO, Duration::from_millis(rtt_millis), Duration::ZERO);
        let now = Time::ZERO + Duration::from_secs(100);
        let mut bench = Self {
            controller,
            rtt,
            loss: LossEstimate::new(&"packets:initial=0%".parse().expect("an estimator")),
            now,
            in_flight: None,
            ecn_usable: true,
        };
        let Self { controller, rtt, loss, ecn_usable, .. } = &mut bench;
        let (max_packet, ecn_usable) = (Self::PACKET, *ecn_usable);
        controller.on_path(&PathView { rtt, loss, max_packet, persistent_congestion: false, ecn_usable, salt: 0 });
        bench
    }

    /// Lets time pass.
    pub fn later(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    /// Reports packets by their numbers.
    pub fn report(&mut self, event: ReportSpec) {
        let age = if event.age_millis == 0 { self.rtt.smoothed() } else { Duration::from_millis(event.age_millis) };
        let sent = SentPacket { number: 0, time: self.now - age, bytes: Self::PACKET, content: Content::Nothing };
        let packets = |count: u64| vec![sent; count as usize];
        self.report_of(event, &packets(event.delivered), &packets(event.lost), &packets(event.spurious));
    }

    /// Reports these packets, whatever `event` counts.
    pub fn report_of(
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
    pub fn run(&mut self, time: Duration, event: ReportSpec) {
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
    pub fn packets(&self) -> f64 {
        self.controller.window() as f64 / f64::from(Self::PACKET)
    }
}

/// A controller with a window of a fixed number of packets.
#[derive(Clone, Debug, PartialEq)]
pub struct TestWindow {
    /// The packets.
    pub packets: u32,
}

impl Default for TestWindow {
    fn default() -> Self {
        Self { packets: 5 }
    }
}

impl Settings for TestWindow {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("packets", packets, IntegerRange(1, 100))];
}

impl ControllerFactory for TestWindow {
    const NAME: &'static str = "mine";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(FixedPackets { packets: self.packets, max_packet })
    }
}

/// A window of so many packets.
#[derive(Debug)]
struct FixedPackets {
    packets: u32,
    max_packet: u32,
}

impl CongestionControl for FixedPackets {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.max_packet = path.max_packet;
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {}

    fn on_report(&mut self, _report: &Report<'_>, _path: &PathView<'_>) {}

    fn window(&self) -> u64 {
        u64::from(self.packets) * u64::from(self.max_packet)
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn name(&self) -> &'static str {
        TestWindow::NAME
    }

    fn in_slow_start(&self) -> bool {
        false
    }
}
