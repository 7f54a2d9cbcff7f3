//! `cargo xtask check`: the checks of the product's workspace before a commit.

use std::path::Path;
use std::process::Command;

use xtask::checks::{self, Step};
use xtask::failure::Failure;
use xtask::tools;

use crate::{advice, ambient, circles, citations, commands, parameters, threats, unit, words};

/// The builds for targets that may differ from this machine.
const OTHER_TARGETS: [(&str, &[&str]); 2] = [
    // The crates without system calls are built for a target without a system.
    ("wasm32-unknown-unknown", &["build", "--quiet", "-p", "downpour-erasure", "-p", "downpour-netsim"]),
    // The kernels of NEON. Nothing is linked: that would take a linker of that target.
    ("aarch64-unknown-linux-gnu", &["check", "--quiet", "-p", "downpour-erasure"]),
];

/// The sets of features of `downpour` that are not the default.
const FEATURES: [&str; 2] = ["", "tunnel"];

/// Packages that are no part of a release.
const PRIVATE: [&str; 4] = ["--exclude", "hostile", "--exclude", "xtask"];

const STEPS: &[Step] = &[
    ("format", || checks::format(tools::root())),
    ("lints", || checks::lints(tools::root())),
    ("features", features),
    ("circles of imports", circles::check),
    ("texts of the libraries", advice::check),
    ("words", words::check),
    ("parameters", parameters::check),
    ("time, threads and chance", ambient::check),
    ("other targets", other_targets),
    ("citations", citations::check),
    ("threat model", threats::check),
    ("systemd unit", unit::check),
    ("commands", commands::check),
    ("packages", packages),
    ("dependencies", || checks::dependencies(tools::root())),
    ("documentation", || checks::documentation(tools::root())),
];

/// Runs every step; the error names those that failed.
pub(crate) fn run() -> Result<(), Failure> {
    checks::run(STEPS)
}

/// Lints `downpour` with fewer features than all.
fn features() -> Result<(), Failure> {
    for features in FEATURES {
        let mut clippy = tools::cargo(tools::root());
        clippy.args(["clippy", "--quiet", "-p", "downpour", "--no-default-features", "--features", features]);
        tools::run(clippy.args(["--", "-D", "warnings"]))?;
    }
    Ok(())
}

/// Packs every package that can be published, without building it from what was packed, which takes minutes
/// (`RELEASING.md`).
fn packages() -> Result<(), Failure> {
    let mut package = tools::cargo(tools::root());
    tools::run(package.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]).args(PRIVATE))
}

fn other_targets() -> Result<(), Failure> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).current_dir(tools::root()).output();
    let sysroot = String::from_utf8(sysroot.map_err(Failure::at("rustc"))?.stdout).map_err(Failure::at("rustc"))?;
    for (target, arguments) in OTHER_TARGETS {
        if Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir() {
            tools::run(tools::cargo(tools::root()).args(arguments).args(["--target", target]))?;
        } else {
            println!("skipped: no {target} target (rustup target add {target})");
        }
    }
    Ok(())
}
