//! Flow control of the Tornado Transport Protocol (ttp §II-B, figure 1): the rate is halved when loss exceeds one of
//! two thresholds, raised when nothing is lost, and kept otherwise.
//!
//! Departs: CE marks, which the document does not have, and timeouts count as congestion. The profile decides when
//! feedback is sent; in the document, control packets are sent every n packets.

use super::loss_window::LossWindow;
use std::time::Duration;
use transport::congestion::{CongestionControl, ControllerFactory, PathView};
use transport::recovery::INITIAL_RTT;
use transport::recovery::{Cause, Report};
use transport::settings::{BitRate, IntegerRange, Setting, Settings, Share, field};
use transport::time::{Rate, Time};

/// Numbers of TTP's flow control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TtpRate {
    /// The rate of the bottleneck, which the document assumes to be known (§II-B): 50 Mbit/s, that of its short-slim
    /// network (§III-A).
    pub bottleneck: Rate,
    /// The share of it to start at: 80 % (§III-A), within `min` and `max`.
    pub start: f64,
    /// The lowest rate: 8 Mbit/s (§III-A).
    pub min: Rate,
    /// The highest rate: 10 Mbit/s in the short-slim network, 100 Mbit/s in the long-fat one (§III-A).
    pub max: Rate,
    /// The increase of the rate by feedback without loss. Chosen: 1 Mbit/s; the document has "a constant" (§II-B).
    pub add: Rate,
    /// q, the packets lost in a row that count as congestion: 3 (§III-A).
    pub q: u32,
    /// n, the packets over which the perceived loss is taken: 1024 (§III-A, control packets of 1K bits).
    pub last: u32,
}

impl Default for TtpRate {
    fn default() -> Self {
        let mbit = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
        Self { bottleneck: mbit(50), start: 0.8, min: mbit(8), max: mbit(10), add: mbit(1), q: 3, last: 1024 }
    }
}

impl Settings for TtpRate {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("bottleneck", bottleneck, BitRate),
        field!("start", start, Share(0.01, 1.0)),
        field!("min", min, BitRate),
        field!("max", max, BitRate),
        field!("add", add, BitRate),
        field!("q", q, IntegerRange(1, 10_000)),
        field!("last", last, IntegerRange(16, 65_536)),
    ];

    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        (self.min > self.max).then_some(("min", "max"))
    }
}

impl ControllerFactory for TtpRate {
    const NAME: &'static str = "ttp";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(Ttp::new(*self, max_packet))
    }
}

/// While nothing is lost, feedback becomes rarer than every n packets by a constant factor (§II-B), by at most 16
/// ([`PacketCountTiming::factor`](transport::wire::PacketCountTiming)). The window must allow for it.
const RAREST_FEEDBACK: u64 = 16;

/// The losses, and the last burst of them.
#[derive(Debug)]
struct Losses {
    fates: LossWindow,
    /// The last packet lost, and how many were lost in a row up to it.
    run: Option<(u64, u32)>,
}

impl Losses {
    /// Counts packets in the order of their numbers. Returns true if a loss is the `q`th in a row.
    fn on_report(&mut self, report: &Report<'_>, q: u32) -> bool {
        self.fates.on_spurious(report.spurious.len());
        let mut reached = false;
        let Self { fates, run } = self;
        fates.on_report(report.delivered, report.lost, |number| {
            let before = run.filter(|(last, _)| last + 1 == number);
            let count = before.map_or(1, |(_, count)| count + 1);
            *run = Some((number, count));
            // A burst is one event, however long it becomes.
            reached |= count == q;
        });
        reached
    }
}

/// The rate, and the losses on which it depends.
#[derive(Debug)]
pub(super) struct Ttp {
    config: TtpRate,
    rate: Rate,
    window: u64,
    losses: Losses,
}

