//! Prints docs/COMMANDS.md, for `cargo xtask commands`.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    io::stdout().write_all(downpour_cli::commands_reference().as_bytes())
}
