//! Time and memory for a million tiny files, and for finding that nothing of them has changed.

use std::fs;
use std::path::{Path, PathBuf};

use super::client::{Client, Run};
use super::scp::Server;
use super::stage::{Stage, sync};
use super::tree;
use xtask::failure::Failure;
use xtask::measuring::{Tally, heading};
use xtask::tools;

/// Megabytes of either side, at most.
const TARGET: f64 = 300.0;

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let count = if quick { 100_000 } else { 1_000_000 };
    let source = source(count)?;
    // Half of the files take a block.
    let stage = Stage::on_disk(count / 2 * 4096)?;
    heading(format_args!(
        "million: {count} files, half empty, half of 1 to 100 bytes, over loopback to {}",
        stage.place
    ));
    let server = Server::start()?;
    let client = Client::new(program, &server, stage.directory())?;
    let into = stage.path("into");
    fs::create_dir(&into).map_err(Failure::at(into.display()))?;
    for (name, format) in [("new", "-q"), ("unchanged", "--json")] {
        sync(&into)?;
        let mut command = client.command("sync", None)?;
        command.arg(format).arg(contents(&source)).arg(server.there(&into));
        let run = client.run(&mut command)?;
        show(name, &run, tally);
        if name == "unchanged" {
            let summary = run.summary()?;
            let number = |field: &str| summary[field].as_u64().unwrap_or(u64::MAX);
            let moved = number("bytes").saturating_sub(number("bytes_present"));
            let mark = tally.at_most("million, bytes of unchanged files that moved", moved as f64, 0.0);
            let packets = number("wire_bytes") as f64 / 1e6;
            println!("  {name:10}  bytes of files moved {moved}, target 0: {mark}; {packets:.1} MB of packets sent");
        }
    }
    tree::compare(&source, &into)
}

/// The directory, made once and kept.
fn source(count: u64) -> Result<PathBuf, Failure> {
    let directory = tools::target()?.join("bench");
    let (tree, making) = (directory.join(format!("tree-{count}")), directory.join("making"));
    if !tree.exists() {
        let _ = fs::remove_dir_all(&making);
        tree::grow(&making, count, |number, random| if number % 2 == 0 { 0 } else { random.usize(1..=100) })?;
        sync(&making)?;
        fs::rename(&making, &tree).map_err(Failure::at(tree.display()))?;
    }
    Ok(tree)
}

/// With the slash that means its contents.
fn contents(directory: &Path) -> PathBuf {
    directory.join("")
}

fn show(name: &str, run: &Run, tally: &mut Tally) {
    println!("  {name:10}  {:.1} s", run.took.as_secs_f64());
    for (side, peak) in ["sender", "receiver"].into_iter().zip(run.peaks) {
        let peak = peak as f64 / 1e6;
        let mark = tally.at_most(format_args!("million, {name}, {side}, MB"), peak, TARGET);
        println!("  {name:10}  {side:8}  {peak:.1} MB at most, target <= {TARGET:.0}: {mark}");
    }
}
