//! A full disk, simulated by a limit on the file size. The test has its own process, since the limit applies to the
//! whole process.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab::peers::TimedSpan;
use lab::plan::LinkCase;
use lab::results::{Ending, Environment, RECORDS, Record, RecordedVerdict, RunOutcome, SCHEMA, Store};
use rustix::process::{Resource, Rlimit, setrlimit};

fn record() -> Record {
    let case = LinkCase {
        experiment: "e".into(),
        sweep: "s".into(),
        link: "rate=10M".into(),
        topology: None,
        peer: "p".into(),
        size: 1,
        writes: None,
        seed: 1,
        repeat: 0,
        fixed_rate: None,
        cap_seconds: 1.0,
        fast: false,
    };
    Record {
        schema: SCHEMA,
        id: case.id(),
        case,
        attempt: 1,
        date: String::new(),
        kernel: String::new(),
        made: None,
        outcome: RunOutcome {
            ending: Ending::NotFinished,
            bytes_there: 0,
            equal: Some(false),
            wire_bytes: 0,
            model_drops: 0,
            written: None,
            clock: TimedSpan::default(),
            verdict: RecordedVerdict::default(),
            environment: Environment::default(),
        },
    }
}

#[test]
fn append_disk_full_keeps_earlier_records() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(RECORDS);
    let mut store = Store::open(directory.path()).expect("a new directory");
    store.append(record()).expect("room");
    let whole = fs::read(&path).expect("a record");

    // The limit allows half a record more: the record is torn as on a full disk. The signal at the limit would end the
    // process.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false))).expect("a handler");
    let room = whole.len() as u64 * 3 / 2;
    setrlimit(Resource::Fsize, Rlimit { current: Some(room), maximum: None }).expect("a lower limit is allowed");
    let error = store.append(record()).expect_err("no room").to_string();
    assert!(error.contains("cannot append to ") && error.contains("run the same command to resume"), "{error}");
    assert_eq!(fs::read(&path).expect("a record"), whole);
    assert_eq!(store.records().len(), 1);

    setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None }).expect("the previous limit");
    store.append(record()).expect("room again");
    drop(store);
    assert_eq!(Store::open(directory.path()).expect("whole lines").records().len(), 2);
}
