//! A large file over loopback, program to program, against scp.

use std::fs;
use std::path::Path;

use super::program::{Stage, compare, cross, generate, remove};
use super::scp::Server;
use super::stats::Sample;
use super::table::{Tally, heading};
use crate::failure::Failure;

/// Times scp's speed, at least.
const TARGET: f64 = 1.8;

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let (mebibytes, runs) = if quick { (256, 3) } else { (1024, 5) };
    let bytes = mebibytes << 20;
    let stage = Stage::new(2 * bytes)?;
    heading(format_args!(
        "loopback: {mebibytes} MiB, {0} to {0}, encrypted, checked, {runs} runs in turns",
        stage.place
    ));
    let (source, into) = (stage.path("file"), stage.path("into"));
    generate(&source, bytes)?;
    fs::create_dir(&into).map_err(Failure::at(into.display()))?;
    let server = Server::start();
    let copy = into.join("file");
    let (mut ours, mut theirs, mut ratios) = (Sample::default(), Sample::default(), Sample::default());
    for _ in 0..runs {
        let took = cross(program, &stage, &source, &into, false)?.took;
        compare(&source, &copy)?;
        remove(&copy)?;
        ours.push(took.as_secs_f64());
        if let Ok(server) = &server {
            let scp = server.copy(&source, &copy)?;
            compare(&source, &copy)?;
            remove(&copy)?;
            theirs.push(scp.as_secs_f64());
            ratios.push(scp.div_duration_f64(took));
        }
    }
    println!("  downpour  {ours:.3} s, {:.0} MB/s", speed(bytes, &ours));
    if let Err(failure) = server {
        println!("  scp       not measured: {failure}");
        return Ok(());
    }
    println!("  scp       {theirs:.3} s, {:.0} MB/s", speed(bytes, &theirs));
    let ratio = theirs.median() / ours.median();
    let mark = tally.at_least("loopback, times scp's speed", ratio, TARGET);
    println!(
        "  ratio of the medians {ratio:.2}, of the runs {:.2} to {:.2}, target {TARGET}: {mark}",
        ratios.least(),
        ratios.largest()
    );
    Ok(())
}

fn speed(bytes: u64, times: &Sample) -> f64 {
    bytes as f64 / 1e6 / times.median()
}
