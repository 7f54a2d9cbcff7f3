//! A large file over loopback, program to program, compared with scp and quinn.

use std::fs;
use std::path::Path;

use super::program::cross;
use super::quinn::Quinn;
use super::scp::Server;
use super::stage::{Stage, compare, generate, remove};
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};

/// Times scp's speed, at least.
const TARGET: f64 = 1.8;

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let (mebibytes, runs) = if quick { (256, 3) } else { (1024, 5) };
    let bytes = mebibytes << 20;
    let stage = Stage::new(2 * bytes)?;
    let (server, quinn) = (Server::start(), Quinn::build());
    heading(format_args!(
        "loopback: {mebibytes} MiB, {0} to {0}, encrypted, checked, {runs} alternating runs",
        stage.place
    ));
    let (source, into) = (stage.path("file"), stage.path("into"));
    generate(&source, bytes)?;
    fs::create_dir(&into).map_err(Failure::at(into.display()))?;
    let copy = into.join("file");
    let arrived = || compare(&source, &copy).and_then(|()| remove(&copy));
    let mut ours = Sample::default();
    let (mut scp, mut quic) = (Other::default(), Other::default());
    for _ in 0..runs {
        let took = cross(program, &stage, &source, &into)?.took.as_secs_f64();
        arrived()?;
        ours.push(took);
        if let Ok(server) = &server {
            scp.push(server.copy(&source, &copy)?.as_secs_f64(), took);
            arrived()?;
        }
        if let Ok(quinn) = &quinn {
            quic.push(quinn.copy(&stage, &source, &copy, bytes)?.as_secs_f64(), took);
            arrived()?;
        }
    }
    println!("  downpour  {ours:.3} s, {:.0} MB/s", speed(bytes, &ours));
    match server {
        Ok(_) => {
            let mark = tally.at_least("loopback, times scp's speed", scp.ratio(&ours), TARGET);
            scp.print("scp", bytes, &ours, format_args!(", target {TARGET}: {mark}"));
        }
        Err(failure) => println!("  scp       not measured: {failure}"),
    }
    match quinn {
        Ok(_) => quic.print("quinn", bytes, &ours, format_args!("")),
        Err(failure) => println!("  quinn     not measured: {failure}"),
    }
    Ok(())
}

/// Seconds of another program, and by how much each is more than downpour's just before.
#[derive(Default)]
struct Other {
    seconds: Sample,
    ratios: Sample,
}

impl Other {
    fn push(&mut self, seconds: f64, ours: f64) {
        self.seconds.push(seconds);
        self.ratios.push(seconds / ours);
    }

    fn ratio(&self, ours: &Sample) -> f64 {
        self.seconds.median() / ours.median()
    }

    fn print(&self, name: &str, bytes: u64, ours: &Sample, target: std::fmt::Arguments<'_>) {
        println!("  {name:8}  {:.3} s, {:.0} MB/s", self.seconds, speed(bytes, &self.seconds));
        println!(
            "  {:8}  ratio of the medians {:.2}, of the runs {:.2} to {:.2}{target}",
            "",
            self.ratio(ours),
            self.ratios.least(),
            self.ratios.largest()
        );
    }
}

fn speed(bytes: u64, times: &Sample) -> f64 {
    bytes as f64 / 1e6 / times.median()
}
