//! `cargo xtask check`: what must hold before a commit.

use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::{citations, scripts, threats, tools, unit};

/// What is built for a target that may not be the one of this machine.
const ELSEWHERE: [(&str, &[&str]); 2] = [
    // The crates that know no system are built for one that has none.
    ("wasm32-unknown-unknown", &["build", "--quiet", "-p", "erasure", "-p", "netsim"]),
    // The kernels of NEON. Nothing is linked: that would take a linker of that target.
    ("aarch64-unknown-linux-gnu", &["check", "--quiet", "-p", "erasure"]),
];

type Step = (&'static str, fn() -> Result<(), Failure>);

const STEPS: [Step; 9] = [
    ("format", format),
    ("types of the page's scripts", scripts::check),
    ("lints", lints),
    ("other targets", elsewhere),
    ("citations", citations::check),
    ("threat model", threats::check),
    ("systemd unit", unit::check),
    ("dependencies", dependencies),
    ("documentation", documentation),
];

/// Runs every step, whatever becomes of those before it; the error names those that failed.
pub(crate) fn run() -> Result<(), Failure> {
    let mut failed = Vec::new();
    for (name, step) in STEPS {
        println!("== {name}");
        if let Err(failure) = step() {
            eprintln!("{failure}");
            failed.push(name);
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Failure::new(format_args!("failed: {}", failed.join(", ")))) }
}

fn format() -> Result<(), Failure> {
    tools::run(tools::cargo().args(["fmt", "--all", "--check"]))
}

fn lints() -> Result<(), Failure> {
    tools::run(tools::cargo().args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn elsewhere() -> Result<(), Failure> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).current_dir(tools::root()).output();
    let sysroot = String::from_utf8(sysroot.map_err(Failure::at("rustc"))?.stdout).map_err(Failure::at("rustc"))?;
    for (target, arguments) in ELSEWHERE {
        if Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir() {
            tools::run(tools::cargo().args(arguments).args(["--target", target]))?;
        } else {
            println!("skipped: no {target} target here (rustup target add {target})");
        }
    }
    Ok(())
}

/// Licences, sources and crates that are there twice; advisories where their database can be fetched.
fn dependencies() -> Result<(), Failure> {
    if !tools::answers(tools::cargo().args(["deny", "--version"])) {
        let what = "no cargo-deny here (cargo install --locked cargo-deny)";
        if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
            return Err(Failure::new(what));
        }
        println!("skipped: {what}");
        return Ok(());
    }
    tools::run(tools::cargo().args(["deny", "check", "bans", "licenses", "sources"]))?;
    if !tools::answers(tools::cargo().args(["deny", "fetch", "db"])) {
        println!("advisories not checked: no database");
        return Ok(());
    }
    tools::run(tools::cargo().args(["deny", "check", "--disable-fetch", "advisories"]))
}

fn documentation() -> Result<(), Failure> {
    let mut doc = tools::cargo();
    doc.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    tools::run(&mut doc)
}
