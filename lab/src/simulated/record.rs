//! The record of a run with flows.

use std::collections::BTreeMap;

use netsim::{LinkStats, QueueDelays};
use serde::{Deserialize, Serialize};
use sim::{Ending, SharedOutcome};

use super::Scenario;
use crate::peers::TimedSpan;
use crate::results::{Origin, RecordedVerdict, StoreOf, TRIES, is_stale};

/// The records of runs with flows in one directory.
pub type SimStore = StoreOf<SimRecord>;

/// All inputs of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimCase {
    /// Name of the plan.
    pub experiment: String,
    /// The first sweep that includes it.
    pub sweep: String,
    /// The line it belongs to.
    pub series: String,
    /// The value of the sweep.
    pub point: String,
    /// The scenario.
    pub scenario: Scenario,
    /// Seed of all random choices.
    pub seed: u64,
    /// Length of the spans for which the arriving bytes are stored.
    pub span_seconds: f64,
    /// Seconds after which the run is stopped, of virtual time if it is simulated.
    pub cap_seconds: f64,
}

/// One run: its case and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimRecord {
    /// Version of the format: [`crate::results::SCHEMA`].
    pub schema: u32,
    /// [`SimCase::id`].
    pub id: String,
    /// The case.
    pub case: SimCase,
    /// When it was run, in UTC, in the format of RFC 3339.
    pub date: String,
    /// Version of the program: another engine may behave differently.
    pub version: String,
    /// Its origin; absent from older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Origin>,
    /// Seconds of real time that it took.
    pub took_seconds: f64,
    /// Its end.
    pub ending: SimEnding,
    /// The flows, in the order of the plan.
    pub flows: Vec<FlowRecord>,
    /// Packets that the queues of the shared link, or of all links of a topology, dropped, in both directions: those
    /// without room, and CoDel's choice.
    pub queue_drops: u64,
    /// The wait at the shared link that 95 % of the packets towards the receivers did not exceed after the warm-up, in
    /// ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_p95: Option<f64>,
    /// Packets that the shared link lost at random, likewise.
    pub random_drops: u64,
    /// Packets that all nodes sent.
    pub packets: u64,
    /// The data of a run of real programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<EmulationRecord>,
}

/// A run of real programs over an emulated network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmulationRecord {
    /// Number of the attempt at this case, from 1: invalid runs are repeated.
    pub attempt: u32,
    /// Seconds from the start of the first program to the end of the run.
    pub seconds: f64,
    /// Least round-trip time of each flow, in milliseconds.
    pub round_trips_ms: Vec<f64>,
    /// Whether the emulator behaved like the model, for all flows.
    pub verdict: RecordedVerdict,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// The kind of ports of the emulator.
    pub back_end: String,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimEnding {
    /// Every flow ended successfully, except for those that have no end or are stopped.
    Finished,
    /// The cap was reached.
    NotFinished,
    /// A flow ended without its object before that: its profile or its program gave up, or its path was dead.
    GaveUp,
    /// A host kept the network busy without letting time pass, or the received object differs from the sent one: a
    /// defect of the engine, or of a program.
    Failed,
}

/// The outcome of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Its name.
    pub name: String,
    /// From its first packet to its last byte at the receiver.
    pub seconds: Option<f64>,
    /// The time of the last byte since the start of the run.
    pub ended_at: Option<f64>,
    /// Bytes of the object that have arrived.
    pub written: u64,
    /// IP bits that arrived at its receiver after the warm-up, in Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<f64>,
    /// IP bytes that both hosts sent.
    pub wire_bytes: u64,
    /// Packets that the sender sent.
    pub packets_sent: u64,
    /// Packets that the sender declared lost; for a real program those that did not arrive by the end.
    pub packets_lost: u64,
    /// Mean over time of the sender's loss estimate, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_estimate: Option<f64>,
    /// Bytes of the symbols that it sent, of every kind.
    #[serde(default)]
    pub symbol_bytes: u64,
    /// The most bytes of symbols that the receiver buffered for incomplete blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_bytes: Option<u64>,
    /// Seconds that encoding and decoding took in the model.
    pub coding_seconds: [f64; 2],
    /// IP bytes that arrived in each span.
    pub arrived: Vec<u64>,
    /// The sender's rate at the start of each span, in Mbit/s.
    #[serde(default)]
    pub rate: Vec<f64>,
    /// Its loss estimate at these times, in percent.
    #[serde(default)]
    pub loss: Vec<f64>,
    /// The data of a real program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramRecord>,
}

