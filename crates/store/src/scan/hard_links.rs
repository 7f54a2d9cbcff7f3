//! Files already sent under another name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::super::metadata::{Identity, Status};

/// Memory in bytes for files whose other names have not been met yet.
const MAX_BYTES: usize = 96 << 20;
/// Memory for each of them besides its path: its slot in the map and the allocation of the path.
const EACH: usize = 64;

/// Paths of the files that have further names, until all of those were met.
///
/// Once [`MAX_BYTES`] are used, no more files are kept: their other names are sent as separate files.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    files: HashMap<Identity, SeenFile>,
    bytes: usize,
}

#[derive(Debug)]
struct SeenFile {
    path: Box<[u8]>,
    /// Names not yet met.
    left: u64,
}

impl HardLinks {
    /// Returns the path under which this file was sent.
    pub(super) fn find(&mut self, seen: &Status) -> Option<Vec<u8>> {
        let Entry::Occupied(mut kept) = self.files.entry(seen.identity) else { return None };
        kept.get_mut().left -= 1;
        if kept.get().left > 0 {
            return Some(kept.get().path.to_vec());
        }
        let path = kept.remove().path.into_vec();
        self.bytes -= path.len() + EACH;
        Some(path)
    }

    /// Keeps the path of a file that is sent, if it has further names.
    pub(super) fn keep(&mut self, seen: &Status, path: &[u8]) {
        let bytes = path.len() + EACH;
        if seen.links > 1 && self.bytes + bytes <= MAX_BYTES {
            self.bytes += bytes;
            self.files.insert(seen.identity, SeenFile { path: path.into(), left: seen.links - 1 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::stat;

    #[test]
    fn hard_links_forget_last_name_and_limit_memory() {
        let mut links = HardLinks::default();
        let mut seen = Status::from(stat("/dev/null").unwrap());
        seen.links = 3;
        assert_eq!(links.find(&seen), None);
        links.keep(&seen, b"a");
        assert_eq!(links.find(&seen), Some(b"a".to_vec()));
        assert_eq!(links.find(&seen), Some(b"a".to_vec()));
        assert_eq!((links.find(&seen), links.bytes, links.files.len()), (None, 0, 0));
        links.bytes = MAX_BYTES - EACH;
        links.keep(&seen, b"a");
        assert_eq!(links.find(&seen), None);
        seen.links = 1;
        links.bytes = 0;
        links.keep(&seen, b"a");
        assert_eq!(links.find(&seen), None, "it has no other name");
    }
}
