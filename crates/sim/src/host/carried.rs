//! The packets that the network carried for a host, counted by the network: an oracle does not use the engine's
//! counters.

use netsim::Time;
use std::time::Duration;

/// Arrivals remembered. A few of them may be corrupted, which is no sign of life.
const REMEMBERED: usize = 4;

/// Packets that a host sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    /// Packets passed to the network.
    pub(crate) sent: u64,
    /// Packets delivered by the network, corrupted ones and duplicates too.
    pub(crate) arrived: u64,
    /// When the last of them arrived, at their number modulo this many.
    last: [Time; REMEMBERED],
}

impl Carried {
    pub(super) const fn on_sent(&mut self) {
        self.sent += 1;
    }

    pub(super) const fn on_arrived(&mut self, now: Time) {
        self.last[self.arrived as usize % REMEMBERED] = now;
        self.arrived += 1;
    }

    /// Returns how long before `now` fewer than four packets have arrived.
    pub(super) fn silence(&self, now: Time) -> Duration {
        let since =
            if self.arrived < REMEMBERED as u64 { Time::ZERO } else { self.last[self.arrived as usize % REMEMBERED] };
        now.checked_since(since).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_as_long_as_fewer_than_four_packets_arrive() {
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let mut carried = Carried::default();
        for (arrives, silence) in [(1, 9), (2, 9), (3, 9), (4, 8), (6, 7)] {
            carried.on_arrived(second(arrives));
            assert_eq!(carried.silence(second(9)), Duration::from_secs(silence), "arrived at {arrives} s");
        }
        assert_eq!(carried.arrived, 5);
    }
}
