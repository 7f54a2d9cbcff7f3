//! The end of a transfer: deletion, modes and times of folders, and the last word from the disk.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::fs::{fstat, fsync};

use super::super::delete::Deletion;
use super::super::error::FilesError;
use super::super::list::decode_attributes;
use super::super::metadata::{Status, set_metadata};
use super::super::notice::NoticeKind;
use super::super::spec::{Destination, Existing, ReceiveSpec};
use super::super::staging::{is_staging_name, sync_at_once, sync_file_system};
use super::entries::FILLABLE;
use super::manifest::Manifest;
use super::outcome::Outcome;
use super::place::{Place, refusal};
use super::{Control, FileSink, lock};
use crate::files::sandbox::errno;
use crate::messages::End;

/// What the target itself is called in notices.
const TOP: &[u8] = b".";

impl FileSink {
    /// Ends the transfer: checks the counts and the root, makes the hard links, deletes what is to be deleted, gives the folders their
    /// modes and times, makes everything durable and removes the staging folder. The caller has seen
    /// [`FileSink::unverified`] fall to zero.
    ///
    /// # Errors
    /// [`FilesError::Incomplete`], [`FilesError::Protocol`], [`FilesError::Root`], [`FilesError::Over`] once [`FileSink::stop`] was called, or a failure of the disk.
    pub fn finish(&self, end: &End) -> Result<Outcome, FilesError> {
        self.check_going()?;
        self.check_stopped()?;
        let unverified = self.unverified();
        if unverified > 0 {
            return Err(FilesError::Incomplete { unverified });
        }
        let control = self.control();
        let Manifest { batches, entries, bytes, .. } = control.manifest;
        if (end.batches, end.entries, end.bytes, end.skipped) != (batches, entries, bytes, control.skipped) {
            return Err(FilesError::Protocol { batch: batches, reason: "the end counts other than what came" });
        }
        if end.root != control.root.root() {
            return Err(FilesError::Root);
        }
        if let Some(source) = control.source
            && self.spec.requested.contents
            && !self.spec.dry_run
        {
            // Of an empty folder nothing has come, and all in the target may be too much.
            self.make_place(source)?;
        }
        self.flush()?;
        self.over.store(true, Ordering::Release);
        if self.spec.dry_run {
            if let Some(seen) = self.seen()? {
                self.delete(&control, seen)?;
                self.seal_top(&control, seen.root())?;
            }
        } else if let Some(place) = self.place.get() {
            place.target.forget_new();
            self.make_links(place)?;
            self.delete(&control, &place.target)?;
            self.seal_folders(place)?;
            let is_removed = place.staging.remove(place.target.root())?;
            lock(&self.outcome).staging_left = (!is_removed).then(|| place.staging.path().to_owned());
            // Nothing is made or removed in it any more.
            self.seal_top(&control, place.target.root())?;
            place.sync_target()?;
        }
        let mut outcome = lock(&self.outcome).clone();
        outcome.present = outcome.present.min(outcome.bytes);
        Ok(outcome)
    }

    fn delete(&self, control: &Control, target: &crate::files::sandbox::DirectorySandbox) -> Result<(), FilesError> {
        let (Some(filter), Some(sent)) = (&self.spec.delete, &control.sent) else { return Ok(()) };
        // A comparison deletes nothing, and what could not be read is not looked into.
        if control.incomplete && !self.spec.compared {
            lock(&self.outcome).delete_left_out = true;
            self.refused(TOP, NoticeKind::NotDeleted);
            return Ok(());
        }
        let mut fatal = None;
        let mut deleted = |path: &[u8]| {
            lock(&self.outcome).deleted += 1;
            self.notice(NoticeKind::Delete, path);
            if !self.spec.dry_run {
                self.note_change();
            }
        };
        let mut failed = |path: &[u8], error: io::Error| match refusal(errno(&error)) {
            Some(kind) => self.refused(path, kind),
            None => fatal = Some(FilesError::system(&self.destination().directory, error)),
        };
        let dry_run = self.spec.dry_run;
        let mut deletion = Deletion {
            target,
            filter,
            dry_run,
            sent_as: &|path| self.sent_as(path),
            is_stopped: &|| self.check_stopped().is_err(),
            deleted: &mut deleted,
            failed: &mut failed,
        };
        deletion.run(sent, self.is_contents(control), is_staging_name);
        fatal.map_or_else(|| self.check_stopped(), Err)
    }

