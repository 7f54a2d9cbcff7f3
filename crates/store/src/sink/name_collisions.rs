//! Detects names of a transfer that the target's file system treats as equal.

use std::collections::{HashMap, HashSet};

use super::super::folding::Folding;
use super::super::staged_id::path_hash;

/// Whether two names are equal for the file system, the lesser first.
pub(super) type Answers = HashMap<(Box<[u8]>, Box<[u8]>), bool>;

/// The paths admitted so far, if the file system folds names: 16 bytes for each ASCII path. Empty if it does not.
///
/// The equal letters beyond ASCII differ between file systems and their versions: for such names the folding key only
/// determines which may be equal, and the file system is asked.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    /// Hash of each ASCII path by the hash of its folding key.
    plain: HashMap<u64, u64>,
    /// All other paths by the hash of their folding key.
    others: HashMap<u64, Vec<Box<[u8]>>>,
    /// The answers of the file system so far.
    asked: Answers,
    /// Hashes of refused paths.
    refused: HashSet<u64>,
}

impl Spellings {
    /// Adds a path and returns whether it can be created. It cannot if the file system treats it as equal to an earlier
    /// path, or if one of its parent directories was refused for that reason. `is_same` asks the file system about two
    /// names.
    pub(super) fn admit(
        &mut self,
        path: &[u8],
        folding: Folding,
        mut is_same: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> bool {
        if !folding.folds() {
            return true;
        }
        let own = path_hash(path);
        let parent = path.iter().rposition(|byte| *byte == b'/').map(|slash| path_hash(&path[..slash]));
        let is_beneath = parent.is_some_and(|parent| self.refused.contains(&parent));
        if is_beneath || self.is_taken(path, own, &folding.key(path), &mut is_same) {
            self.refused.insert(own);
            return false;
        }
        true
    }

    /// Whether an earlier path is equal, or may be; adds this one if none is.
    fn is_taken(&mut self, path: &[u8], own: u64, key: &[u8], is_same: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> bool {
        let hash = path_hash(key);
        let others = self.others.entry(hash).or_default();
        if others.iter().any(|other| **other != *path && are_same(other, path, &mut self.asked, is_same)) {
            return true;
        }
        if path.is_ascii() {
            return *self.plain.entry(hash).or_insert(own) != own;
        }
        // An ASCII path equals its key.
        if self.plain.contains_key(&hash) && are_same(key, path, &mut self.asked, is_same) {
            return true;
        }
        if !others.iter().any(|other| **other == *path) {
            others.push(path.into());
        }
        false
    }
}

/// Whether all components of two paths are equal.
pub(super) fn are_same(
    one: &[u8],
    other: &[u8],
    asked: &mut Answers,
    is_same: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> bool {
    let components = |path: &[u8]| path.split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (one, other) = (components(one), components(other));
    one.len() == other.len()
        && one.iter().zip(&other).all(|(one, other)| {
            let (one, other) = (one.min(other), one.max(other));
            let is_plain = one.is_ascii() && other.is_ascii();
            one == other || is_plain || {
                let pair = (one.as_slice().into(), other.as_slice().into());
                *asked.entry(pair).or_insert_with(|| is_same(one, other))
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folding::Case;

    const FOLDING: Folding = Folding { case: Case::Unicode, normalization: true, dots: false };

    fn refused<'a>(paths: &[&'a str], is_same: impl Fn(&[u8], &[u8]) -> bool) -> Vec<&'a str> {
        let mut spellings = Spellings::default();
        let mut admit = |path: &&&str| spellings.admit(path.as_bytes(), FOLDING, &is_same);
        paths.iter().filter(|path| !admit(path)).copied().collect()
    }

    #[test]
    fn second_spelling_refused_with_its_tree() {
        let paths = [
            "Dir",
            "Dir/x",
            "dir",
            "dir/x",
            "dir/sub",
            "dir/sub/y",
            "Dir/sub",
            "Dir/sub/Y",
            "\u{e9}",
            "e\u{301}",
            "Dir/x",
        ];
        assert_eq!(refused(&paths, |_, _| true), ["dir", "dir/x", "dir/sub", "dir/sub/y", "e\u{301}"]);
        let admits = |path: &str| Spellings::default().admit(path.as_bytes(), Folding::default(), |_, _| true);
        assert!(["a", "A"].into_iter().all(admits));
    }

    #[test]
    fn file_system_decides_equality_beyond_ascii() {
        // As on exFAT, which distinguishes the Kelvin sign from k and an i without a dot from i.
        let paths = ["k", "\u{212a}", "K", "\u{131}", "\u{131}/a", "i", "i/a", "I/a", "I", "\u{131}/A", "\u{131}"];
        let is_same = |one: &[u8], other: &[u8]| one.eq_ignore_ascii_case(other);
        assert_eq!(refused(&paths, is_same), ["K", "I/a", "I", "\u{131}/A"]);
        assert_eq!(refused(&["k", "\u{212a}", "\u{3c3}", "\u{3c2}"], |_, _| true), ["\u{212a}", "\u{3c2}"]);
        assert_eq!(refused(&["\u{212a}", "k"], |_, _| true), ["k"]);
    }
}
