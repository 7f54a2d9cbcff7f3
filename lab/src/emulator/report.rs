//! The report of an emulator: its counts and its accuracy.

use std::time::Duration;

use linkrelay::Lateness;
use netsim::{LinkStats, QueueDelays};

use super::HostTraffic;

/// The report of an emulator, from its start to its stop.
#[derive(Clone, Debug)]
pub struct EmulatorReport {
    /// Each directed link of the model, in the order they were added.
    pub links: Vec<LinkStats>,
    /// How late packets were delivered to each host, compared with the model.
    pub lateness: Vec<Lateness>,
    /// Upper bounds of the waits of packets before they arrived in the model: zero except for fast cables, which have
    /// no stamps.
    pub unseen: Lateness,
    /// Packets delivered to hosts, by host.
    pub handed: Vec<u64>,
    /// The number of frames in which they were delivered, by host, as interfaces count them: as many as packets, except
    /// for fast cables.
    pub pieces: Vec<u64>,
    /// Packets lost because the emulator did not fetch them in time.
    pub ring_drops: u64,
    /// Packets from the emulator that the kernel did not accept.
    pub send_failures: u64,
    /// Packets without a known destination, not IPv4, or larger than a port accepts.
    pub refused: u64,
    /// Packets without a usable stamp: they arrived in the model when the emulator saw them.
    pub unstamped: u64,
    /// The traffic of each host since [`super::EmulatorHandle::measure`]; empty without that.
    pub traffic: Vec<HostTraffic>,
    /// How long packets waited at each link, in the order of `links`, after the warm-up of that measurement; empty
    /// before.
    pub waits: Vec<QueueDelays>,
    /// Time from start to stop.
    pub elapsed: Duration,
    /// Processor time of the emulator's thread, including the kernel's work on its behalf, such as receiving packets at
    /// the hosts.
    pub cpu: Duration,
    /// How its thread was scheduled.
    pub scheduling: Scheduling,
}

impl EmulatorReport {
    /// Returns how late packets were delivered to these hosts.
    pub fn lateness_at(&self, hosts: impl IntoIterator<Item = usize>) -> Lateness {
        let mut all = Lateness::default();
        hosts.into_iter().filter_map(|host| self.lateness.get(host)).for_each(|lateness| all.merge(lateness));
        all
    }

    /// Returns how late packets were delivered to all hosts.
    pub fn lateness_of_all(&self) -> Lateness {
        self.lateness_at(0..self.lateness.len())
    }
}

/// The scheduling class of the emulator's thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// Before all ordinary threads.
    RealTime,
    /// As an ordinary thread; it spins for the last microseconds before something is due.
    Ordinary,
}
