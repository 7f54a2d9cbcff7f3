//! The licences of everything that is linked into the program: they ask to be passed on with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::failure::Failure;
use crate::tools;

const HEAD: &str = "\
The program `downpour` of this archive is linked with the crates below, with Rust's standard library (MIT OR Apache-2.0,
https://www.rust-lang.org) and with the C library musl (MIT, https://musl.libc.org).
";
/// Beginnings of the names of files with licences, in capitals.
const NAMES: [&str; 4] = ["LICENSE", "LICENCE", "COPYING", "NOTICE"];

/// Writes who they are, and each text once.
pub(super) fn write(target: &str, path: &Path) -> Result<(), Failure> {
    let mut metadata = tools::cargo();
    metadata.args(["metadata", "--format-version", "1", "--filter-platform", target]).stderr(Stdio::inherit());
    let output = metadata.output().map_err(Failure::at("cargo metadata"))?;
    let graph: Value = serde_json::from_slice(&output.stdout).map_err(Failure::at("cargo metadata"))?;
    let linked = linked(&graph);
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in array(&graph["packages"]) {
        // What has no source is the house's own.
        if !linked.contains(text(&package["id"])) || package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        list += &format!("  {name}: {}\n", text(&package["license"]));
        let Some(folder) = Path::new(text(&package["manifest_path"])).parent() else { continue };
        for found in licences(folder)? {
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

/// The packages that the program is built of, by id: what it depends on, and what those depend on, tests and build scripts left out.
fn linked(graph: &Value) -> BTreeSet<&str> {
    let nodes: BTreeMap<&str, &Value> =
        array(&graph["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let program = array(&graph["packages"]).find(|package| package["name"] == "cli" && package["source"].is_null());
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = program.map(|package| text(&package["id"])).into_iter().collect();
    while let Some(id) = next.pop() {
        let Some(node) = nodes.get(id).filter(|_| found.insert(id)) else { continue };
        let is_linked = |dependency: &&Value| array(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
        next.extend(array(&node["deps"]).filter(is_linked).map(|dependency| text(&dependency["pkg"])));
    }
    found
}

/// The texts in a crate's folder.
fn licences(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::at(folder.display()))? {
        let path = entry.map_err(Failure::at(folder.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|begin| name.starts_with(begin)) {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| fs::read_to_string(path).map_err(Failure::at(path.display()));
    paths.iter().map(read).collect()
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
