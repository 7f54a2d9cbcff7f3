//! One run of an experiment: a network, a peer that moves a file over it or several at once, and the record of all.

mod flow;
mod flows;

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use netsim::{Duplex, LinkStats, Rate};

use crate::clock;
use crate::emulated::{EmulatedNetwork, EmulationError, Observation};
use crate::emulator::{HostTraffic, Measuring, Scheduling};
use crate::layout::{Layout, LayoutError, read_topology};
use crate::peers::{self, Downpour, Gate, Job, Peer, PeerError, Presence, Programs, Start, Transfer};
use crate::plan::LinkCase;
use crate::results::{Ending, Environment, Lateness, RecordedVerdict, RunOutcome, WriteResults};
use crate::runner::{Measure, MeasureError, StopFlag};
use crate::simulated::{SimCase, SimRecord};
use crate::testbed::{self, CableKind, Host};
use crate::verdict::{self, RunValidity};

/// Interval at which a run checks whether it should stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The time between the command and the start of a measurement.
const NOTICE: Duration = Duration::from_millis(50);
/// Length of the spans in which traffic is counted; only the sum is used.
const SPAN: Duration = Duration::from_secs(1);

/// Makes runs on this machine, each in a network of its own.
#[derive(Debug)]
pub struct Trials {
    /// The program that keeps hosts: this one.
    keeper: PathBuf,
    programs: Programs,
}

impl Trials {
    /// Creates trials with the programs of this machine.
    ///
    /// # Errors
    /// A system that does not report which program this is.
    pub fn new(downpour: Downpour) -> std::io::Result<Self> {
        Ok(Self { keeper: std::env::current_exe()?, programs: Programs::of_this(downpour)? })
    }

    /// Starts the network of a run.
    fn network(&self, layout: Layout) -> Result<EmulatedNetwork, MeasureError> {
        EmulatedNetwork::start(layout, &self.keeper).map_err(|error| match error {
            EmulationError::Space(_) | EmulationError::Emulator(_) => MeasureError::Machine(error.to_string()),
        })
    }

    /// Moves the file, and kills the programs on the hosts when `stop` is set.
    fn transfer(
        &self,
        peer: &Peer,
        network: &EmulatedNetwork,
        hosts: &[&Host; 2],
        case: &LinkCase,
        stop: &StopFlag,
    ) -> Result<Transfer, PeerError> {
        let job = Job {
            size: case.size,
            writes: case.writes,
            endless: false,
            seed: case.seed,
            rate: case.fixed_rate.map(Rate::from_bits_per_second),
            choices: peers::choices(&case.peer)?,
            programs: self.programs.clone(),
        };
        let cap = Duration::from_secs_f64(case.cap_seconds);
        let (over, is_over) = channel::<()>();
        let gate = Gate::new(1);
        // The opening of a path is not counted for the writes.
        let start = case.writes.map(|_| Start { gate: &gate, transfer: 0, after: Duration::ZERO });
        thread::scope(|scope| {
            let gate = &gate;
            scope.spawn(move || {
                while is_over.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    if stop.is_set() {
                        gate.abandon();
                        hosts.iter().for_each(|host| host.end());
                        break;
                    }
                    if gate.opened().is_none() && gate.is_ready_within(Duration::ZERO) {
                        let begun = clock::now() + NOTICE;
                        network.control().measure(begun, Measuring { span: SPAN, warm_up: Duration::ZERO });
                        gate.open(begun);
                    }
                }
            });
            let result = peers::transfer(peer, hosts[0], hosts[1], &job, cap, start);
            drop(over);
            result
        })
    }
}

impl Measure for Trials {
    fn peers(&self) -> Vec<String> {
        peers::all().map(|peer| peer.name().to_owned()).collect()
    }

    fn lacks(&self, peer: &str) -> Option<String> {
        match peers::named(peer).ok()?.presence(&self.programs) {
            Presence::Absent { missing, install } => Some(format!("{missing}: {install}")),
            Presence::Present => None,
        }
    }

    /// An ordinary user gets a user namespace.
    fn prepare(&self) -> Result<(), MeasureError> {
        testbed::acquire().map_err(|error| MeasureError::Machine(error.to_string()))
    }

    fn measure(&self, case: &LinkCase, stop: &StopFlag) -> Result<RunOutcome, MeasureError> {
        let peer = peers::named(&case.peer).map_err(run_failed)?;
        if let Some(missing) = self.lacks(&case.peer) {
            return Err(MeasureError::Absent(missing));
        }
        let mut layout = layout(case).map_err(run_failed)?;
        if case.fast {
            layout.cables = CableKind::Tun;
        }
        let (from, to) = layout.pairs[0];
        let network = self.network(layout)?;
        let hosts = [&network.hosts()[from], &network.hosts()[to]];
        for host in hosts {
            prepare(host, peer)?;
        }
        let transfer = self.transfer(peer, &network, &hosts, case, stop);
        let observation = network.stop();
        if stop.is_set() {
            return Err(MeasureError::Stopped);
        }
        match transfer {
            Ok(transfer) => Ok(outcome(peer, case, transfer, &observation, from)),
            // The peer's behaviour is a result, as long as the network was as specified.
            Err(PeerError::Failed { .. }) => {
                let reason = transfer.err().map(|error| error.to_string()).unwrap_or_default();
                Ok(failed(peer, case, reason, &observation))
            }
            Err(error) => Err(run_failed(error)),
        }
    }

