//! The program `downpour`.

use std::process::ExitCode;

use downpour::profile::AlgorithmRegistry;

fn main() -> ExitCode {
    downpour_cli::main(std::env::args_os(), AlgorithmRegistry::default())
}
