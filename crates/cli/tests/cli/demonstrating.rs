//! `downpour demo`, in virtual time.

use rustix::process::Signal;
use tempfile::tempdir;

use crate::program::{arguments, downpour, json};
use crate::tree;

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
    assert!(demo["cubic"].is_null());
}

#[test]
fn a_table_for_people() {
    let here = tempdir().expect("a folder");
    let source = tree::folder(&here.path().join("photos"));
    let ended =
        downpour(arguments!["demo", source, "--link", "rate=200M,delay=2ms,loss=2%,queue=100KB"]).end().expect(0);
    for words in [
        "3.1 MB over rate=200M,delay=2ms,queue=100KB,loss=2%",
        "200 Mbit/s = 25 MB/s",
        "the floor",
        "against the floor",
        "CUBIC",
    ] {
        assert!(ended.stdout.contains(words), "no {words:?} in {}", ended.stdout);
    }
    assert_eq!(tree::names(here.path()).len(), 1, "the source stays and nothing comes beside it");
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
