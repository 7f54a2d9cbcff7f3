//! Options and commands of the program in texts of the libraries: only the program advises its user on a failure
//! (`crates/cli/src/advice.rs`).
//!
//! It reads string literals outside tests, and needs no compiler.

use xtask::failure::Failure;

use crate::sources;

/// `transport` only describes settings, by the options that set them (`profile show`).
const CRATES: [&str; 6] = ["units", "erasure", "net", "request", "store", "downpour"];

/// Files that run the program or another one, with options of that, and are no texts for a user.
const RUNS: [&str; 3] = [
    "crates/downpour/src/remote/bootstrap.rs",
    "crates/downpour/src/remote/ssh.rs",
    "crates/downpour/src/remote/process.rs",
];

/// Checks every crate; the error lists the lines.
pub(crate) fn check() -> Result<(), Failure> {
    let sources = sources::of(&CRATES)?.into_iter();
    sources::fail_on(sources.filter(|source| !RUNS.contains(&source.path.as_str())), named)
}

/// Returns the lines of a source, by their numbers, whose literals name an option or a command.
fn named(code: &str) -> Vec<String> {
    sources::lines(code, |line| line.split('"').skip(1).step_by(2).any(names_option))
}

/// Whether a text names an option (`--word`, or `-x` after "use") or a command of the program.
fn names_option(text: &str) -> bool {
    let is_word = |rest: &str| rest.starts_with(|c: char| c.is_ascii_lowercase());
    let begins = |before: &str| before.is_empty() || before.ends_with([' ', '`', '(', '\'']);
    let long = text.match_indices("--").any(|(at, _)| begins(&text[..at]) && is_word(&text[at + 2..]));
    let short = ["use -", "leave -", "write -"].iter().any(|words| text.contains(words));
    long || short || text.contains("`downpour ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_texts_alone() {
        let found = |line: &str| !named(line).is_empty();
        for line in [
            r#"#[error("{0} is a directory; use -r")]"#,
            r#"    "more than --max-delete permits""#,
            r#"format!("{} (`downpour clean`)", x)"#,
            r#"("a", "see (--port)")"#,
        ] {
            assert!(found(line), "{line}");
        }
        for line in [r#"// "use --force""#, r#"assert!(a - -b, "a--b and a -- b, a-b")"#, r#""a downpour that runs""#] {
            assert!(!found(line), "{line}");
        }
    }
}
