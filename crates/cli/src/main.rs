//! The program `downpour`.

use std::process::ExitCode;

use downpour::profile::Names;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), Names::default())
}
