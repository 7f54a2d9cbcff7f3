//! Names of staged files.

use std::fmt;
use std::ops::RangeInclusive;

use data_encoding::BASE32_NOPAD;

use crate::messages::{Entry, EntryKind};

/// Identifies one content of one file: staged files of the same path with another size, time or version have different
/// ids, and older ones can be found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StagedId(pub(super) [u8; 16]);

impl StagedId {
    /// Creates the id of an entry whose path at the target is `path`.
    pub(super) fn new(path: &[u8], entry: &Entry) -> Self {
        let mut content = blake3::Hasher::new();
        content.update(&entry.mtime.seconds.to_be_bytes()).update(&entry.mtime.nanoseconds.to_be_bytes());
        if let EntryKind::File { size, version, .. } = &entry.kind {
            content.update(&size.to_be_bytes()).update(&version.to_be_bytes());
        }
        let mut id = [0; 16];
        id[..8].copy_from_slice(&path_hash(path).to_be_bytes());
        id[8..].copy_from_slice(&content.finalize().as_bytes()[..8]);
        Self(id)
    }

    /// Returns the half that identifies the path.
    pub(super) fn path(self) -> u64 {
        u64::from_be_bytes(*self.0.first_chunk().expect("16 bytes"))
    }

    /// Returns the range of all ids with the same path.
    pub(super) fn of_same_path(self) -> RangeInclusive<Self> {
        let (mut first, mut last) = (self, self);
        first.0[8..].fill(0);
        last.0[8..].fill(u8::MAX);
        first..=last
    }

    /// Returns the directory of the staged file within the staging directory: one of 32, evenly distributed.
    pub(super) fn directory(self) -> String {
        self.name()[..1].to_owned()
    }

    /// Returns the path of the staged file within the staging directory.
    pub(super) fn place(self) -> String {
        let name = self.name();
        format!("{}/{name}", &name[..1])
    }

    /// Returns the name of the staged file.
    fn name(self) -> String {
        let mut name = BASE32_NOPAD.encode(&self.0);
        name.make_ascii_lowercase();
        name
    }

    /// Parses the name of a staged file; `None` for any other name.
    pub(super) fn from_name(name: &[u8]) -> Option<Self> {
        let decoded = BASE32_NOPAD.decode(&name.to_ascii_uppercase()).ok()?;
        decoded.try_into().ok().map(Self)
    }
}

/// Hashes a path to 64 bits.
pub(super) fn path_hash(path: &[u8]) -> u64 {
    u64::from_be_bytes(*blake3::hash(path).as_bytes().first_chunk().expect("32 bytes"))
}

impl fmt::Debug for StagedId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
