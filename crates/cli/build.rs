//! What the program is built from, for `--version`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Not DOWNPOUR_: cargo passes them on to what it runs, and those are the user's.
    for (name, variable) in [("BUILD_TARGET", "TARGET"), ("BUILD_PROFILE", "PROFILE")] {
        println!("cargo::rustc-env={name}={}", env::var(variable).unwrap_or_default());
    }
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=BUILD_COMMIT={commit}");
    }
}

/// The commit checked out; `None` where this is not a checkout of its own, so that an unpacked archive always builds
/// the same.
fn commit() -> Option<String> {
    let workspace = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).ancestors().nth(2)?.canonicalize().ok()?;
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != workspace {
        return None;
    }
    // A commit moves the log of HEAD, a checkout HEAD itself.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", name])?;
        // Cargo would take a missing one as changed every time.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
