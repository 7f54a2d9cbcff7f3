//! The crates that the program is built of, as cargo has resolved them.
//!
//! The crate cargo_metadata would give types to this graph, and leave the way through it to code of our own all the
//! same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use xtask::failure::Failure;
use xtask::tools;

/// A crate linked into the program.
#[derive(Clone, Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) license: String,
    /// Where its sources are.
    pub(super) directory: PathBuf,
    /// Whether it is from a registry and not from this repository.
    pub(super) is_foreign: bool,
    /// The crates it is linked with, by their places in the list.
    pub(super) dependencies: Vec<usize>,
}

/// The program's own crate, first, and all linked crates, without tests and build scripts.
pub(super) fn read(root: &Path, target: &str) -> Result<Vec<Package>, Failure> {
    let mut metadata = tools::cargo(tools::root());
    metadata.current_dir(root).stderr(Stdio::inherit());
    metadata.args(["metadata", "--format-version", "1", "--filter-platform", target]);
    let output = metadata.output().map_err(Failure::at("cargo metadata"))?;
    let graph: Value = serde_json::from_slice(&output.stdout).map_err(Failure::at("cargo metadata"))?;
    packages(&graph).ok_or_else(|| Failure::new("cargo metadata names no crate cli"))
}

fn packages(graph: &Value) -> Option<Vec<Package>> {
    let is_program = |package: &&Value| package["name"] == "downpour-cli" && package["source"].is_null();
    let program = text(&array(&graph["packages"]).find(is_program)?["id"]);
    let nodes: BTreeMap<&str, &Value> =
        array(&graph["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let is_linked = |dependency: &&Value| array(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null());
    let dependencies = |id: &str| -> Vec<&str> {
        let all = nodes.get(id).map(|node| array(&node["deps"])).into_iter().flatten();
        all.filter(is_linked).map(|dependency| text(&dependency["pkg"])).collect()
    };
    let (mut found, mut next) = (BTreeSet::new(), vec![program]);
    while let Some(id) = next.pop() {
        if found.insert(id) {
            next.extend(dependencies(id));
        }
    }
    // By name and version, which are the same on every machine, as ids of our own crates are not.
    let mut linked: Vec<&Value> =
        array(&graph["packages"]).filter(|package| found.contains(text(&package["id"]))).collect();
    linked.sort_by_key(|package| (text(&package["id"]) != program, text(&package["name"]), text(&package["version"])));
    let place = |id: &str| linked.iter().position(|package| text(&package["id"]) == id);
    let package = |package: &Value| {
        let mut dependencies: Vec<usize> = dependencies(text(&package["id"])).into_iter().filter_map(place).collect();
        dependencies.sort_unstable();
        dependencies.dedup();
        Package {
            name: text(&package["name"]).to_owned(),
            version: text(&package["version"]).to_owned(),
            license: text(&package["license"]).to_owned(),
            directory: Path::new(text(&package["manifest_path"])).parent().unwrap_or(Path::new("")).to_owned(),
            is_foreign: !package["source"].is_null(),
            dependencies,
        }
    };
    Some(linked.iter().map(|value| package(value)).collect())
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_linked_crates_are_listed() {
        let package = |name: &str, source: Value| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT", "manifest_path": format!("/x/{name}/Cargo.toml"), "source": source});
        let needs = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let graph = json!({
            "packages": [package("b", "crates.io".into()), package("a", Value::Null), package("downpour-cli", Value::Null), package("test", "crates.io".into())],
            "resolve": {"nodes": [
                {"id": "downpour-cli", "deps": [needs("b", Value::Null), needs("a", Value::Null), needs("test", "dev".into())]},
                {"id": "a", "deps": [needs("b", Value::Null), needs("test", "build".into())]},
                {"id": "b", "deps": []},
                {"id": "test", "deps": []},
            ]},
        });
        let packages = packages(&graph).expect("a crate cli");
        let names: Vec<_> = packages.iter().map(|package| (package.name.as_str(), package.is_foreign)).collect();
        assert_eq!(names, [("downpour-cli", false), ("a", false), ("b", true)]);
        assert_eq!((&packages[0].dependencies[..], &packages[1].dependencies[..]), (&[1, 2][..], &[2][..]));
        assert_eq!(packages[2].directory, Path::new("/x/b"));
    }
}
