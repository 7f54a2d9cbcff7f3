//! The record of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Engine, Origin, is_stale};
use crate::peers::{Delays, TimedSpan};
use crate::plan::{LinkCase, Quantity};

/// Version of the records' format. It is incremented when an older reader would misunderstand them; new fields alone do
/// not change it.
pub const SCHEMA: u32 = 1;

/// One run: its case, its outcome, and whether it is valid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format: [`SCHEMA`].
    pub schema: u32,
    /// [`LinkCase::id`]: runs with the same id are of the same case.
    pub id: String,
    /// The case.
    pub case: LinkCase,
    /// Number of the attempt at this case, from 1: invalid runs are repeated.
    pub attempt: u32,
    /// When it ended, in UTC, in the format of RFC 3339.
    pub date: String,
    /// Release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// Its origin; absent from older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Origin>,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: RunOutcome,
}

/// Number of attempts at a case until a run is valid and the peer did not fail.
pub const TRIES: u32 = 3;

/// The outcome of one run, as measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Whether it finished.
    pub ending: Ending,
    /// Bytes at the receiver when it ended; beside small writes, those of the upload.
    pub bytes_there: u64,
    /// Whether all bytes equal the sent ones; `None` for a peer that keeps no file and only counts.
    pub equal: Option<bool>,
    /// IP bytes that entered the link, in both directions.
    pub wire_bytes: u64,
    /// Packets that the model of the link dropped, in both directions.
    pub model_drops: u64,
    /// The results of small writes, if these were the work and all have arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WriteResults>,
    /// The events that started and ended the clock.
    pub clock: TimedSpan,
    /// Whether the emulator behaved like the model.
    pub verdict: RecordedVerdict,
    /// The environment of the run.
    pub environment: Environment,
}

/// The results of the small writes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WriteResults {
    /// Their delays.
    #[serde(flatten)]
    pub delays: Delays,
    /// IP bytes that both hosts sent since the start of the clock.
    pub wire_bytes: u64,
    /// Those of the writing host alone.
    pub wire_bytes_there: u64,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum Ending {
    /// All bytes arrived.
    Finished {
        /// Seconds between the two ends of the clock.
        seconds: f64,
    },
    /// The cap was reached.
    NotFinished,
    /// The peer failed, or the received bytes differ from the sent ones.
    Failed {
        /// Its message, in one line.
        reason: String,
    },
}

/// Whether a run is valid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedVerdict {
    /// The reasons for an invalid run; empty for a valid one.
    pub reasons: Vec<String>,
    /// The lateness of packets from the emulator.
    pub lateness: Lateness,
    /// Packets that its rings lost.
    pub ring_drops: u64,
    /// Packets missing without a drop by the model.
    pub unexplained_drops: u64,
    /// Share of one core that the emulator used.
    pub cpu_share: f64,
}

/// Lateness of packets against the model, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// The median.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The maximum.
    pub max_us: f64,
}

/// The environment of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of each program involved, by its name.
    pub versions: BTreeMap<String, String>,
    /// Congestion control, if it could be pinned or is known.
    pub congestion: Option<String>,
    /// Segmentation offloads of the interfaces, in words.
    pub offloads: String,
    /// The kind of ports of the emulator.
    pub back_end: String,
    /// Whether the bytes were encrypted in transit.
    pub encrypted: bool,
}

impl RecordedVerdict {
    /// Returns whether the run may enter a table.
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }
}

impl Record {
    /// Returns a quantity of a finished run, if known: in seconds for files, in its own unit for writes.
    pub(crate) fn value(&self, quantity: Quantity) -> Option<f64> {
        let Ending::Finished { seconds } = self.outcome.ending else { return None };
        let written = self.outcome.written.as_ref();
        let delay = |of: fn(&Delays) -> f64| written.map(|written| of(&written.delays));
        match quantity {
            Quantity::Seconds | Quantity::Goodput => Some(seconds),
            Quantity::DelayP50 => delay(|delays| delays.p50_ms),
            Quantity::DelayP90 => delay(|delays| delays.p90_ms),
            Quantity::DelayP99 => delay(|delays| delays.p99_ms),
            Quantity::DelayMax => delay(|delays| delays.max_ms),
            Quantity::WirePerByte => {
                written.map(|written| written.wire_bytes as f64 / (written.delays.count * self.case.size).max(1) as f64)
            }
            Quantity::Upload => Some(self.outcome.bytes_there as f64 * 8e-6 / seconds.max(f64::MIN_POSITIVE)),
        }
    }

    /// Returns the bound on a quantity of an unfinished run: a time was at least the cap, a delay at least the time
    /// from the last write to the cap. `None` if there is none.
    pub(crate) fn bound(&self, quantity: Quantity) -> Option<f64> {
        let case = &self.case;
        match quantity {
            Quantity::Seconds | Quantity::Goodput => Some(case.cap_seconds),
            Quantity::DelayP50 | Quantity::DelayP90 | Quantity::DelayP99 | Quantity::DelayMax => {
                Some(1e3 * (case.cap_seconds - case.writes?.seconds).max(0.0))
            }
            Quantity::WirePerByte | Quantity::Upload => None,
        }
    }

    /// Returns whether the run may enter a table.
    pub fn is_valid(&self) -> bool {
        self.outcome.verdict.is_valid()
    }

    /// Returns whether another build of the program made it.
    pub fn is_stale(&self) -> bool {
        is_stale(self.made.as_ref(), Engine::of_peers(std::iter::once(self.case.peer.as_str())))
    }

