//! The one system in the three places where downpour runs: over sockets, in the simulator, and over emulated links,
//! which need a kernel that makes network namespaces for this user.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

fn own<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-system"));
    command.args(arguments).env("DOWNPOUR_CONFIG", "none").stdin(Stdio::null());
    command
}

/// Returns the stdout of a successful program.
#[track_caller]
fn successful_stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the metrics records of a trace.
fn metrics(trace: &Path) -> Vec<Value> {
    let text = fs::read_to_string(trace).expect("a trace");
    let records = text.split('\u{1e}').filter(|record| !record.trim().is_empty());
    let records = records.map(|record| serde_json::from_str::<Value>(record).expect("a record is JSON"));
    records.filter(|record| record["name"] == "recovery:metrics_updated").map(|record| record["data"].clone()).collect()
}

/// Asserts that the trace is of `mine`, and that its window has grown.
#[track_caller]
fn is_mine(trace: &Path) {
    let metrics = metrics(trace);
    assert!(metrics.len() > 10, "{} records", metrics.len());
    assert!(metrics.iter().all(|data| data["congestion_control"] == "mine"), "{:?}", metrics[0]);
    let window = |data: &Value| data["congestion_window"].as_u64();
    assert!(window(&metrics[0]) < metrics.iter().map(window).max().expect("some"), "{:?}", metrics[0]);
}

/// Creates a file with distinct content.
fn file(path: &Path, length: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0_u32..).flat_map(|n| n.wrapping_mul(0x9E37_79B9).to_le_bytes()).take(length).collect();
    fs::write(path, &bytes).expect("room for a file");
    bytes
}

/// A process that is killed with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn own_system_over_sockets() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let bytes = file(&at("data"), 3_000_000);
    let mut receiver = own(["recv", "--json", "--yes", "--listen", "127.0.0.1:0", "--ticket-file"]);
    receiver.arg(at("ticket")).arg("--into").arg(at("into")).stdout(Stdio::piped());
    let mut receiver = Running(receiver.spawn().expect("the program starts"));
    // The ticket is written before the first line.
    let mut lines = BufReader::new(receiver.0.stdout.take().expect("it is piped"));
    lines.read_line(&mut String::new()).expect("a line");
    let mut sender =
        own(["send", "--quiet", "--to", "--profile", "mine", "--set", "congestion=mine:beta=0.7", "--qlog"]);
    sender.arg(at("trace")).arg("--ticket-file").arg(at("ticket")).arg(at("data"));
    successful_stdout(&sender.output().expect("the program starts"));
    assert!(receiver.0.wait().expect("it is ours").success());
    assert!(fs::read(at("into/data")).expect("it arrived") == bytes);
    is_mine(&at("trace"));
}

#[test]
fn own_system_in_the_simulator() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |set: &str, trace: &Path| {
        let link = ["--rate", "20M", "--delay", "10ms", "--queue", "1bdp", "--loss", "1%", "--size", "2MB"];
        let mut lab = own(["lab", "simulate", "--set", set, "--qlog"]);
        successful_stdout(&lab.arg(trace).args(link).output().expect("the program starts"))
    };
    let trace = directory.path().join("trace");
    let text = run("congestion=mine", &trace);
    assert!(text.starts_with("a to b: 2 MB in "), "{text}");
    is_mine(&trace);
    // Its number is checked like any other.
    assert_ne!(run("congestion=mine:beta=0.5", &trace), text);

    let output = own(["lab", "simulate", "--set", "congestion=mine:beta=2"]).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    let message = "downpour-lab: --set congestion=mine:beta=2: invalid beta '2': use a number from 0.5 to 0.95\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), message);
}

/// Each part is chosen by name, alone and in the profile, and changes the run.
#[test]
fn own_system_parts_and_profile() {
    let run = |choice: &[&str]| {
        let link = ["--rate", "20M", "--delay", "10ms", "--queue", "1bdp", "--loss", "2%", "--size", "2MB"];
        let mut lab = own(["lab", "simulate"]);
        successful_stdout(&lab.args(choice).args(link).output().expect("the program starts"))
    };
    let auto = run(&[]);
    let parts = ["congestion=mine", "schedule=patient", "blocks=share-of-window"];
    for part in parts {
        assert_ne!(run(&["--set", part]), auto, "{part}");
    }
    let mine = run(&["--profile", "mine"]);
    assert_ne!(run(&["--profile", "mine", "--set", "schedule=patient:every=1"]), mine);
    let with_lt_tcp = ["--profile", "lt-tcp", "--set", "estimator=oracle:2%"];
    assert_ne!(run(&["--profile", "lt-tcp", "--set", "estimator=overall"]), run(&with_lt_tcp));

    let shown = successful_stdout(&own(["profile", "show", "mine"]).output().expect("the program starts"));
    for line in ["schedule = \"patient\"", "blocks = \"share-of-window\"", "estimator = \"overall\""] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    let listed = successful_stdout(&own(["profile", "list"]).output().expect("the program starts"));
    assert!(listed.lines().any(|line| line.starts_with("mine ")), "{listed}");
}

/// A lossy link yields the trace; a plan compares the file and stores the result.
#[test]
fn own_system_over_emulated_links() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let probe = own(["lab", "link", "--quiet", "--", "true"]).output().expect("the program starts");
    if probe.status.code() == Some(3) {
        println!("not tried: {}", String::from_utf8_lossy(&probe.stderr).trim());
        return;
    }
    let bytes = file(&at("data"), 1_000_000);
    let program = env!("CARGO_BIN_EXE_own-system");
    // The first line of the receiver, before which its ticket is written, lets the sender begin.
    let receive = format!(
        "{program} recv --json --yes --listen 10.77.0.2:4000 --ticket-file ticket --into into | {{ read -r line; echo >ready; cat >successful_stdout; }}"
    );
    let send = format!(
        "read -r line <ready && {program} send --quiet --to --set congestion=mine --qlog trace --ticket-file ticket data"
    );
    assert!(Command::new("mkfifo").arg(at("ready")).status().expect("coreutils").success());
    let mut link =
        own(["lab", "link", "--quiet", "--rate", "20M", "--delay", "5ms", "--loss", "1%", "--peer", &receive]);
    let output =
        link.args(["--", "sh", "-c", &send]).current_dir(directory.path()).output().expect("the program starts");
    successful_stdout(&output);
    assert!(fs::read(at("into/data")).expect("it arrived") == bytes);
    is_mine(&at("trace"));

    let plan = r#"
        name = "own/controller"
        title = "A controller from outside"
        link = "rate=20M,delay=5ms"
        size = "1MB"
        peers = ["downpour-auto congestion=mine"]
        repeats = 1
        cap = "60s"
        [[sweep]]
        name = "loss"
        vary = "loss"
        values = ["1%"]
    "#;
    fs::write(at("plan.toml"), plan).expect("room for a plan");
    let mut lab = own(["lab", "run", "plan.toml", "--out", "results"]);
    let output = lab.current_dir(directory.path()).output().expect("the program starts");
    // 4: the run is invalid because the machine was too busy; the file is compared nevertheless.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{}", String::from_utf8_lossy(&output.stderr));
    let results = fs::read_to_string(at("results/results.jsonl")).expect("results");
    let last: Value = serde_json::from_str(results.lines().last().expect("a line")).expect("a result is JSON");
    assert_eq!(last["case"]["peer"], "downpour-auto congestion=mine", "{last}");
    assert_eq!((&last["equal"], &last["bytes_there"]), (&true.into(), &1_000_000.into()), "{last}");
}
