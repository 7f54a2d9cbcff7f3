//! docs/COMMANDS.md, which the program's tables of commands and options write.

use std::fs;
use std::path::PathBuf;

use xtask::failure::Failure;
use xtask::tools;

/// Writes the page.
pub(crate) fn write() -> Result<(), Failure> {
    let path = page();
    fs::write(&path, reference()?).map_err(Failure::at(path.display()))
}

/// Checks that the page is generated from the tables.
pub(crate) fn check() -> Result<(), Failure> {
    let path = page();
    let written = fs::read_to_string(&path).map_err(Failure::at(path.display()))?;
    if written == reference()? {
        return Ok(());
    }
    Err(Failure::new("docs/COMMANDS.md differs from the tables of options: run `cargo xtask commands`"))
}

fn page() -> PathBuf {
    tools::root().join("docs/COMMANDS.md")
}

fn reference() -> Result<String, Failure> {
    let arguments = ["run", "--quiet", "--package", "downpour-cli", "--example", "commands"];
    let output = tools::cargo(tools::root()).args(arguments).output().map_err(Failure::at("cargo"))?;
    if !output.status.success() {
        return Err(Failure::new(String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(Failure::at("docs/COMMANDS.md"))
}
