//! Sources of the crates, without their tests.

use std::fs;

use xtask::failure::Failure;
use xtask::tools;

/// A source file.
pub(crate) struct Source {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    /// Its text up to its tests.
    pub(crate) code: String,
}

/// Returns what the named crates consist of.
pub(crate) fn of(crates: &[&str]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for name in crates {
        let directory = tools::root().join("crates").join(name).join("src");
        for path in tools::files(&directory, Some("rs"))? {
            let text = fs::read_to_string(&path).map_err(Failure::at(path.display()))?;
            let path = path.strip_prefix(tools::root()).unwrap_or(&path).display().to_string();
            if !(path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("/hostile.rs")) {
                sources.push(Source { path, code: without_tests(&text).to_owned() });
            }
        }
    }
    Ok(sources)
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
