//! The names that take part in a transfer.

use std::collections::HashSet;
use std::sync::Mutex;

use crate::lock::lock;
use crate::staged_id::path_hash;

/// Names that take no part, and names of files being received.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// Hashes of the paths of excluded files.
    left_out: Mutex<HashSet<u64>>,
    /// Hashes of the paths of files being received and not yet in place.
    claimed: Mutex<HashSet<u64>>,
}

impl Claims {
    /// Notes that a file is excluded, which applies to all of its names.
    pub(super) fn exclude(&self, path: &[u8]) {
        lock(&self.left_out).insert(path_hash(path));
    }

    /// Whether a file is excluded.
    pub(super) fn is_excluded(&self, path: &[u8]) -> bool {
        lock(&self.left_out).contains(&path_hash(path))
    }

    /// Claims a path, by its hash, for a file being received; false if another file of the transfer has claimed it.
    pub(super) fn claim(&self, path: u64) -> bool {
        lock(&self.claimed).insert(path)
    }

    /// Releases a claim: the file is in place, or will not be.
    pub(super) fn release(&self, path: u64) {
        lock(&self.claimed).remove(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_claimed_until_file_in_place() {
        let claims = Claims::default();
        assert!(claims.claim(7) && !claims.claim(7) && claims.claim(8));
        claims.release(7);
        assert!(claims.claim(7));
        claims.exclude(b"a");
        assert!(claims.is_excluded(b"a") && !claims.is_excluded(b"b"));
    }
}
