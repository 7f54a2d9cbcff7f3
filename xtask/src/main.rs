//! Development commands: `cargo xtask COMMAND`.

mod assure;
mod bench;
#[cfg(target_os = "linux")]
mod bench_codes;
mod check;
mod citations;
mod compare_rsync;
mod dist;
mod failure;
#[cfg(target_os = "linux")]
mod figures;
mod fuzz;
mod interrupt;
mod lab_deps;
mod miri;
mod relayed_ssh;
mod scripts;
mod soak;
mod test_ssh;
mod test_web;
mod threats;
mod tools;
mod unit;
mod vectors;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use failure::Failure;

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
    /// Check what must hold before a commit: format, types of the page's scripts, lints, other targets, citations, threat
    /// model, systemd unit, dependencies, documentation
    Check,
    /// Copy random trees with `downpour sync` and with rsync, and compare what they leave
    CompareRsync(compare_rsync::Options),
    /// Run all tests
    Test,
    /// Run the tests of the program that need a real sshd, which they start themselves
    TestSsh {
        /// Passed to the tests: names, --nocapture
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Run the tests of the lab's page in a browser, which they start themselves
    TestWeb {
        /// Tests, as MODULE.CLASS.TEST, where not all
        arguments: Vec<OsString>,
    },
    /// Check the wire format's test vectors with a second decoder, written from docs/PROTOCOL.md
    Vectors,
    /// Measure speed and memory against their targets
    Bench(bench::Options),
    /// Measure speed, memory and failure rates of the erasure codes against their targets
    #[cfg(target_os = "linux")]
    BenchCodes(bench_codes::Options),
    /// Run `downpour demo`, built for speed
    Demo {
        /// Passed to the demo
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Pack a static program with manual pages, completions, licences and SBOM into an archive
    Dist(dist::Options),
    /// Measure the figures and tables of the documents, draw them, and judge their claims
    #[cfg(target_os = "linux")]
    Figures(figures::Options),
    /// Feed hostile bytes to everything that reads bytes
    Fuzz(fuzz::Options),
    /// Install and build the programs that `downpour-lab` measures beside downpour (Debian; as root)
    LabDeps,
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
        Command::CompareRsync(options) => compare_rsync::run(&options),
        Command::Test => tools::run(tools::cargo().args(["test", "--workspace"])),
        Command::TestSsh { arguments } => test_ssh::run(&arguments),
        Command::TestWeb { arguments } => test_web::run(&arguments),
        Command::Vectors => vectors::run(),
        Command::Bench(options) => bench::run(&options),
        #[cfg(target_os = "linux")]
        Command::BenchCodes(options) => bench_codes::run(&options),
        Command::Demo { arguments } => {
            tools::run(tools::cargo().args(["run", "--release", "--", "demo"]).args(arguments))
        }
        Command::Dist(options) => dist::run(&options),
        #[cfg(target_os = "linux")]
        Command::Figures(options) => figures::run(&options),
        Command::LabDeps => lab_deps::run(),
        Command::Interrupt(options) => interrupt::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Miri => miri::run(),
        // Ends as ssh does.
        Command::RelayedSsh(options) => return relayed_ssh::run(&options),
        Command::Soak(options) => soak::run(&options),
    }?;
    Ok(ExitCode::SUCCESS)
}
