//! Peak memory of both sides, which must not grow with the file.

use std::fs::{self, File};
use std::path::Path;

use super::program::cross;
use super::stage::{Stage, compare, generate, remove};
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};

/// Megabytes of either side, at most.
const TARGET: f64 = 100.0;
/// The larger of the two files' peaks by the smaller, at most.
const SPREAD: f64 = 1.2;
const SIDES: [&str; 2] = ["sender", "receiver"];

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    if !Path::new("/proc/self/status").exists() {
        return Err(Failure::new("this system has no /proc to read a peak from"));
    }
    let (small, large, runs) = if quick { (100_000_000, 1 << 30, 1) } else { (400_000_000, 4 << 30, 3) };
    // The copy of the sparse file may take all of its size.
    let stage = Stage::new(2 * small + large)?;
    heading(format_args!("memory: peak resident, over loopback, {0} to {0}, {runs} runs", stage.place));
    let (full, sparse) = (stage.path("full"), stage.path("sparse"));
    generate(&full, small)?;
    File::create(&sparse).and_then(|file| file.set_len(large)).map_err(Failure::at(sparse.display()))?;
    let (mut of_full, mut of_sparse) = (Peaks::default(), Peaks::default());
    for _ in 0..runs {
        of_full.measure(program, &stage, &full)?;
        of_sparse.measure(program, &stage, &sparse)?;
    }
    of_full.judge(&format!("{} MB", small / 1_000_000), tally);
    of_sparse.judge(&format!("{} GiB sparse", large >> 30), tally);
    for (side, (one, other)) in SIDES.into_iter().zip(of_full.0.iter().zip(&of_sparse.0)) {
        let (one, other) = (one.median(), other.median());
        let ratio = one.max(other) / one.min(other);
        let mark = tally.at_most(format_args!("memory, {side}, larger median by smaller"), ratio, SPREAD);
        println!("  {side:8}  larger median by smaller {ratio:.2}, target <= {SPREAD}: {mark}");
    }
    Ok(())
}

/// Megabytes of sender and receiver.
#[derive(Default)]
struct Peaks([Sample; 2]);

impl Peaks {
    fn measure(&mut self, program: &Path, stage: &Stage, source: &Path) -> Result<(), Failure> {
        let into = stage.path("into");
        fs::create_dir_all(&into).map_err(Failure::at(into.display()))?;
        let peaks = cross(program, stage, source, &into)?.peaks;
        let copy = into.join(source.file_name().unwrap_or_default());
        compare(source, &copy)?;
        remove(&copy)?;
        for (sample, peak) in self.0.iter_mut().zip(peaks) {
            sample.push(peak as f64 / 1e6);
        }
        Ok(())
    }

    fn judge(&self, name: &str, tally: &mut Tally) {
        for (side, peaks) in SIDES.into_iter().zip(&self.0) {
            let mark = tally.at_most(format_args!("memory, {name}, {side}, MB"), peaks.largest(), TARGET);
            println!("  {side:8}  {name:12}  {peaks:.1} MB, target <= {TARGET:.0}: {mark}");
        }
    }
}