    /// Gives the target mode and time of the folder that it stands for.
    fn seal_top(&self, control: &Control, target: &OwnedFd) -> Result<(), FilesError> {
        let ReceiveSpec { existing, dry_run, .. } = &*self.spec;
        let Destination { directory, rename } = self.destination();
        let applies =
            self.is_contents(control) && rename.is_none() && self.modes.is_exact() && *existing != Existing::Skip;
        let Some(top) = control.top.filter(|_| applies) else { return Ok(()) };
        // The next run has to get in.
        let mode = self.modes.apply(top.mode) | FILLABLE;
        let failed = |error: io::Error| FilesError::system(directory, error);
        let found = Status::from(fstat(target).map_err(|error| failed(error.into()))?);
        if found.mode == mode && found.has_time(top.mtime) {
            return Ok(());
        }
        if *dry_run {
            self.notice(NoticeKind::Attributes, TOP);
            return Ok(());
        }
        match set_metadata(target, mode, top.mtime) {
            Ok(()) => Ok(()),
            Err(error) => match refusal(errno(&error)) {
                Some(kind) => {
                    self.refused(TOP, kind);
                    Ok(())
                }
                None => Err(failed(error)),
            },
        }
    }

    /// Applies modes and times to all folders, the deepest first, and makes all that was made durable.
    fn seal_folders(&self, place: &Place) -> Result<(), FilesError> {
        let failed = |error| FilesError::system(place.staging.path(), error);
        let changed = self.changed.load(Ordering::Relaxed);
        let mut folders = lock(&place.staging.folders);
        // Folders that were there and are left alone are not in the list.
        let at_once = changed && (sync_at_once(folders.count()) || self.spec.existing == Existing::Skip);
        let mut folders = folders.backwards().map_err(failed)?;
        while let Some((path, attributes)) = folders.next().map_err(failed)? {
            self.check_stopped()?;
            let (mode, mtime) =
                decode_attributes(&attributes).ok_or_else(|| failed(io::ErrorKind::InvalidData.into()))?;
            let seal = || -> io::Result<()> {
                let Some(found) = place.target.look(&path)? else { return Ok(()) };
                let is_sealed = found.is_directory() && found.mode == mode && found.has_time(mtime);
                // One that an earlier run has sealed may not be durable.
                let syncs = changed && !at_once;
                if is_sealed && !syncs {
                    return Ok(());
                }
                let folder = place.target.open(&path)?;
                if !is_sealed {
                    set_metadata(&folder, mode, mtime)?;
                }
                if syncs {
                    fsync(&folder)?;
                }
                Ok(())
            };
            match seal() {
                Ok(()) => {}
                // It was removed meanwhile, or could not be made, which was told.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => {
                    let kind = place.refusal(&path, error)?;
                    self.refused(&self.sent_as(&path), kind);
                }
            }
        }
        if at_once {
            sync_file_system(place.target.root()).map_err(failed)?;
        }
        if changed {
            place.sync_target()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::SourceId;
    use crate::files::staging::staging_name;
    use crate::messages::RootHasher;

    fn begin(dir: &std::path::Path) -> FileSink {
        let receiving = FileSink::new(ReceiveSpec::into_directory(dir)).unwrap();
        receiving.begin(SourceId([1; 16])).unwrap();
        receiving
    }

    /// The end of a transfer of nothing.
    fn end(source: SourceId) -> End {
        let (mut root, mut bytes) = (RootHasher::new(), Vec::new());
        crate::messages::Message::Begin(source).encode(&mut bytes).unwrap();
        root.add(&bytes);
        End { batches: 0, entries: 0, bytes: 0, skipped: 0, root: root.root() }
    }

    #[test]
    fn what_an_earlier_run_has_moved_is_to_be_durable_at_the_end_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let first = begin(dir.path());
        assert!(!first.changed.load(Ordering::Relaxed));
        drop(first);
        fs::create_dir(dir.path().join(staging_name(SourceId([1; 16])))).unwrap();
        assert!(begin(dir.path()).changed.load(Ordering::Relaxed));
    }

    #[test]
    fn a_staging_folder_that_is_still_in_use_is_left_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let staging = dir.path().join(staging_name(SourceId([1; 16])));
        // What keeps it from being removed, as files do on NFS that are removed while they are open.
        fs::create_dir_all(staging.join("moving/in use")).unwrap();
        let receiving = begin(dir.path());
        let outcome = receiving.finish(&end(SourceId([1; 16]))).unwrap();
        assert_eq!(outcome.staging_left, Some(staging.clone()));
        assert!(!outcome.is_partial());
        drop(receiving);
        fs::remove_dir(staging.join("moving/in use")).unwrap();
        assert_eq!(begin(dir.path()).finish(&end(SourceId([1; 16]))).unwrap().staging_left, None);
        assert!(!staging.exists());
    }
}
