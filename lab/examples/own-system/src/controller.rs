//! A congestion controller.

use transport::congestion::{Congestion, CongestionControl, ControllerFactory, PathView, RecoveryPeriod};
use transport::recovery::{Cause, Report};
use transport::settings::{Number, Setting, Settings, field};
use transport::{Rate, Time};

/// Additive increase, multiplicative decrease. It backs off by less than Reno and grows by less in proportion (RFC 9438
/// section 4.3): steadier than Reno, and no faster.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MineConfig {
    /// The factor of the window after a congestion event.
    beta: f64,
}

impl Default for MineConfig {
    fn default() -> Self {
        Self { beta: 0.8 }
    }
}

impl Settings for MineConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("beta", beta, Number(0.5, 0.95))];
}

impl ControllerFactory for MineConfig {
    const NAME: &'static str = "mine";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        let packet = f64::from(max_packet);
        Box::new(Mine { beta: self.beta, packet, window: 10.0 * packet, period: RecoveryPeriod::default() })
    }
}

/// The controller at work. Windows are in IP bytes.
#[derive(Debug)]
struct Mine {
    beta: f64,
    packet: f64,
    window: f64,
    period: RecoveryPeriod,
}

impl CongestionControl for Mine {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.packet = path.max_packet.into();
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {}

    fn on_report(&mut self, report: &Report<'_>, path: &PathView<'_>) {
        let Congestion { lost, marked } = self.period.congestion(report, path);
        let silent = report.cause == Cause::Timeout || path.persistent_congestion;
        if silent || lost || marked {
            let left = if silent { 0.0 } else { self.beta * self.window };
            self.window = left.max(2.0 * self.packet);
            self.period.begin(report.now);
        } else if !report.app_limited {
            let acked = self.period.acknowledged(report) as f64;
            let alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
            self.window += if self.in_slow_start() { acked } else { alpha * self.packet * acked / self.window };
        }
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn rate(&self) -> Option<Rate> {
        None
    }

    fn name(&self) -> &'static str {
        MineConfig::NAME
    }

    fn in_slow_start(&self) -> bool {
        self.period.start().is_none()
    }
}
