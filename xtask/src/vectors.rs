//! `cargo xtask vectors`: the second decoder of the wire's vectors, in Python, so that the document is enough to read
//! them.

use std::process::Command;

use xtask::failure::Failure;
use xtask::tools;

/// Runs it; an error if a vector disagrees with the document, or Python is missing.
pub(crate) fn run() -> Result<(), Failure> {
    let python = tools::find("python3")
        .ok_or_else(|| Failure::new("no python3 (3.9 or later; on Debian: apt-get install python3-minimal)"))?;
    tools::run(Command::new(python).arg("-B").arg(tools::root().join("docs/vectors/check.py")))
}
