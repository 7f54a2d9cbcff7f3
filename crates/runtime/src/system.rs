//! The runtime of the system.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use crate::Runtime;

/// The clocks, threads and random numbers of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Runtime for System {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn system_time(&self) -> SystemTime {
        SystemTime::now()
    }

    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::other)
    }

    fn wait(&self, deadline: Option<Instant>, attempt: &mut dyn FnMut(Option<Duration>) -> bool) -> bool {
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if attempt(left) {
                return true;
            }
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
        }
    }

    fn on_spawn(&self) -> io::Result<()> {
        Ok(())
    }

    fn on_end(&self) {}
}
