//! A run with several programs at once, each between two hosts of its own, over one shared link.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use netsim::Rate;

use super::flow::{FlowEnd, FlowEnvironment, play};
use super::{LOOK_EVERY, NOTICE, Trials, back_end, prepare, recorded_verdict, run_failed};
use crate::clock;
use crate::emulated::{EmulatedNetwork, Observation};
use crate::emulator::{HostTraffic, Measuring, SpanTraffic};
use crate::layout::Layout;
use crate::peers::Gate;
use crate::results::SCHEMA;
use crate::runner::{Measure as _, MeasureError, StopFlag, kernel};
use crate::simulated::{
    EmulationRecord, FlowRecord, ProgramCase, ProgramFlow, ProgramRecord, SimCase, SimEnding, SimRecord, drops, now,
    rounded, wait_p95,
};

/// The share of the link's rate for programs with a fixed rate.
const RATE_SHARE: f64 = 0.95;
/// The time limit for all receivers to become ready.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Makes the run of a case.
pub(super) fn measure(
    trials: &Trials,
    case: &SimCase,
    attempt: u32,
    stop: &StopFlag,
) -> Result<SimRecord, MeasureError> {
    let began = Instant::now();
    let limit = Duration::from_secs_f64(case.cap_seconds);
    let programs = case.scenario.programs(limit).map_err(run_failed)?;
    for (flow, text) in programs.flows.iter().zip(&case.scenario.flows) {
        if let Some(missing) = trials.lacks(flow.peer.name()) {
            return Err(MeasureError::Absent(format!("{}: {missing}", text.name)));
        }
    }
    // As in the simulator: the same seed loses the same packets.
    let topology = programs.topology.sibling(case.seed);
    let layout = Layout::of_topology(topology, Path::new(&case.experiment)).map_err(run_failed)?;
    let pairs = layout.pairs.clone();
    let network = trials.network(layout)?;
    for (flow, &(from, to)) in programs.flows.iter().zip(&pairs) {
        for host in [from, to] {
            prepare(&network.hosts()[host], flow.peer)?;
        }
    }
    let played =
        PreparedRun { trials, case, programs: &programs, network: &network, pairs: &pairs, limit }.all(stop)?;
    let observation = network.stop();
    if stop.is_set() {
        return Err(MeasureError::Stopped);
    }
    Ok(record(case, attempt, &programs, played, &observation, began.elapsed()))
}

/// The ends of all flows.
struct FlowEnds {
    ends: Vec<FlowEnd>,
    /// When the first program began, on `CLOCK_MONOTONIC`.
    begun: Duration,
    /// The duration.
    lasted: Duration,
}

/// A run before its start.
struct PreparedRun<'a> {
    trials: &'a Trials,
    case: &'a SimCase,
    programs: &'a ProgramCase,
    network: &'a EmulatedNetwork,
    pairs: &'a [(usize, usize)],
    limit: Duration,
}

