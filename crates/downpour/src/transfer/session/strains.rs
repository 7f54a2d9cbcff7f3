//! The pressure on the two hosts of a session.

use net::Stats;

use crate::messages::{HostPressure, Message};
use crate::transfer::memory_ticks::MemoryTicks;

/// The pressure on the local host, and on the peer's as reported by it.
#[derive(Debug, Default)]
pub(in crate::transfer) struct Strains {
    ours: HostPressure,
    theirs: HostPressure,
    ticks: MemoryTicks,
}

impl Strains {
    /// Handles the latest statistics; returns whether they are news for the peer.
    pub(super) fn on_stats(&mut self, stats: &Stats) -> bool {
        let before = self.ours;
        self.ours = HostPressure {
            memory: stats.connection.memory_binds,
            overflowed: stats.socket_drops.unwrap_or(self.ours.overflowed),
        };
        self.ours != before
    }

    /// Handles the peer's report of its own host.
    pub(super) const fn on_peer(&mut self, theirs: HostPressure) {
        self.theirs = theirs;
    }

    /// Counts a tick.
    pub(super) fn on_tick(&mut self) {
        self.ticks.count(&self.ours, &self.theirs);
    }

    /// Returns the pressure on the local host, and on the peer's.
    pub(super) const fn of_both(&self) -> (&HostPressure, &HostPressure) {
        (&self.ours, &self.theirs)
    }

    /// Returns the report of the local host for the peer.
    pub(super) const fn message(&self) -> Message {
        Message::Strain(self.ours)
    }

    /// Returns how often a memory bound was reached.
    pub(super) const fn ticks(&self) -> MemoryTicks {
        self.ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::memory_ticks::Side;

    #[test]
    fn pressure_unchanged_is_no_news() {
        let mut strains = Strains::default();
        let mut stats = Stats { socket_drops: Some(0), ..Stats::default() };
        assert!(!strains.on_stats(&stats));
        stats.socket_drops = Some(3);
        stats.connection.memory_binds = true;
        assert_eq!([strains.on_stats(&stats), strains.on_stats(&stats)], [true, false]);
        // A kernel without this counter has dropped as many as before.
        stats.socket_drops = None;
        assert!(!strains.on_stats(&stats));
        assert_eq!(strains.of_both().0, &HostPressure { memory: true, overflowed: 3 });
        strains.on_tick();
        assert_eq!(strains.ticks().bound(), Some(Side::Local));
    }
}
