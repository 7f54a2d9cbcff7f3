//! Received names are hostile: cleaned before they touch the file system, escaped before they touch a terminal.

use std::fmt::Write as _;

use super::entry::{MAX_COMPONENT, MAX_PATH};
use super::error::FilesError;

/// The rule a received name breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No bytes at all, or two `/` in a row, or one at the end.
    #[error("it has an empty component")]
    Empty,
    /// It begins with `/`.
    #[error("it is absolute")]
    Absolute,
    /// A component is `.` or `..`.
    #[error("it has a component . or ..")]
    Dots,
    /// It contains a NUL byte.
    #[error("it contains a NUL byte")]
    Nul,
    /// Longer than [`MAX_PATH`], or a component longer than [`MAX_COMPONENT`].
    #[error("it is too long")]
    TooLong,
    /// It has several components where it should have one.
    #[error("it has several components")]
    Slash,
    /// It is one that staging folders may have.
    #[error("names such as .downpour-abcdefgh are those of unfinished transfers")]
    Reserved,
    /// The name was received before.
    #[error("it came twice")]
    Duplicate,
}

/// Checks the form of a received path; returns it with the component it begins with.
///
/// That its parent is a folder the file system tells when the entry is made: no set of names is kept.
///
/// # Errors
/// [`FilesError::BadName`] with the rule it breaks.
pub fn check_path(path: &[u8]) -> Result<&[u8], FilesError> {
    let bad = |reason| Err(bad_name(path, reason));
    if path.len() > MAX_PATH {
        return bad(NameError::TooLong);
    }
    if path.starts_with(b"/") {
        return bad(NameError::Absolute);
    }
    if path.contains(&0) {
        return bad(NameError::Nul);
    }
    for component in path.split(|b| *b == b'/') {
        match component {
            b"" => return bad(NameError::Empty),
            b"." | b".." => return bad(NameError::Dots),
            long if long.len() > MAX_COMPONENT => return bad(NameError::TooLong),
            _ => {}
        }
    }
    Ok(path.split(|b| *b == b'/').next().unwrap_or(path))
}

/// Checks the target of a received symlink: it is stored as it is and never followed, so only its form counts.
///
/// # Errors
/// [`FilesError::BadName`] for an empty or too long target, or one with a NUL byte.
pub fn check_target(target: &[u8]) -> Result<(), FilesError> {
    let reason = match target {
        [] => NameError::Empty,
        long if long.len() > MAX_PATH => NameError::TooLong,
        nul if nul.contains(&0) => NameError::Nul,
        _ => return Ok(()),
    };
    Err(bad_name(target, reason))
}

/// The error for `path`, which may be of any length.
pub(super) fn bad_name(path: &[u8], reason: NameError) -> FilesError {
    /// Enough to recognise a name by; a hostile one may have megabytes.
    const SHOWN: usize = 200;
    let mut name = display_name(&path[..path.len().min(SHOWN)]);
    if path.len() > SHOWN {
        name.push_str("...");
    }
    FilesError::BadName { name, reason }
}

/// A name as it may be shown to a human: control characters, marks that turn the writing direction, bytes that are no
/// UTF-8 and the backslash itself are escaped, so that a name can neither move the cursor nor pass for another.
#[must_use]
pub fn display_name(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\\' => out.push_str("\\\\"),
                c if c.is_control() || is_invisible_mark(c) => {
                    write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a String cannot fail");
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("writing to a String cannot fail");
        }
    }
    out
}

/// Zero-width and bidirectional marks, line and paragraph separators (Unicode general punctuation, and the BOM).
fn is_invisible_mark(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &[u8]) -> Option<NameError> {
        match check_path(path) {
            Ok(_) => None,
            Err(FilesError::BadName { reason, .. }) => Some(reason),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn only_plain_relative_paths_pass() {
        assert_eq!(rule(b"a/b/-c/..d/e.."), None);
        assert_eq!(rule(b"\xff\n"), None);
        assert_eq!(rule(b"../../etc/passwd"), Some(NameError::Dots));
        assert_eq!(rule(b"a/.."), Some(NameError::Dots));
        assert_eq!(rule(b"./a"), Some(NameError::Dots));
        assert_eq!(rule(b"/etc/passwd"), Some(NameError::Absolute));
        assert_eq!(rule(b""), Some(NameError::Empty));
        assert_eq!(rule(b"a//b"), Some(NameError::Empty));
        assert_eq!(rule(b"a/"), Some(NameError::Empty));
        assert_eq!(rule(b"a\0b"), Some(NameError::Nul));
        assert_eq!(rule(&[b'a'; 255]), None);
        assert_eq!(rule(&[b'a'; 256]), Some(NameError::TooLong));
        assert_eq!(rule(&b"a/".repeat(2048)[..4095]), None);
        assert_eq!(rule(&b"a/".repeat(2049)[..4097]), Some(NameError::TooLong));
    }

    #[test]
    fn the_first_component_is_returned() {
        assert_eq!(check_path(b"top/a/b").unwrap(), b"top");
        assert_eq!(check_path(b"top").unwrap(), b"top");
    }

    #[test]
    fn a_huge_bad_name_makes_a_short_error() {
        let text = check_path(&vec![b'\x1b'; 10 << 20]).unwrap_err().to_string();
        assert!(text.len() < 2000, "{} bytes", text.len());
    }

    #[test]
    fn shown_names_cannot_disturb_a_terminal() {
        assert_eq!(display_name("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(display_name(b"a\x1b[2Jb\nc\\"), "a\\u{1b}[2Jb\\nc\\\\");
        assert_eq!(display_name(b"\xff\xfeok"), "\\xff\\xfeok");
        assert_eq!(display_name("exe.\u{202e}gpj".as_bytes()), "exe.\\u{202e}gpj");
    }
}
