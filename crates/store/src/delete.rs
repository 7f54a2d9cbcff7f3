//! Deletion of files that the sender does not have.

use std::collections::{HashMap, HashSet};
use std::io;

use request::{Backup, Filter};
use rustix::io::Errno;

use super::backup::{self, Original};
use super::folding::Folding;
use super::metadata::{Identity, Status};
use super::sandbox::{DirectorySandbox, errno};
use super::staged_id::path_hash;

/// Number of items that are directories and are remembered by their names.
const MAX_DIRECTORIES: usize = 1000;

/// The paths of a transfer as 64-bit hashes. A collision, which keeps a name that should be deleted, happens once in
/// 10^7 transfers of a million names.
#[derive(Debug, Default)]
pub(super) struct SentPaths {
    all: HashSet<u64>,
    /// The items that are, or contain, something other than directories.
    filled: HashSet<u64>,
    /// The first items that are directories, for a target that cannot be listed.
    directories: Vec<Vec<u8>>,
    folding: Folding,
    /// The spellings of the paths, if names fold.
    spellings: SentSpellings,
}

/// The paths of a transfer as they are spelled. Paths with the same folding key are known here; only the file system
/// knows whether they are equal.
#[derive(Debug, Default)]
struct SentSpellings {
    exact: HashSet<u64>,
    /// Hashes of the folding keys of ASCII paths, which cover all spellings of their letters.
    plain: HashSet<u64>,
    /// All other paths by the hash of their folding key.
    others: HashMap<u64, Vec<Box<[u8]>>>,
}

impl SentSpellings {
    fn add(&mut self, path: &[u8], key: &[u8]) {
        if !self.exact.insert(path_hash(path)) {
            return;
        }
        if path.is_ascii() {
            self.plain.insert(path_hash(key));
        } else {
            self.others.entry(path_hash(key)).or_default().push(path.into());
        }
    }

    /// Whether a path was added, in an equal spelling.
    fn has(&self, path: &[u8], key: &[u8], is_same: &dyn Fn(&[u8], &[u8]) -> bool) -> bool {
        let is_plain = || self.plain.contains(&path_hash(key));
        self.exact.contains(&path_hash(path))
            || (is_plain() && (path.is_ascii() || is_same(key, path)))
            || self.others.get(&path_hash(key)).is_some_and(|others| others.iter().any(|other| is_same(other, path)))
    }
}

impl SentPaths {
    /// Sets which names the target's file system equates. Called before paths that may exist in the target are added.
    pub(super) fn fold(&mut self, folding: Folding) {
        self.folding = folding;
    }

    pub(super) fn add(&mut self, path: &[u8], is_directory: bool) {
        let (spelled, path) = (path, &*self.folding.key(path));
        if self.folding.folds() {
            self.spellings.add(spelled, path);
        }
        self.all.insert(path_hash(path));
        if is_directory {
            if !path.contains(&b'/') && self.directories.len() <= MAX_DIRECTORIES {
                self.directories.push(path.to_vec());
            }
            self.all.insert(path_hash(&as_directory(path)));
        } else {
            self.filled.insert(path_hash(item(path)));
        }
    }

    /// Whether the sender has only directories: in the whole transfer, or in the item that `path` belongs to. Its disk
    /// may not be mounted.
    pub(super) fn is_empty(&self, path: Option<&[u8]>) -> bool {
        path.map_or(self.filled.is_empty(), |path| !self.filled.contains(&path_hash(item(&self.folding.key(path)))))
    }

    /// Adds a path that the sender could not read: its contents on the sender are unknown.
    pub(super) fn add_unread(&mut self, path: &[u8]) {
        let (spelled, path) = (path, &*self.folding.key(path));
        // The path may be added before the folding is known.
        self.spellings.add(spelled, path);
        self.all.insert(path_hash(path));
        self.all.insert(path_hash(&as_unread(path)));
        self.filled.insert(path_hash(item(path)));
    }

