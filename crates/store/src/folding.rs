//! Names that a file system treats as equal although their bytes differ: `A` and `a`, or an accented letter in composed
//! and decomposed form.

use std::borrow::Cow;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, openat, statat, unlinkat};
use rustix::io::Errno;
use unicode_normalization::UnicodeNormalization as _;

/// Rules by which a file system treats different names as equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Folding {
    pub(super) case: Case,
    /// Whether the composed and the decomposed form of a character are equal. Such file systems that ignore case do so
    /// by Unicode's full folding (`ß` and `ss`).
    pub(super) normalization: bool,
    /// Whether trailing dots of a name are ignored.
    pub(super) dots: bool,
}

/// Case sensitivity of a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Case {
    /// Upper and lower case differ.
    #[default]
    Kept,
    /// The letters a to z are compared case-insensitively.
    Ascii,
    /// All letters are compared case-insensitively.
    Unicode,
}

/// The names of all files that a probe creates.
pub(super) const PROBES: [&str; 2] = [PROBE, ACCENTED];
const PROBE: &str = "probe";
const ACCENTED: &str = "prob\u{e9}";

impl Folding {
    /// Determines the rules of the file system of `dir` by briefly creating files in it.
    ///
    /// # Errors
    /// A file cannot be created.
    pub(super) fn probe(dir: &OwnedFd) -> rustix::io::Result<Self> {
        let is_also = |name: &str| statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let created = |name: &str| {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map(drop)
        };
        created(PROBE)?;
        let mut folding = Self { dots: is_also("probe."), ..Self::default() };
        if is_also("PROBE") {
            folding.case = Case::Ascii;
        }
        unlinkat(dir, PROBE, AtFlags::empty())?;
        match created(ACCENTED) {
            Ok(()) => {}
            // The file system does not accept non-ASCII names.
            Err(Errno::INVAL | Errno::ILSEQ) => return Ok(folding),
            Err(error) => return Err(error),
        }
        folding.normalization = is_also("probe\u{301}");
        if is_also("PROB\u{c9}") {
            folding.case = Case::Unicode;
        }
        unlinkat(dir, ACCENTED, AtFlags::empty())?;
        Ok(folding)
    }

    /// Returns whether names with different bytes can be equal.
    pub(super) fn folds(self) -> bool {
        self != Self::default()
    }

    /// Returns a key that is equal for paths that the file system treats as equal.
    pub(super) fn key(self, path: &[u8]) -> Cow<'_, [u8]> {
        if !self.folds() {
            return Cow::Borrowed(path);
        }
        let names = path.split(|byte| *byte == b'/').map(|name| self.name(name));
        Cow::Owned(names.collect::<Vec<_>>().join(&b'/'))
    }

    fn name(self, mut name: &[u8]) -> Vec<u8> {
        if self.dots {
            while let Some(rest) = name.strip_suffix(b".").filter(|rest| !rest.is_empty()) {
                name = rest;
            }
        }
        let mut key = Vec::with_capacity(name.len());
        for chunk in name.utf8_chunks() {
            key.extend(self.text(chunk.valid()).bytes());
            key.extend(chunk.invalid());
        }
        key
    }

    fn text(self, text: &str) -> String {
        let text = if self.normalization { text.nfd().collect() } else { text.to_owned() };
        let text = match self.case {
            Case::Kept => text,
            Case::Ascii => text.to_ascii_lowercase(),
            Case::Unicode => text.chars().flat_map(|letter| self.letter(letter)).collect(),
        };
        if self.normalization { text.nfd().collect() } else { text }
    }

    /// Folds a letter. Converts it to upper case first, since several lower-case letters can share one upper-case
    /// letter.
    fn letter(self, letter: char) -> Vec<char> {
        let folded: Vec<char> = letter.to_uppercase().flat_map(char::to_lowercase).collect();
        if folded.len() == 1 || self.normalization { folded } else { vec![letter] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Folding = Folding { case: Case::Kept, normalization: false, dots: false };
    const FAT: Folding = Folding { case: Case::Unicode, normalization: false, dots: true };
    const APPLE: Folding = Folding { case: Case::Unicode, normalization: true, dots: false };

    fn same(folding: Folding, one: &str, other: &str) -> bool {
        folding.key(one.as_bytes()) == folding.key(other.as_bytes())
    }

    #[test]
    fn folding_key_matches_file_systems() {
        // The columns: no folding, ASCII case only, FAT, APFS and directories of ext4 with casefold.
        let ascii = Folding { case: Case::Ascii, ..KEPT };
        for (one, other, expected) in [
            ("a/b", "a/b", [true, true, true, true]),
            ("Dir/a", "dir/A", [false, true, true, true]),
            ("\u{e9}", "\u{c9}", [false, false, true, true]),
            ("\u{e9}", "e\u{301}", [false, false, false, true]),
            ("E\u{301}", "\u{e9}", [false, false, false, true]),
            ("\u{df}", "SS", [false, false, false, true]),
            ("\u{3c3}", "\u{3c2}", [false, false, true, true]),
            ("a.", "a", [false, false, true, false]),
            ("dir./a", "DIR/a..", [false, false, true, false]),
            ("..", ".", [false, false, true, false]),
            ("a/b", "ab", [false, false, false, false]),
            ("a", "b", [false, false, false, false]),
        ] {
            let found = [KEPT, ascii, FAT, APPLE].map(|folding| same(folding, one, other));
            assert_eq!(found, expected, "{one} {other}");
        }
    }

    #[test]
    fn folding_keeps_invalid_utf8() {
        assert_eq!(APPLE.key(b"A\xffB/\xc3\x89\xfe"), APPLE.key(b"a\xffb/e\xcc\x81\xfe"));
        assert_ne!(APPLE.key(b"a\xff"), APPLE.key(b"a\xfe"));
    }

    #[test]
    fn folding_probe_removes_its_files() {
        let dir = tempfile::tempdir().unwrap();
        let fd = openat(rustix::fs::CWD, dir.path(), super::super::sandbox::READ_DIRECTORY, Mode::empty()).unwrap();
        let folding = Folding::probe(&fd).unwrap();
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
        std::fs::write(dir.path().join("x"), "").unwrap();
        assert_eq!(folding.case != Case::Kept, dir.path().join("X").exists());
    }
}
