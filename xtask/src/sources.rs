//! Sources of the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::failure::Failure;
use xtask::tools;

/// A source file.
pub(crate) struct Source {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    /// Its text.
    pub(crate) code: String,
}

/// Returns the sources of the named crates, up to their tests.
pub(crate) fn of(crates: &[&str]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for name in crates {
        let directory = tools::root().join("crates").join(name).join("src");
        let is_test =
            |path: &str| path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/hostile.rs");
        let files = below(&directory)?.into_iter().filter(|source| !is_test(&source.path));
        sources.extend(files.map(|source| Source { code: without_tests(&source.code).to_owned(), ..source }));
    }
    Ok(sources)
}

/// Returns all sources below a directory, with their tests.
pub(crate) fn below(directory: &Path) -> Result<Vec<Source>, Failure> {
    let read = |path: PathBuf| {
        let code = fs::read_to_string(&path).map_err(Failure::at(path.display()))?;
        let path = path.strip_prefix(tools::root()).unwrap_or(&path).display().to_string();
        Ok(Source { path, code })
    };
    tools::files(directory, Some("rs"))?.into_iter().map(read).collect()
}

/// Fails with the lines that `wrong` finds in these sources.
pub(crate) fn fail_on(
    sources: impl IntoIterator<Item = Source>,
    wrong: fn(&str) -> Vec<String>,
) -> Result<(), Failure> {
    let of = |source: Source| wrong(&source.code).into_iter().map(move |line| format!("{}:{line}", source.path));
    let found: Vec<String> = sources.into_iter().flat_map(of).collect();
    if found.is_empty() { Ok(()) } else { Err(Failure::new(found.join("\n"))) }
}

/// Returns the lines, by their numbers, for which `is_wrong` holds, without comments.
pub(crate) fn lines(code: &str, is_wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let wrong = lines.filter(|(_, line)| is_wrong(line));
    wrong.map(|(number, line)| format!("{}: {}", number + 1, line.trim())).collect()
}

/// Returns a source up to its module of tests, which is its last item.
pub(crate) fn without_tests(text: &str) -> &str {
    let begins = |at: &usize| {
        let rest = text[*at..].trim_start_matches("#[cfg(test)]").trim_start();
        let declared = rest.lines().next().unwrap_or_default();
        declared.contains("mod ") && declared.ends_with('{')
    };
    let tests = text.match_indices("#[cfg(test)]").map(|(at, _)| at).find(begins);
    &text[..tests.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_ends_where_its_tests_begin() {
        let code = "fn a() {}\n#[cfg(test)]\nfn b() {}\n#[cfg(test)]\nmod tests;\nfn c() {}\n";
        for tests in ["#[cfg(test)]\nmod tests {\n}\n", "#[cfg(test)]\npub(crate) mod tests {\n}\n", ""] {
            assert_eq!(without_tests(&format!("{code}{tests}")), code);
        }
    }
}
