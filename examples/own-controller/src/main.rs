//! A congestion controller from outside the engine, and with it a `downpour` and a lab that know it by name: `own-controller send --set
//! congestion=mine FILE` over sockets, `own-controller lab simulate --set congestion=mine:beta=0.7` in the simulator, and over emulated
//! links the peer "downpour-auto congestion=mine" of a plan, `own-controller lab run PLAN.toml`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use lab::peers::Downpour;
use transport::congestion::{Congestion, CongestionControl, PathView, RecoveryPeriod, register};
use transport::recovery::{Cause, Report};
use transport::settings::{Number, Setting, SettingError, Settings, field, read};
use transport::{Rate, Time};

/// Additive increase, multiplicative decrease. It backs off by less than Reno and grows by as much less: what RFC 9438 section 4.3 has as
/// friendly to Reno, so it is steadier than that and no faster.
#[derive(Clone, Debug, PartialEq)]
struct Mine {
    /// What a congestion event leaves of the window.
    beta: f64,
    packet: f64,
    window: f64,
    period: RecoveryPeriod,
}

impl Default for Mine {
    fn default() -> Self {
        Self { beta: 0.8, packet: 0.0, window: 0.0, period: RecoveryPeriod::default() }
    }
}

impl Settings for Mine {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("beta", beta, Number(0.5, 0.95))];
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
        "mine"
    }

    fn in_slow_start(&self) -> bool {
        self.period.start().is_none()
    }
}

fn build(numbers: &str, max_packet: u32) -> Result<Box<dyn CongestionControl>, SettingError> {
    let packet = f64::from(max_packet);
    Ok(Box::new(Mine { packet, window: 10.0 * packet, ..read("mine", numbers)? }))
}

fn main() -> ExitCode {
    register("mine", build).expect("no controller has this name");
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    // The lab is asked for by the first argument, and starts itself again under its own name.
    let is_lab = |name: &OsString| Path::new(name).ends_with("lab") || Path::new(name).ends_with(lab::NAME);
    match arguments.iter().take(2).position(is_lab) {
        Some(at) => lab::main(arguments.drain(at..), Downpour::This),
        None => cli::main(arguments),
    }
}