impl Ttp {
    pub(super) fn new(config: TtpRate, max_packet: u32) -> Self {
        let rate = config.bottleneck.scaled(config.start);
        let mut ttp =
            Self { config, rate, window: 0, losses: Losses { fates: LossWindow::new(config.last), run: None } };
        ttp.set_rate(rate);
        ttp.resize(INITIAL_RTT, max_packet);
        ttp
    }

    /// Sets the rate, within the minimum and the maximum (§II-B). If the maximum is below the minimum, the maximum
    /// wins.
    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate.max(self.config.min).min(self.config.max);
    }

    /// The document has no window. This one only stops a sender without feedback: two round trips, and the packets
    /// between two feedback frames.
    fn resize(&mut self, rtt: Duration, max_packet: u32) {
        let unreported = RAREST_FEEDBACK * u64::from(self.config.last) * u64::from(max_packet);
        self.window = self.rate.bytes_in(2 * rtt).saturating_add(unreported);
    }
}

impl CongestionControl for Ttp {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.resize(path.rtt.smoothed(), path.max_packet);
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {}

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        let TtpRate { q, add, .. } = self.config;
        let in_a_row = self.losses.on_report(report, q);
        let Losses { fates, .. } = &self.losses;
        let has_news = !report.delivered.is_empty() || !report.lost.is_empty();
        let lost = !report.lost.is_empty() || report.newly_marked > 0;
        let congested = in_a_row || report.newly_marked > 0 || (lost && fates.perceived() > fates.link());
        if congested || report.cause == Cause::Timeout || path.persistent_congestion {
            self.set_rate(self.rate.scaled(0.5));
        } else if has_news && !lost && report.cause == Cause::Feedback && !report.app_limited {
            self.set_rate(Rate::from_bits_per_second(
                self.rate.bits_per_second().saturating_add(add.bits_per_second()),
            ));
        }
        self.resize(path.rtt.smoothed(), path.max_packet);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.rate)
    }

    fn name(&self) -> &'static str {
        "ttp"
    }

    fn in_slow_start(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::congestion::{Bench as TestBench, ReportSpec};
    use transport::recovery::{Content, SentPacket};

    type Bench = TestBench<Ttp>;

    const SENT: SentPacket = SentPacket { number: 0, time: Time::ZERO, bytes: 1000, content: Content::Nothing };

    fn bench(numbers: &str) -> Bench {
        Bench::new(Ttp::new(transport::settings::read("ttp", numbers, TtpRate::default()).unwrap(), Bench::PACKET), 50)
    }

    fn mbits(bench: &Bench) -> f64 {
        bench.controller.rate.bits_per_second() as f64 / 1e6
    }

    /// A control packet: of packets `from..from + count`, those in `lost` are missing.
    fn bitmap(bench: &mut Bench, from: u64, count: u64, lost: &[u64]) {
        let sent = |number: u64| SentPacket { number, time: bench.now, ..SENT };
        let arrived: Vec<SentPacket> = (from..from + count).filter(|number| !lost.contains(number)).map(sent).collect();
        let lost: Vec<SentPacket> = lost.iter().copied().map(sent).collect();
        bench.report_of(ReportSpec::default(), &arrived, &lost, &[]);
    }

    #[test]
    fn starts_at_a_share_of_the_bottleneck_within_its_bounds() {
        assert_eq!(mbits(&bench("")), 10.0, "40 Mbit/s, and 10 at most");
        assert_eq!(mbits(&bench("bottleneck=155M,max=100M")), 100.0, "124 Mbit/s, and 100 at most");
        assert_eq!(mbits(&bench("bottleneck=20M,max=100M")), 16.0);
        assert_eq!(mbits(&bench("bottleneck=5M")), 8.0);
        // Two round trips at 10 Mbit/s, and sixteen times 1024 packets without feedback.
        assert_eq!(bench("").controller.window(), 125_000 + 16 * 1024 * 1000);
    }

    /// Figure 1: no loss adds, a loss below both thresholds holds, above one of them halves.
    #[test]
    fn adds_holds_and_halves() {
        let mut bench = bench("bottleneck=50M,max=100M");
        assert_eq!(mbits(&bench), 40.0);
        bitmap(&mut bench, 0, 1024, &[]);
        assert_eq!(mbits(&bench), 41.0, "no loss");
        // 2 of 1026 lost, by both counts except for the two packets of a shorter memory: 2 / 1022 > 2 / 1026.
        bitmap(&mut bench, 1024, 2, &[1024, 1025]);
        assert_eq!(mbits(&bench), 20.5, "perceived loss above the link's");
        bitmap(&mut bench, 1026, 1022, &[]);
        assert_eq!(mbits(&bench), 21.5);
        bitmap(&mut bench, 2048, 8, &[2048, 2050, 2052, 2054]);
        assert_eq!(mbits(&bench), 10.75, "4 of 1020 against 6 of 2056");
        bitmap(&mut bench, 2056, 1024, &[]);
        bitmap(&mut bench, 3080, 1024, &[]);
        assert_eq!(mbits(&bench), 12.75);
        bitmap(&mut bench, 4104, 1024, &[4200]);
        assert_eq!(mbits(&bench), 12.75, "1 of 1023 against 7 of 5128: held");
        bitmap(&mut bench, 5128, 100, &[5130, 5131, 5132, 5133]);
        assert_eq!(mbits(&bench), 8.0, "halved, and never below the minimum");
    }

    #[test]
    fn q_in_a_row_halve_once_also_across_reports() {
        let mut bench = bench("bottleneck=100M,max=100M,last=16384");
        // A long-term loss of 10 %, so that only runs count.
        let fates = &mut bench.controller.losses.fates;
        for _ in 0..10 {
            fates.on_lost();
            fates.on_delivered(9);
        }
        fates.on_delivered(16_384);
        assert_eq!(mbits(&bench), 80.0);
        bitmap(&mut bench, 10, 0, &[10, 11, 13, 14]);
        assert_eq!(mbits(&bench), 80.0, "two and two");
        bitmap(&mut bench, 15, 0, &[15]);
        assert_eq!(mbits(&bench), 40.0, "the third in a row");
        bitmap(&mut bench, 16, 0, &[16, 17, 18]);
        assert_eq!(mbits(&bench), 40.0, "still the same run");
    }
    /// A spurious loss does not make the next loss look like the link's usual losses.
    #[test]
    fn losses_that_were_none_are_taken_back() {
        for (refuted, rate) in [(0, 20.0), (40, 10.0)] {
            let mut bench = bench("bottleneck=50M,max=100M");
            let early: Vec<u64> = (0..40).map(|nth| nth * 2).collect();
            bitmap(&mut bench, 0, 80, &early);
            assert_eq!(mbits(&bench), 20.0);
            let late: Vec<SentPacket> =
                early[..refuted].iter().map(|number| SentPacket { number: *number, ..SENT }).collect();
            bench.report_of(ReportSpec { app_limited: true, ..ReportSpec::default() }, &[], &[], &late);
            let quiet: Vec<SentPacket> = (80..2_000).map(|number| SentPacket { number, ..SENT }).collect();
            bench.report_of(ReportSpec { app_limited: true, ..ReportSpec::default() }, &quiet, &[], &[]);
            bitmap(&mut bench, 2_000, 1, &[2_000]);
            assert_eq!(mbits(&bench), rate, "1 of 1023 against 41 or 1 of 2001");
        }
    }

    /// Of a report with more packets than the short-term loss covers, the last ones count.
    #[test]
    fn packets_are_settled_in_their_order() {
        let mut bench = bench("bottleneck=50M,max=100M,last=16");
        bitmap(&mut bench, 0, 100, &[1, 3, 5]);
        assert_eq!(mbits(&bench), 40.0, "none of the last 16, 3 of all: held");
        bitmap(&mut bench, 100, 100, &[195, 197]);
        assert_eq!(mbits(&bench), 20.0, "2 of 14 against 5 of 200");
    }
}
