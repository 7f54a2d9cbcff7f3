//! The program `downpour-lab`.

use std::process::ExitCode;

use lab::peers::Downpour;

fn main() -> ExitCode {
    lab::main(std::env::args_os(), Downpour::Found, systems::registry())
}