/// A flow of a real program, as observed by the emulator and the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Seconds of each transfer that ended, from one end of the clock to the other.
    pub transfers: Vec<f64>,
    /// IP bytes that arrived at the sender in each span.
    pub returned: Vec<u64>,
    /// Mean delay of arriving packets in each span beyond the least, in milliseconds: mostly waits in queues. Zero if
    /// none arrived.
    pub delay_ms: Vec<f64>,
    /// Version of each program involved, by its name.
    pub versions: BTreeMap<String, String>,
    /// Congestion control, as the kernel reports it for its own TCP.
    pub congestion: Option<String>,
    /// Whether the bytes were encrypted in transit.
    pub encrypted: bool,
    /// The events that start and end the clock.
    pub clock: TimedSpan,
    /// The reason for giving up, in one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The ids of a scenario's runs: their common part is written and hashed once.
pub(super) struct Ids {
    before: blake3::Hasher,
    after: String,
}

impl Ids {
    pub(super) fn of(scenario: &Scenario, span_seconds: f64, cap_seconds: f64) -> Self {
        let json = |value: f64| serde_json::to_string(&value).expect("plain values have a JSON form");
        let (before, after) = match scenario.is_endless() {
            true => ("[[", format!(",{}],{}]", json(span_seconds), json(cap_seconds))),
            false => ("[", format!(",{}]", json(span_seconds))),
        };
        let scenario = serde_json::to_vec(scenario).expect("plain values have a JSON form");
        let mut hasher = blake3::Hasher::new();
        hasher.update(before.as_bytes()).update(b"\"simulated\",").update(&scenario).update(b",");
        Self { before: hasher, after }
    }

