//! The bill of materials: CycloneDX 1.5 in JSON (<https://cyclonedx.org/docs/1.5/json/>).
//!
//! It has no serial number and no time, which the format makes optional, so that the same sources give the same bytes.
//! For that reason it is not made by cargo-cyclonedx (0.5.9): in its bills, the `bom-ref` of a crate of this repository
//! has the absolute path of the checkout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::linked::Package;
use xtask::failure::Failure;

/// Writes the bill of the program and of every linked crate, the program first.
pub(super) fn write(root: &Path, linked: &[Package], path: &Path) -> Result<(), Failure> {
    let lock = root.join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(Failure::at(lock.display()))?;
    let bill = serde_json::to_string_pretty(&bill(linked, &checksums(&lock))).map_err(Failure::at("the SBOM"))?;
    fs::write(path, bill + "\n").map_err(Failure::at(path.display()))
}

fn bill(linked: &[Package], checksums: &BTreeMap<(&str, &str), &str>) -> Value {
    let reference = |package: &Package| match package.is_foreign {
        true => format!("pkg:cargo/{}@{}", package.name, package.version),
        false => format!("{}@{}", package.name, package.version),
    };
    let component = |package: &Package, kind: &str| {
        let mut component = json!({
            "type": kind,
            "bom-ref": reference(package),
            "name": package.name,
            "version": package.version,
            "licenses": [{"expression": expression(&package.license)}],
        });
        if package.is_foreign {
            component["purl"] = reference(package).into();
        }
        if let Some(checksum) = checksums.get(&(package.name.as_str(), package.version.as_str())) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        component
    };
    let dependencies = |package: &Package| {
        let on: Vec<String> = package.dependencies.iter().map(|&place| reference(&linked[place])).collect();
        json!({"ref": reference(package), "dependsOn": on})
    };
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": linked.first().map(|program| component(program, "application"))},
        "components": linked.iter().skip(1).map(|package| component(package, "library")).collect::<Vec<_>>(),
        "dependencies": linked.iter().map(dependencies).collect::<Vec<_>>(),
    })
}

/// An SPDX expression. Some crates still write the slash that cargo once allowed for OR.
fn expression(license: &str) -> String {
    license.replace(" / ", "/").replace('/', " OR ")
}

/// SHA-256 of each crate's file in the registry, by name and version. Cargo writes one field a line, which takes no
/// reader of TOML.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    lock.split("[[package]]")
        .filter_map(|entry| Some(((field(entry, "name")?, field(entry, "version")?), field(entry, "checksum")?)))
        .collect()
}

/// The text of `key = "text"`.
fn field<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    let mut values = entry.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
    values.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_have_a_place_a_licence_and_a_checksum() {
        let package = |name: &str, is_foreign, dependencies| Package {
            name: name.into(),
            version: "1.2.3".into(),
            license: "MIT/Apache-2.0".into(),
            directory: "".into(),
            is_foreign,
            dependencies,
        };
        let lock = "version = 4\n\n[[package]]\nname = \"b\"\nversion = \"1.2.3\"\nchecksum = \"00ff\"\n\n[[package]]\nname = \"cli\"\nversion = \"1.2.3\"\n";
        let bill = bill(&[package("cli", false, vec![1]), package("b", true, vec![])], &checksums(lock));
        assert_eq!(bill["metadata"]["component"]["bom-ref"], "cli@1.2.3");
        let expected = json!([{
            "type": "library",
            "bom-ref": "pkg:cargo/b@1.2.3",
            "purl": "pkg:cargo/b@1.2.3",
            "name": "b",
            "version": "1.2.3",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "hashes": [{"alg": "SHA-256", "content": "00ff"}],
        }]);
        assert_eq!(bill["components"], expected);
        assert_eq!(bill["dependencies"][0], json!({"ref": "cli@1.2.3", "dependsOn": ["pkg:cargo/b@1.2.3"]}));
    }
}
