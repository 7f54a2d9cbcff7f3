//! Development commands: `cargo xtask COMMAND`. The lab has its own, in `lab/`.

mod advice;
mod ambient;
mod assure;
mod bench;
mod check;
mod circles;
mod citations;
mod commands;
mod dist;
mod fuzz;
mod ignored;
mod interrupt;
mod miri;
mod parameters;
mod relayed_ssh;
mod soak;
mod sources;
mod threats;
mod unit;
mod vectors;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::failure::Failure;
use xtask::tools;

/// Development commands: check, test, measure, fuzz, pack.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Fuzz every target and soak every property for hours, with new seeds, and print the table of docs/ASSURANCE.md
    Assure(assure::Options),
    /// Run the checks before a commit: format, lints, circles of imports, texts of the libraries, parameters, other
    /// targets, citations, threat model, systemd unit, commands, dependencies, documentation
    Check,
    /// Write docs/COMMANDS.md from the tables of commands and options
    Commands,
    /// Copy random trees with `downpour sync` and with rsync, and compare the results
    CompareRsync {
        /// Passed to the tests: names, --nocapture
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run all tests
    Test,
    /// Run the tests of the program that need a real sshd, which they start themselves
    TestSsh {
        /// Passed to the tests: names, --nocapture
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Check the wire format's test vectors with a second decoder, written from docs/PROTOCOL.md
    Vectors,
    /// Measure speed and memory against their targets
    Bench(bench::Options),
    /// Run `downpour demo`, built for speed
    Demo {
        /// Passed to the demo
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Pack a static program with manual pages, completions, licences and SBOM into an archive
    Dist(dist::Options),
    /// Feed hostile bytes to everything that reads bytes
    Fuzz(fuzz::Options),
    /// Interrupt transfers and pipes at random moments, and check that no part is taken for the whole
    Interrupt(interrupt::Options),
    /// Run the tests of unsafe and shared code in Miri, which finds undefined behaviour (needs a nightly toolchain)
    Miri,
    /// Run ssh over an emulated link, for `downpour cp --ssh`
    #[command(name = "relayed-ssh", hide = true)]
    RelayedSsh(Box<relayed_ssh::Options>),
    /// Check a property of the tests with many more seeds
    Soak(soak::Options),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Assure(options) => assure::run(&options),
        Command::Check => check::run(),
        Command::Commands => commands::write(),
        Command::CompareRsync { arguments } => ignored::RSYNC.run(&arguments),
        Command::Test => tools::run(tools::cargo(tools::root()).args(["test", "--workspace"])),
        Command::TestSsh { arguments } => ignored::SSH.run(&arguments),
        Command::Vectors => vectors::run(),
        Command::Bench(options) => bench::run(&options),
        Command::Demo { arguments } => {
            tools::run(tools::cargo(tools::root()).args(["run", "--release", "--", "demo"]).args(arguments))
        }
        Command::Dist(options) => dist::run(&options),
        Command::Interrupt(options) => interrupt::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Miri => miri::run(),
        // Ends as ssh does.
        Command::RelayedSsh(options) => return relayed_ssh::run(&options),
        Command::Soak(options) => soak::run(&options),
    }?;
    Ok(ExitCode::SUCCESS)
}
