//! What an emulator did, and how well.

use std::time::Duration;

use netsim::LinkStats;
use relay::Lateness;

/// What an emulator did from its start to its stop.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each directed link of the model, in the order they were added.
    pub links: Vec<LinkStats>,
    /// How late packets were handed to hosts, against the model.
    pub lateness: Lateness,
    /// How long packets may have been there, at most, before they arrived in the model: zero but for fast cables, which have no stamps.
    pub unseen: Lateness,
    /// Packets that hosts were handed, by host.
    pub handed: Vec<u64>,
    /// In how many pieces they were handed over, by host, which is what interfaces count: as many as packets, but for fast cables.
    pub pieces: Vec<u64>,
    /// Packets lost because the emulator did not fetch them in time.
    pub ring_drops: u64,
    /// Packets the kernel did not take from the emulator.
    pub send_failures: u64,
    /// Packets for nobody here, or that were no IPv4 or larger than a port takes.
    pub refused: u64,
    /// Packets without a usable stamp: they arrived in the model when the emulator saw them.
    pub unstamped: u64,
    /// From start to stop.
    pub elapsed: Duration,
    /// Processor time of the emulator's thread, with what the kernel does on its behalf, which includes taking packets in at the hosts.
    pub cpu: Duration,
    /// How its thread was scheduled.
    pub scheduling: Scheduling,
}

/// How the emulator's thread gets a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Before all ordinary threads.
    RealTime,
    /// As one of many; it spins for the last microseconds before something is due.
    Ordinary,
}
