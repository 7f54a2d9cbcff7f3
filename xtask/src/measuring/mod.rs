//! Numbers that were measured, and how they are judged.

mod sample;
mod tally;

use std::num::NonZero;

pub use sample::Sample;
pub use tally::{Tally, heading};

/// Returns how many cores there are, and how busy they are: no measurement means much on a busy machine.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
    format!("{cores} cores, load {load} before the start")
}
