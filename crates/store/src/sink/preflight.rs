//! Checks of the target before anything is created in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use request::{Existing, check_path, is_staging_name};
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::Errno;

use super::shared::Shared;
use super::target::open_target;
use crate::error::{FilesError, NotAllowed};
use crate::journal::Item;
use crate::messages::{Entry, EntryKind, SourceId};
use crate::metadata::{Status, birth};
use crate::staging::{Site, Staging};

impl Shared {
    /// Whether an earlier, interrupted transfer from `source` created the target as its single item. A copy to a name
    /// that was free then finds a directory now, and must not go into it.
    pub(super) fn is_own_target(&self, source: SourceId) -> bool {
        // Do not continue a target that has appeared since the handshake: the sender, informed that the target holds
        // nothing, does not wait for wants.
        let Some(named) = self.spec.named().filter(|_| self.may_have_data) else { return false };
        let Some(name) = &named.rename else { return false };
        // An unreadable target cannot be continued.
        let own = || -> Option<bool> {
            let target = open_target(&named.directory, &self.spec).ok()??;
            let site = Site::of(&target, &named.directory, source, self.spec.within.as_deref()).ok()?;
            let held = Staging::peek(&site, !self.spec.dry_run).ok()??;
            let found = statat(&target, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(held.items.contains(&Item::new(name, found.st_ino, birth(&target, name.as_slice()))))
        };
        own().unwrap_or(false)
    }

    /// Checks that no item among `entries` exists that must not be replaced ([`Existing::Refuse`]); also called before
    /// the user accepts.
    ///
    /// # Errors
    /// [`FilesError::TargetExists`] with the final names of all such items, a bad name, or a target that cannot be
    /// accessed.
    pub(super) fn check_conflicts(&self, entries: &[Entry]) -> Result<(), FilesError> {
        let mut names = Vec::new();
        if self.spec.existing != Existing::Refuse {
            return Ok(());
        }
        for entry in entries {
            let top = check_path(&entry.path).map_err(|reason| FilesError::bad_name(&entry.path, reason))?;
            if top.len() < entry.path.len() {
                // Beneath an item, which was checked when it arrived.
                continue;
            }
            let name = self.destination().rename.as_deref().unwrap_or(top);
            if is_staging_name(name) {
                // Refused later as a reserved name.
                continue;
            }
            let path = self.destination().directory.join(OsStr::from_bytes(name));
            let found = match statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => Status::from(found),
                // Names that are too long are reported when they arrive.
                Err(Errno::NOENT | Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ) => continue,
                Err(error) => return Err(FilesError::system(path, error)),
            };
            if !self.staged().is_some_and(|place| place.is_own(name, &found)) {
                names.push(self.destination().directory.join(OsStr::from_bytes(name)));
            }
        }
        if names.is_empty() { Ok(()) } else { Err(FilesError::TargetExists { names }) }
    }

