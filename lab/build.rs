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
    ("BUILD_SIMULATED", &["erasure", "netsim", "sim", "systems", "transport"]),
    ("BUILD_PROGRAM", &["cli", "downpour", "erasure", "net", "request", "runtime", "store", "systems", "transport"]),
];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../crates/cli/commit.rs");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let crates = root.join("crates");
    for (variable, names) in BUILDS {
        let mut digest = blake3::Hasher::new();
        for name in names {
            check_dependencies(&crates, name, names)?;
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

/// Crates of the product that change no result: the words of numbers, and what only the demo of `cli` uses.
const WITHOUT_EFFECT: [&str; 4] = ["linkrelay", "netsim", "sim", "units"];

/// Fails if a crate depends on another one of the product whose sources the digest lacks.
fn check_dependencies(crates: &Path, name: &str, names: &[&str]) -> io::Result<()> {
    let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml"))?;
    let dependencies = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let lines = dependencies.lines().take_while(|line| !line.starts_with('['));
    for dependency in lines.filter_map(|line| line.split(['.', ' ']).next()) {
        let is_own = crates.join(dependency).join("Cargo.toml").exists() && !dependency.is_empty();
        if is_own && !names.contains(&dependency) && !WITHOUT_EFFECT.contains(&dependency) {
            return Err(io::Error::other(format!("{name} depends on {dependency}, which the digest of results lacks")));
        }
    }
    Ok(())
}

/// Adds the sources of a directory except tests and documents, ordered by name.
fn add(directory: &Path, name: &str, digest: &mut blake3::Hasher) -> io::Result<()> {
    let mut items = fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
    items.sort_by_key(fs::DirEntry::file_name);
    for item in items {
        let file_name = item.file_name();
        let name = format!("{name}/{}", file_name.to_string_lossy());
        let is_document = item.path().extension().is_some_and(|extension| extension == "md");
        if is_document || matches!(file_name.to_str(), Some("tests" | "tests.rs")) {
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
