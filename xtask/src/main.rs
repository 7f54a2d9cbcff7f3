//! The house's commands: `cargo xtask check|test|vectors|bench|demo|dist|fuzz|soak`.

mod bench;
mod check;
mod dist;
mod failure;
mod fuzz;
mod soak;
mod tools;
mod vectors;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;

/// The house's commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What must hold before a commit: format, lints, pure crates, licences, file sizes, documentation
    Check,
    /// All tests
    Test,
    /// The wire's vectors, read by a second decoder written from the document
    Vectors,
    /// Speed and memory against their targets
    Bench(bench::Options),
    /// `downpour demo`, built for speed
    Demo {
        /// Handed on
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// A static program and what belongs to it, in an archive
    Dist,
    /// Hostile bytes for everything that reads bytes
    Fuzz(fuzz::Options),
    /// Many more seeds of the property that the tests check on a few
    Soak(soak::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Check => check::run(),
        Command::Test => tools::run(tools::cargo().args(["test", "--workspace"])),
        Command::Vectors => vectors::run(),
        Command::Bench(options) => bench::run(&options),
        Command::Demo { arguments } => {
            tools::run(tools::cargo().args(["run", "--release", "--", "demo"]).args(arguments))
        }
        Command::Dist => dist::run(),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Soak(options) => soak::run(&options),
    }
}
