//! The end of a transfer: deletion, modes and times of directories, and the final sync.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use request::{Existing, ReceiveRequest, TargetPath, is_staging_name};
use rustix::fs::{fstat, fsync};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::super::attributes::SetResult;
use super::super::delete::Deletion;
use super::super::error::FilesError;
use super::super::metadata::Status;
use super::super::path_handle::PathHandle;
use super::super::staging::{abandoned, sync_at_once};
use super::manifest::Intake;
use super::name_collisions::{Answers, are_same};
use super::report::TOP;
use super::shared::Shared;
use super::target::TargetDirectory;
use crate::lock::lock;
use crate::messages::{Attributes, NoticeKind};
use crate::refusal::refusal_of;

impl Shared {
    /// Completes the transfer once everything else is in place: creates the hard links, deletes, sets modes and times
    /// of directories, makes everything durable and removes the staging directory. `announced` is everything that the
    /// sender announced.
    pub(super) fn finish(&self, announced: &Intake) -> Result<(), FilesError> {
        if self.spec.dry_run {
            if let Some(seen) = self.seen()? {
                self.delete(announced, seen)?;
                self.seal_top(announced, seen.root())?;
            }
        } else if let Some(place) = self.staged() {
            place.target.forget_new();
            self.make_links(place)?;
            self.delete(announced, &place.target)?;
            self.seal_directories(place)?;
            // Everything has been delivered, even if temporary files of this run cannot be removed.
            let left = place.staging.remove().err();
            if let Some(left) = &left {
                // The reason is reported if the receiver has a user.
                self.report.notice(NoticeKind::StaleStaging, left.path.as_os_str().as_bytes());
            }
            self.report.update(|outcome| outcome.staging_left = left);
            self.report_abandoned(place);
            // Nothing is created or removed in it any more.
            if announced.top.is_none() {
                place.close()?;
            }
            self.seal_top(announced, place.target.root())?;
            place.sync_target()?;
        }
        self.sync_stored_links()
    }

    /// Reports the staging directories of other transfers in this target.
    fn report_abandoned(&self, place: &TargetDirectory) {
        // Only a service to the user: a target that cannot be listed is no failure of this transfer.
        let names = abandoned(place.target.root()).unwrap_or_default();
        for name in names.into_iter().filter(|name| name != place.staging.name()) {
            let shown = place.shown(name.as_bytes());
            self.report.notice(NoticeKind::StaleStaging, shown.as_os_str().as_bytes());
        }
    }

    fn delete(&self, announced: &Intake, target: &crate::sandbox::DirectorySandbox) -> Result<(), FilesError> {
        let (Some(filter), Some(sent)) = (&self.spec.delete, &announced.sent) else { return Ok(()) };
        // A comparison deletes nothing, and does not enter directories that the sender could not read.
        if announced.incomplete && !self.spec.compare_trees {
            self.report.update(|outcome| outcome.delete_left_out = true);
            self.refused(TOP, NoticeKind::NotDeleted);
            return Ok(());
        }
        let mut fatal = None;
        let mut deleted = |path: &[u8]| {
            self.report.deleted(path);
            if !self.spec.dry_run {
                self.phase.note_change();
            }
        };
        let mut failed = |path: &[u8], error: io::Error| match refusal_of(&error) {
            Some(kind) => self.refused(if path.is_empty() { TOP } else { path }, kind),
            None => fatal = Some(FilesError::system(&self.destination().directory, error)),
        };
        let dry_run = self.spec.dry_run;
        let answers = RefCell::<Answers>::default();
        let place_says = |one: &[u8], other: &[u8]| {
            are_same(one, other, &mut answers.borrow_mut(), &mut |one, other| self.equates(one, other))
        };
        let mut created_meanwhile = self.staged().and_then(|place| place.created_meanwhile.as_ref()).map(lock);
        let mut deletion = Deletion {
            target,
            device: target.device_if(self.spec.one_file_system),
            filter,
            backup: self.spec.backup.as_ref(),
            is_sent: &|path| sent.has(path) || self.is_output(path),
            is_kept: &|path| self.is_output(path),
            is_same: &|one, other| place_says(one, other),
            dry_run,
            most: self.spec.max_delete,
            is_limited: false,
            sent_as: &|path| self.sent_as(path),
            is_stopped: &|| self.phase.check_stopped().is_err(),
            created_meanwhile: created_meanwhile.as_deref_mut(),
            kept: &mut |path| self.report.kept(path),
            deleted: &mut deleted,
            failed: &mut failed,
        };
        let empty = |directory: &[u8]| {
            // A comparison only reports the names that the sender lacks.
            if self.spec.compare_trees || self.spec.force_empty {
                return true;
            }
            self.report.update(|outcome| outcome.delete_left_out = true);
            self.refused(if directory.is_empty() { TOP } else { directory }, NoticeKind::EmptySource);
            false
        };
        deletion.run(sent, self.is_contents(announced), is_staging_name, empty);
        if deletion.is_limited {
            self.refused(TOP, NoticeKind::DeleteLimit);
        }
        fatal.map_or_else(|| self.phase.check_stopped(), Err)
    }

