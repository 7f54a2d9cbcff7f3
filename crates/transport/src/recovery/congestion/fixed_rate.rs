//! A fixed rate, whatever the losses.

use super::{CongestionControl, MIN_PACKETS, PathView};
use crate::recovery::report::Report;
use crate::recovery::rtt::INITIAL_RTT;
use crate::settings::{BitRate, Setting, Settings, Switch, field};
use crate::time::{Rate, Time};
use std::time::Duration;

/// Numbers of the fixed rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedRateConfig {
    /// In IP bits per second.
    pub rate: Rate,
    /// Whether sending stops after about two round trips without feedback: on. If off, it stops after two seconds,
    /// since packets in flight take memory.
    pub window: bool,
}

impl Default for FixedRateConfig {
    fn default() -> Self {
        Self { rate: Rate::from_bits_per_second(10_000_000), window: true }
    }
}

impl Settings for FixedRateConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!(bare "rate", rate, BitRate), field!("window", window, Switch)];
}

/// The window's minimum beyond one round trip, for short paths: a sender and a receiver that each wake up 4 ms late. On
/// longer paths the second round trip covers it.
pub(super) const LATE_WAKING: Duration = Duration::from_millis(8);

/// Paces at its rate and ignores loss. Its window only stops it when feedback fails to arrive: two round trips at that
/// rate, one for the packets in flight and one for late feedback and undetected losses. The round-trip time is
/// [`INITIAL_RTT`] until it is measured.
#[derive(Debug)]
pub(super) struct FixedRate {
    config: FixedRateConfig,
    window: u64,
}

impl FixedRate {
    pub(super) fn new(config: FixedRateConfig, max_packet: u32) -> Self {
        Self { config, window: window(config, INITIAL_RTT, max_packet) }
    }
}

/// Without a window, sending stops after this time: longer than bursts of lost feedback, and short enough to bound the
/// packets in flight.
const SILENCE: Duration = Duration::from_secs(2);

/// Returns the window in bytes.
fn window(config: FixedRateConfig, rtt: Duration, max_packet: u32) -> u64 {
    let least = if config.window { LATE_WAKING } else { SILENCE };
    let span = rtt + rtt.max(least);
    config.rate.bytes_in(span).max(2 * u64::from(MIN_PACKETS) * u64::from(max_packet))
}

impl CongestionControl for FixedRate {
    fn on_path(&mut self, path: &PathView<'_>) {
        self.window = window(self.config, path.rtt.smoothed(), path.max_packet);
    }

    fn on_sent(&mut self, _now: Time, _bytes: u32, _in_flight: u64) {}

    fn on_report(&mut self, _report: &Report<'_>, path: &PathView<'_>) {
        self.on_path(path);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn rate(&self) -> Option<Rate> {
        Some(self.config.rate)
    }

    fn name(&self) -> &'static str {
        "fixed-rate"
    }

    fn in_slow_start(&self) -> bool {
        false
    }
}