    fn measure_flows(&self, case: &SimCase, attempt: u32, stop: &StopFlag) -> Result<SimRecord, MeasureError> {
        flows::measure(self, case, attempt, stop)
    }
}

/// Returns the network of a case: its link, or a topology in which it replaces another.
fn layout(case: &LinkCase) -> Result<Layout, LayoutError> {
    // The plan has been parsed with this link.
    let link: Duplex = case.link.parse().map_err(LayoutError::Link)?;
    let Some(place) = &case.topology else { return Layout::pair(&link) };
    let at = |error| LayoutError::Topology { file: place.file.clone(), error: Box::new(error) };
    let mut topology = read_topology(&place.file)?.sibling(case.seed);
    topology.replace_link(&place.between[0], &place.between[1], link).map_err(at)?;
    topology.put_first(&place.pair[0], &place.pair[1]).map_err(at)?;
    Layout::of_topology(topology, &place.file)
}

/// Applies the settings that a peer needs of its host's kernel.
fn prepare(host: &Host, peer: &Peer) -> Result<(), MeasureError> {
    host.pin_congestion(peer.route_congestion()).map_err(run_failed)?;
    if peer.asks_for_ecn() { host.ask_for_ecn().map_err(run_failed) } else { Ok(()) }
}

fn run_failed(error: impl std::fmt::Display) -> MeasureError {
    MeasureError::Run(error.to_string())
}

/// Returns the outcome of a run, in which the host number `from` sent or wrote.
fn outcome(peer: &Peer, case: &LinkCase, transfer: Transfer, run: &Observation, from: usize) -> RunOutcome {
    let ending = match transfer.seconds {
        Some(_) if transfer.equal == Some(false) => {
            Ending::Failed { reason: "the received bytes differ from the sent ones".to_owned() }
        }
        Some(seconds) => Ending::Finished { seconds },
        None => Ending::NotFinished,
    };
    let environment = Environment {
        versions: transfer.versions,
        congestion: transfer.congestion.or(peer.route_congestion().map(str::to_owned)),
        ..environment(peer, case, run)
    };
    let sent = |hosts: &[HostTraffic]| hosts.iter().map(|host| host.bytes_sent).sum();
    let traffic = &run.report.traffic;
    let written = transfer.delays.map(|delays| WriteResults {
        delays,
        wire_bytes: sent(traffic),
        wire_bytes_there: traffic.get(from).map_or(0, |host| host.bytes_sent),
    });
    RunOutcome {
        ending,
        bytes_there: transfer.bytes_there,
        equal: transfer.equal,
        written,
        clock: transfer.clock,
        environment,
        ..account(peer, run)
    }
}

fn failed(peer: &Peer, case: &LinkCase, reason: String, run: &Observation) -> RunOutcome {
    RunOutcome { ending: Ending::Failed { reason }, environment: environment(peer, case, run), ..account(peer, run) }
}

/// Returns the network's observations of a run.
fn account(peer: &Peer, run: &Observation) -> RunOutcome {
    let report = &run.report;
    RunOutcome {
        ending: Ending::NotFinished,
        bytes_there: 0,
        equal: None,
        wire_bytes: report.links.iter().map(|link| link.offered.bytes).sum(),
        model_drops: report.links.iter().map(LinkStats::dropped).sum(),
        written: None,
        clock: peer.clock(),
        verdict: recorded_verdict(run),
        environment: Environment::default(),
    }
}

fn recorded_verdict(run: &Observation) -> RecordedVerdict {
    let report = &run.report;
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let lateness = report.lateness_of_all();
    RecordedVerdict {
        reasons: RunValidity::of(run).faults.iter().map(ToString::to_string).collect(),
        lateness: Lateness {
            p50_us: micros(lateness.percentile(50)),
            p99_us: micros(lateness.percentile(99)),
            max_us: micros(lateness.largest()),
        },
        ring_drops: report.ring_drops,
        unexplained_drops: verdict::unexplained(run),
        cpu_share: report.cpu.as_secs_f64() / report.elapsed.as_secs_f64().max(f64::MIN_POSITIVE),
    }
}

fn environment(peer: &Peer, case: &LinkCase, run: &Observation) -> Environment {
    let offloads = match case.fast {
        false => "off",
        true => "checksums, TCP and UDP segmentation",
    };
    Environment {
        offloads: offloads.to_owned(),
        back_end: back_end(case.fast, run),
        encrypted: peer.is_encrypted(),
        ..Environment::default()
    }
}

/// Returns a description of the ports of the emulator.
fn back_end(fast: bool, run: &Observation) -> String {
    let cables = if fast { "TUN" } else { "veth and packet sockets" };
    match run.report.scheduling {
        Scheduling::RealTime => format!("{cables}, real-time priority"),
        Scheduling::Ordinary => format!("{cables}, no real-time priority"),
    }
}
