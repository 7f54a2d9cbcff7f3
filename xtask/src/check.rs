//! `cargo xtask check`: what must hold before a commit.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::tools;

/// Lines of a source file, tests included.
const SOURCE_LINES: usize = 600;
/// Lines of the first page.
const README_LINES: usize = 120;
/// What is built for a target that may not be the one of this machine.
const ELSEWHERE: [(&str, &[&str]); 2] = [
    // The crates that know no system are built for one that has none.
    ("wasm32-unknown-unknown", &["build", "--quiet", "-p", "erasure", "-p", "netsim"]),
    // The kernels of NEON. Nothing is linked: that would take a linker of that target.
    ("aarch64-unknown-linux-gnu", &["check", "--quiet", "-p", "erasure"]),
];

type Step = (&'static str, fn() -> Result<(), Failure>);

const STEPS: [Step; 6] = [
    ("format", format),
    ("lints", lints),
    ("other targets", elsewhere),
    ("file sizes", sizes),
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

fn sizes() -> Result<(), Failure> {
    let mut long = Vec::new();
    let mut measure = |path: &Path, limit: usize| {
        let text = fs::read_to_string(path).map_err(Failure::at(path.display()))?;
        let lines = text.lines().count();
        if lines > limit {
            let name = path.strip_prefix(tools::root()).unwrap_or(path);
            long.push(format!("{} has {lines} lines, at most {limit} are allowed", name.display()));
        }
        Ok::<(), Failure>(())
    };
    for folder in ["crates", "examples", "xtask", "fuzz/fuzz_targets"] {
        for path in tools::files(&tools::root().join(folder), Some("rs"))? {
            measure(&path, SOURCE_LINES)?;
        }
    }
    measure(&tools::root().join("README.md"), README_LINES)?;
    if long.is_empty() { Ok(()) } else { Err(Failure::new(long.join("\n"))) }
}

/// Licences, advisories, sources and duplicates, where cargo-deny is there.
fn dependencies() -> Result<(), Failure> {
    if !tools::answers(tools::cargo().args(["deny", "--version"])) {
        println!("skipped: no cargo-deny here (cargo install cargo-deny --locked)");
        return Ok(());
    }
    tools::run(tools::cargo().args(["deny", "check"]))
}

fn documentation() -> Result<(), Failure> {
    let mut doc = tools::cargo();
    doc.args(["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    tools::run(&mut doc)
}