    /// Checks that a directory does not replace an object named by the user as the target: the user meant a directory,
    /// or another name.
    pub(super) fn check_named(&self, entries: &[Entry]) -> Result<(), FilesError> {
        let is_item = |entry: &&Entry| matches!(entry.kind, EntryKind::Directory) && !entry.path.contains(&b'/');
        if let Some(name) = &self.destination().rename
            && entries.iter().any(|entry| is_item(&entry))
        {
            let path = self.destination().directory.join(OsStr::from_bytes(name));
            if path.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
                return Err(FilesError::TargetNotADirectory { path });
            }
        }
        Ok(())
    }

    /// Checks that no item replaces an output file, or a directory above it.
    pub(super) fn check_outputs(&self, entries: &[Entry]) -> Result<(), FilesError> {
        let directory = self.destination().directory.as_path();
        for output in self.outputs() {
            for entry in entries {
                // A name without a destination is refused later.
                let Ok(path) = self.target_path(&entry.path, 0) else { continue };
                let is_above = !matches!(entry.kind, EntryKind::Directory) && output.is_beneath(&path);
                if is_above || output.is_at(directory, &path) {
                    let path = directory.join(OsStr::from_bytes(&path));
                    return Err(FilesError::IsOutput { path, kind: output.kind });
                }
            }
        }
        Ok(())
    }

    /// Whether a path beneath the target is, or resolves to, an output file, which must be kept.
    pub(super) fn is_output(&self, path: &[u8]) -> bool {
        let directory = self.destination().directory.as_path();
        self.outputs().iter().any(|output| output.is_beneath(path) || output.is_at(directory, path))
    }

    /// Checks that a directory whose name the sender chose ([`ItemName::NewDirectory`]) does not exist, unless an
    /// earlier run of the transfer created it.
    pub(super) fn check_chosen(&self, entries: &[Entry]) -> Result<(), FilesError> {
        if !self.spec.permitted.lets_host_choose() || self.destination().rename.is_some() {
            return Ok(());
        }
        let is_item = |entry: &&Entry| !entry.path.contains(&b'/');
        for Entry { path, .. } in entries.iter().filter(is_item) {
            let shown = self.destination().directory.join(OsStr::from_bytes(path));
            if !self.spec.permitted.names(path)
                && let Ok(found) = statat(CWD, &shown, AtFlags::SYMLINK_NOFOLLOW)
                && !self.staged().is_some_and(|place| place.is_own(path, &found.into()))
            {
                return Err(FilesError::not_permitted(path, NotAllowed::Chosen));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::messages::Extra;
    use crate::{DirectoryIf, FileSink, Mtime, ReceiveRequest, RequestedItems};

    fn item(path: &str, kind: EntryKind) -> Entry {
        Entry { path: path.into(), kind, mode: 0o755, mtime: Mtime::default(), extra: Extra::default() }
    }

    /// Creates a sink whose target is a directory only if the first item is one.
    fn undecided(target: &Path) -> FileSink {
        let directory_if = Some(DirectoryIf { is_directory: true, name_is_none_of: None });
        let requested = RequestedItems { directory_if, ..RequestedItems::default() };
        FileSink::new(ReceiveRequest { requested, ..ReceiveRequest::to_target(target) }).unwrap()
    }

    #[test]
    fn first_item_decides_destination_once() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("name");
        let file = item("a", EntryKind::File { size: 0, version: 0, hash: None });
        let directory = item("a", EntryKind::Directory);
        for (first, into) in [(Some(&file), dir.path()), (Some(&directory), &target), (None, dir.path())] {
            let sink = undecided(&target);
            sink.begin(SourceId([1; 16])).unwrap();
            assert!(!sink.is_decided());
            sink.decide(first).unwrap();
            // Later items do not change the decision.
            sink.decide(Some(&directory)).unwrap();
            assert_eq!(sink.destination().directory, into, "{first:?}");
        }
    }

    #[test]
    fn directory_into_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("name");
        std::fs::write(&target, "mine").unwrap();
        let sink = undecided(&target);
        sink.begin(SourceId([1; 16])).unwrap();
        let error = sink.decide(Some(&item("a", EntryKind::Directory))).unwrap_err();
        assert!(matches!(error, FilesError::TargetNotADirectory { .. }), "{error}");
    }

    #[test]
    fn may_have_data_is_fixed_at_handshake() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("name");
        std::fs::create_dir(&target).unwrap();
        let sink = || FileSink::new(ReceiveRequest::to_target(&target)).unwrap();
        let before = sink();
        assert!(!before.may_have_data());
        let staging = dir.path().join(".downpour-aaaaaaaa");
        std::fs::create_dir(&staging).unwrap();
        let during = sink();
        assert!(during.may_have_data() && !before.may_have_data());
        std::fs::remove_dir(&staging).unwrap();
        assert!(during.may_have_data());
    }
}
