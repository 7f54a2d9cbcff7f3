//! `cargo xtask bench-codes`: benchmarks of the erasure codes on this machine against their references, on one thread.
//!
//! Compared codes alternate, so that noise affects both; numbers are medians of processor time, with the middle half in
//! brackets. Encoding counts from a full block to repair symbols in a buffer, decoding from symbols in memory, each in
//! the form of the code's own interface (ours in the block's buffer, the crate's in packets of their own), to the
//! complete block. Every decode is compared byte for byte.

mod cauchy;
mod clock;
mod crate_raptorq;
mod failures;
mod heap;
mod isal;
mod memory;
mod ours;
mod overhead;
mod raptorq;
mod report;
mod throughput;

use std::collections::BTreeSet;
use std::fs;

use clap::{Args, ValueEnum};
use fastrand::Rng;
use lab::picture::{Lines, svg};

use clock::Patience;
use report::Report;
use xtask::failure::Failure;
use xtask::measuring::machine;
use xtask::tools;

/// The options of `bench-codes`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print all numbers as one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// Run fewer rounds, for a quick look
    #[arg(long)]
    quick: bool,
    /// Run only this part; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<Part>,
    /// Measure failure rates of decoding and symbols needed beyond k, instead of speed and memory
    #[arg(long, conflicts_with = "only")]
    failures: bool,
    /// Trials of RaptorQ with 0 and 1 symbols beyond k; three times as many with 2, and far fewer of the other codes
    #[arg(long, value_name = "N", requires = "failures", default_value_t = 1_000_000)]
    trials: u64,
    /// Repeat the losses and contents of this seed [default: random]
    #[arg(long)]
    seed: Option<u64>,
}

/// The parts, in the order they run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
enum Part {
    /// RaptorQ beside crate raptorq
    Raptorq,
    /// Time per byte at k = 50,000 beside k = 1000
    Scaling,
    /// Peak memory of RaptorQ's encoder and decoder
    Memory,
    /// Reed-Solomon 32 + 4 beside ISA-L
    Cauchy,
    /// Every code over block sizes and losses
    Throughput,
}

/// The common data of all parts.
struct Bench {
    report: Report,
    patience: Patience,
    rng: Rng,
    /// Whether this is a quick look, without stored pictures.
    is_quick: bool,
}

/// Runs the benchmarks.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if tools::rerun_optimised(&crate::root(), "lab-xtask")? {
        return Ok(());
    }
    let all = Part::value_variants();
    let parts: BTreeSet<Part> = if options.only.is_empty() { all } else { &options.only }.iter().copied().collect();
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 48));
    let mut bench = Bench {
        report: Report::new(options.json),
        patience: Patience::new(options.quick),
        rng: Rng::with_seed(seed),
        is_quick: options.quick,
    };
    let machine = machine();
    bench.report.say(format_args!("{machine}, seed {seed}"));
    if options.failures {
        failures::run(&mut bench, options.trials)?;
    } else {
        for part in parts {
            match part {
                Part::Raptorq => raptorq::beside_the_crate(&mut bench),
                Part::Scaling => raptorq::scaling(&mut bench),
                Part::Memory => memory::run(&mut bench),
                Part::Cauchy => cauchy::run(&mut bench),
                Part::Throughput => throughput::run(&mut bench),
            }?;
        }
    }
    bench.report.finish(&machine, seed);
    Ok(())
}

impl Bench {
    /// Stores a picture in the directory of the codes' README, unless this is a quick look.
    fn draw(&self, name: &str, lines: Lines) -> Result<(), Failure> {
        if self.is_quick {
            return Ok(());
        }
        let file = tools::root().join("crates/erasure/pictures").join(name).with_extension("svg");
        fs::create_dir_all(file.parent().unwrap_or(&file)).map_err(Failure::at(file.display()))?;
        fs::write(&file, svg(&lines.into())).map_err(Failure::at(file.display()))?;
        self.report.say(format_args!("\n{}", file.display()));
        Ok(())
    }
}
