//! This build compared with another one of downpour: the same transfers over loopback, in alternating runs.

use std::fmt;
use std::fs;
use std::path::Path;

use super::program::{Crossing, cross};
use super::stage::{Stage, compare, generate, remove};
use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::heading;

/// The compared quantities of a transfer, smaller is better.
const QUANTITIES: [Quantity; 4] = [
    Quantity { name: "time, s", of: |crossing, _| crossing.took.as_secs_f64() },
    Quantity {
        name: "processor, s/GiB",
        of: |crossing, bytes| crossing.processor / (bytes as f64 / f64::from(1 << 30)),
    },
    Quantity { name: "sender peak, MB", of: |crossing, _| crossing.peaks[0] as f64 / 1e6 },
    Quantity { name: "receiver peak, MB", of: |crossing, _| crossing.peaks[1] as f64 / 1e6 },
];

struct Quantity {
    name: &'static str,
    of: fn(&Crossing, u64) -> f64,
}

/// Measures `program` and `other` in turns, after a run of each that does not count.
pub(super) fn run(program: &Path, other: &Path, quick: bool) -> Result<(), Failure> {
    let (mebibytes, runs) = if quick { (256, 5) } else { (1024, 21) };
    let bytes = mebibytes << 20;
    let stage = Stage::new(2 * bytes)?;
    heading(format_args!(
        "against {}: {mebibytes} MiB over loopback, {1} to {1}, {runs} alternating runs",
        other.display(),
        stage.place
    ));
    let (source, into) = (stage.path("file"), stage.path("into"));
    generate(&source, bytes)?;
    fs::create_dir(&into).map_err(Failure::at(into.display()))?;
    let copy = into.join("file");
    let measure = |program: &Path| {
        let crossing = cross(program, &stage, &source, &into)?;
        compare(&source, &copy)?;
        remove(&copy)?;
        Ok::<_, Failure>(QUANTITIES.map(|quantity| (quantity.of)(&crossing, bytes)))
    };
    measure(program)?;
    measure(other)?;
    let mut comparisons = QUANTITIES.map(|_| Comparison::default());
    for run in 0..runs {
        // Each goes first in half of the pairs: whatever favours the first or the second of two runs favours both
        // builds.
        let (ours, theirs) = if run % 2 == 0 {
            let ours = measure(program)?;
            (ours, measure(other)?)
        } else {
            let theirs = measure(other)?;
            (measure(program)?, theirs)
        };
        for (comparison, pair) in comparisons.iter_mut().zip(ours.into_iter().zip(theirs)) {
            comparison.push(pair);
        }
    }
    println!("  {:18}  {:24}  {:24}  this / other", "", "this build", "other");
    for (quantity, comparison) in QUANTITIES.iter().zip(&comparisons) {
        println!("  {:18}  {comparison}", quantity.name);
    }
    println!("  medians (least to largest); ratios are of the two runs of each pair, with their quartiles");
    Ok(())
}

/// Pairs of measurements of one quantity.
#[derive(Default)]
struct Comparison {
    ours: Sample,
    theirs: Sample,
    ratios: Sample,
}

impl Comparison {
    fn push(&mut self, (ours, theirs): (f64, f64)) {
        self.ours.push(ours);
        self.theirs.push(theirs);
        self.ratios.push(ours / theirs);
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sample = |sample: &Sample| {
            // Four digits, whatever the unit.
            let digits = if sample.median() < 10.0 { 3 } else { 1 };
            format!("{sample:.digits$}")
        };
        let quartile = |share| self.ratios.quantile(share);
        write!(f, "{:24}  {:24}  ", sample(&self.ours), sample(&self.theirs))?;
        write!(f, "{:.3} ({:.3} to {:.3})", self.ratios.median(), quartile(0.25), quartile(0.75))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_a_pair_not_of_the_medians() {
        let mut comparison = Comparison::default();
        // The machine slows down; both builds do alike in every pair.
        [(1.0, 1.0), (2.0, 2.0), (4.5, 4.0)].into_iter().for_each(|pair| comparison.push(pair));
        assert_eq!(
            comparison.to_string(),
            "2.000 (1.000 to 4.500)    2.000 (1.000 to 4.000)    1.000 (1.000 to 1.062)"
        );
        let mut large = Comparison::default();
        large.push((50.0, 100.0));
        assert_eq!(large.to_string(), "50.0 (50.0 to 50.0)       100.0 (100.0 to 100.0)    0.500 (0.500 to 0.500)");
    }
}
