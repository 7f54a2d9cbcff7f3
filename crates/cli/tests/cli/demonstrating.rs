//! `downpour demo`: a real transfer over an emulated link, and TCP beside it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use rustix::process::Signal;
use tempfile::tempdir;

use crate::program::{Ended, Program, arguments, command, downpour, json, program_with};
use crate::tree;
use crate::web::Installation;

#[test]
fn demo_json_fields() {
    let ended =
        downpour(["demo", "--json", "--no-compare", "--size", "300kB", "--link", "rate=50M,delay=5ms,queue=100KB"])
            .end()
            .expect(0);
    let lines = json(&ended.stdout);
    let demo = &lines[lines.len() - 1];
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
fn demo_directory_with_special_file_refused() {
    let local = tempdir().expect("a directory");
    let directory = tree::directory(&local.path().join("photos"));
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
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("./socket: special file: the demo sends only files, directories and symbolic links"));
    // There are no bytes to time.
    fs::create_dir(local.path().join("none")).expect("a directory");
    fs::write(local.path().join("none/empty"), "").expect("a file");
    for path in ["none", "none/empty"] {
        let output = demo(local.path().join(path).as_os_str());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.contains("no bytes to send: name a file"), "{stderr}");
    }
}

#[test]
fn demo_prints_table() {
    let local = tempdir().expect("a directory");
    let source = tree::directory(&local.path().join("photos"));
    let installation = Installation::new(None);
    let ended =
        demo(&installation, arguments!["demo", source, "--link", "rate=200M,delay=2ms,loss=2%,queue=100KB"]).expect(0);
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
    assert_eq!(tree::names(local.path()).len(), 1, "the source stays and nothing comes beside it");
}

/// Runs the program of an installation, which finds no other lab.
fn demo(installation: &Installation, arguments: [&OsStr; 4]) -> Ended {
    let mut command = program_with(&installation.path("downpour"), arguments);
    command.env("PATH", "/usr/bin:/bin");
    Program::start(command).end()
}

/// Keeps the plan, and prints the result of this kernel's TCP or the reason why there is none.
const LAB: &str = r#"
[ "$1 $3" = "run --out" ] || exit 2
cp "$2" "${0%/*}/plan.toml"
mkdir -p "$4"
cat "${0%/*}/record" >"$4/results.jsonl" 2>/dev/null || { echo "no namespace: not permitted" >&2; exit 1; }
"#;

#[test]
fn demo_shows_kernel_tcp_measured_by_lab() {
    let installation = Installation::new(Some(LAB));
    let link = "rate=200M,delay=2ms,loss=2%,queue=100KB,seed=7";
    let run = || demo(&installation, ["demo", "--size=300kB", "--link", link].map(OsStr::new)).expect(0);
    let without = run();
    assert!(without.stderr.contains("No result: no namespace: not permitted"), "{}", without.stderr);
    assert!(!without.stdout.contains("TCP, this kernel"), "{}", without.stdout);
    let plan = fs::read_to_string(installation.path("plan.toml")).expect("a plan");
    let link = "link = \"rate=200M,delay=2ms,queue=100KB,loss=2%,seed=7\"";
    for words in [link, "seeds = [7]", "peers = [\"tcp-cubic\"]", "size = \"300000B\""] {
        assert!(plan.contains(words), "no {words} in {plan}");
    }
    let record = r#"{"ending":{"end":"finished","seconds":1.5},"bytes_there":300000,"verdict":{"reasons":[]}}"#;
    fs::write(installation.path("record"), format!("{record}\n")).expect("a record");
    let shown = run().stdout;
    let row = shown.lines().find(|line| line.starts_with("TCP, this kernel")).expect("a row");
    assert!(row.contains("1.50 s") && row.contains("200 kB/s") && row.ends_with(" x"), "{row}");
}

#[test]
fn demo_sigint_exit_130() {
    let mut demo = downpour(["demo", "--json", "--size", "20MB", "--link", "rate=1M,delay=1ms,queue=100KB"]);
    demo.wait_for("progress", |line| line.contains("\"progress\""));
    demo.signal(Signal::INT);
    let ended = demo.end().expect_error(130);
    let lines = json(&ended.stdout);
    assert_eq!(lines[lines.len() - 1]["type"], "error");
    assert_eq!(lines[lines.len() - 1]["exit_code"], 130);
}

#[test]
fn demo_full_loss_exit_5() {
    downpour(["demo", "--size", "1kB", "--link", "rate=1M,loss=100%"]).end().expect_error(5);
}