    pub(super) fn of_seed(&self, seed: u64) -> String {
        let mut hasher = self.before.clone();
        hasher.update(seed.to_string().as_bytes()).update(self.after.as_bytes());
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

impl SimCase {
    /// Returns 16 hexadecimal digits that identify the run, independent of its plan and sweep. The cap
    /// is excluded, unless every run lasts to it: a finished run is not repeated when more time is given.
    pub fn id(&self) -> String {
        Ids::of(&self.scenario, self.span_seconds, self.cap_seconds).of_seed(self.seed)
    }

    /// Returns one line for lists, in which `--only` searches.
    pub fn label(&self) -> String {
        let Self { experiment, sweep, series, point, seed, .. } = self;
        format!("{experiment}/{sweep} {series} {point} seed {seed}")
    }
}

impl SimRecord {
    /// Returns whether the run may enter a table.
    pub fn is_valid(&self) -> bool {
        self.emulation.as_ref().is_none_or(|emulation| emulation.verdict.is_valid())
    }

    /// Returns whether another build made it.
    pub fn is_stale(&self) -> bool {
        is_stale(self.made.as_ref(), self.case.scenario.engine())
    }

    /// Returns whether its case needs no further run with this cap: this one is valid, and ended or had at least this
    /// cap. Giving up counts as accidental until no attempts are left.
    pub fn settles(&self, cap_seconds: f64) -> bool {
        let is_last = self.emulation.as_ref().is_none_or(|emulation| emulation.attempt >= TRIES);
        self.is_valid()
            && match self.ending {
                SimEnding::Finished => true,
                SimEnding::GaveUp => is_last,
                SimEnding::NotFinished => self.case.cap_seconds >= cap_seconds,
                SimEnding::Failed => false,
            }
    }

    /// Creates the record of a run's outcome.
    pub(super) fn of(case: SimCase, outcome: &SharedOutcome, date: String, took_seconds: f64) -> Self {
        let is_wrong = |flow: &sim::FlowOutcome| flow.completed.is_some() && !flow.is_identical;
        let texts = case.scenario.flows.iter().zip(&outcome.flows);
        let ending = match outcome.ending {
            Ending::Stalled => SimEnding::Failed,
            _ if outcome.flows.iter().any(is_wrong) => SimEnding::Failed,
            // An endless flow that ends has left the link to the others, as among real programs.
            _ if texts.clone().any(|(text, flow)| !text.has_to_finish() && flow.gave_up) => SimEnding::GaveUp,
            _ if texts.clone().all(|(text, flow)| !text.has_to_finish() || flow.completed.is_some()) => {
                SimEnding::Finished
            }
            Ending::Closed => SimEnding::GaveUp,
            Ending::TimeUp => SimEnding::NotFinished,
        };
        let flows = texts.map(|(text, flow)| FlowRecord {
            name: text.name.clone(),
            seconds: flow.completed.map(|time| time.as_secs_f64()),
            ended_at: flow.completed_at.map(|time| time.as_secs_f64()),
            written: flow.written,
            throughput: Some(rounded(flow.throughput * 1e-6)),
            wire_bytes: flow.wire_bytes,
            packets_sent: flow.packets_sent,
            packets_lost: flow.packets_lost,
            loss_estimate: flow.loss_estimate,
            symbol_bytes: flow.symbol_bytes,
            held_bytes: Some(flow.most_held),
            coding_seconds: flow.coding.map(|time| time.as_secs_f64()),
            arrived: flow.arrived.clone(),
            rate: flow.course.iter().map(|moment| rounded(moment.rate as f64 * 1e-6)).collect(),
            loss: flow.course.iter().map(|moment| rounded(moment.loss * 100.0)).collect(),
            program: None,
        });
        // The shared link is the first of a dumbbell; a graph has many, and those of the hosts drop nothing unless the
        // plan says so.
        let shared = if case.scenario.topology.is_some() { outcome.links.len() } else { 1 };
        let (queue_drops, random_drops) = drops(outcome.links.iter().take(shared).flatten());
        Self {
            schema: crate::results::SCHEMA,
            id: case.id(),
            date,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            made: None,
            took_seconds,
            ending,
            flows: flows.collect(),
            queue_drops,
            random_drops,
            packets: outcome.packets,
            queue_p95: outcome.waits.first().filter(|_| shared == 1).and_then(|[forward, _]| wait_p95(forward)),
            emulation: None,
            case,
        }
    }
}

/// Returns the packets dropped on some links by queues, full or with CoDel, and at random.
pub(crate) fn drops<'a>(links: impl Iterator<Item = &'a LinkStats>) -> (u64, u64) {
    links.fold((0, 0), |(queue, random), stats| {
        let of_queue = stats.dropped_queue_full.packets + stats.dropped_codel.packets;
        (queue + of_queue, random + stats.dropped_random.packets)
    })
}

/// Returns the wait that 95 % of the packets did not exceed, in milliseconds; `None` without packets.
pub(crate) fn wait_p95(waits: &QueueDelays) -> Option<f64> {
    waits.quantile(0.95).map(|wait| rounded(wait.as_secs_f64() * 1e3))
}

/// Rounds to three decimals, which are enough for a record.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::Text;
    use super::super::scenario::tests::scenario;
    use super::*;

    /// Returns a record with 1 MB in 2 s, and half of one in 60 s.
    pub(in super::super) fn record() -> SimRecord {
        let case = SimCase {
            experiment: "paper/fig6".into(),
            sweep: "delay".into(),
            series: "cubic".into(),
            point: "20ms".into(),
            scenario: scenario(),
            seed: 1,
            span_seconds: 1.0,
            cap_seconds: 60.0,
        };
        let flow = |name: &str, ended_at: Option<f64>, arrived: &[u64]| FlowRecord {
            name: name.into(),
            seconds: ended_at.map(|end| end - 1.5),
            ended_at,
            written: if ended_at.is_some() { 1_000_000 } else { 500_000 },
            throughput: Some(12.5),
            wire_bytes: 1_100_000,
            packets_sent: 800,
            packets_lost: 3,
            loss_estimate: ended_at.map(|_| 0.0625),
            symbol_bytes: 1_050_000,
            held_bytes: Some(250_000),
            coding_seconds: [0.5, 0.0],
            arrived: arrived.to_vec(),
            rate: vec![8.0, 4.0],
            loss: vec![20.0, 10.0],
            program: None,
        };
        SimRecord {
            schema: 1,
            id: case.id(),
            case,
            date: "2026-01-02T03:04:05Z".into(),
            version: "0.1.0".into(),
            made: None,
            took_seconds: 0.25,
            ending: SimEnding::NotFinished,
            flows: vec![flow("test", Some(3.5), &[100, 100, 100, 70]), flow("tcp", None, &[0, 25, 25, 25, 30])],
            queue_drops: 5,
            queue_p95: Some(7.5),
            random_drops: 2,
            packets: 2_000,
            emulation: None,
        }
    }

