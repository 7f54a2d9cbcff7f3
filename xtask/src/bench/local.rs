//! Copies within this machine, compared with `cp -r` and a sync of the file system: downpour returns when all is on the
//! disk.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::stage::{Stage, compare, generate, remove, sync};
use super::tree;
use xtask::failure::Failure;
use xtask::measuring::{Sample, Tally, heading};
use xtask::tools;

/// Times that of cp and the sync, at most.
const TARGET: f64 = 1.05;

const GIGABYTE: u64 = 1_000_000_000;

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let (bytes, files, runs) = if quick { (GIGABYTE / 4, 2_000, 3) } else { (GIGABYTE, 20_000, 7) };
    let stage = Stage::on_disk(4 * bytes)?;
    heading(format_args!(
        "local: {} MB, and {files} files of 4 kB, on {}, {runs} alternating runs",
        bytes / 1_000_000,
        stage.place
    ));
    let (file, directory) = (stage.path("file"), stage.path("directory"));
    generate(&file, bytes)?;
    tree::grow(&directory, files, |_, _| 4_000)?;
    for (what, source) in [("one file", &file), ("many files", &directory)] {
        let (mut ours, mut theirs, mut ratios) = (Sample::default(), Sample::default(), Sample::default());
        for _ in 0..runs {
            let cp = timed(&stage, Command::new("cp").arg("-r").arg(source), source)?;
            let took =
                timed(&stage, Command::new(program).args(["cp", "--no-config", "-q", "-r"]).arg(source), source)?;
            ours.push(took.as_secs_f64());
            theirs.push(cp.as_secs_f64());
            ratios.push(took.as_secs_f64() / cp.as_secs_f64());
        }
        let ratio = ratios.median();
        let mark = tally.at_most(format_args!("local, {what}, times cp -r and a sync"), ratio, TARGET);
        println!("  {what:10} downpour {ours:.3} s, cp -r and a sync {theirs:.3} s");
        println!(
            "  {:10} ratio of the runs {ratio:.2}, from {:.2} to {:.2}, target {TARGET}: {mark}",
            "",
            ratios.least(),
            ratios.largest()
        );
    }
    Ok(())
}

/// Copies to a new name and waits until the disk has it; checks the bytes, and removes the copy.
fn timed(stage: &Stage, command: &mut Command, source: &Path) -> Result<Duration, Failure> {
    let copy = stage.path("copy");
    sync(stage.directory())?;
    let begun = Instant::now();
    tools::run(command.arg(&copy))?;
    // Has nothing to do after downpour.
    sync(stage.directory())?;
    let took = begun.elapsed();
    if source.is_dir() {
        tree::compare(source, &copy)?;
        std::fs::remove_dir_all(&copy).map_err(Failure::at(copy.display()))?;
    } else {
        compare(source, &copy)?;
        remove(&copy)?;
    }
    Ok(took)
}
