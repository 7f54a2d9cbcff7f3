//! Counters from the end of the warm-up on.

use super::Flow;
use super::machine::Machine;
use netsim::topology::LinkPair;
use netsim::{Network, QueueDelays, Time};

/// The counts at one moment of a run.
#[derive(Debug)]
pub(super) struct NetworkCounters {
    at: Time,
    /// IP bytes that have arrived at the receiver of each flow.
    arrived: Vec<u64>,
    /// How long packets have waited at each link: forward and backward.
    waits: Vec<[QueueDelays; 2]>,
}

impl NetworkCounters {
    pub(super) fn of(flows: &[Flow], network: &Network<Machine>, links: &[LinkPair]) -> Self {
        let arrived = |flow: &Flow| {
            let host = network.node(flow.pair.to).and_then(Machine::as_host);
            host.map_or(0, |host| host.arrived().iter().sum())
        };
        let waits = |id| network.link(id).map(|link| link.waits().clone()).unwrap_or_default();
        Self {
            at: network.now(),
            arrived: flows.iter().map(arrived).collect(),
            waits: links.iter().map(|ids| [ids.forward, ids.backward].map(waits)).collect(),
        }
    }

    /// Returns the IP bits per second of each flow since then; 0 if no time has passed.
    pub(super) fn throughput_since(&self, before: &Self) -> Vec<f64> {
        let seconds = (self.at - before.at).as_secs_f64();
        let of = |(now, before): (&u64, &u64)| if seconds > 0.0 { (now - before) as f64 * 8.0 / seconds } else { 0.0 };
        self.arrived.iter().zip(&before.arrived).map(of).collect()
    }

    /// Returns the waiting times of the packets that arrived at each link since then.
    pub(super) fn waits_since(&self, before: &Self) -> Vec<[QueueDelays; 2]> {
        let since = |(now, before): (&[QueueDelays; 2], &[QueueDelays; 2])| {
            [now[0].since(&before[0]), now[1].since(&before[1])]
        };
        self.waits.iter().zip(&before.waits).map(since).collect()
    }
}