    /// Whether a path was sent, or may have been sent in another spelling.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.all.contains(&path_hash(&self.folding.key(path)))
    }

    /// Whether a path that may have been sent was not. `is_same` asks the file system about two spellings of a path.
    fn is_stranger(&self, path: &[u8], is_same: &dyn Fn(&[u8], &[u8]) -> bool) -> bool {
        self.folding.folds() && !self.spellings.has(path, &self.folding.key(path), is_same)
    }

    /// Returns the items that are directories; `None` if they are too many to remember.
    fn directories(&self) -> Option<Vec<(Vec<u8>, bool)>> {
        let is_all = self.directories.len() <= MAX_DIRECTORIES;
        is_all.then(|| self.directories.iter().map(|name| (name.clone(), true)).collect())
    }

    pub(super) fn has_directory(&self, path: &[u8]) -> bool {
        let path = &*self.folding.key(path);
        self.all.contains(&path_hash(&as_directory(path))) && !self.all.contains(&path_hash(&as_unread(path)))
    }
}

/// Returns a key that no sent path equals, since none ends in a slash.
fn as_directory(path: &[u8]) -> Vec<u8> {
    [path, b"/"].concat()
}

/// Returns another such key, with a second slash.
fn as_unread(path: &[u8]) -> Vec<u8> {
    [path, b"//"].concat()
}

/// Distinguishes names created at the target since a transfer began, which no option deletes, from earlier names. A
/// file that was written, renamed or otherwise changed since then counts as new.
#[derive(Debug)]
pub(super) struct CreatedMeanwhile {
    /// Status of a file that was changed when the transfer began.
    begun: Status,
    /// Files with several names, one of which the transfer has changed: the others look new because of that alone.
    shared: HashSet<Identity>,
}

impl CreatedMeanwhile {
    pub(super) fn since(begun: Status) -> Self {
        Self { begun, shared: HashSet::new() }
    }

    /// Notes that the transfer changes this file, or adds or removes one of its names.
    pub(super) fn changes(&mut self, file: &Status) {
        if !file.is_directory() {
            self.shared.insert(file.identity);
        }
    }

    fn has(&self, found: &Status) -> bool {
        found.changed_after(&self.begun) && !self.shared.contains(&found.identity)
    }
}

/// A walk over a target that deletes names.
pub(super) struct Deletion<'a> {
    pub(super) target: &'a DirectorySandbox,
    /// The file system on which names may be deleted; [`None`] for any.
    pub(super) device: Option<u64>,
    /// Excluded names are kept.
    pub(super) filter: &'a Filter,
    /// Where backups of deleted names go; names that may be backups are not deleted.
    pub(super) backup: Option<&'a Backup>,
    /// Whether a path is part of the transfer; no backup takes such a path.
    pub(super) is_sent: &'a dyn Fn(&[u8]) -> bool,
    /// Whether a path is kept though the sender does not have it.
    pub(super) is_kept: &'a dyn Fn(&[u8]) -> bool,
    /// Whether the file system treats two spellings of a path as equal.
    pub(super) is_same: &'a dyn Fn(&[u8], &[u8]) -> bool,
    /// Maps a path beneath the target to its name at the sender, to which the filter applies.
    pub(super) sent_as: &'a dyn Fn(&[u8]) -> Vec<u8>,
    /// Checked before each name; once it returns true, the remaining names are kept.
    pub(super) is_stopped: &'a dyn Fn() -> bool,
    /// Report only, delete nothing.
    pub(super) dry_run: bool,
    /// Names that may still be deleted; [`None`] for any number.
    pub(super) most: Option<u64>,
    /// Whether a name was kept because the limit was reached.
    pub(super) is_limited: bool,
    /// Names that are kept because they are new; [`None`] deletes those too.
    pub(super) created_meanwhile: Option<&'a mut CreatedMeanwhile>,
    /// Called with the path of each new name that is kept.
    pub(super) kept: &'a mut dyn FnMut(&[u8]),
    /// Called with the path of each deleted name beneath the target.
    pub(super) deleted: &'a mut dyn FnMut(&[u8]),
    /// Called for each name that could not be deleted.
    pub(super) failed: &'a mut dyn FnMut(&[u8], io::Error),
}

