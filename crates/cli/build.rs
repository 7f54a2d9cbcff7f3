//! What the program is built from, for `--version`.

mod commit;

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=commit.rs");
    // Not DOWNPOUR_: cargo passes them on to what it runs, and those are the user's.
    for (name, variable) in [("BUILD_TARGET", "TARGET"), ("BUILD_PROFILE", "PROFILE")] {
        println!("cargo::rustc-env={name}={}", env::var(variable).unwrap_or_default());
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../..");
    if let Some((commit, _)) = commit::checked_out(&root) {
        println!("cargo::rustc-env=BUILD_COMMIT={commit}");
    }
}
