//! Words that readers of messages, help and names have stumbled over: docs/GLOSSARY.md has those to use instead.
//!
//! It reads string literals outside tests, and the names of items everywhere, and needs no compiler.

use xtask::failure::Failure;
use xtask::tools;

use crate::sources;

/// The crates with texts for users.
const CRATES: [&str; 8] = ["cli", "downpour", "erasure", "net", "netsim", "request", "store", "transport"];

/// Not in a message, a notice or a help text.
const TEXTS: [&str; 20] = [
    "told",
    "nobody",
    "somebody",
    "whoever",
    "elsewhere",
    "folder",
    "folders",
    "over there",
    "the other side",
    "in vain",
    "for want of",
    "for lack of",
    "is to be",
    "are to be",
    "goes on",
    "go on from",
    "left out",
    "leaves out",
    "what stands",
    "without a word",
];

/// Not a part of the name of an item or module.
const NAMES: [&str; 6] = ["told", "nobody", "somebody", "whoever", "folder", "elsewhere"];

/// Not the name of a type.
const TYPES: [&str; 11] =
    ["Asked", "Door", "Elsewhere", "Found", "Held", "Lives", "Made", "Newcomers", "Nowhere", "Rival", "Witness"];

/// Checks texts and names; the error lists the lines.
pub(crate) fn check() -> Result<(), Failure> {
    sources::fail_on(sources::of(&CRATES)?, texts)?;
    for directory in ["crates", "xtask", "lab"] {
        sources::fail_on(sources::below(&tools::root().join(directory))?, names)?;
    }
    Ok(())
}

/// Returns the literals with words not for a text, with the numbers of their lines.
fn texts(code: &str) -> Vec<String> {
    // A single word is a key.
    let is_wrong = |text: &str| text.contains(' ') && TEXTS.iter().any(|word| has(&text.to_lowercase(), word));
    literals(code)
        .into_iter()
        .filter(|(_, text)| is_wrong(text))
        .map(|(line, text)| format!("{line}: {text}"))
        .collect()
}

/// Whether a text has these words, not as a part of others.
fn has(text: &str, words: &str) -> bool {
    let is_outside =
        |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | ':')));
    text.match_indices(words).any(|(at, _)| {
        is_outside(text[..at].chars().next_back()) && {
            let mut rest = text[at + words.len()..].chars();
            let next = rest.next();
            is_outside(next) || matches!(next, Some('.' | ':')) && is_outside(rest.next())
        }
    })
}

/// Returns the string literals of a source, continued lines joined, with the numbers of the lines where they begin.
fn literals(code: &str) -> Vec<(usize, String)> {
    let (mut found, mut line) = (Vec::new(), 1);
    let mut rest = code.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '\n' => line += 1,
            '/' if code[at..].starts_with("//") => while rest.next_if(|(_, c)| *c != '\n').is_some() {},
            // A quotation mark as a character.
            '\'' if code[at..].starts_with("'\"'") => {
                rest.nth(1);
            }
            'r' if code[at..].starts_with("r#\"") => {
                let begins = at + 3;
                let text = code[begins..].split("\"#").next().unwrap_or_default();
                found.push((line, text.to_owned()));
                line += text.matches('\n').count();
                while rest.next_if(|(next, _)| *next < begins + text.len() + 2).is_some() {}
            }
            '"' => {
                let (begins, mut text) = (line, String::new());
                while let Some((_, c)) = rest.next() {
                    match c {
                        '"' => break,
                        '\\' => match rest.next() {
                            Some((_, '\n')) => {
                                line += 1;
                                while rest.next_if(|(_, c)| *c == ' ').is_some() {}
                            }
                            Some((_, 'n')) => text.push('\n'),
                            Some((_, c)) => text.push(c),
                            None => {}
                        },
                        c => {
                            line += usize::from(c == '\n');
                            text.push(c);
                        }
                    }
                }
                found.push((begins, text));
            }
            _ => {}
        }
    }
    found
}

/// Returns the lines that give an item a name with such a word.
fn names(code: &str) -> Vec<String> {
    let named = |line: &str| {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        let kind = words.find(|word| ["fn", "struct", "enum", "trait", "type", "mod", "const"].contains(word))?;
        words.next().map(|name| (kind == "struct" || kind == "enum" || kind == "trait", name.to_owned()))
    };
    let is_wrong = |line: &str| {
        named(line).is_some_and(|(is_type, name)| {
            is_type && TYPES.contains(&name.as_str())
                || name.to_lowercase().split('_').any(|part| NAMES.contains(&part))
        })
    };
    sources::lines(code, |line| !line.contains('"') && is_wrong(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_whole_and_nothing_else_is() {
        let code = "// nobody\nlet a = \"is told\";\nlet b = \"in \\\n    vain\";\nlet nobody = 'a';\nlet c = r#\"a \"folder\"\"#;\n";
        assert_eq!(texts(code), ["2: is told", "3: in vain", "6: a \"folder\""]);
        for text in ["folder", "a folder.rs", "a told:rate", "a --folder", "is told_of"] {
            assert!(texts(&format!("\"{text}\"")).is_empty(), "{text}");
        }
        assert_eq!(texts("('\"', \"x\", \"Nobody came.\")"), ["1: Nobody came."]);
    }

    #[test]
    fn names_of_items_are_read() {
        for line in
            ["pub struct Found;", "    fn an_error_is_told() {", "mod folder;", "enum Door {", "const TOLD: u8 = 1;"]
        {
            assert_eq!(names(line).len(), 1, "{line}");
        }
        for line in ["fn found() {}", "struct FoundFile;", "let told = 1;", "fn threshold() {}"] {
            assert!(names(line).is_empty(), "{line}");
        }
    }
}
