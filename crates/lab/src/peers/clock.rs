//! The clock that every process of this machine shares.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Now, on `CLOCK_MONOTONIC`: time since some moment that is the same for all processes and network namespaces.
pub(super) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative on this clock.
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
