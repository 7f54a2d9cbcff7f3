//! The commands of README.md, run as they are written. The examples in Rust are compiled by `cargo test --doc`.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use rustix::process::Signal;

use crate::examples::Example::{NotRun, Run};
use crate::examples::{Example, Machines, commands, run_all};

const README: &str = include_str!("../../../../README.md");

const EXAMPLES: &[(&str, Example)] = &[
    ("cargo build --release", NotRun("cargo has built the program for this test")),
    (
        "cargo run --release -- demo",
        Run(|machines, _| {
            let shown = machines.run("downpour demo --size 300kB", "").stdout;
            assert!(shown.contains("floor") && shown.contains("TCP, simulated"), "{shown}");
        }),
    ),
    ("cargo test --workspace", NotRun("it runs this test")),
    (
        "downpour cp -r photos notes.txt me@far:incoming/",
        Run(|machines, line| {
            machines.copy_photos(line);
            machines.assert_same("far/incoming/notes.txt", "home/notes.txt");
        }),
    ),
    (
        "downpour sync --delete me@far:data/ data/",
        Run(|machines, line| {
            machines.run(line, "");
            machines.assert_same("home/data", "far/data");
        }),
    ),
    ("downpour cp --rate 100M --retry-for 1h huge.tar far:", Run(Machines::copy_huge)),
    (
        "downpour send photos/",
        Run(|machines, line| {
            let mut sender = machines.start(line);
            let ticket = sender.wait_for("a ticket", |line| line.starts_with("downpour1"));
            machines.run(RECV, &format!("{ticket}\ny\n"));
            sender.end().expect(0);
            machines.assert_same("home/incoming", "home/photos");
        }),
    ),
    (RECV, NotRun("it runs with its sender")),
    ("downpour doctor far", Run(Machines::diagnose)),
    (
        "downpour tunnel -L 8080:localhost:80 -D 1080 far",
        Run(|machines, line| {
            if !is_free(8080) || !is_free(1080) {
                eprintln!("NOT RUN: {line}: another program has port 8080 or 1080");
                return;
            }
            let mut tunnel = machines.start(line);
            tunnel.wait_for_words(" is open");
            tunnel.signal(Signal::INT);
            tunnel.end().expect(130);
        }),
    ),
    (
        "ssh -o ProxyCommand='downpour proxy --persist 10m %r@%n %p' far",
        Run(|machines, line| {
            // `cargo xtask test-ssh` runs it with ssh itself. `stdout` has other line ends.
            assert_eq!(machines.run(line, "SSH-2.0-test\r\n").stdout.trim_end(), "SSH-2.0-test");
            machines.run("downpour tunnel -O exit me@far", "");
        }),
    ),
];

const RECV: &str = "downpour recv --into ~/incoming";

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[test]
fn readme_commands_work_as_written() {
    run_all(&commands(README), EXAMPLES);
}

#[test]
fn readme_rust_examples_are_compiled() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for entry in fs::read_dir(&crates).expect("the crates") {
        let directory = entry.expect("an entry").path();
        let Ok(readme) = fs::read_to_string(directory.join("README.md")) else { continue };
        let library = fs::read_to_string(directory.join("src/lib.rs")).expect("a library");
        assert!(library.contains("#[doc = include_str!(\"../README.md\")]"), "{} is not compiled", directory.display());
        let blocks = readme.split("```").skip(1).step_by(2);
        for block in blocks.filter(|block| block.starts_with("rust")) {
            let kind = block.lines().next().unwrap_or_default();
            assert!(["rust", "rust,no_run"].contains(&kind), "{}: {kind} is not compiled", directory.display());
            seen += 1;
        }
        let indented = readme.lines().any(|line| line.starts_with("    ") && line.trim_end().ends_with(';'));
        assert!(!indented, "{}: write code between fences", directory.display());
    }
    assert!(seen >= 4, "{seen} examples");
}
