//! Whether the wanted bytes fit on the target's disk.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::statvfs;
use rustix::process::geteuid;

use crate::directory::parent_of;

/// The room at a target, as of the first wanted bytes.
#[derive(Debug, Default)]
pub(super) struct Room {
    bytes: OnceLock<u64>,
    /// Whether a lack of room was reported.
    is_told: AtomicBool,
}

impl Room {
    /// Whether the wanted bytes exceed the room in a directory, or in the parent in which it will be made; true only
    /// once.
    pub(super) fn is_exceeded(&self, directory: &Path, wanted: u64) -> bool {
        let room = *self.bytes.get_or_init(|| room(directory).unwrap_or(u64::MAX));
        wanted > room && !self.is_told.swap(true, Ordering::Relaxed)
    }
}

/// Returns the number of bytes that this process may write to the file system of a directory, or of the parent in which
/// it will be made.
fn room(directory: &Path) -> Option<u64> {
    let found = statvfs(directory).or_else(|_| statvfs(parent_of(directory))).ok()?;
    let blocks = if geteuid().is_root() { found.f_bfree } else { found.f_bavail };
    // Some file systems do not report it.
    (found.f_blocks > 0).then(|| blocks.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_space_is_reported_once() {
        let (directory, room) = (tempfile::tempdir().unwrap(), Room::default());
        let absent = directory.path().join("to be made");
        assert!(!room.is_exceeded(&absent, 1));
        assert!(room.is_exceeded(&absent, u64::MAX) && !room.is_exceeded(&absent, u64::MAX));
    }
}
