//! Development commands of the lab: `cargo xtask COMMAND`, in its directory.

#[cfg(target_os = "linux")]
mod bench_codes;
#[cfg(target_os = "linux")]
mod figures;
mod lab_deps;
mod scripts;
mod test_web;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::checks::{self, Step};
use xtask::failure::Failure;
use xtask::tools;

/// Development commands of the lab: check, test the page, measure.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run all checks for a commit: format, types of the page's scripts, lints, dependencies, documentation
    Check,
    /// Run the tests of the page in a browser, which they start
    TestWeb {
        /// Tests, as MODULE.CLASS.TEST [default: all]
        arguments: Vec<OsString>,
    },
    /// Measure speed, memory and failure rates of the erasure codes against their targets
    #[cfg(target_os = "linux")]
    BenchCodes(bench_codes::Options),
    /// Measure the figures and tables of the documents, draw them, and judge their claims
    #[cfg(target_os = "linux")]
    Figures(figures::Options),
    /// Install and build the programs that `downpour-lab` compares with downpour (Debian; as root)
    LabDeps,
}

const CHECKS: [Step; 5] = [
    ("format", || checks::format(&root())),
    ("types of the page's scripts", scripts::check),
    ("lints", || checks::lints(&root())),
    ("dependencies", || checks::dependencies(&root())),
    ("documentation", || checks::documentation(&root())),
];

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
        Command::Check => checks::run(&CHECKS),
        Command::TestWeb { arguments } => test_web::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::BenchCodes(options) => bench_codes::run(&options),
        #[cfg(target_os = "linux")]
        Command::Figures(options) => figures::run(&options),
        Command::LabDeps => lab_deps::run(),
    }
}

/// Returns the directory of the lab's workspace.
fn root() -> PathBuf {
    tools::root().join("lab")
}

/// Builds downpour-lab with optimisation and returns its path.
#[cfg(target_os = "linux")]
fn build_lab() -> Result<PathBuf, Failure> {
    tools::build(&root(), "lab", "downpour-lab")
}
