//! A bounded set of open files, shared by threads.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};

use crate::lock::lock;

/// Most files held open by one source or sink. Small enough for any descriptor limit, large enough that a block over
/// many files and several workers at different positions of an object do not reopen the files just used.
pub(super) const MAX_OPEN: usize = 64;

/// Open files by key; the least recently used one is closed when a new one needs its place.
///
/// A file handed out stays open until its user drops it, so at most `MAX_OPEN` plus one for each thread are open.
#[derive(Debug)]
pub(super) struct OpenFiles<K> {
    /// In order of use, the latest last. A scan over 64 small entries is cheaper than a system call.
    files: Mutex<Vec<(K, Arc<File>)>>,
}

impl<K: Copy + PartialEq> OpenFiles<K> {
    pub(super) fn new() -> Self {
        Self { files: Mutex::new(Vec::new()) }
    }

    /// Returns the file under `key`, opened by `open` if it is not open. The lock is not held meanwhile: two threads
    /// may open the same file at once, and both handles work.
    pub(super) fn get(&self, key: K, open: impl FnOnce() -> io::Result<File>) -> io::Result<Arc<File>> {
        if let Some(file) = self.touch(key) {
            return Ok(file);
        }
        let file = Arc::new(open()?);
        let mut files = lock(&self.files);
        let oldest = (files.len() >= MAX_OPEN).then(|| files.remove(0));
        files.push((key, Arc::clone(&file)));
        drop(files);
        // Closing may write to a network file system: not under the lock.
        drop(oldest);
        Ok(file)
    }

    /// Closes the file under `key` once its last user is done.
    pub(super) fn forget(&self, key: K) {
        let mut files = lock(&self.files);
        let closed = files.iter().position(|(k, _)| *k == key).map(|at| files.remove(at));
        drop(files);
        drop(closed);
    }

    /// Closes all files.
    pub(super) fn clear(&self) {
        let closed = std::mem::take(&mut *lock(&self.files));
        drop(closed);
    }

    fn touch(&self, key: K) -> Option<Arc<File>> {
        let mut files = lock(&self.files);
        let at = files.iter().position(|(k, _)| *k == key)?;
        files[at..].rotate_left(1);
        files.last().map(|(_, file)| Arc::clone(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_closes_least_recently_used() {
        let files = OpenFiles::new();
        let open = || File::open("/dev/null");
        for key in 0..MAX_OPEN {
            files.get(key, open).unwrap();
        }
        files.get(0, || panic!("0 is open")).unwrap();
        files.get(MAX_OPEN, open).unwrap();
        files.get(0, || panic!("0 was used lately")).unwrap();
        assert!(files.touch(1).is_none());
        assert_eq!(files.files.lock().unwrap().len(), MAX_OPEN);
        files.forget(0);
        assert!(files.touch(0).is_none());
    }
}
