//! Sends at the rate it is told.

use super::{CongestionControl, MIN_PACKETS, PathView};
use crate::recovery::report::Report;
use crate::recovery::rtt::INITIAL_RTT;
use crate::settings::{BitRate, Setting, Settings, Switch, field};
use crate::time::{Rate, Time};
use std::time::Duration;

/// Numbers of a told rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedRateConfig {
    /// In IP bits per second.
    pub rate: Rate,
    /// Stop when nothing comes back, after about two round trips at that rate. Without, not before two seconds of
    /// silence: what is in flight has to be remembered.
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

/// On short paths the window leaves room for this beside the round trip: a sender and a receiver that each wake 4 ms
/// late. Above a round trip of 8 ms the second round trip covers it.
pub(super) const LATE_WAKING: Duration = Duration::from_millis(8);

/// Paces at exactly its rate and does not mind loss. Its window only stops it when nothing comes back: two round trips
/// at that rate, of which one is the flight and the rest holds late feedback and losses not yet noticed. Before a round
/// trip is known it is taken as [`INITIAL_RTT`].
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

/// Without a window, so much silence: bursts of lost feedback are shorter, and what is in flight is bounded.
const SILENCE: Duration = Duration::from_secs(2);

/// Bytes that may be in flight.
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
