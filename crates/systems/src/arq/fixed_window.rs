//! A fixed window (arq §2.1).

use transport::congestion::{CongestionControl, ControllerFactory, PathView};
use transport::recovery::Report;
use transport::settings::{BitRate, IntegerRange, Or, Setting, Settings, field};
use transport::time::{Rate, Time};

/// Numbers of the fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindowConfig {
    /// In packets: 5 (arq §2.1.1).
    pub segments: u32,
    /// If given, the window is instead the product of this rate and the first round-trip time sample (arq §2.1.1).
    pub rate: Option<Rate>,
}

impl Default for FixedWindowConfig {
    fn default() -> Self {
        Self { segments: 5, rate: None }
    }
}

impl Settings for FixedWindowConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("segments", segments, IntegerRange(1, 1_000_000)), field!("rate", rate, Or("none", BitRate))];
}

impl ControllerFactory for FixedWindowConfig {
    const NAME: &'static str = "fixed-window";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(FixedWindow::new(*self, max_packet))
    }
}

/// A fixed number of packets in flight, whatever the losses.
#[derive(Debug)]
pub(super) struct FixedWindow {
    config: FixedWindowConfig,
    window: u64,
    /// Whether the round-trip time was measured: by the handshake, in the document by a ping.
    measured: bool,
}

impl FixedWindow {
    pub(super) fn new(config: FixedWindowConfig, max_packet: u32) -> Self {
        Self { config, window: u64::from(config.segments) * u64::from(max_packet), measured: false }
    }
}

impl CongestionControl for FixedWindow {
    fn on_path(&mut self, path: &PathView<'_>) {
        let packet = u64::from(path.max_packet);
        match self.config.rate {
            None => self.window = u64::from(self.config.segments) * packet,
            Some(rate) if path.rtt.has_sample() && !self.measured => {
                self.measured = true;
                self.window = rate.bytes_in(path.rtt.latest()).max(packet);
            }
            Some(_) => {}
        }
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {}

    fn on_report(&mut self, _report: &Report<'_>, path: &PathView<'_>) {
        self.on_path(path);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn name(&self) -> &'static str {
        "fixed-window"
    }

    fn in_slow_start(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::congestion::{Bench, ReportSpec};

    #[test]
    fn the_window_is_so_many_segments() {
        let mut bench = Bench::new(FixedWindow::new(FixedWindowConfig::default(), Bench::<FixedWindow>::PACKET), 100);
        bench.report(ReportSpec { delivered: 5, lost: 5, marked: 1, persistent: true, ..ReportSpec::default() });
        assert_eq!(bench.controller.window(), 5000);
    }

    #[test]
    fn or_the_rate_times_the_first_round_trip() {
        let rate = Some(Rate::from_bits_per_second(8_000_000));
        let mut bench = Bench::new(
            FixedWindow::new(FixedWindowConfig { rate, ..FixedWindowConfig::default() }, Bench::<FixedWindow>::PACKET),
            50,
        );
        assert_eq!(bench.controller.window(), 50_000);
        bench.rtt.sample(bench.now, std::time::Duration::from_millis(80), std::time::Duration::ZERO);
        bench.report(ReportSpec { delivered: 5, ..ReportSpec::default() });
        assert_eq!(bench.controller.window(), 50_000);
    }
}
