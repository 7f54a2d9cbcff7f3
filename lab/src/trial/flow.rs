//! One flow of a run with several: the transfers of its program, one after the other.

use std::collections::BTreeMap;
use std::time::Duration;

use netsim::Rate;

use crate::clock;
use crate::peers::{self, Gate, Job, PeerError, Programs, Start, Transfer};
use crate::simulated::ProgramFlow;
use crate::testbed::Host;

/// The outcome of a flow, as observed by its program.
#[derive(Debug, Default)]
pub(super) struct FlowEnd {
    /// Seconds of each transfer that ended.
    pub(super) transfers: Vec<f64>,
    /// When the last of them had ended, on `CLOCK_MONOTONIC`; `None` if not all did.
    pub(super) ended: Option<Duration>,
    /// Bytes of its files at the receiver.
    pub(super) bytes_there: u64,
    /// Whether the received bytes differ from the sent ones.
    pub(super) is_wrong: bool,
    pub(super) versions: BTreeMap<String, String>,
    pub(super) congestion: Option<String>,
    /// The reason for no further transfer.
    pub(super) failure: Option<PeerError>,
}

/// The surroundings of a flow.
#[derive(Clone, Copy)]
pub(super) struct FlowEnvironment<'a> {
    pub(super) hosts: [&'a Host; 2],
    pub(super) gate: &'a Gate,
    pub(super) programs: &'a Programs,
    /// The rate for programs with a fixed rate.
    pub(super) rate: Option<Rate>,
    pub(super) seed: u64,
}

/// Runs flow number `number` to its end.
pub(super) fn play(flow: &ProgramFlow, number: usize, around: FlowEnvironment<'_>) -> FlowEnd {
    let mut end = FlowEnd::default();
    let mut random = fastrand::Rng::with_seed(around.seed << 16 | number as u64);
    let begins = flow.start + flow.start_within.mul_f64(random.f64());
    let start = Start { gate: around.gate, transfer: number, after: begins };
    let mut stop = None;
    for repeat in 0..flow.repeat {
        // Other bytes each time, and other bytes in each flow.
        let seed = around.seed << 32 | (number as u64) << 16 | u64::from(repeat);
        let job = Job {
            size: flow.size,
            writes: None,
            endless: flow.endless,
            seed,
            rate: around.rate,
            choices: flow.choices.clone(),
            programs: around.programs.clone(),
        };
        let cap = stop.map_or(flow.stop - begins, |stop: Duration| stop.saturating_sub(clock::now()));
        let start = (repeat == 0).then_some(start);
        let result = peers::transfer(flow.peer, around.hosts[0], around.hosts[1], &job, cap, start);
        around.gate.report(number);
        stop = stop.or_else(|| Some(around.gate.opened()? + flow.stop));
        match result {
            Ok(transfer) => {
                if !end.add(transfer) {
                    return end;
                }
            }
            Err(error) => {
                end.failure = Some(error);
                return end;
            }
        }
    }
    end.ended = Some(clock::now());
    end
}

impl FlowEnd {
    /// Adds a transfer; returns whether it arrived.
    fn add(&mut self, transfer: Transfer) -> bool {
        self.bytes_there += transfer.bytes_there;
        self.versions = transfer.versions;
        self.congestion = transfer.congestion;
        self.transfers.extend(transfer.seconds);
        self.is_wrong |= transfer.seconds.is_some() && transfer.equal == Some(false);
        transfer.seconds.is_some()
    }
}
