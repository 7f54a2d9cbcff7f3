//! The identity of a build: its commit, and digests of the sources on which results depend.

#[path = "../crates/cli/commit.rs"]
mod commit;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The kinds of results: the name of a digest, and the crates of the product on which it depends.
const BUILDS: [(&str, &[&str]); 3] = [
    ("BUILD_CODES", &["erasure"]),
    ("BUILD_SIMULATED", &["erasure", "netsim", "sim", "transport"]),
    ("BUILD_PROGRAM", &["cli", "downpour", "erasure", "net", "request", "runtime", "store", "transport"]),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../crates/cli/commit.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let crates = root.join("crates");
    for (variable, names) in BUILDS {
        let mut digest = blake3::Hasher::new();
        for name in names {
            let directory = crates.join(name).join("src");
            println!("cargo::rerun-if-changed={}", directory.display());
            add(&directory, name, &mut digest)?;
        }
        println!("cargo::rustc-env={variable}={}", &digest.finalize().to_hex()[..16]);
    }
    if let Some((commit, is_dirty)) = commit::checked_out(&root) {
        println!("cargo::rustc-env=BUILD_COMMIT={commit}{}", if is_dirty { "-dirty" } else { "" });
    }
    Ok(())
}

/// Adds the sources of a directory except tests, ordered by name.
fn add(directory: &Path, name: &str, digest: &mut blake3::Hasher) -> io::Result<()> {
    let mut items = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    items.sort_by_key(fs::DirEntry::file_name);
    for item in items {
        let file_name = item.file_name();
        let name = format!("{name}/{}", file_name.to_string_lossy());
        if matches!(file_name.to_str(), Some("tests" | "tests.rs")) {
            continue;
        }
        if item.file_type()?.is_dir() {
            add(&item.path(), &name, digest)?;
        } else {
            let bytes = fs::read(item.path())?;
            digest.update(name.as_bytes()).update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
        }
    }
    Ok(())
}
