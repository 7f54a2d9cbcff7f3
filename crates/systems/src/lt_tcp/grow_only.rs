//! A window that never shrinks: the control case of lt-tcp §2.3, table 2.9.

use transport::congestion::{Congestion, RecoveryPeriod};
use transport::congestion::{CongestionControl, ControllerFactory, PathView};
use transport::recovery::Report;
use transport::settings::{IntegerRange, Setting, Settings, field};
use transport::time::{Rate, Time};

/// Numbers of the window that never shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrowOnlyConfig {
    /// The initial window in packets: 10 (RFC 6928).
    pub initial: u32,
}

impl Default for GrowOnlyConfig {
    fn default() -> Self {
        Self { initial: 10 }
    }
}

impl Settings for GrowOnlyConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("initial", initial, IntegerRange(1, 1000))];
}

impl ControllerFactory for GrowOnlyConfig {
    const NAME: &'static str = "grow-only";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(GrowOnly::new(*self, max_packet))
    }
}

/// Slow start until the first loss or mark, then one packet per round trip regardless: Reno without reductions.
#[derive(Debug)]
pub(super) struct GrowOnly {
    config: GrowOnlyConfig,
    /// Bytes of a full packet.
    packet: f64,
    window: f64,
    period: RecoveryPeriod,
    started: bool,
}

impl GrowOnly {
    pub(super) fn new(config: GrowOnlyConfig, max_packet: u32) -> Self {
        let packet = f64::from(max_packet);
        let window = f64::from(config.initial) * packet;
        Self { config, packet, window, period: RecoveryPeriod::default(), started: false }
    }
}

impl CongestionControl for GrowOnly {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = f64::from(path.max_packet);
        if !self.started {
            self.window = f64::from(self.config.initial) * self.packet;
        }
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {
        self.started = true;
    }

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        let Congestion { lost, marked } = self.period.congestion(report, path);
        if self.in_slow_start() && (lost || marked) {
            self.period.begin(report.now);
        }
        if report.app_limited {
            return;
        }
        let acked = report.delivered_bytes as f64;
        self.window += if self.in_slow_start() { acked } else { self.packet * acked / self.window };
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn name(&self) -> &'static str {
        "grow-only"
    }

    fn in_slow_start(&self) -> bool {
        self.period.start().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::congestion::{Bench, ReportSpec};

    #[test]
    fn grows_through_everything() {
        let mut bench = Bench::new(GrowOnly::new(GrowOnlyConfig::default(), Bench::<GrowOnly>::PACKET), 100);
        bench.report(ReportSpec { delivered: 10, ..ReportSpec::default() });
        assert_eq!((bench.packets(), bench.controller.in_slow_start()), (20.0, true));
        bench.report(ReportSpec { delivered: 10, app_limited: true, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 20.0);
        bench.report(ReportSpec { delivered: 5, lost: 5, ..ReportSpec::default() });
        assert_eq!((bench.packets(), bench.controller.in_slow_start()), (20.25, false));
        bench.later(110);
        bench.report(ReportSpec { lost: 20, persistent: true, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 20.25);
        bench.report(ReportSpec { delivered: 81, marked: 3, ..ReportSpec::default() });
        assert_eq!(bench.packets(), 24.25);
    }
}
