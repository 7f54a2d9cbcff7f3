//! Citations: those of comments, profiles and documents are entries of `docs/REFERENCES.md` or files of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xtask::failure::Failure;
use xtask::tools;

/// Where the short names are resolved.
const REFERENCES: &str = "docs/REFERENCES.md";

/// Directories with texts that cite, and the kinds of files in them.
const PLACES: [(&str, &str); 8] = [
    ("crates", "rs"),
    ("crates", "md"),
    ("xtask", "rs"),
    ("fuzz", "md"),
    ("docs", "md"),
    ("docs", "py"),
    ("lab", "rs"),
    ("lab", "md"),
];

/// Words before a section sign that continue a citation: `ttp §II-B and §III-A`.
const CONNECTING: [&str; 7] = ["and", "as", "by", "in", "of", "or", "with"];

/// Words before a year other than authors.
const NOT_AUTHORS: [&str; 3] = ["Since", "In", "Lake"];

/// Checks every citation; the error lists those that do not resolve.
pub(crate) fn check() -> Result<(), Failure> {
    let root = tools::root();
    let references = fs::read_to_string(root.join(REFERENCES)).map_err(Failure::at(REFERENCES))?;
    let names = names(&references);
    let mut unresolved = Vec::new();
    for (directory, kind) in PLACES {
        for path in tools::files(&root.join(directory), Some(kind))? {
            let shown = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            // This file has the patterns, and the references resolve the names.
            if shown == REFERENCES || shown.ends_with("xtask/src/citations.rs") {
                continue;
            }
            let text = fs::read_to_string(&path).map_err(Failure::at(&shown))?;
            for (line, number) in text.lines().zip(1..) {
                let found = unknown(line, &names, |file| root.join(file).exists());
                unresolved.extend(found.into_iter().map(|cited| format!("{shown}:{number}: {cited}")));
            }
        }
    }
    if unresolved.is_empty() { Ok(()) } else { Err(Failure::new(unresolved.join("\n"))) }
}

/// The short names: the bold text at the start of an entry.
fn names(references: &str) -> BTreeSet<&str> {
    references.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**")).map(|(name, _)| name).collect()
}

/// The citations of a line that do not resolve.
fn unknown(line: &str, names: &BTreeSet<&str>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    if line.contains("design section") || line.contains("design §") {
        found.push("cites a document that is not in the repository; cite a note of docs/design".to_owned());
    }
    let words: Vec<&str> = line.split([' ', '"', '`', '(', ')', ',', ';', ':', '[', ']']).collect();
    for pair in words.windows(2) {
        let [first, second] = [pair[0], pair[1].trim_end_matches(['.', '\''])];
        let number = second.split(['.', '-', '\'', '*', '|']).next().unwrap_or_default();
        let cited = format!("{first} {number}");
        let is_rfc = first == "RFC" && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let is_paper = is_author(first) && is_year(number);
        if (is_rfc || is_paper) && !names.contains(cited.as_str()) {
            found.push(format!("{cited} is not in {REFERENCES}"));
        }
        let is_section_of = second.starts_with('§') && first.bytes().all(|b| b.is_ascii_lowercase() || b == b'-');
        if is_section_of && !first.is_empty() && !CONNECTING.contains(&first) && !names.contains(first) {
            found.push(format!("{first} is not in {REFERENCES}"));
        }
    }
    for word in words {
        let file = word.trim_end_matches('.');
        let is_document = file.starts_with("docs/") && file.rsplit_once('.').is_some_and(|(_, kind)| kind == "md");
        if is_document && !exists(Path::new(file)) {
            found.push(format!("{file} does not exist"));
        }
    }
    found
}

/// A name as in `Luby 2002`.
fn is_author(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(char::is_uppercase)
        && word.chars().count() > 2
        && letters.all(char::is_lowercase)
        && !NOT_AUTHORS.contains(&word)
}

fn is_year(word: &str) -> bool {
    word.len() == 4 && (word.starts_with("19") || word.starts_with("20")) && word.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "- **RFC 9002**: Loss Detection.\n- **ttp**: A paper.\n- **Luby 2002**: LT.\nnot **RFC 1**\n";

    fn check(line: &str) -> Vec<String> {
        unknown(line, &names(TEXT), |file| file == Path::new("docs/design/tail-rule.md"))
    }

    #[test]
    fn names_are_the_bold_starts_of_entries() {
        assert_eq!(names(TEXT).into_iter().collect::<Vec<_>>(), ["Luby 2002", "RFC 9002", "ttp"]);
    }

    #[test]
    fn resolved_citations_pass() {
        for line in [
            "/// RFC 9002 section 6.2, and RFC 9002's own.",
            "\"ttp §II-B and §III-A\"",
            "//! LT codes (Luby 2002), as docs/design/tail-rule.md.",
            "let year = 2002; // `RFC NNNN` is a form",
        ] {
            assert_eq!(check(line), Vec::<String>::new(), "{line}");
        }
    }

    #[test]
    fn unresolved_citations_are_found() {
        for (line, count) in [
            ("/// RFC 9000 section 6", 1),
            ("(Luby 1997)", 1),
            ("\"tttp §II\"", 1),
            ("see docs/design/none.md", 1),
            ("(design section 8)", 1),
            ("`RFC 1`, Knuth 1998 and docs/A.md.", 3),
        ] {
            assert_eq!(check(line).len(), count, "{line}: {:?}", check(line));
        }
    }
}
