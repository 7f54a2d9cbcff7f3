//! Two hosts on a path of 100 Mbit/s and 50 ms.

use downpour_sim::addresses::Roaming;
use downpour_sim::{HostConfig, Tally};
use std::time::Duration;
use transport::Rate;

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A transfer from host 0, which connects and closes, to host 1.
pub(crate) struct Scene {
    pub(crate) roaming: Roaming,
}

impl Scene {
    /// Sends 10 MB at the fixed rate of the path or with CUBIC.
    pub(crate) fn new(fixed: bool) -> Self {
        Self::with(fixed, vec![10_000_000])
    }

    /// Sends 60 MB with CUBIC.
    pub(crate) fn long() -> Self {
        Self::with(false, vec![60_000_000])
    }

    /// Sends nothing, and neither side closes.
    pub(crate) fn idle() -> Self {
        Self::with(true, Vec::new())
    }

    fn with(fixed: bool, objects: Vec<u64>) -> Self {
        let link = "rate=100M,delay=25ms,queue=1MB".parse().expect("a link");
        let profile = systems::auto();
        let profile = if fixed { profile.with_fixed_rate(Rate::from_bits_per_second(100_000_000)) } else { profile };
        let config = |side: usize| HostConfig {
            connect_to: if side == 0 { vec![Roaming::address(1, 0)] } else { Vec::new() },
            objects: if side == 0 { objects.clone() } else { Vec::new() },
            expects: if side == 0 { 0 } else { objects.len() },
            closes: side == 0 && !objects.is_empty(),
            ..HostConfig::idle(profile.clone(), 1)
        };
        Self { roaming: Roaming::new([config(0), config(1)], &link).expect("a network") }
    }

    /// Runs up to this time.
    pub(crate) fn until(&mut self, time: Duration) {
        self.roaming.run(time, |_| false).expect("time passes");
    }

    /// Runs to the end. Returns when the last byte arrived. All bytes must arrive intact, and both sides must know it.
    pub(crate) fn run(&mut self) -> Duration {
        let over = |hosts: [&downpour_sim::Host; 2]| hosts.iter().all(|host| host.is_over());
        assert!(self.roaming.run(Duration::from_secs(60), over).expect("time passes"), "not over within a minute");
        let tally = self.tally(1);
        assert!(tally.received.values().all(downpour_sim::Received::is_identical), "{:?}", tally.received);
        assert_eq!(tally.received.len(), 1);
        tally.complete_at.and_then(|at| at.checked_since(netsim::Time::ZERO)).expect("complete")
    }

    pub(crate) fn tally(&mut self, side: usize) -> Tally {
        self.roaming.host(side).tallies().next().expect("one connection").clone()
    }

    /// Makes the path drop all packets, or none.
    pub(crate) fn cut(&mut self, dead: bool) {
        let loss = netsim::Loss::Bernoulli(1.0);
        let change = |config| if dead { netsim::LinkConfig { loss, ..config } } else { config };
        self.roaming.change_links(change).expect("a link");
    }
}
