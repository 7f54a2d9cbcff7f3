//! How packets in flight are counted against the window.

use crate::settings::choices;

/// The way packets in flight are counted against the window. Detection, timers and statistics know each packet's
/// outcome either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InFlightConfig {
    /// One by one: a packet leaves when it is acknowledged or lost.
    #[default]
    Packets,
    /// By the first counter of lt-tcp §3.5: up with each packet sent, down with each one acknowledged, never below
    /// zero. Lost packets stay in it, and so do those that arrive after the receiver has their block. Only a timeout
    /// with the counter at the window takes it to zero, so a transfer pauses until then.
    /// [`RecoveryStats::counter_resets`](super::RecoveryStats::counter_resets) counts this.
    Counter,
}

choices! { "count of packets in flight", InFlightConfig { "packets" => Packets, "counter" => Counter } }

/// The first counter of lt-tcp §3.5, in IP bytes as the window is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    bytes: u64,
}

impl Counter {
    /// Creates the configured counter, with the packets in flight.
    pub(super) fn of(config: InFlightConfig, in_flight: u64) -> Option<Self> {
        (config == InFlightConfig::Counter).then_some(Self { bytes: in_flight })
    }

    pub(super) const fn bytes(self) -> u64 {
        self.bytes
    }

    pub(super) const fn on_sent(&mut self, bytes: u32) {
        self.bytes += bytes as u64;
    }

    /// Removes an acknowledged packet, in time or late.
    pub(super) const fn leave(&mut self, bytes: u32) {
        self.bytes = self.bytes.saturating_sub(bytes as u64);
    }

    /// Returns whether it fills this window, so that no packet of `packet` bytes may be sent.
    pub(super) const fn fills(self, window: u64, packet: u32) -> bool {
        self.bytes > 0 && window.saturating_sub(self.bytes) < packet as u64
    }
}
