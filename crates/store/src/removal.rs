//! Removal of the sources of what the receiver has stored.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use request::LinkPolicy;
use rustix::fs::{AtFlags, CWD, Mode, openat, statat, unlinkat};
use rustix::io::Errno;

use super::cursor::DirectoryCursor;
use super::directory::NAMED_WAY;
use super::metadata::Status;
use super::path_handle::PathHandle;
use super::root::Roots;
use crate::messages::{Entry, EntryKind, NoticeKind};

/// Removes names from the sources, one by one. Directories stay.
///
/// A name is removed only while it is what was sent: inode and change time are those of the scan, and of a file also
/// size and modification time. No symbolic link is followed on the way to it, so nothing is removed outside of the
/// sources, whoever can write in them.
#[derive(Debug)]
pub struct Removal {
    cursor: DirectoryCursor,
    /// Whether a name that is a link was sent as what it leads to.
    follows: bool,
    /// Whether names only count as removed.
    dry_run: bool,
    /// Versions of files that have changed because one of their names was removed here, by the one before.
    successors: HashMap<u64, u64>,
}

/// The versions of an entry whose source is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Of the source, as it was sent.
    pub sent: u64,
    /// Of what stands at the receiver.
    pub there: u64,
}

/// What became of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceOutcome {
    /// It is removed, or would be.
    Removed,
    /// Nothing has that name any more.
    Gone,
    /// It has further names, for which the caller waits.
    Shared,
    /// It stays, for this reason.
    Kept(NoticeKind),
}

impl Removal {
    /// Prepares to remove entries of a scan with these roots; in a dry run nothing is removed.
    #[must_use]
    pub fn new(roots: Arc<Roots>, dry_run: bool) -> Self {
        let follows = roots.links == LinkPolicy::Follow;
        Self { cursor: DirectoryCursor::without_links(roots), follows, dry_run, successors: HashMap::new() }
    }

    /// Removes the source of an entry with these versions. With `waits`, a file with further names stays for now.
    pub fn remove(&mut self, entry: &Entry, versions: Versions, waits: bool) -> SourceOutcome {
        match self.try_to_remove(entry, versions, waits) {
            Ok(outcome) => outcome,
            Err(error) if error.kind() == io::ErrorKind::NotFound => SourceOutcome::Gone,
            Err(_) => SourceOutcome::Kept(NoticeKind::SourceRefused),
        }
    }

    fn try_to_remove(
        &mut self,
        entry: &Entry,
        Versions { sent, there }: Versions,
        waits: bool,
    ) -> io::Result<SourceOutcome> {
        let (directory, name) = self.cursor.place(&entry.path)?;
        let opened;
        let (directory, name) = match name.iter().rposition(|byte| *byte == b'/') {
            // An item, by the path that the user has named.
            Some(slash) => {
                opened = openat(CWD, &name[..=slash], NAMED_WAY, Mode::empty())?;
                (opened.as_fd(), &name[slash + 1..])
            }
            None => (directory, name),
        };
        let flags = if self.follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let found: Status = statat(directory, name, flags)?.into();
        let version = found.version();
        if version == there {
            return Ok(SourceOutcome::Kept(NoticeKind::SourceIsTarget));
        }
        let is_as_scanned = match entry.kind {
            EntryKind::File { size, .. } => found.is_file() && (found.size, found.mtime) == (size, entry.mtime),
            _ => !found.is_directory(),
        };
        if !is_as_scanned || !is_successor(&self.successors, sent, version) {
            return Ok(SourceOutcome::Kept(NoticeKind::SourceChanged));
        }
        if waits && found.is_file() && found.links > 1 {
            return Ok(SourceOutcome::Shared);
        }
        if self.dry_run {
            return Ok(SourceOutcome::Removed);
        }
        let shared = if found.links > 1 { Some(PathHandle::open(directory, name)?) } else { None };
        match unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) => {}
            // A directory has taken its place just now.
            Err(Errno::ISDIR) => return Ok(SourceOutcome::Kept(NoticeKind::SourceChanged)),
            Err(error) => return Err(error.into()),
        }
        if let Some(left) = shared.map(|held| held.status()).transpose()? {
            self.successors.extend([(sent, left.version()), (version, left.version())]);
        }
        Ok(SourceOutcome::Removed)
    }
}

/// Whether a file that had the version `from` and now has `to` has changed only because names of it were removed here.
fn is_successor(successors: &HashMap<u64, u64>, from: u64, to: u64) -> bool {
    let mut at = from;
    // No longer than the chain, should two versions ever collide.
    for _ in 0..=successors.len() {
        match successors.get(&at) {
            _ if at == to => return true,
            Some(next) => at = *next,
            None => return false,
        }
    }
    false
}
