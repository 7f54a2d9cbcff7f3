//! Plans with several programs on one emulated link, as users run them. Needs a kernel that lets this user create
//! network namespaces, and its Reno and BBR.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use lab::results::RECORDS;
use lab::simulated::{FlowRecord, SimEnding, SimQuantity, SimRecord};

fn lab(arguments: &[&str], plan: &Path, out: &Path) -> Output {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
    let output = lab.arg("run").arg(plan).arg("--out").arg(out).args(arguments).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("namespace"), "this test needs network namespaces: {said}");
    output
}

/// Runs a plan, after it has been listed as this, with results in `out`; returns its records. A busy machine makes runs
/// invalid, which are repeated; the assertions hold nevertheless.
fn records(plan: &str, listed: &str, out: &Path) -> Vec<SimRecord> {
    let file = out.with_extension("toml");
    fs::write(&file, plan).expect("written");
    let list = String::from_utf8(lab(&["--dry-run"], &file, out).stdout).expect("text");
    assert!(list.ends_with(listed), "{list}");
    let output = lab(&[], &file, out);
    let text = fs::read_to_string(out.join(RECORDS));
    let text = text.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
}

const ENDLESS: &str = r#"
    name = "test/endless"
    title = "Two flows that share 10 Mbit/s"
    link = "rate=10M,delay=10ms,queue=1bdp"
    cap = "4s"
    warm-up = "1s"
    span = "100ms"
    [[flow]]
    name = "reno"
    peer = "tcp-reno"
    [[flow]]
    name = "bbr"
    peer = "tcp-bbr"
    stop = "3s"
    receiver = "delay=20ms"
    [picture]
    y = "share"
    [[sweep]]
    name = "queue"
    vary = "link.queue"
    values = ["1bdp"]
"#;

#[test]
fn endless_flows_share_the_link_until_stop() {
    let directory = tempfile::tempdir().expect("a directory");
    let listed = "1 case to measure; at most 4.00 s (every run at its cap)\n";
    for record in records(ENDLESS, listed, &directory.path().join("out")) {
        assert_eq!(record.ending, SimEnding::Finished);
        let emulation = record.emulation.as_ref().expect("it was emulated");
        assert_eq!(emulation.round_trips_ms, [20.0, 60.0]);
        assert!((4.0..4.5).contains(&emulation.seconds), "{} s", emulation.seconds);
        let [reno, bbr] = &record.flows[..] else { panic!("two flows") };
        for (flow, congestion) in [(reno, "reno"), (bbr, "bbr")] {
            let program = flow.program.as_ref().expect("a program");
            assert_eq!(program.congestion.as_deref(), Some(congestion));
            assert_eq!((flow.seconds, program.failure.as_deref()), (None, None));
        }
        // 125 kB fill a span of 100 ms; one during a stall of the emulator may have more.
        let second = |from: usize| -> u64 {
            let arrived = |spans: &[u64]| spans.iter().skip(from).take(10).sum::<u64>();
            arrived(&reno.arrived) + arrived(&bbr.arrived)
        };
        for from in [10, 20] {
            assert!((1_000_000..=1_260_000).contains(&second(from)), "{} B after {from} spans", second(from));
        }
        let late: u64 = bbr.arrived.iter().skip(35).sum();
        assert!(late < 20_000 && reno.arrived.len() >= 38, "{late} B after its stop, {} spans", reno.arrived.len());
        let share = |quantity: SimQuantity, flow| quantity.of(&record, flow).expect("known").value();
        let both = share(SimQuantity::Share, 0) + share(SimQuantity::Share, 1);
        assert!((0.7..=1.01).contains(&both), "{both} of the link");
        // A full queue of one BDP takes 20 ms.
        let queue = record.queue_p95.expect("packets waited");
        assert!((5.0..24.0).contains(&queue), "{queue} ms");
        let acknowledged: u64 = reno.program.iter().flat_map(|program| &program.returned).sum();
        assert!(acknowledged > 10_000 && acknowledged < reno.arrived.iter().sum::<u64>() / 10, "{acknowledged} B");
    }
}

const REPEATED: &str = r#"
    name = "test/repeated"
    title = "A short flow beside a long one"
    link = "rate=10M,delay=5ms,queue=1bdp"
    cap = "20s"
    [[flow]]
    name = "short"
    peer = "tcp-reno"
    size = "200KB"
    start = "500ms"
    repeat = 3
    [[flow]]
    name = "long"
    peer = "tcp-reno"
    [[series]]
    name = "beside Reno"
    [[series]]
    name = "beside BBR"
    set = { "long.peer" = "tcp-bbr" }
    [picture]
    y = "harm"
    against = "beside Reno"
    [[sweep]]
    name = "size"
    vary = "short.size"
    values = ["200KB"]
    flows = ["short"]
"#;

#[test]
fn repeated_flow_ends_the_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("out");
    let records = records(REPEATED, "2 cases to measure; at most 40.0 s (every run at its cap)\n", &out);
    for (series, congestion) in [("beside Reno", "reno"), ("beside BBR", "bbr")] {
        let record = records.iter().find(|record| record.case.series == series).expect("each series was run");
        assert_eq!(record.ending, SimEnding::Finished);
        let [short, long] = &record.flows[..] else { panic!("two flows") };
        let program = |flow: &FlowRecord| flow.program.clone().expect("a program");
        let mut transfers = program(short).transfers;
        assert_eq!((transfers.len(), short.written), (3, 600_000));
        transfers.sort_by(f64::total_cmp);
        // 200 kB take 0.16 s alone.
        assert!(transfers[0] > 0.16 && short.seconds == Some(transfers[1]), "{transfers:?}");
        let ended = short.ended_at.expect("it ended");
        let lasted = record.emulation.as_ref().expect("it was emulated").seconds;
        assert!(ended > 0.5 + transfers.iter().sum::<f64>() && lasted < ended + 0.5, "{ended} s of {lasted} s");
        assert_eq!((long.seconds, program(long).congestion.as_deref()), (None, Some(congestion)));
    }
    let report = Command::new(env!("CARGO_BIN_EXE_downpour-lab")).arg("report").arg(&out).output().expect("it starts");
    // Without a valid run there is no picture, but a page.
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Emulated scenario") && page.contains("tcp-bbr"), "{page}");
}
