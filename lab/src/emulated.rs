//! A network of hosts and the emulator between them, from its creation to its observations.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::emulator::{Emulator, EmulatorHandle, EmulatorReport};
use crate::layout::Layout;
use crate::testbed::{Host, InterfaceCounts, Testbed, TestbedError};

/// A network over which real programs run, until it is stopped or dropped.
#[derive(Debug)]
pub struct EmulatedNetwork {
    // Dropped before the hosts: packets that they send while they end are not part of the run.
    emulator: Emulator,
    space: Testbed,
    links: Vec<String>,
    pairs: Vec<(usize, usize)>,
    delays: Vec<[Duration; 2]>,
}

/// A network that cannot be emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// No hosts.
    #[error(transparent)]
    Space(#[from] TestbedError),
    /// No emulator between them.
    #[error("cannot start the emulator: {0}")]
    Emulator(#[from] io::Error),
}

impl EmulatedNetwork {
    /// Creates the hosts and starts the emulator. `keeper` is a program that calls [`crate::testbed::keep`] when its
    /// one argument is `keep-host`.
    ///
    /// # Errors
    /// A kernel that does not let this process make namespaces: see [`crate::testbed::acquire`].
    pub fn start(layout: Layout, keeper: &Path) -> Result<Self, EmulationError> {
        let Layout { hosts, pairs, links, fabric, nodes, delays, cables: kind } = layout;
        let (space, cables) = Testbed::new(&hosts, &pairs, kind, keeper)?;
        let emulator = Emulator::start(fabric, nodes, cables)?;
        Ok(Self { emulator, space, links, pairs, delays })
    }

    /// Returns the hosts, in the order of the layout.
    pub fn hosts(&self) -> &[Host] {
        self.space.hosts()
    }

    /// Returns a handle that sends commands to the emulator.
    pub fn control(&self) -> EmulatorHandle {
        self.emulator.control()
    }

    /// Stops the emulator. The hosts, and the programs on them, end with it.
    pub fn stop(self) -> Observation {
        let Self { emulator, space, links, pairs, delays } = self;
        let report = emulator.stop();
        // Unreadable counts show up as unexplained packets.
        let cables = (0..space.hosts().len()).map(|host| space.cable_counts(host).unwrap_or_default()).collect();
        Observation { report, cables, links, pairs, delays }
    }
}

/// The observations of an emulated network.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The emulator's report.
    pub report: EmulatorReport,
    /// The counts of the two ends of the cable to each host, the emulator's and the host's.
    pub cables: Vec<(InterfaceCounts, InterfaceCounts)>,
    /// Names of the links of the report.
    pub links: Vec<String>,
    /// The pairs of hosts that communicate, as indices of the hosts.
    pub pairs: Vec<(usize, usize)>,
    /// Least delays of each pair, without queues: forward and backward.
    pub delays: Vec<[Duration; 2]>,
}

impl Observation {
    /// Returns the hosts of each pair, and its least round-trip time. Hosts without a pair form one of the shortest
    /// time of all.
    pub(crate) fn round_trips(&self) -> Vec<(Vec<usize>, Duration)> {
        let sum = |delays: &[Duration; 2]| delays[0] + delays[1];
        let mut all: Vec<_> =
            self.pairs.iter().zip(&self.delays).map(|(&(from, to), delays)| (vec![from, to], sum(delays))).collect();
        let is_alone = |host: &usize| !self.pairs.iter().any(|&(from, to)| [from, to].contains(host));
        let others: Vec<usize> = (0..self.cables.len()).filter(is_alone).collect();
        let shortest = self.delays.iter().map(sum).min().unwrap_or_default();
        if !others.is_empty() {
            all.push((others, shortest));
        }
        all
    }
}
