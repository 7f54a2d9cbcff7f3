//! Removal of the sources of stored entries.

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
/// A name is removed only while it is unchanged since it was sent: inode and change time are those of the scan, and of
/// a file also size and modification time. No symbolic link is followed on its path, so nothing is removed outside of
/// the sources, even if other users can write in them.
#[derive(Debug)]
pub struct Removal {
    cursor: DirectoryCursor,
    /// Whether a symbolic link was followed, so that its target was sent.
    follows: bool,
    /// Whether this is a dry run, which only counts names as removed.
    dry_run: bool,
    /// Versions of files that have changed because the removal took one of their names, by the version before.
    successors: HashMap<u64, u64>,
}

/// The versions of an entry whose source is to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Of the source, as it was sent.
    pub sent: u64,
    /// Of the file stored at the receiver.
    pub stored: u64,
}

/// The outcome for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceOutcome {
    /// The source is removed, or would be.
    Removed,
    /// The name does not exist any more.
    Gone,
    /// The file has further names, for which the caller waits.
    Shared,
    /// The source is kept, for this reason.
    Kept(NoticeKind),
}

impl Removal {
    /// Prepares to remove entries of a scan with these roots; a dry run removes nothing.
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
        Versions { sent, stored }: Versions,
        waits: bool,
    ) -> io::Result<SourceOutcome> {
        let (directory, name) = self.cursor.place(&entry.path)?;
        let opened;
        let (directory, name) = match name.iter().rposition(|byte| *byte == b'/') {
            // An item, by the path named by the user.
            Some(slash) => {
                opened = openat(CWD, &name[..=slash], NAMED_WAY, Mode::empty())?;
                (opened.as_fd(), &name[slash + 1..])
            }
            None => (directory, name),
        };
        let flags = if self.follows { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let found: Status = statat(directory, name, flags)?.into();
        let version = found.version();
        if version == stored {
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
            // A directory has replaced it just now.
            Err(Errno::ISDIR) => return Ok(SourceOutcome::Kept(NoticeKind::SourceChanged)),
            Err(error) => return Err(error.into()),
        }
        if let Some(left) = shared.map(|held| held.status()).transpose()? {
            self.successors.extend([(sent, left.version()), (version, left.version())]);
        }
        Ok(SourceOutcome::Removed)
    }
}

/// Whether a file that had version `from` and now has `to` has changed only because its names were removed here.
fn is_successor(successors: &HashMap<u64, u64>, from: u64, to: u64) -> bool {
    let mut at = from;
    // No longer than the chain, in case two versions collide.
    for _ in 0..=successors.len() {
        match successors.get(&at) {
            _ if at == to => return true,
            Some(next) => at = *next,
            None => return false,
        }
    }
    false
}