/// Next step of a walk. Not recursive, since a tree may have any depth.
enum Visit {
    Enter(Vec<u8>),
    Leave(Vec<u8>),
}

impl Deletion<'_> {
    /// Deletes names that were not sent in directories that were, and at the top if `top` is set. Keeps names for which
    /// `spare` returns true. Calls `empty` for each directory in which the sender has nothing, and deletes names in it
    /// only if it returns true.
    pub(super) fn run(
        &mut self,
        sent: &SentPaths,
        top: bool,
        spare: impl Fn(&[u8]) -> bool,
        mut empty: impl FnMut(&[u8]) -> bool,
    ) {
        let mut directories = vec![Vec::new()];
        while !(self.is_stopped)()
            && let Some(directory) = directories.pop()
        {
            let at_top = directory.is_empty();
            let names = match self.target.list(&directory) {
                Ok(names) => names,
                // Nothing is deleted at the top, and the sent names are known.
                Err(error) if at_top && !top && errno(&error) == Errno::ACCESS && sent.directories().is_some() => {
                    sent.directories().unwrap_or_default()
                }
                Err(error) => {
                    (self.failed)(&directory, error);
                    continue;
                }
            };
            // The item itself, or the directory whose contents are sent.
            let is_item = if top { at_top } else { !at_top && item(&directory) == directory };
            let has_names = names.iter().any(|(name, _)| !(at_top && spare(name)));
            if is_item && has_names && sent.is_empty((!top).then_some(&directory)) && !empty(&directory) {
                continue;
            }
            for (name, is_directory) in names {
                let path = join(&directory, &name);
                let is_stranger = sent.is_stranger(&path, self.is_same);
                if is_directory && sent.has_directory(&path) && !is_stranger {
                    if !self.is_other_mount(&path) {
                        directories.push(path);
                    }
                } else if (is_stranger || !sent.has(&path)) && (!at_top || top && !spare(&name)) {
                    self.delete(path, is_directory);
                }
            }
        }
    }

    /// Deletes a name and everything beneath it, except excluded names and their parent directories.
    pub(super) fn delete(&mut self, path: Vec<u8>, is_directory: bool) {
        if (self.is_stopped)() || !self.allows(&path, is_directory) {
            return;
        }
        if !is_directory {
            self.delete_name(&path);
            return;
        }
        // Directories that are not empty in the end.
        let mut needed = HashSet::new();
        if self.is_new(&path) {
            return;
        }
        let mut visits = vec![Visit::Enter(path)];
        while !(self.is_stopped)()
            && let Some(visit) = visits.pop()
        {
            match visit {
                Visit::Enter(directory) => match self.target.list(&directory) {
                    Ok(names) => {
                        visits.push(Visit::Leave(directory.clone()));
                        for (name, is_directory) in names {
                            let path = join(&directory, &name);
                            if is_directory && self.allows(&path, true) && !self.is_new(&path) {
                                visits.push(Visit::Enter(path));
                            } else if is_directory || !self.allows(&path, false) || !self.delete_name(&path) {
                                needed.insert(directory.clone());
                            }
                        }
                    }
                    // An empty directory need not be read.
                    Err(error) if errno(&error) == Errno::ACCESS && self.removes_unread(&directory) => {
                        self.report(&directory, Ok(()));
                    }
                    Err(error) => {
                        needed.insert(parent(&directory));
                        (self.failed)(&directory, error);
                    }
                },
                Visit::Leave(directory) if needed.remove(&directory) => drop(needed.insert(parent(&directory))),
                Visit::Leave(directory) if !self.takes_one() => drop(needed.insert(parent(&directory))),
                Visit::Leave(directory) => {
                    let result = if self.dry_run { Ok(()) } else { self.target.remove_directory(&directory) };
                    // Another process has created a file in it meanwhile.
                    let stays = matches!(&result, Err(error) if errno(error) == Errno::NOTEMPTY);
                    if stays || !self.report(&directory, result) {
                        needed.insert(parent(&directory));
                    }
                }
            }
        }
    }

    /// Removes an unreadable directory if it is empty; returns whether it did.
    fn removes_unread(&mut self, directory: &[u8]) -> bool {
        !self.dry_run && self.most != Some(0) && self.target.remove_directory(directory).is_ok() && self.takes_one()
    }

    /// Deletes a name that is not a directory; returns whether its directory no longer contains it.
    fn delete_name(&mut self, path: &[u8]) -> bool {
        if self.is_new(path) || !self.takes_one() {
            return false;
        }
        let result = match self.backup {
            _ if self.dry_run => Ok(()),
            Some(backup) => backup::keep(backup, self.target, path, Original::Goes, self.is_sent).map(drop),
            None => self.target.remove(path),
        };
        self.report(path, result) && !self.backup.is_some_and(Backup::is_beside)
    }

    /// Whether a name is kept because it has appeared since the transfer began. If not, it is about to be deleted.
    fn is_new(&mut self, path: &[u8]) -> bool {
        // The transfer itself may have created the directory; its contents are not kept for that.
        if self.backup.is_some_and(|backup| backup.is_reached_by(path)) {
            return false;
        }
        let Some(created_meanwhile) = &mut self.created_meanwhile else { return false };
        // A name whose status cannot be read cannot be deleted either; the failure is reported.
        let Ok(Some(found)) = self.target.look(path) else { return false };
        if created_meanwhile.has(&found) {
            (self.kept)(path);
            return true;
        }
        if found.links > 1 && !self.dry_run {
            created_meanwhile.changes(&found);
        }
        false
    }

    /// Whether one more name may be deleted.
    fn takes_one(&mut self) -> bool {
        let Some(most) = &mut self.most else { return true };
        self.is_limited |= *most == 0;
        let takes = *most > 0;
        *most = most.saturating_sub(1);
        takes
    }

    /// Whether another file system is mounted at a directory, and nothing may be deleted on it.
    fn is_other_mount(&self, directory: &[u8]) -> bool {
        // A directory whose status cannot be read is left alone.
        self.device.is_some_and(|device| {
            !self.target.look(directory).is_ok_and(|found| found.is_some_and(|found| found.identity.device == device))
        })
    }

    fn allows(&self, path: &[u8], is_directory: bool) -> bool {
        let is_kept = (self.is_kept)(path) || self.backup.is_some_and(|backup| backup.protects(path));
        if is_kept || (is_directory && self.is_other_mount(path)) {
            return false;
        }
        self.filter.is_empty() || self.filter.allows(&(self.sent_as)(path), is_directory)
    }

    /// Reports the result of a deletion; returns whether the name was removed.
    fn report(&mut self, path: &[u8], result: io::Result<()>) -> bool {
        let gone = result.is_ok();
        match result {
            Ok(()) => (self.deleted)(path),
            Err(error) => (self.failed)(path, error),
        }
        gone
    }
}

/// Returns the item that `path` belongs to: its first component.
fn item(path: &[u8]) -> &[u8] {
    path.split(|b| *b == b'/').next().unwrap_or(path)
}

/// Returns the directory that contains `path`.
fn parent(path: &[u8]) -> Vec<u8> {
    path.iter().rposition(|b| *b == b'/').map_or(Vec::new(), |slash| path[..slash].to_vec())
}

fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folding::Case;

    #[test]
    fn delete_spares_other_spelling_on_folding_target() {
        for (case, spared) in [(Case::Kept, false), (Case::Unicode, true)] {
            let mut sent = SentPaths::default();
            sent.fold(Folding { case, ..Folding::default() });
            sent.add(b"Dir", true);
            sent.add(b"Dir/Readme", false);
            assert_eq!((sent.has(b"DIR/README"), sent.has_directory(b"DIR")), (spared, spared));
            assert_eq!(sent.is_empty(Some(b"DIR")), !spared);
            assert!(sent.has(b"Dir/Readme") && sent.has_directory(b"Dir") && !sent.has(b"Dir/other"));
        }
    }
}
