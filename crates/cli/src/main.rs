//! The program `downpour`.

use std::process::ExitCode;

fn main() -> ExitCode {
    downpour_cli::main(std::env::args_os(), systems::registry())
}
