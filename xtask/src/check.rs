//! `cargo xtask check`: what must hold in the product's workspace before a commit.

use std::path::Path;
use std::process::Command;

use xtask::checks::{self, Step};
use xtask::failure::Failure;
use xtask::tools;

use crate::{advice, ambient, circles, citations, commands, parameters, threats, unit};

/// What is built for a target that may not be the one of this machine.
const ELSEWHERE: [(&str, &[&str]); 2] = [
    // The crates that know no system are built for one that has none.
    ("wasm32-unknown-unknown", &["build", "--quiet", "-p", "downpour-erasure", "-p", "downpour-netsim"]),
    // The kernels of NEON. Nothing is linked: that would take a linker of that target.
    ("aarch64-unknown-linux-gnu", &["check", "--quiet", "-p", "downpour-erasure"]),
];

/// Packages that are no part of a release.
const PRIVATE: [&str; 4] = ["--exclude", "hostile", "--exclude", "xtask"];

const STEPS: &[Step] = &[
    ("format", || checks::format(tools::root())),
    ("lints", || checks::lints(tools::root())),
    ("circles of imports", circles::check),
    ("texts of the libraries", advice::check),
    ("parameters", parameters::check),
    ("time, threads and chance", ambient::check),
    ("other targets", elsewhere),
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

/// Packs every package that can be published, without building it from what was packed, which takes minutes
/// (`RELEASING.md`).
fn packages() -> Result<(), Failure> {
    let mut package = tools::cargo(tools::root());
    tools::run(package.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]).args(PRIVATE))
}

fn elsewhere() -> Result<(), Failure> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).current_dir(tools::root()).output();
    let sysroot = String::from_utf8(sysroot.map_err(Failure::at("rustc"))?.stdout).map_err(Failure::at("rustc"))?;
    for (target, arguments) in ELSEWHERE {
        if Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir() {
            tools::run(tools::cargo(tools::root()).args(arguments).args(["--target", target]))?;
        } else {
            println!("skipped: no {target} target here (rustup target add {target})");
        }
    }
    Ok(())
}
