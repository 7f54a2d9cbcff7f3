//! The threat model: every row of its tables names the code that stops the threat and a test, and both exist.
//!
//! A test is cited as `PATH::function`, as `::function` of the path before it, or as the path of a file or directory
//! that has tests; `cargo xtask COMMAND` may be added. Paths begin in `crates/` or in the repository's directory.

use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory as _;

use xtask::failure::Failure;
use xtask::tools;

use crate::Cli;

const THREATS: &str = "docs/THREATS.md";

/// The header of every table.
const HEADER: [&str; 4] = ["threat", "protection", "code", "tests"];

/// Checks every row; the error lists the invalid ones.
pub(crate) fn check() -> Result<(), Failure> {
    let root = tools::root();
    let text = fs::read_to_string(root.join(THREATS)).map_err(Failure::at(THREATS))?;
    let wrong = Checker { root, commands: commands() }.wrong(&text)?;
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join("\n"))) }
}

/// The names of the commands of this program.
fn commands() -> Vec<String> {
    Cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// Resolves citations.
struct Checker<'a> {
    root: &'a Path,
    commands: Vec<String>,
}

impl Checker<'_> {
    /// The faults in the tables of a document, one line each.
    fn wrong(&self, text: &str) -> Result<Vec<String>, Failure> {
        let (mut wrong, mut rows, mut header) = (Vec::new(), 0, None);
        for (line, number) in text.lines().zip(1..) {
            let Some(cells) = cells(line) else {
                header = None;
                continue;
            };
            let mut found = Vec::new();
            if header.is_none() {
                header = Some(());
                if cells != HEADER {
                    found.push(format!("the columns of a table are {}", HEADER.join(", ")));
                }
            } else if !cells.iter().all(|cell| cell.bytes().all(|byte| byte == b'-')) {
                rows += 1;
                found = self.wrong_in_row(&cells)?;
            }
            wrong.extend(found.into_iter().map(|what| format!("{THREATS}:{number}: {what}")));
        }
        if rows == 0 {
            wrong.push(format!("{THREATS}: no row"));
        }
        Ok(wrong)
    }

    fn wrong_in_row(&self, cells: &[&str]) -> Result<Vec<String>, Failure> {
        let [threat, protection, code, tests] = cells else {
            return Ok(vec![format!("{} cells instead of {}", cells.len(), HEADER.len())]);
        };
        let mut wrong = Vec::new();
        if threat.is_empty() || protection.is_empty() {
            wrong.push("a threat and its protection are words".to_owned());
        }
        if citations(code).next().is_none() {
            wrong.push("no code is named".to_owned());
        }
        wrong.extend(
            citations(code).filter(|path| self.place(path).is_none()).map(|path| format!("{path} does not exist")),
        );
        wrong.extend(self.wrong_in_tests(tests)?);
        Ok(wrong)
    }

    fn wrong_in_tests(&self, cell: &str) -> Result<Vec<String>, Failure> {
        let (mut wrong, mut tests, mut before) = (Vec::new(), 0, "");
        for cited in citations(cell) {
            if let Some(command) = cited.strip_prefix("cargo xtask ") {
                if !self.commands.iter().any(|name| name == command) {
                    wrong.push(format!("unknown command `{cited}`"));
                }
                continue;
            }
            tests += 1;
            let (path, function) = cited.split_once("::").map_or((cited, None), |(path, name)| (path, Some(name)));
            let path = if path.is_empty() { before } else { path };
            before = path;
            match (self.place(path), function) {
                (None, _) => wrong.push(format!("{path} does not exist")),
                (Some(place), Some(name)) if !has_test(&place, |test| test == name)? => {
                    wrong.push(format!("no test {name} in {path}"));
                }
                (Some(place), None) if !has_test(&place, |_| true)? => wrong.push(format!("{path} has no test")),
                _ => {}
            }
        }
        if tests == 0 {
            wrong.push("no test is named".to_owned());
        }
        Ok(wrong)
    }

    /// Where a cited path is.
    fn place(&self, path: &str) -> Option<PathBuf> {
        let places = [self.root.join("crates").join(path), self.root.join(path)];
        places.into_iter().find(|place| !path.is_empty() && place.exists())
    }
}

