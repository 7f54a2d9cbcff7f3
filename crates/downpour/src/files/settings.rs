//! How a transfer is received: where it goes, and what becomes of what stands there.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::filter::Filter;

/// How a transfer is received.
#[derive(Debug, Clone, Default)]
pub struct ReceiveSettings {
    /// The folder that the items go to. It is made if only it is missing, not its parents; one that is a symlink to a
    /// folder is followed, since it is the user who names it.
    pub into: PathBuf,
    /// What the single item of the transfer is called over here, a plain name; `None`: what the sender calls it.
    pub rename: Option<Vec<u8>>,
    /// The items that come, if they are known: where none of them stands, the sender need not wait for what is wanted.
    pub items: Option<Vec<Vec<u8>>>,
    /// What becomes of names that are taken.
    pub existing: Existing,
    /// What tells that a file is here already.
    pub compare: Compare,
    /// Which permission bits are taken over.
    pub modes: Modes,
    /// Names in the received folders that the sender does not have are deleted at the end, except those that this filter
    /// leaves out. Nothing is deleted if the sender had to skip something it could not read ([`NoticeKind::NotDeleted`](super::NoticeKind::NotDeleted)).
    pub delete: Option<Arc<Filter>>,
    /// What is in a folder comes without the folder, which `into` stands for: `delete` holds for the names in `into` itself too.
    pub contents: bool,
    /// With `dry_run`: what would be done is how two places differ. A folder stands for what is in it.
    pub compared: bool,
    /// Nothing is touched; notices tell what would be done.
    pub dry_run: bool,
}

impl ReceiveSettings {
    /// Receives into the folder `into`, with nothing unusual.
    #[must_use]
    pub fn new(into: impl Into<PathBuf>) -> Self {
        Self { into: into.into(), ..Self::default() }
    }
}

/// What becomes of names that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Existing {
    /// An item whose name is taken ends the transfer before it is touched, unless an earlier run of the same transfer has made
    /// what stands there. DirectorySandbox an item of this transfer names are replaced.
    #[default]
    Refuse,
    /// What differs is replaced: a file or link by anything, an empty folder by a file or link. Folders are merged.
    Replace,
    /// Whatever stands there stays. Folders are merged.
    Skip,
}

/// What tells that a file is here already. Its size always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Compare {
    /// Its time of last modification, as far as the file system here can store it.
    #[default]
    SizeAndTime,
    /// Its BLAKE3 digest, where the sender tells one; otherwise the file counts as different.
    Checksum,
}

/// Which permission bits are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Modes {
    /// As far as the user's mask allows for new files, and never set-user-id or set-group-id. What stands there keeps its own, files that
    /// are replaced too.
    #[default]
    Masked,
    /// All.
    Exact,
}

impl From<PathBuf> for ReceiveSettings {
    fn from(into: PathBuf) -> Self {
        Self::new(into)
    }
}
