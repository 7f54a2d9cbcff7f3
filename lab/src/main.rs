//! The program `downpour-lab`.

use std::process::ExitCode;

use lab::peers::Downpour;
use transport::profile::Names;

fn main() -> ExitCode {
    lab::main(std::env::args_os(), Downpour::Found, Names::default())
}
