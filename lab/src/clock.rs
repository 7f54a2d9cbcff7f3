//! The clocks of the machine.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the time on `CLOCK_MONOTONIC`: since an instant common to all processes and network namespaces.
pub(crate) fn now() -> Duration {
    read(ClockId::Monotonic)
}

/// Reads a clock; the clocks in use are never negative.
pub(crate) fn read(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    Duration::new(tv_sec.unsigned_abs(), u32::try_from(tv_nsec).unwrap_or_default())
}
