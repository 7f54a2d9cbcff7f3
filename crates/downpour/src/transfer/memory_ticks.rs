//! Whether a memory bound has slowed a transfer.

use serde::{Deserialize, Serialize};

use crate::messages::HostPressure;

/// One of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// The local host.
    #[serde(rename = "Here")]
    Local,
    /// The remote host.
    #[serde(rename = "There")]
    Remote,
}

/// A memory bound has slowed a transfer if it was reached at one in this many ticks.
const NOTICEABLE: u32 = 10;

/// Counts how often the memory bounds were reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryTicks {
    all: u32,
    local: u32,
    remote: u32,
}

impl MemoryTicks {
    /// Counts a tick, and the hosts whose bound was reached then.
    pub(super) fn count(&mut self, ours: &HostPressure, theirs: &HostPressure) {
        self.all += 1;
        self.local += u32::from(ours.memory);
        self.remote += u32::from(theirs.memory);
    }

    /// Adds the counts of another attempt.
    pub(super) fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.local += other.local;
        self.remote += other.remote;
    }

    /// Returns the host whose bound has slowed the transfer.
    pub(super) fn bound(&self) -> Option<Side> {
        let is_noticeable = |ticks: u32| ticks > 0 && ticks * NOTICEABLE >= self.all;
        let local = is_noticeable(self.local).then_some(Side::Local);
        local.or(is_noticeable(self.remote).then_some(Side::Remote))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_bound_at_a_tenth_of_ticks_reported() {
        let bound = |local: u32, remote: u32| {
            let mut ticks = MemoryTicks::default();
            for tick in 0..100 {
                let strain = |bound| HostPressure { memory: tick < bound, overflowed: 0 };
                ticks.count(&strain(local), &strain(remote));
            }
            ticks.bound()
        };
        assert_eq!([bound(0, 0), bound(9, 9), bound(9, 10)], [None, None, Some(Side::Remote)]);
        assert_eq!(bound(10, 90), Some(Side::Local));
        assert_eq!(MemoryTicks::default().bound(), None);
    }
}