    /// Returns the record with a second of warm-up, as one of real programs.
    pub(in super::super) fn emulated(mut record: SimRecord) -> SimRecord {
        record.case.scenario.warm_up = Some(Text("1s".into()));
        record.queue_p95 = Some(7.5);
        record.emulation = Some(EmulationRecord {
            attempt: 1,
            seconds: 4.9,
            round_trips_ms: vec![20.0, 20.0],
            verdict: RecordedVerdict::default(),
            kernel: "6.18.0".into(),
            back_end: "veth".into(),
        });
        for flow in &mut record.flows {
            let program =
                ProgramRecord { delay_ms: vec![2.5, 5.0], returned: vec![60, 70], ..ProgramRecord::default() };
            flow.program = Some(program);
        }
        [record.flows[0].throughput, record.flows[1].throughput] = [Some(15.0), Some(10.0)];
        record
    }

    #[test]
    fn sim_case_id_depends_on_the_run_only() {
        let case = record().case;
        let id = case.id();
        for same in [
            SimCase { sweep: "other".into(), ..case.clone() },
            SimCase { series: "other".into(), ..case.clone() },
            SimCase { cap_seconds: 5.0, ..case.clone() },
        ] {
            assert_eq!(same.id(), id);
        }
        let mut scenario = case.scenario.clone();
        scenario.put("test.size", "2MB").expect("a path");
        let mut endless = case.clone();
        endless.scenario.flows.iter_mut().for_each(|flow| flow.size = None);
        let shorter = SimCase { cap_seconds: 5.0, ..endless.clone() };
        assert_ne!(shorter.id(), endless.id(), "the cap is its length");
        // Stored records are found by ids of the full content.
        let hashed = |content: Vec<u8>| blake3::hash(&content).to_hex()[..16].to_owned();
        let content = |case: &SimCase| ("simulated", case.scenario.clone(), case.seed, case.span_seconds);
        assert_eq!(id, hashed(serde_json::to_vec(&content(&case)).expect("JSON")));
        assert_eq!(shorter.id(), hashed(serde_json::to_vec(&(content(&shorter), 5.0)).expect("JSON")));
        for other in [
            SimCase { seed: 2, ..case.clone() },
            SimCase { span_seconds: 0.1, ..case.clone() },
            SimCase { scenario, ..case.clone() },
        ] {
            assert_ne!(other.id(), id);
        }
        assert_eq!(case.label(), "paper/fig6/delay cubic 20ms seed 1");
    }

    #[test]
    fn sim_record_round_trip_and_settles() {
        let mut record = record();
        let text = serde_json::to_string(&record).expect("JSON");
        assert_eq!(serde_json::from_str::<SimRecord>(&text).expect("it reads back"), record);
        let longer = SimCase { cap_seconds: 61.0, ..record.case.clone() };
        assert!(record.settles(record.case.cap_seconds) && !record.settles(longer.cap_seconds));
        for ending in [SimEnding::Finished, SimEnding::GaveUp] {
            record.ending = ending;
            assert!(record.settles(longer.cap_seconds), "{ending:?}");
        }
        record.ending = SimEnding::Failed;
        assert!(!record.settles(record.case.cap_seconds));
        // A program may give up by accident, and a run may be invalid.
        let mut record = emulated(record);
        let text = serde_json::to_string(&record).expect("JSON");
        assert_eq!(serde_json::from_str::<SimRecord>(&text).expect("it reads back"), record);
        record.ending = SimEnding::GaveUp;
        assert!(!record.settles(record.case.cap_seconds));
        record.emulation.as_mut().expect("emulated").attempt = TRIES;
        assert!(record.settles(record.case.cap_seconds));
        record.emulation.as_mut().expect("emulated").verdict.reasons.push("late".into());
        assert!(!record.settles(record.case.cap_seconds) && !record.is_valid());
    }
}
