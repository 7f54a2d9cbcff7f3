//! Measured numbers and their targets.

mod sample;
mod tally;

use std::num::NonZero;

pub use sample::Sample;
pub use tally::{Tally, heading};

/// Returns the number of cores and their load: measurements on a busy machine are unreliable.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
    format!("{cores} cores, load {load} before the start")
}