    /// Whether the target corresponds to the directory whose contents are sent. Without a trailing slash, the path
    /// alone does not show that it names a directory at the sender; the sender's announcement does. Only a comparison,
    /// which touches nothing, relies on that.
    fn is_contents(&self, announced: &Intake) -> bool {
        self.spec.requested.contents || (self.spec.compare_trees && announced.top.is_some())
    }

    /// Sets the attributes of the target to those of the corresponding directory.
    fn seal_top(&self, announced: &Intake, target: &OwnedFd) -> Result<(), FilesError> {
        let ReceiveRequest { existing, dry_run, .. } = &*self.spec;
        let TargetPath { directory, rename } = self.destination();
        let applies = self.is_contents(announced) && rename.is_none() && *existing != Existing::Skip;
        let Some(top) = announced.top.as_ref().filter(|_| applies) else { return Ok(()) };
        let failed = |error: io::Error| FilesError::system(directory, error);
        let found = Status::from(fstat(target).map_err(|error| failed(error.into()))?);
        let mode = match self.modes.is_exact() {
            true => self.modes.seal(self.modes.apply(self.changed_mode(top.mode, true)), &found),
            false => found.mode,
        };
        let extra = announced.ids.localize(&top.extra);
        let open = || Ok(PathHandle::from(target.try_clone()?));
        // Without exact modes it may be a directory into which files are only copied, such as /tmp.
        let is_own = self.modes.is_exact() || found.owner == geteuid().as_raw() || geteuid().is_root();
        let mtime = Some(top.mtime).filter(|_| is_own && !self.spec.omit_directory_times);
        let is_sealed = found.mode == mode && mtime.is_none_or(|mtime| found.has_time(mtime));
        if is_sealed && !self.extras.differs(&found, &extra, open) {
            return Ok(());
        }
        if *dry_run {
            self.report.notice(NoticeKind::Attributes, TOP);
            return Ok(());
        }
        match open().and_then(|directory| self.extras.apply(&directory, Some(mode), mtime, &extra)) {
            Ok(applied) => {
                applied.notice().into_iter().for_each(|kind| self.refused(TOP, kind));
                Ok(())
            }
            Err(error) => match refusal_of(&error) {
                Some(kind) => {
                    self.refused(TOP, kind);
                    Ok(())
                }
                None => Err(failed(error)),
            },
        }
    }

    /// Sets the attributes of all directories, the deepest first, and makes everything that was created durable.
    fn seal_directories(&self, place: &TargetDirectory) -> Result<(), FilesError> {
        let failed = |error| FilesError::system(place.staging.path(), error);
        let changed = self.phase.is_changed();
        let mut directories = lock(&place.staging.directories);
        // Existing directories that are not changed are not in the list. Nor are those of backups.
        let others = self.spec.existing == Existing::Skip || self.spec.backup.is_some();
        let mut at_once = changed && (sync_at_once(directories.count()) || others);
        let mut directories = directories.backwards().map_err(failed)?;
        while let Some((path, attributes)) = directories.next().map_err(failed)? {
            self.phase.check_stopped()?;
            let attributes = Attributes::from_bytes(&attributes).map_err(|error| failed(io::Error::other(error)))?;
            // A directory sealed by an earlier run may not be durable.
            match self.seal_directory(place, &path, &attributes, changed && !at_once) {
                Ok(sealed) => {
                    at_once |= changed && !sealed.is_synced;
                    sealed.applied.notice().into_iter().for_each(|kind| self.refused(&self.sent_as(&path), kind));
                }
                // It was removed in the meantime, or could not be created, which was reported.
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => {
                    // The directory itself exists.
                    let kind = match place.refusal(&path, error)? {
                        kind @ (NoticeKind::Permission | NoticeKind::Exchanged) => kind,
                        _ => NoticeKind::MetadataLost,
                    };
                    self.refused(&self.sent_as(&path), kind);
                }
            }
        }
        if at_once {
            place.sync_around(place.target.root()).map_err(failed)?;
        }
        if changed {
            place.sync_target()?;
        }
        Ok(())
    }

