//! `cargo xtask bench`: speed and memory against their targets, each with its spread.
//!
//! Compared programs run in alternation. A number that misses its target is marked `short` and stays in the output; the
//! exit code only shows whether everything could be measured and every byte was right.

mod against;
mod client;
mod differences;
mod exit;
mod files;
mod first_byte;
mod local;
mod loopback;
mod memory;
mod million;
mod program;
mod quinn;
mod relay;
mod scp;
mod simulated;
mod simulator;
mod stage;
mod survive;
mod tree;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use xtask::failure::Failure;
use xtask::measuring::{Tally, machine};
use xtask::tools;

/// The options of `bench`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Smaller files, fewer runs and seeds: a first look, not the numbers to quote
    #[arg(long)]
    quick: bool,
    /// Only this part; may be given more than once
    #[arg(long, value_name = "NAME")]
    only: Vec<Part>,
    /// Compare this build with another downpour program instead, in alternating runs over loopback
    #[arg(long, value_name = "PROGRAM", conflicts_with = "only")]
    against: Option<PathBuf>,
}

/// The parts, in the order they run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
enum Part {
    /// A file over loopback, compared with scp and quinn
    Loopback,
    /// Peak memory of both sides
    Memory,
    /// Completion times over simulated links, against the floor
    Simulated,
    /// Packets a second of the simulator
    Simulator,
    /// The demo's relay: real sockets, against the floor
    Relay,
    /// Round trips from ssh's login to the first byte of a file
    FirstByte,
    /// From the last file in place until the commands return
    Exit,
    /// Many small files against one of the same size, scp and rsync
    Files,
    /// Copies within this machine, compared with cp and a sync
    Local,
    /// A changed file, compared with rsync
    Differences,
    /// The cost of a killed side
    Survive,
    /// Time and memory for a million tiny files
    Million,
}

impl Part {
    fn runs_program(&self) -> bool {
        !matches!(self, Self::Simulated | Self::Simulator)
    }
}

/// Measures.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if tools::rerun_optimised(tools::root(), "xtask")? {
        return Ok(());
    }
    if let Some(other) = &options.against {
        let program = tools::build(tools::root(), "downpour-cli", "downpour")?;
        println!("{}\n", machine());
        return against::run(&program, other, options.quick);
    }
    let all = Part::value_variants();
    let parts: BTreeSet<Part> = if options.only.is_empty() { all } else { &options.only }.iter().copied().collect();
    // The program is built only for the parts that run it.
    let program = if parts.iter().any(Part::runs_program) {
        tools::build(tools::root(), "downpour-cli", "downpour")?
    } else {
        PathBuf::new()
    };
    println!("{}\n", machine());
    let mut tally = Tally::default();
    let mut failed = Vec::new();
    for part in parts {
        let result = match part {
            Part::Loopback => loopback::run(&program, options.quick, &mut tally),
            Part::Memory => memory::run(&program, options.quick, &mut tally),
            Part::Simulated => simulated::run(options.quick, &mut tally),
            Part::Simulator => simulator::run(options.quick, &mut tally),
            Part::Relay => relay::run(&program, options.quick, &mut tally),
            Part::FirstByte => first_byte::run(&program, options.quick, &mut tally),
            Part::Exit => exit::run(&program, options.quick, &mut tally),
            Part::Files => files::run(&program, options.quick, &mut tally),
            Part::Local => local::run(&program, options.quick, &mut tally),
            Part::Differences => differences::run(&program, options.quick, &mut tally),
            Part::Survive => survive::run(&program, options.quick, &mut tally),
            Part::Million => million::run(&program, options.quick, &mut tally),
        };
        if let Err(failure) = result {
            let name = part.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            println!("  not measured: {failure}");
            failed.push(name);
        }
        println!();
    }
    println!("{tally}");
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format_args!("not measured: {}", failed.join(", ")))) }
}
