//! A plan of small writes over an emulated link, as users run it. Needs a kernel that lets this user create network
//! namespaces, and its Reno.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lab::results::{Ending, RECORDS, Record};

fn lab(arguments: &[&str], path: &Path) -> Output {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
    let output = lab.args(arguments).arg(path).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("namespace"), "this test needs network namespaces: {said}");
    output
}

const PLAN: &str = r#"
    name = "test/writes"
    title = "Echoes beside an upload"
    link = "rate=10M,delay=20ms,queue=60KB"
    size = "100B"
    writes = { every = "20ms", for = "2s", echo = true, beside = "100MB" }
    peers = ["tcp-reno"]
    cap = "20s"
    warm-up = 0
    [[sweep]]
    name = "delay"
    vary = "delay"
    values = ["20ms"]
"#;

#[test]
fn writes_delays_and_bytes_match_the_link() {
    let directory = tempfile::tempdir().expect("a directory");
    let (plan, out) = (directory.path().join("plan.toml"), directory.path().join("out"));
    fs::write(&plan, PLAN).expect("written");
    let output = lab(&["run", "--out", out.to_str().expect("text")], &plan);
    let text = fs::read_to_string(out.join(RECORDS));
    let text = text.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let records: Vec<Record> = text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    assert!(!records.is_empty());
    // A busy machine makes runs invalid, which are repeated; the assertions hold nevertheless.
    for record in &records {
        let outcome = &record.outcome;
        let Ending::Finished { seconds } = outcome.ending else { panic!("{:?}", outcome.ending) };
        let written = outcome.written.expect("delays");
        let delays = written.delays;
        assert_eq!((delays.count, outcome.equal), (100, Some(true)));
        // 40 ms of round trip, and 48 ms in a full queue.
        assert!(delays.p50_ms > 40.0 && delays.p50_ms < 400.0 && delays.max_ms >= delays.p99_ms, "{delays:?}");
        assert!(seconds > 2.0, "{seconds} s");
        // 100 echoed writes of 100 B with at least 52 B of headers, and an upload at most as fast as the link.
        let upload = outcome.bytes_there;
        assert!((200_000..3_000_000).contains(&upload), "{upload} B");
        assert!(written.wire_bytes_there > 15_200 + upload && written.wire_bytes > written.wire_bytes_there + 15_200);
        assert!(written.wire_bytes <= outcome.wire_bytes, "{} of {}", written.wire_bytes, outcome.wire_bytes);
    }
    let report = lab(&["report"], &out);
    // Without a valid run there is no picture, but a page.
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    for part in ["Delay of 99 % of the writes at most, ms", "IP bytes of both hosts", "Goodput of the upload beside"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    let table = fs::read_to_string(out.join("results.csv")).expect("a table");
    assert!(table.lines().next().is_some_and(|line| line.contains(",delay_p99_ms,")), "{table}");
}