/// The cells of a row of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(row.split('|').map(str::trim).collect())
}

/// The texts between backticks.
fn citations(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Whether a file, or one beneath a directory, has a test whose name `is_it`.
fn has_test(place: &Path, is_it: impl Fn(&str) -> bool) -> Result<bool, Failure> {
    let files = if place.is_dir() { tools::files(place, Some("rs"))? } else { vec![place.to_owned()] };
    for file in files {
        let text = fs::read_to_string(&file).map_err(Failure::at(file.display()))?;
        if tests(&text).any(&is_it) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The names of the functions behind `#[test]` or an attribute of that kind, and of those that Python takes for tests.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
            return None;
        }
        if let Some(name) = line.strip_prefix("def ").filter(|name| name.starts_with("test_")) {
            return name.split('(').next();
        }
        let is_test = std::mem::take(&mut is_test);
        let declared = line.trim_start_matches("pub ").trim_start_matches("async ").strip_prefix("fn ")?;
        is_test.then(|| declared.split('(').next().unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| threat | protection | code | tests |\n|---|---|---|---|\n";

    fn wrong(row: &str) -> Vec<String> {
        let checker = Checker { root: tools::root(), commands: commands() };
        checker.wrong(&format!("{HEAD}{row}\n")).expect("files that can be read")
    }

    #[test]
    fn the_threat_model_holds() {
        check().expect("rows with valid citations");
    }

    #[test]
    fn rows_with_valid_citations_pass() {
        for row in [
            "| a | b | `xtask/src/threats.rs` | `xtask/src/threats.rs::tests_are_found_by_their_attribute` |",
            "| a | b | `erasure/src` | `erasure/tests/limits.rs::symbol_limits`, `::failure_falls` |",
            "| a | `b` | `erasure/src` | `erasure/tests`, `cargo xtask fuzz` |",
            "| a | b | `lab/src/web` | `lab/tests/web/page.py::test_no_path_comes_from_the_browser` |",
        ] {
            assert_eq!(wrong(row), Vec::<String>::new(), "{row}");
        }
    }

    #[test]
    fn rows_that_do_not_are_named() {
        for (row, words) in [
            ("| a | b | `erasure/none.rs` | `erasure/tests` |", "erasure/none.rs does not exist"),
            ("| a | b | the codes | `erasure/tests` |", "no code is named"),
            ("| a | b | `erasure/src` | `erasure/tests/none.rs` |", "erasure/tests/none.rs does not exist"),
            ("| a | b | `erasure/src` | `erasure/tests::none` |", "no test none in erasure/tests"),
            ("| a | b | `erasure/src` | `erasure/src/lib.rs` |", "erasure/src/lib.rs has no test"),
            ("| a | b | `erasure/src` | `cargo xtask none`, `erasure/tests` |", "unknown command `cargo xtask none`"),
            ("| a | b | `erasure/src` | `cargo xtask fuzz` |", "no test is named"),
            ("| a | b | `erasure/src` | by hand |", "no test is named"),
            ("| a | | `erasure/src` | `erasure/tests` |", "are words"),
            ("| a | `erasure/src` | `erasure/tests` |", "3 cells instead of 4"),
        ] {
            let found = wrong(row);
            assert!(matches!(&found[..], [one] if one.contains(words) && one.contains(":3: ")), "{row}: {found:?}");
        }
    }

    #[test]
    fn a_document_is_tables_of_these_columns() {
        let checker = Checker { root: tools::root(), commands: commands() };
        let wrong = |text: &str| checker.wrong(text).expect("files that can be read");
        assert_eq!(wrong("# Threats\n"), ["docs/THREATS.md: no row"]);
        assert_eq!(wrong("| attack | tests |\n|---|---|\n").len(), 2);
    }

    #[test]
    fn tests_are_found_by_their_attribute() {
        let text = "#[test]\nfn a() {\nfn b() {}\n}\n#[test]\n#[ignore = \"slow\"]\nfn c() {}\nfn d() {}\n#[tokio::test]\nasync fn e() {}";
        assert_eq!(tests(text).collect::<Vec<_>>(), ["a", "c", "e"]);
    }
}
