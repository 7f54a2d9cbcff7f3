//! Detects names of a transfer that the target's file system treats as equal.

use std::collections::{HashMap, HashSet};

use super::super::folding::Folding;
use super::super::staged_id::path_hash;

/// The paths admitted so far, if the file system folds names: 16 bytes each. Empty if it does not.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    /// Hash of each path by the hash of its folding key.
    paths: HashMap<u64, u64>,
    /// Hashes of refused paths.
    refused: HashSet<u64>,
}

impl Spellings {
    /// Adds a path and returns whether it can be created. It cannot if the file system treats it as equal to an earlier
    /// path, or if one of its parent folders was refused for that reason.
    pub(super) fn admit(&mut self, path: &[u8], folding: Folding) -> bool {
        if !folding.folds() {
            return true;
        }
        let own = path_hash(path);
        let parent = path.iter().rposition(|byte| *byte == b'/').map(|slash| path_hash(&path[..slash]));
        let is_beneath = parent.is_some_and(|parent| self.refused.contains(&parent));
        if is_beneath || *self.paths.entry(path_hash(&folding.key(path))).or_insert(own) != own {
            self.refused.insert(own);
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::folding::Case;

    #[test]
    fn the_second_of_two_spellings_is_refused_with_all_beneath_it() {
        let folding = Folding { case: Case::Unicode, normalization: true, dots: false };
        let mut spellings = Spellings::default();
        let mut refused = Vec::new();
        for path in
            ["Dir", "Dir/x", "dir", "dir/x", "dir/sub", "dir/sub/y", "Dir/sub", "Dir/sub/Y", "\u{e9}", "e\u{301}"]
        {
            if !spellings.admit(path.as_bytes(), folding) {
                refused.push(path);
            }
        }
        assert_eq!(refused, ["dir", "dir/x", "dir/sub", "dir/sub/y", "e\u{301}"]);
        assert!(spellings.admit(b"Dir/x", folding), "the same spelling again");
        assert!(["a", "A"].iter().all(|path| Spellings::default().admit(path.as_bytes(), Folding::default())));
    }
}
