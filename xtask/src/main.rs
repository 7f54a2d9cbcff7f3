//! The house's commands: `cargo xtask check|test|test-ssh|vectors|bench|bench-codes|demo|dist|fuzz|lab-deps|soak`.

mod bench;
#[cfg(target_os = "linux")]
mod bench_codes;
mod check;
mod dist;
mod failure;
mod fuzz;
mod lab_deps;
mod relayed_ssh;
mod soak;
mod test_ssh;
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
    /// The tests of the program with a real sshd, which they start themselves
    TestSsh {
        /// Handed on to the tests: names, --nocapture
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// The wire's vectors, read by a second decoder written from the document
    Vectors,
    /// Speed and memory against their targets
    Bench(bench::Options),
    /// Speed, memory and failures of the erasure codes against their targets
    #[cfg(target_os = "linux")]
    BenchCodes(bench_codes::Options),
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
    /// Install and build the programs that `downpour-lab` measures beside downpour (Debian; as root)
    LabDeps,
    /// An ssh command over a made-up network, for `downpour cp --ssh`
    #[command(name = "relayed-ssh", hide = true)]
    RelayedSsh(Box<relayed_ssh::Options>),
    /// Many more seeds of the property that the tests check on a few
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
        Command::Check => check::run(),
        Command::Test => tools::run(tools::cargo().args(["test", "--workspace"])),
        Command::TestSsh { arguments } => test_ssh::run(&arguments),
        Command::Vectors => vectors::run(),
        Command::Bench(options) => bench::run(&options),
        #[cfg(target_os = "linux")]
        Command::BenchCodes(options) => bench_codes::run(&options),
        Command::Demo { arguments } => {
            tools::run(tools::cargo().args(["run", "--release", "--", "demo"]).args(arguments))
        }
        Command::Dist => dist::run(),
        Command::LabDeps => lab_deps::run(),
        Command::Fuzz(options) => fuzz::run(&options),
        // Ends as ssh does.
        Command::RelayedSsh(options) => return relayed_ssh::run(&options),
        Command::Soak(options) => soak::run(&options),
    }?;
    Ok(ExitCode::SUCCESS)
}
