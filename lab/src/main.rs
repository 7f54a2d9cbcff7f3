//! The program `downpour-lab`.

use std::process::ExitCode;

use lab::peers::Downpour;
use transport::profile::AlgorithmRegistry;

fn main() -> ExitCode {
    lab::main(std::env::args_os(), Downpour::Found, AlgorithmRegistry::default())
}
