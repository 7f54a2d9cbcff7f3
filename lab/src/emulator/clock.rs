//! The time of the model, on the clock of the machine.

use std::time::Duration;

use netsim::Time;
use rustix::time::ClockId;

use crate::clock::{now, read};

/// An older stamp is not from this clock: no packet waits that long in a ring.
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
        self.at(now())
    }

    /// Returns the model's time at a time of `CLOCK_MONOTONIC`.
    pub(super) fn at(&self, time: Duration) -> Time {
        Time::from(time.saturating_sub(self.start))
    }

    /// Returns a converter from the kernel's stamps to times of the model, valid for the packets that wait now.
    pub(super) fn stamps(&self) -> Stamps {
        Stamps { now: self.now(), time_of_day: read(ClockId::Realtime) }
    }
}

/// The readings of the two clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stamps {
    now: Time,
    time_of_day: Duration,
}

impl Stamps {
    /// Returns when a packet with this stamp arrived; `None` if the stamp is invalid, for example because the time
    /// of day was set meanwhile. A packet that arrived after the two clocks were read is assigned the time of reading.
    pub(super) fn arrival(self, stamp: Duration) -> Option<Time> {
        let age = self.time_of_day.saturating_sub(stamp);
        let is_early = stamp.saturating_sub(self.time_of_day) > OLDEST;
        (age <= OLDEST && !is_early).then(|| Time::from(Duration::from_nanos(self.now.as_nanos()).saturating_sub(age)))
    }

    /// Returns the instant.
    pub(super) fn now(self) -> Time {
        self.now
    }
}

/// Returns the processor time of the calling thread.
pub(super) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_is_relative_to_the_reading() {
        let stamps = Stamps { now: Time::from_nanos(5_000_000_000), time_of_day: Duration::from_secs(1_000) };
        assert_eq!(stamps.arrival(Duration::from_millis(999_900)), Some(Time::from_nanos(4_900_000_000)));
        assert_eq!(stamps.arrival(Duration::from_millis(1_000_001)), Some(Time::from_nanos(5_000_000_000)));
        assert_eq!(stamps.arrival(Duration::from_millis(998_999)), None);
        assert_eq!(stamps.arrival(Duration::from_millis(1_001_001)), None);
        assert_eq!(stamps.arrival(Duration::ZERO), None);
    }
}
