//! The licences of all linked crates, which must be distributed with the program.
//!
//! cargo-about would take a configuration and a template of the length of this file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::linked::Package;
use xtask::failure::Failure;

const HEAD: &str = "\
The program `downpour` of this archive is linked with the crates below, with Rust's standard library (MIT OR Apache-2.0,
https://www.rust-lang.org) and with the C library musl (MIT, https://musl.libc.org).
";
/// Beginnings of the names of files with licences, in capitals.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Writes which crates they are, and each text once.
pub(super) fn write(linked: &[Package], path: &Path) -> Result<(), Failure> {
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in linked.iter().filter(|package| package.is_foreign) {
        let name = format!("{} {}", package.name, package.version);
        list += &format!("  {name}: {}\n", package.license);
        for found in licences(&package.directory)? {
            texts.entry(found).or_default().insert(name.clone());
        }
    }
    let mut page = format!("{HEAD}\n{list}");
    for (text, names) in texts {
        let names: Vec<String> = names.into_iter().collect();
        page += &format!("\n{}\n{}:\n\n{}\n", "=".repeat(80), names.join(", "), text.trim());
    }
    fs::write(path, page).map_err(Failure::at(path.display()))
}

/// The texts in a crate's directory.
fn licences(directory: &Path) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(Failure::at(directory.display()))? {
        let path = entry.map_err(Failure::at(directory.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| fs::read_to_string(path).map_err(Failure::at(path.display()));
    paths.iter().map(read).collect()
}
