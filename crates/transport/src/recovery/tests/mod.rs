//! Recovery on paths in virtual time.

mod combinations;
mod controllers;
mod counter;
mod duplicates;
mod events;
mod timeouts;
mod transfers;

use super::test_path::{Conditions, OVERHEAD, PACKET, Path, Random};
use super::*;
use crate::time::Rate;
use crate::wire::{EcnCounts, PacketRanges};
use std::time::Duration;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(time: u64) -> Time {
    Time::ZERO + millis(time)
}

fn config(congestion: &str) -> RecoveryConfig {
    RecoveryConfig { congestion: congestion.parse().unwrap(), ..RecoveryConfig::default() }
}

fn recovery(congestion: &str, rtt: Duration) -> Recovery {
    let mut recovery = Recovery::new(&config(congestion), Time::ZERO, OVERHEAD);
    recovery.set_max_packet(PACKET);
    recovery.set_rtt_from_handshake(Time::ZERO, rtt);
    recovery
}

fn ranges(ranges: &[(u64, u64)]) -> PacketRanges {
    PacketRanges { delay_micros: 0, ranges: ranges.to_vec() }
}

/// Returns a path under the controller of this text.
fn path(congestion: &str, conditions: Conditions, seed: u64) -> Path {
    Path::new(&congestion.parse().unwrap(), conditions, seed)
}