impl PreparedRun<'_> {
    /// Starts all flows at once, and stops them when those with a size have arrived, or at the limit.
    fn all(&self, stop: &StopFlag) -> Result<FlowEnds, MeasureError> {
        let flows = &self.programs.flows;
        let gate = Gate::new(flows.len());
        let rate = self.programs.rate.map(|rate| (rate.bits_per_second() as f64 * RATE_SHARE).round() as u64);
        thread::scope(|scope| {
            let (sender, ended) = channel();
            for (number, flow) in flows.iter().enumerate() {
                let (from, to) = self.pairs[number];
                let around = FlowEnvironment {
                    hosts: [from, to].map(|host| &self.network.hosts()[host]),
                    gate: &gate,
                    programs: &self.trials.programs,
                    rate: rate.map(Rate::from_bits_per_second),
                    seed: self.case.seed,
                };
                let sender = sender.clone();
                // The receiver waits for all of them.
                scope.spawn(move || drop(sender.send((number, play(flow, number, around)))));
            }
            drop(sender);
            let begun = self.begin(&gate, stop);
            let mut ends: Vec<Option<FlowEnd>> = flows.iter().map(|_| None).collect();
            let mut lasted = None;
            loop {
                match ended.recv_timeout(LOOK_EVERY) {
                    Ok((number, mut end)) => {
                        if lasted.is_some() {
                            // It was stopped by this function.
                            end.failure = None;
                        }
                        ends[number] = Some(end);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if lasted.is_none() && (begun.is_none() || stop.is_set() || self.is_over(&ends)) {
                    lasted =
                        begun.map(|begun| clock::now().saturating_sub(begun).min(self.limit)).or(Some(Duration::ZERO));
                    gate.abandon();
                    self.network.hosts().iter().for_each(|host| host.end());
                }
            }
            let begun = begun.ok_or_else(|| run_failed("the programs were not ready in time"))?;
            let lasted = lasted.unwrap_or_else(|| clock::now().saturating_sub(begun).min(self.limit));
            Ok(FlowEnds { ends: ends.into_iter().map(Option::unwrap_or_default).collect(), begun, lasted })
        })
    }

    /// Waits until every flow is ready, and starts them; returns the start time.
    fn begin(&self, gate: &Gate, stop: &StopFlag) -> Option<Duration> {
        let patience = Instant::now() + READY_WITHIN;
        while !gate.is_ready_within(LOOK_EVERY) {
            if stop.is_set() || Instant::now() > patience {
                return None;
            }
        }
        let (span, warm_up) = (Duration::from_secs_f64(self.case.span_seconds), self.programs.warm_up);
        // The emulator has to know the start before the first packet.
        let begun = clock::now() + NOTICE;
        self.network.control().measure(begun, Measuring { span, warm_up });
        gate.open(begun);
        Some(begun)
    }

    /// Returns whether the run is over: a flow failed, or all with a size have ended.
    fn is_over(&self, ends: &[Option<FlowEnd>]) -> bool {
        let flows = || self.programs.flows.iter().zip(ends);
        let has_failed =
            |(_, end): (&ProgramFlow, &Option<FlowEnd>)| end.as_ref().is_some_and(|end| end.failure.is_some());
        let has_sizes = flows().any(|(flow, _)| !flow.endless);
        flows().any(has_failed) || has_sizes && flows().all(|(flow, end)| flow.endless || end.is_some())
    }
}

/// Returns the record of a run.
fn record(
    case: &SimCase,
    attempt: u32,
    programs: &ProgramCase,
    played: FlowEnds,
    run: &Observation,
    took: Duration,
) -> SimRecord {
    let FlowEnds { ends, begun, lasted } = played;
    // The shared link is the first of a dumbbell, in both directions.
    let (queue_drops, random_drops) = drops(run.report.links.iter().take(2));
    let ending = ending(&programs.flows, &ends);
    let mut flows = Vec::new();
    for (number, end) in ends.into_iter().enumerate() {
        let name = case.scenario.flows[number].name.clone();
        let none = HostTraffic::default();
        let (from, to) = run.pairs[number];
        // Absent if the emulator stopped before it received the command.
        let traffic = [from, to].map(|host| run.report.traffic.get(host).unwrap_or(&none));
        let throughput = throughput(case.span_seconds, programs.warm_up, lasted, traffic[1]);
        let record = flow_record(name, &programs.flows[number], end, begun, traffic, run.delays[number][0]);
        flows.push(FlowRecord { throughput, ..record });
    }
    SimRecord {
        schema: SCHEMA,
        id: case.id(),
        case: case.clone(),
        date: now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        made: None,
        took_seconds: rounded(took.as_secs_f64()),
        ending,
        flows,
        queue_drops,
        random_drops,
        packets: run.report.traffic.iter().map(|host| host.packets_sent).sum(),
        queue_p95: run.report.waits.first().and_then(wait_p95),
        emulation: Some(EmulationRecord {
            attempt,
            seconds: rounded(lasted.as_secs_f64()),
            round_trips_ms: run.delays.iter().map(|ways| millis(ways[0] + ways[1])).collect(),
            verdict: recorded_verdict(run),
            kernel: kernel(),
            back_end: back_end(false, run),
        }),
    }
}

fn ending(flows: &[ProgramFlow], ends: &[FlowEnd]) -> SimEnding {
    if ends.iter().any(|end| end.is_wrong) {
        return SimEnding::Failed;
    }
    let all = || flows.iter().zip(ends);
    // An endless flow that ends has left the link to the others.
    if all().any(|(flow, end)| end.failure.is_some() || flow.endless && end.ended.is_some()) {
        return SimEnding::GaveUp;
    }
    match all().all(|(flow, end)| !flow.has_to_finish || end.ended.is_some()) {
        true => SimEnding::Finished,
        false => SimEnding::NotFinished,
    }
}

fn flow_record(
    name: String,
    flow: &ProgramFlow,
    end: FlowEnd,
    begun: Duration,
    [sender, receiver]: [&HostTraffic; 2],
    least: Duration,
) -> FlowRecord {
    let arrived: u64 = receiver.arrived.iter().map(|span| span.packets).sum();
    let delay = |span: &SpanTraffic| match u32::try_from(span.packets) {
        Ok(packets) if packets > 0 => millis((span.transit / packets).saturating_sub(least)),
        _ => 0.0,
    };
    let bytes = |host: &HostTraffic| host.arrived.iter().map(|span| span.bytes).collect();
    FlowRecord {
        name,
        seconds: end.ended.and_then(|_| median(&end.transfers)),
        ended_at: end.ended.map(|at| rounded(at.saturating_sub(begun).as_secs_f64())),
        written: end.bytes_there,
        throughput: None,
        wire_bytes: sender.bytes_sent + receiver.bytes_sent,
        packets_sent: sender.packets_sent,
        packets_lost: sender.packets_sent.saturating_sub(arrived),
        loss_estimate: None,
        symbol_bytes: 0,
        held_bytes: None,
        coding_seconds: [0.0; 2],
        arrived: bytes(receiver),
        rate: Vec::new(),
        loss: Vec::new(),
        program: Some(ProgramRecord {
            transfers: end.transfers.into_iter().map(rounded).collect(),
            returned: bytes(sender),
            delay_ms: receiver.arrived.iter().map(delay).collect(),
            versions: end.versions,
            congestion: end.congestion.or(flow.peer.route_congestion().map(str::to_owned)),
            encrypted: flow.peer.is_encrypted(),
            clock: flow.peer.clock(),
            failure: end.failure.map(|error| error.to_string()),
        }),
    }
}

/// Returns the arrivals at a host after the warm-up in Mbit/s of IP, over the complete spans of the run.
fn throughput(span: f64, warm_up: Duration, lasted: Duration, host: &HostTraffic) -> Option<f64> {
    let spans = (warm_up.as_secs_f64() / span).ceil() as usize..(lasted.as_secs_f64() / span) as usize;
    let bytes: u64 = host.arrived.iter().take(spans.end).skip(spans.start).map(|span| span.bytes).sum();
    (!spans.is_empty()).then(|| rounded(bytes as f64 * 8e-6 / (spans.len() as f64 * span)))
}

/// Returns the median of some seconds; with an even number, the mean of the two in the middle.
fn median(seconds: &[f64]) -> Option<f64> {
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = [sorted.len().checked_sub(1)? / 2, sorted.len() / 2];
    Some(rounded((sorted[middle[0]] + sorted[middle[1]]) / 2.0))
}

fn millis(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}