    /// Returns whether a case needs no further run: this one is valid, if it did not finish it had at least the present
    /// cap, and if the peer failed there are no attempts left.
    pub fn settles(&self, case: &LinkCase) -> bool {
        self.is_valid()
            && match self.outcome.ending {
                Ending::Finished { .. } => true,
                Ending::NotFinished => self.case.cap_seconds >= case.cap_seconds,
                Ending::Failed { .. } => self.attempt >= TRIES,
            }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan::Writes;

    /// Returns a valid record of a run that took this long.
    pub(crate) fn record(seconds: f64) -> Record {
        let case = LinkCase {
            experiment: "e".into(),
            sweep: "s".into(),
            link: "rate=10M,seed=1".into(),
            topology: None,
            peer: "tcp-cubic".into(),
            size: 1_000_000,
            writes: None,
            seed: 1,
            repeat: 0,
            fixed_rate: Some(9_500_000),
            cap_seconds: 60.0,
            fast: false,
        };
        Record {
            schema: SCHEMA,
            id: case.id(),
            case,
            attempt: 1,
            date: "2026-01-02T03:04:05Z".into(),
            kernel: "6.18.0".into(),
            made: None,
            outcome: RunOutcome {
                ending: Ending::Finished { seconds },
                bytes_there: 1_000_000,
                equal: Some(true),
                wire_bytes: 1_100_000,
                model_drops: 7,
                written: None,
                clock: TimedSpan { starts: "connect".into(), ends: "last byte".into() },
                verdict: RecordedVerdict::default(),
                environment: Environment {
                    versions: [("tcp".to_owned(), "1".to_owned())].into(),
                    congestion: Some("cubic".into()),
                    offloads: "off".into(),
                    back_end: "veth".into(),
                    encrypted: false,
                },
            },
        }
    }

    /// Returns a valid record of 100 writes of 10 bytes, with these delays.
    pub(crate) fn written(p50_ms: f64, max_ms: f64) -> Record {
        let mut record = record(4.0);
        record.case.writes =
            Some(Writes { every_seconds: 0.02, poisson: false, seconds: 2.0, echo: true, beside: Some(1_000_000) });
        record.case.size = 10;
        record.id = record.case.id();
        let delays = Delays { count: 100, p50_ms, p90_ms: p50_ms, p99_ms: max_ms, max_ms };
        record.outcome.written = Some(WriteResults { delays, wire_bytes: 2500, wire_bytes_there: 2000 });
        record
    }

    /// `downpour demo` reads this record, and its tests have the file.
    #[test]
    fn demo_record_has_this_format() {
        let text = serde_json::to_string(&record(1.5)).expect("a record");
        assert_eq!(format!("{text}\n"), include_str!("../../../crates/cli/tests/demo/record.json"));
    }

    #[test]
    fn written_values_and_bounds() {
        let mut record = written(50.0, 80.0);
        let text = serde_json::to_string(&record).expect("JSON");
        let expected =
            r#""written":{"count":100,"p50_ms":50.0,"p90_ms":50.0,"p99_ms":80.0,"max_ms":80.0,"wire_bytes":2500,"#;
        assert!(text.contains(expected), "{text}");
        assert_eq!(serde_json::from_str::<Record>(&text).expect("it reads back"), record);
        let values = Quantity::OF_WRITES.map(|quantity| record.value(quantity));
        assert_eq!(values, [50.0, 50.0, 80.0, 80.0, 2.5, 2.0].map(Some));
        record.outcome.ending = Ending::NotFinished;
        assert_eq!(record.value(Quantity::DelayP99), None);
        let bounds = Quantity::OF_WRITES.map(|quantity| record.bound(quantity));
        assert_eq!(bounds, [Some(58e3), Some(58e3), Some(58e3), Some(58e3), None, None]);
        assert_eq!(
            (record.bound(Quantity::Seconds), self::record(3.0).value(Quantity::Seconds)),
            (Some(60.0), Some(3.0))
        );
    }

    #[test]
    fn record_json_format() {
        let text = serde_json::to_string(&record(1.5)).expect("JSON");
        let expected = concat!(
            r#"{"schema":1,"id":"b320fda708ccd69c","case":{"experiment":"e","sweep":"s","link":"rate=10M,seed=1","#,
            r#""peer":"tcp-cubic","size":1000000,"seed":1,"repeat":0,"told":9500000,"cap_seconds":60.0},"attempt":1,"#,
            r#""date":"2026-01-02T03:04:05Z","kernel":"6.18.0","ending":{"end":"finished","seconds":1.5},"#,
            r#""bytes_there":1000000,"equal":true,"wire_bytes":1100000,"model_drops":7,"#,
            r#""clock":{"starts":"connect","ends":"last byte"},"verdict":{"reasons":[],"#,
            r#""lateness":{"p50_us":0.0,"p99_us":0.0,"max_us":0.0},"ring_drops":0,"unexplained_drops":0,"cpu_share":0.0},"#,
            r#""environment":{"versions":{"tcp":"1"},"congestion":"cubic","offloads":"off","back_end":"veth","encrypted":false}}"#,
        );
        let expected = expected.replace("b320fda708ccd69c", &record(1.5).case.id());
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Record>(&text).expect("it reads back"), record(1.5));
    }

    #[test]
    fn settles_needs_a_valid_run_with_the_cap() {
        let mut found = record(1.0);
        let case = found.case.clone();
        assert!(found.settles(&case));
        found.outcome.ending = Ending::NotFinished;
        assert!(found.settles(&case));
        assert!(!found.settles(&LinkCase { cap_seconds: 61.0, ..case.clone() }), "it may finish within the longer cap");
        found.outcome.ending = Ending::Failed { reason: "gave up".into() };
        found.attempt = TRIES;
        assert!(found.settles(&LinkCase { cap_seconds: 61.0, ..case.clone() }));
        found.outcome.verdict.reasons.push("late".into());
        assert!(!found.settles(&case));
    }
}