    fn seal_directory(
        &self,
        place: &TargetDirectory,
        path: &[u8],
        sealed: &Attributes,
        syncs: bool,
    ) -> io::Result<SealResult> {
        let Attributes { mode, mtime, extra } = sealed;
        let Some(found) = place.target.look(path)? else {
            return Ok(SealResult { applied: SetResult::All, is_synced: true });
        };
        if !found.is_directory() {
            return Err(Errno::STALE.into());
        }
        let mode = self.modes.seal(*mode, &found);
        let hold = || place.target.hold(path, found.identity);
        let mtime = Some(*mtime).filter(|_| !self.spec.omit_directory_times);
        let has_time = mtime.is_none_or(|mtime| found.has_time(mtime));
        let is_sealed = found.mode == mode && has_time && !self.extras.differs(&found, extra, hold);
        // Before a mode that may not permit it.
        let directory = syncs.then(|| place.target.open_to_list(path)).transpose();
        // A directory that this user may not read is synced with its file system.
        let unreadable = matches!(&directory, Err(error) if error.kind() == io::ErrorKind::PermissionDenied);
        let directory = if unreadable { None } else { directory? };
        let applied = if is_sealed {
            SetResult::All
        } else if self.extras.is_active() {
            self.extras.apply(&hold()?, Some(mode), mtime, extra)?
        } else {
            place.target.set_attributes(path, found.identity, Some(mode), mtime).map(|()| SetResult::All)?
        };
        directory.map_or(Ok(()), fsync)?;
        Ok(SealResult { applied, is_synced: !unreadable })
    }
}

/// The result of sealing a directory.
struct SealResult {
    applied: SetResult,
    /// Whether it was synced as far as requested.
    is_synced: bool,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::FileSink;
    use crate::SourceId;
    use crate::messages::{RootHasher, TransferEnd};
    use crate::staging::{LeftReason, staging_name};

    fn begin(dir: &std::path::Path) -> FileSink {
        let receiving = FileSink::new(ReceiveRequest::into_directory(dir)).unwrap();
        receiving.begin(SourceId([1; 16])).unwrap();
        receiving
    }

    /// Creates the end of an empty transfer.
    fn end(source: SourceId) -> TransferEnd {
        let (mut root, mut bytes) = (RootHasher::new(), Vec::new());
        crate::messages::Message::Begin(source).encode(&mut bytes).unwrap();
        root.add(&bytes);
        TransferEnd { batches: 0, entries: 0, bytes: 0, skipped: 0, root: root.root() }
    }

    #[test]
    fn finish_syncs_files_moved_by_earlier_run() {
        let dir = tempfile::tempdir().unwrap();
        let first = begin(dir.path());
        assert!(!first.shared.phase.is_changed());
        drop(first);
        fs::create_dir(dir.path().join(staging_name(SourceId([1; 16])))).unwrap();
        assert!(begin(dir.path()).shared.phase.is_changed());
    }

    #[test]
    fn staging_directory_in_use_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let staging = dir.path().join(staging_name(SourceId([1; 16])));
        // Prevents the removal of the directory, as do files on NFS that are removed while open.
        fs::create_dir_all(staging.join("moving/in use")).unwrap();
        let receiving = begin(dir.path());
        let outcome = receiving.finish(&end(SourceId([1; 16]))).unwrap();
        assert!(
            outcome.staging_left.as_ref().is_some_and(|left| left.path == staging && left.reason == LeftReason::InUse)
        );
        assert!(!outcome.is_partial());
        drop(receiving);
        fs::remove_dir(staging.join("moving/in use")).unwrap();
        assert_eq!(begin(dir.path()).finish(&end(SourceId([1; 16]))).unwrap().staging_left, None);
        assert!(!staging.exists());
    }
}
