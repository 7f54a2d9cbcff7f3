//! The time of the model, on the clock of the machine.

use std::time::Duration;

use netsim::Time;
use rustix::time::ClockId;

use crate::clock::{now, read};

/// Older than this no packet waits in a ring: its stamp is not one of ours.
const OLDEST: Duration = Duration::from_secs(1);

/// A clock that starts with the run. It does not jump when the time of day does.
#[derive(Debug)]
pub(super) struct Clock {
    start: Duration,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: now() }
    }

    pub(super) fn now(&self) -> Time {
        Time::from(now().saturating_sub(self.start))
    }

    /// What turns the kernel's stamps into times of the model: good for the packets that wait now.
    pub(super) fn stamps(&self) -> Stamps {
        Stamps { now: self.now(), time_of_day: read(ClockId::Realtime) }
    }
}

/// The two clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    now: Time,
    time_of_day: Duration,
}

impl Stamps {
    /// When a packet with this stamp arrived; `None` if the stamp makes no sense, as when the time of day was set meanwhile. A packet that
    /// came after the two clocks were read arrived when they were.
    pub(super) fn arrival(self, stamp: Duration) -> Option<Time> {
        let age = self.time_of_day.saturating_sub(stamp);
        let is_early = stamp.saturating_sub(self.time_of_day) > OLDEST;
        (age <= OLDEST && !is_early).then(|| Time::from(Duration::from_nanos(self.now.as_nanos()).saturating_sub(age)))
    }

    /// The instant.
    pub(super) fn now(self) -> Time {
        self.now
    }
}

/// Processor time of the calling thread.
pub(super) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_counts_backwards_from_now() {
        let stamps = Stamps { now: Time::from_nanos(5_000_000_000), time_of_day: Duration::from_secs(1_000) };
        assert_eq!(stamps.arrival(Duration::from_millis(999_900)), Some(Time::from_nanos(4_900_000_000)));
        assert_eq!(stamps.arrival(Duration::from_millis(1_000_001)), Some(Time::from_nanos(5_000_000_000)));
        assert_eq!(stamps.arrival(Duration::from_millis(998_999)), None);
        assert_eq!(stamps.arrival(Duration::from_millis(1_001_001)), None);
        assert_eq!(stamps.arrival(Duration::ZERO), None);
    }
}
