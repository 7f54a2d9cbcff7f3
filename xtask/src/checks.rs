//! Checks of any workspace before a commit.

use std::path::Path;

use crate::failure::Failure;
use crate::tools;

/// The subject of a check, and its function.
pub type Step = (&'static str, fn() -> Result<(), Failure>);

/// Runs every step, whatever becomes of those before it.
///
/// # Errors
/// Names the steps that failed.
pub fn run(steps: &[Step]) -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (name, step) in steps {
        println!("== {name}");
        if let Err(failure) = step() {
            eprintln!("{failure}");
            failed.push(*name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format_args!("failed: {}", failed.join(", ")))) }
}

/// Checks the format of every source.
///
/// # Errors
/// A source has another.
pub fn format(workspace: &Path) -> Result<(), Failure> {
    tools::run(tools::cargo(workspace).args(["fmt", "--all", "--check"]))
}

/// Runs clippy, with warnings denied.
///
/// # Errors
/// At least one was found.
pub fn lints(workspace: &Path) -> Result<(), Failure> {
    tools::run(tools::cargo(workspace).args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

/// Checks licences, sources and duplicate crates; advisories if their database can be fetched.
///
/// # Errors
/// One is not allowed, or cargo-deny is missing and `CI` is `true`.
pub fn dependencies(workspace: &Path) -> Result<(), Failure> {
    let deny = |arguments: &[&str]| {
        let mut command = tools::cargo(workspace);
        command.arg("deny").args(arguments);
        command
    };
    if !tools::answers(&mut deny(&["--version"])) {
        let what = "no cargo-deny (cargo install --locked cargo-deny)";
        if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            return Err(Failure::new(what));
        }
        println!("skipped: {what}");
        return Ok(());
    }
    tools::run(&mut deny(&["check", "bans", "licenses", "sources"]))?;
    if !tools::answers(&mut deny(&["fetch", "db"])) {
        println!("advisories not checked: no database");
        return Ok(());
    }
    tools::run(&mut deny(&["check", "--disable-fetch", "advisories"]))
}

/// Builds the documentation, with warnings denied.
///
/// # Errors
/// At least one was found.
pub fn documentation(workspace: &Path) -> Result<(), Failure> {
    let mut doc = tools::cargo(workspace);
    doc.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    tools::run(&mut doc)
}
