//! `downpour demo`: a real transfer over an emulated link, and TCP beside it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::process::Signal;
use tempfile::tempdir;

use crate::program::{Ended, Program, arguments, command, downpour, json, program_with};
use crate::tree;
use crate::web::Place;

#[test]
fn numbers_for_programs() {
    let ended =
        downpour(["demo", "--json", "--no-compare", "--size", "300kB", "--link", "rate=50M,delay=5ms,queue=100KB"])
            .end()
            .expect(0);
    let story = json(&ended.stdout);
    let demo = &story[story.len() - 1];
    assert_eq!(demo["type"], "demo");
    assert_eq!(demo["bytes"], 300_000);
    assert_eq!(demo["link"], "rate=50M,delay=5ms,queue=100KB");
    assert_eq!(demo["rate_bits_per_second"], 50_000_000);
    let floor = demo["floor_seconds"].as_f64().expect("a floor");
    assert!((floor - (0.015 + 0.3 * 1479.0 / 1408.0 * 8.0 / 50.0)).abs() < 1e-6, "{floor}");
    let run = &demo["downpour"];
    assert_eq!(run["complete"], true);
    assert_eq!(run["bytes"], 300_000);
    assert!(run["seconds"].as_f64().is_some_and(|seconds| seconds > floor), "nothing is faster than the floor: {demo}");
    assert!(run["sent_ip_bytes"].as_u64().is_some_and(|bytes| bytes > 300_000), "{demo}");
    assert!(demo["tcp_simulated"].is_null() && demo["tcp_kernel"].is_null());
}

#[test]
fn a_directory_is_sent_whole_or_not_at_all() {
    let here = tempdir().expect("a directory");
    let directory = tree::directory(&here.path().join("photos"));
    symlink("nowhere", directory.join("dangling")).expect("a link");
    let demo = |path: &OsStr| {
        let arguments = arguments!["demo", "--no-compare", "--link", "rate=200M,delay=1ms", path];
        command(arguments).current_dir(&directory).output().expect("it ran")
    };
    for path in [".".as_ref(), "./".as_ref(), directory.as_os_str()] {
        let output = demo(path);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let _socket = UnixListener::bind(directory.join("socket")).expect("a socket");
    let output = demo(".".as_ref());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("./socket: special file: the demo sends only files, directories and symbolic links"));
    // There is nothing to time.
    fs::create_dir(here.path().join("none")).expect("a directory");
    fs::write(here.path().join("none/empty"), "").expect("a file");
    for path in ["none", "none/empty"] {
        let output = demo(here.path().join(path).as_os_str());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("no bytes to send: name a file"), "{said}");
    }
}

#[test]
fn a_table_for_people() {
    let here = tempdir().expect("a directory");
    let source = tree::directory(&here.path().join("photos"));
    let place = Place::new(None);
    let ended = demo(&place, arguments!["demo", source, "--link", "rate=200M,delay=2ms,loss=2%,queue=100KB"]).expect(0);
    for words in [
        "3.1 MB over rate=200M,delay=2ms,queue=100KB,loss=2%",
        "200 Mbit/s = 25 MB/s",
        "floor",
        "relative to floor",
        "TCP, simulated",
        "TCP:   with CUBIC",
    ] {
        assert!(ended.stdout.contains(words), "no {words:?} in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("TCP, this kernel"), "{}", ended.stdout);
    let words = "No result: downpour-lab was not found beside downpour or in PATH";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert_eq!(tree::names(here.path()).len(), 1, "the source stays and nothing comes beside it");
}

/// Runs the program of a place, which has no lab but its own.
fn demo(place: &Place, arguments: [&OsStr; 4]) -> Ended {
    let mut command = program_with(&place.path("downpour"), arguments);
    command.env("PATH", "/usr/bin:/bin");
    Program::start(command).end()
}

/// Keeps the plan, and says what this kernel's TCP has done, or why nothing is known of it.
const LAB: &str = r#"
[ "$1 $3" = "run --out" ] || exit 2
cp "$2" "${0%/*}/plan.toml"
mkdir -p "$4"
cat "${0%/*}/record" >"$4/results.jsonl" 2>/dev/null || { echo "no namespace: not permitted" >&2; exit 1; }
"#;

#[test]
fn the_kernel_s_tcp_is_shown_beside_where_the_lab_can_measure_it() {
    let place = Place::new(Some(LAB));
    let link = "rate=200M,delay=2ms,loss=2%,queue=100KB,seed=7";
    let run = || demo(&place, ["demo", "--size=300kB", "--link", link].map(OsStr::new)).expect(0);
    let without = run();
    assert!(without.stderr.contains("No result: no namespace: not permitted"), "{}", without.stderr);
    assert!(!without.stdout.contains("TCP, this kernel"), "{}", without.stdout);
    let plan = fs::read_to_string(place.path("plan.toml")).expect("a plan");
    let link = "link = \"rate=200M,delay=2ms,queue=100KB,loss=2%,seed=7\"";
    for words in [link, "seeds = [7]", "peers = [\"tcp-cubic\"]", "size = \"300000B\""] {
        assert!(plan.contains(words), "no {words} in {plan}");
    }
    let record = r#"{"ending":{"end":"finished","seconds":1.5},"bytes_there":300000,"verdict":{"reasons":[]}}"#;
    fs::write(place.path("record"), format!("{record}\n")).expect("a record");
    let shown = run().stdout;
    let row = shown.lines().find(|line| line.starts_with("TCP, this kernel")).expect("a row");
    assert!(row.contains("1.50 s") && row.contains("200 kB/s") && row.ends_with(" x"), "{row}");
}

#[test]
fn ctrl_c_ends_a_demo() {
    let mut demo = downpour(["demo", "--json", "--size", "20MB", "--link", "rate=1M,delay=1ms,queue=100KB"]);
    demo.wait_for("progress", |line| line.contains("\"progress\""));
    demo.signal(Signal::INT);
    let ended = demo.end().expect_line(130, "interrupted");
    let story = json(&ended.stdout);
    assert_eq!(story[story.len() - 1]["type"], "error");
    assert_eq!(story[story.len() - 1]["exit_code"], 130);
}

#[test]
fn a_network_that_carries_nothing() {
    downpour(["demo", "--size", "1kB", "--link", "rate=1M,loss=100%"]).end().expect_line(5, "no answer");
}
