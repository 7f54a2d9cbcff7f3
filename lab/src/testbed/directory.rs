//! A temporary directory for the files of one run.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

const PREFIX: &str = "downpour-lab-";
const LOCK: &str = "lock";

/// A directory for this process only. It is removed when dropped; [`clean`] finds those of killed processes.
#[derive(Debug)]
pub struct RunDirectory {
    directory: TempDir,
    /// Locked for the lifetime of the process.
    _lock: File,
}

impl RunDirectory {
    /// Creates a new, empty directory in the directory for temporary files.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    /// Creates a new, empty directory in `parent`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn within(parent: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::create(directory.path().join(LOCK))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { directory, _lock: lock })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories in `parent` whose process has ended, and returns their paths. Those of other users stay.
///
/// # Errors
/// A `parent` that cannot be read.
pub fn clean(parent: &Path) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for entry in fs::read_dir(parent)? {
        let directory = entry?.path();
        let is_ours = directory.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()));
        if is_ours && is_left_behind(&directory) && fs::remove_dir_all(&directory).is_ok() {
            removed.push(directory);
        }
    }
    removed.sort();
    Ok(removed)
}

/// Returns whether no process holds its lock. A directory without a lock is new, or half removed: it stays.
fn is_left_behind(directory: &Path) -> bool {
    File::open(directory.join(LOCK)).is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_keeps_locked_directories() {
        let parent = tempfile::tempdir().unwrap();
        let held = RunDirectory::within(parent.path()).unwrap();
        let left = parent.path().join("downpour-lab-left");
        fs::create_dir(&left).unwrap();
        fs::write(left.join(LOCK), "").unwrap();
        fs::write(left.join("data"), "x").unwrap();
        let other = parent.path().join("another");
        fs::create_dir(&other).unwrap();
        fs::write(other.join(LOCK), "").unwrap();
        assert_eq!(clean(parent.path()).unwrap(), std::slice::from_ref(&left));
        assert!(held.path().exists() && other.exists() && !left.exists());
        let path = held.path().to_owned();
        drop(held);
        assert!(!path.exists());
        assert_eq!(clean(parent.path()).unwrap(), [] as [PathBuf; 0]);
    }
}
