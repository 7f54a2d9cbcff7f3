//! The target directory, its staging directory, and moving files from one to the other.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use request::{Existing, Filter, Modes, ReceiveRequest, TargetPath};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, fsync, openat, readlinkat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::super::attributes::{ExtraRule, SetResult};
use super::super::backup::{self, Original};
use super::super::delete::{CreatedMeanwhile, Deletion, SentPaths};
use super::super::directory::{NAMED_WAY, READ_DIRECTORY, parent_of, readable};
use super::super::error::FilesError;
use super::super::journal::{Item, Record};
use super::super::metadata::{Status, birth};
use super::super::outputs::TargetOutput;
use super::super::path_handle::PathHandle;
use super::super::refusal::refusal_of;
use super::super::sandbox::{DirectorySandbox, errno};
use super::super::staged_id::path_hash;
use super::super::staging::{Site, Staging, StagingLeft, sync_file_system};
use super::cross_device::TempCopy;
use super::report::ReceiveLog;
use crate::lock::lock;
use crate::messages::{NoticeKind, SourceId};

/// Maximum number of other trees inspected for each file, as in rsync.
const MOST_REFERENCES: usize = 20;

/// Permissions that a directory needs while names are created in it.
pub(super) const FILLABLE: u32 = 0o700;

/// The location of the received files.
#[derive(Debug)]
pub(super) struct TargetDirectory {
    destination: TargetPath,
    pub(super) target: DirectorySandbox,
    /// Whether the target directory was created for this transfer.
    target_is_new: bool,
    pub(super) staging: Staging,
    /// The mode that the target had, if it was made writable for this run.
    opened: Option<u32>,
    /// Names created at the target since the transfer began, if names are deleted.
    pub(super) created_meanwhile: Option<Mutex<CreatedMeanwhile>>,
    /// The paths of the transfer and of its backups so far, if backups are made: other backups must not use them.
    pub(super) sent: Mutex<SentPaths>,
    /// The sender's name of the item, once known.
    renamed: Arc<OnceLock<Vec<u8>>>,
    spec: Arc<ReceiveRequest>,
    /// The output files beneath the target.
    outputs: Vec<TargetOutput>,
    report: Arc<ReceiveLog>,
}

impl TargetDirectory {
    /// Opens the target and the staging directory of `source` in it, creating missing directories if `make` is set.
    pub(super) fn open(
        spec: &Arc<ReceiveRequest>,
        destination: &TargetPath,
        renamed: &Arc<OnceLock<Vec<u8>>>,
        report: &Arc<ReceiveLog>,
        source: SourceId,
        make: bool,
    ) -> Result<Option<Self>, FilesError> {
        let into = destination.directory.as_path();
        let made = match make {
            true if spec.make_path => make_path(into),
            true => std::fs::create_dir(into),
            false => Err(io::ErrorKind::AlreadyExists.into()),
        };
        let target_is_new = match made {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(FilesError::system(into, error)),
        };
        let Some(target) = open_target(into, spec)? else { return Ok(None) };
        if target_is_new {
            sync_parent(into, &target).map_err(|error| FilesError::system(into, error))?;
        }
        let opened = if make && may_get_mode(spec, destination) {
            make_fillable(&target).map_err(|error| FilesError::system(into, error))?
        } else {
            None
        };
        let site = Site::of(&target, into, source, spec.within.as_deref());
        let site = site.map_err(|error| FilesError::system(into, error))?;
        let Some(staging) = Staging::open(&site, make)? else { return Ok(None) };
        let begun = if spec.delete.is_some() {
            Some(staging.touch().map_err(|error| FilesError::system(staging.path(), error))?)
        } else {
            None
        };
        let target = DirectorySandbox::new(target);
        Ok(Some(Self {
            destination: destination.clone(),
            target,
            target_is_new,
            staging,
            opened,
            created_meanwhile: begun.map(|begun| Mutex::new(CreatedMeanwhile::since(begun))),
            sent: Mutex::default(),
            renamed: Arc::clone(renamed),
            spec: Arc::clone(spec),
            outputs: TargetOutput::beneath(&spec.outputs, into),
            report: Arc::clone(report),
        }))
    }

    /// Returns the full path of a name in the target, for messages.
    pub(super) fn shown(&self, path: &[u8]) -> PathBuf {
        self.destination.directory.join(OsStr::from_bytes(path))
    }

    /// Classifies an error: a notice if it concerns one name, an error if it ends the transfer.
    pub(super) fn refusal(&self, path: &[u8], error: io::Error) -> Result<NoticeKind, FilesError> {
        if self.target.is_removed() || self.staging.is_removed() {
            return Err(FilesError::system(self.staging.path(), error));
        }
        match errno(&error) {
            // Created by another process in the meantime.
            Errno::EXIST if matches!(self.spec.existing, Existing::Skip | Existing::KeepNewer) => Ok(NoticeKind::Kept),
            Errno::EXIST if self.spec.existing == Existing::Refuse => Ok(NoticeKind::Exists),
            // The error of exFAT in user space for unsupported characters.
            Errno::NOENT if self.has_directory_of(path) => Ok(NoticeKind::BadCharacters),
            _ => refusal_of(&error).ok_or_else(|| FilesError::system(self.shown(path), error)),
        }
    }

    /// Whether the parent directory of `path` exists.
    fn has_directory_of(&self, path: &[u8]) -> bool {
        self.target.parent(path).is_ok_and(|(parent, _)| fstat(&parent.fd).is_ok_and(|found| found.st_nlink > 0))
    }

    /// Whether `path` is an item that must not replace another.
    pub(super) fn is_guarded(&self, path: &[u8]) -> bool {
        self.spec.existing == Existing::Refuse && !path.contains(&b'/')
    }

    /// Whether an item created at `path` is recorded in the journal, so that a resumed transfer recognises it as its
    /// own.
    pub(super) fn is_remembered(&self, path: &[u8]) -> bool {
        let by_name = self.destination.rename.is_some() || self.spec.permitted.lets_host_choose();
        (self.spec.existing == Existing::Refuse || by_name) && !path.contains(&b'/')
    }

    /// Whether the existing item `name` at the top was created by this transfer.
    pub(super) fn is_own(&self, name: &[u8], found: &Status) -> bool {
        self.staging.held().items.contains(&Item::new(name, found.identity.inode, birth(self.target.root(), name)))
    }

    /// Moves `name` from the staging directory to `path`, replacing the existing file. Fails if that is another's item
    /// that must not be replaced, a non-empty directory, or anything when existing names are kept.
    pub(super) fn publish(&self, name: &str, path: &[u8]) -> io::Result<()> {
        match self.put_from(&self.staging.dir, name, path) {
            Err(error) if errno(&error) == Errno::XDEV => self.publish_cross_device(name, path),
            result => result,
        }
    }

    /// As [`TargetDirectory::publish`], if `path` is on another file system.
    fn publish_cross_device(&self, name: &str, path: &[u8]) -> io::Result<()> {
        let (directory, _) = self.target.parent(path)?;
        let carried = TempCopy::new(&self.staging.dir, name, &directory.fd, ExtraRule::new(self.spec.preserve))?;
        self.put_from(&directory.fd, &carried.name, path)?;
        if carried.applied == SetResult::AttributesLost {
            let sent = sent_as(self.renaming(), path);
            self.report.refused(&sent, NoticeKind::AttributesLost);
        }
        self.sync_names(&directory.fd)?;
        // It is in place. A copy that cannot be removed now is removed or reported with the staging directory.
        let _ = unlinkat(&self.staging.dir, name, AtFlags::empty());
        Ok(())
    }

    /// Moves `name` from an open directory to `path`.
    fn put_from(&self, from: &OwnedFd, name: &str, path: &[u8]) -> io::Result<()> {
        let replaces = self.spec.existing.replaces();
        let put = |new| self.target.place(from, name, path, new);
        if self.spec.existing == Existing::KeepNewer && self.has_become_newer(from, name, path)? {
            return Err(Errno::EXIST.into());
        }
        if replaces {
            self.note_lost_name(path)?;
            self.back_up(path, Original::Stays)?;
        }
        match put(!replaces) {
            Err(Errno::EXIST) if !replaces => {
                let found = self.target.look(path)?;
                let is_own = self.is_guarded(path) && found.is_some_and(|found| self.is_own(path, &found));
                if !is_own {
                    return Err(Errno::EXIST.into());
                }
            }
            Err(Errno::ISDIR | Errno::EXIST | Errno::NOTEMPTY) => {}
            result => return Ok(result?),
        }
        self.remove_existing_directory(path)?;
        Ok(put(false)?)
    }

    /// Removes the existing `path`, unless it is a directory.
    pub(super) fn remove_name(&self, path: &[u8]) -> io::Result<()> {
        self.note_lost_name(path)?;
        if self.back_up(path, Original::Goes)? { Ok(()) } else { self.target.remove(path) }
    }

    /// Makes a backup of the existing `path`, if backups are requested and it is not a directory; returns whether it
    /// did.
    fn back_up(&self, path: &[u8], original: Original) -> io::Result<bool> {
        let Some(backup) = &self.spec.backup else { return Ok(false) };
        if self.target.look(path)?.is_none_or(|existing| existing.is_directory()) {
            return Ok(false);
        }
        let kept = backup::keep(backup, &self.target, path, original, &|path| self.is_sent(path))?;
        // Nor is it taken by the backup of something else.
        lock(&self.sent).add(&kept, false);
        Ok(true)
    }

    /// Whether a path is part of the transfer, or of its output files.
    fn is_sent(&self, path: &[u8]) -> bool {
        lock(&self.sent).has(path) || self.outputs.iter().any(|output| output.path == path)
    }

    /// Notes that the existing file at `path` loses this name.
    fn note_lost_name(&self, path: &[u8]) -> io::Result<()> {
        if self.created_meanwhile.is_some() {
            self.target.look(path)?.iter().for_each(|existing| self.changes(existing));
        }
        Ok(())
    }

    /// Notes that an existing file is changed, or gets or loses a name.
    pub(super) fn changes(&self, file: &Status) {
        if let Some(created_meanwhile) = self.created_meanwhile.as_ref().filter(|_| file.links > 1) {
            lock(created_meanwhile).changes(file);
        }
    }

    /// Whether the file at `path` has been changed since it was decided to replace it, and is newer now than `name` in
    /// an open directory.
    fn has_become_newer(&self, from: &OwnedFd, name: &str, path: &[u8]) -> io::Result<bool> {
        let staged: Status = statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?.into();
        let existing = self.target.look(path)?;
        Ok(existing.is_some_and(|existing| {
            staged.is_file() && existing.is_file() && existing.is_newer(staged.mtime, self.spec.modify_window)
        }))
    }

    /// Moves an object created in the staging directory to `path`.
    pub(super) fn put_made(&self, (name, found): (&str, Status), path: &[u8]) -> io::Result<()> {
        if self.is_remembered(path) {
            // Record it as ours before it becomes visible.
            let item = Item::new(path, found.identity.inode, birth(&self.staging.dir, name));
            self.staging.journal.append(&[Record::Item(item)])?;
            self.staging.journal.sync()?;
        }
        let result = self.publish(name, path);
        if result.is_err() {
            self.staging.clear_moving()?;
        }
        result
    }

    /// Removes the directory at `path`, if there is one, to make room for something that is not a directory.
    pub(super) fn remove_existing_directory(&self, path: &[u8]) -> io::Result<()> {
        if !self.target.look(path)?.is_some_and(|found| found.is_directory()) {
            return Ok(());
        }
        let renamed = self.renaming();
        let clearing = DirectoryRemoval {
            target: &self.target,
            spec: &self.spec,
            report: &self.report,
            renamed,
            created_meanwhile: self.created_meanwhile.as_ref(),
            is_sent: &|path| self.is_sent(path),
        };
        if clearing.clear(path, false)? { Ok(()) } else { self.target.remove_directory(path) }
    }

    /// Returns the item's local name and its name at the sender, if they differ.
    fn renaming(&self) -> Option<(&[u8], &[u8])> {
        self.destination.rename.as_deref().zip(self.renamed.get().map(Vec::as_slice))
    }

    /// Records that the file at `path` is in place as it was sent: hard links are made only to such files.
    pub(super) fn note_file(&self, path: &[u8]) -> io::Result<()> {
        lock(&self.staging.files).push(&path_hash(path).to_be_bytes(), b"")
    }

    /// Makes the target directory's directory entries durable.
    pub(super) fn sync_target(&self) -> Result<(), FilesError> {
        self.sync_names(self.target.root()).map_err(|error| FilesError::system(&self.destination.directory, error))
    }

    /// Makes the names in a directory durable. Its file system is synced if this user may not read the directory, since
    /// only a readable one can be synced by itself.
    fn sync_names(&self, directory: &OwnedFd) -> io::Result<()> {
        match readable(directory) {
            Ok(opened) => Ok(fsync(opened)?),
            Err(error) if errno(&error) == Errno::ACCESS => self.sync_around(directory),
            Err(error) => Err(error),
        }
    }

    /// Makes everything durable on the file system of a directory, which this user may not be able to read.
    pub(super) fn sync_around(&self, directory: &OwnedFd) -> io::Result<()> {
        let device = |of: &OwnedFd| fstat(of).map(|found| found.st_dev);
        if device(directory)? == device(&self.staging.dir)? {
            return sync_file_system(&self.staging.dir);
        }
        match readable(directory) {
            Ok(opened) => sync_file_system(&opened),
            // Nothing on that file system is open for reading.
            Err(_) => {
                rustix::fs::sync();
                Ok(())
            }
        }
    }

    /// Restores the previous mode of the target, if it gets no other.
    pub(super) fn close(&self) -> Result<(), FilesError> {
        let closed = self.opened.map_or(Ok(()), |mode| set_mode(self.target.root(), mode));
        closed.map_err(|error| FilesError::system(&self.destination.directory, error))
    }

    /// Removes the temporary files of this run, as far as possible.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn remove(&self) -> Result<(), FilesError> {
        let left = |left: StagingLeft| FilesError::system(&left.path, io::Error::other(left.reason));
        let removed = self.staging.remove().map_err(left);
        let closed = self.close();
        if self.target_is_new {
            // Fails if it is not empty.
            let _ = std::fs::remove_dir(&self.destination.directory);
        }
        removed.and(closed)
    }
}

/// The removal of a directory that something else replaces.
pub(super) struct DirectoryRemoval<'a> {
    pub(super) target: &'a DirectorySandbox,
    pub(super) spec: &'a ReceiveRequest,
    pub(super) report: &'a ReceiveLog,
    /// The item's local name and its name at the sender, if they differ.
    pub(super) renamed: Option<(&'a [u8], &'a [u8])>,
    /// New names in the directory; if there are any, it is kept.
    pub(super) created_meanwhile: Option<&'a Mutex<CreatedMeanwhile>>,
    /// Whether a path is part of the transfer, so that no backup takes it.
    pub(super) is_sent: &'a dyn Fn(&[u8]) -> bool,
}

impl DirectoryRemoval<'_> {
    /// Deletes the directory at `path` with everything in it, if names are deleted at all; a dry run only reports that.
    /// Returns whether the directory was removed, or would be. Nothing is deleted if a name in it is excluded from
    /// deletion, since the directory would then stay.
    ///
    /// # Errors
    /// The first name that cannot be deleted.
    pub(super) fn clear(&self, path: &[u8], dry_run: bool) -> io::Result<bool> {
        // A directory is only cleared if the number of deletions is not limited: it would be left half deleted.
        let Some(filter) = self.spec.delete.as_ref().filter(|_| self.spec.max_delete.is_none()) else {
            return Ok(false);
        };
        let can_go = self.delete(path, filter, true, |_| {})?;
        Ok(can_go && self.delete(path, filter, dry_run, |deleted| self.report.deleted(deleted))?)
    }

    /// Deletes everything that `filter` does not exclude; returns whether that includes the directory itself.
    fn delete(&self, path: &[u8], filter: &Filter, dry_run: bool, mut report: impl FnMut(&[u8])) -> io::Result<bool> {
        let (mut gone, mut first) = (false, None);
        let mut created_meanwhile = self.created_meanwhile.map(lock);
        let mut deletion = Deletion {
            target: self.target,
            device: self.target.device_if(self.spec.one_file_system),
            filter,
            backup: self.spec.backup.as_ref(),
            is_sent: self.is_sent,
            // Output files are not beneath a directory that a file replaces.
            is_kept: &|_| false,
            // Nothing beneath it was sent.
            is_same: &|_, _| true,
            sent_as: &|path| sent_as(self.renamed, path),
            // Not stoppable: a half deleted directory would be reported as one that is in the way.
            is_stopped: &|| false,
            dry_run,
            most: None,
            is_limited: false,
            created_meanwhile: created_meanwhile.as_deref_mut(),
            kept: &mut |_| {},
            deleted: &mut |deleted| {
                gone |= deleted == path;
                report(deleted);
            },
            failed: &mut |_, error| {
                first.get_or_insert(error);
            },
        };
        deletion.delete(path.to_vec(), true);
        first.map_or(Ok(gone), Err)
    }

    /// Reports the deletions of [`TargetDirectory::remove_existing_directory`]; returns whether the directory would be
    /// removed.
    pub(super) fn plan(&self, path: &[u8]) -> io::Result<bool> {
        if !self.target.look(path)?.is_some_and(|found| found.is_directory()) {
            return Ok(true);
        }
        Ok(self.clear(path, true)? || self.target.list(path)?.is_empty())
    }
}

/// Returns the sender's name of a path beneath the target. `renamed` is the item's local name and its name at the
/// sender, if they differ.
pub(super) fn sent_as(renamed: Option<(&[u8], &[u8])>, path: &[u8]) -> Vec<u8> {
    if let Some((local, sent)) = renamed
        && let Some(rest) = path.strip_prefix(local)
        && (rest.is_empty() || rest.starts_with(b"/"))
    {
        return [sent, rest].concat();
    }
    path.to_vec()
}

/// Whether the target may get the mode of the corresponding directory, which lets its owner write in it.
fn may_get_mode(spec: &ReceiveRequest, destination: &TargetPath) -> bool {
    let replaces = spec.existing != Existing::Skip && spec.modes == Modes::Exact;
    spec.requested.contents && destination.rename.is_none() && replaces
}

/// Lets this user write in a directory of their own; returns its previous mode, if that did not.
fn make_fillable(directory: &OwnedFd) -> io::Result<Option<u32>> {
    let found = Status::from(fstat(directory)?);
    if found.owner != geteuid().as_raw() || found.mode & FILLABLE == FILLABLE {
        return Ok(None);
    }
    set_mode(directory, found.mode | FILLABLE).map(|()| Some(found.mode))
}

/// Sets the mode of a directory that may be opened as a path only.
fn set_mode(directory: &OwnedFd, mode: u32) -> io::Result<()> {
    PathHandle::from(directory.try_clone()?).set_mode(mode)
}

/// Creates a directory with its missing parents, each durable in its own; fails as `create_dir` does if it exists.
fn make_path(path: &Path) -> io::Result<()> {
    let parent = parent_of(path);
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && parent != path => {}
        made => return made,
    }
    match make_path(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
        Ok(()) => {
            let made = openat(CWD, parent, NAMED_WAY, Mode::empty())?;
            sync_parent(parent, &made)?;
        }
    }
    std::fs::create_dir(path)
}

/// Makes the name of a new target durable: without the name, everything in the target would be lost.
fn sync_parent(into: &Path, target: &OwnedFd) -> io::Result<()> {
    let parent = parent_of(into);
    match openat(CWD, parent, READ_DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty()) {
        Ok(parent) => Ok(fsync(parent)?),
        // This user may not read it, unlike the target, which was made just now.
        Err(_) => sync_file_system(readable(target)?),
    }
}

/// Opens the directory that the user named, possibly through a link; `None` if it does not exist.
fn open_directory(into: &Path) -> Result<Option<OwnedFd>, FilesError> {
    match openat(CWD, into, NAMED_WAY, Mode::empty()) {
        Ok(directory) => Ok(Some(directory)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTDIR) => Err(FilesError::TargetNotADirectory { path: into.to_owned() }),
        Err(error) => Err(FilesError::system(into, error)),
    }
}

/// Opens the other trees for items that go into `into`. A tree that does not exist has no files: it may be a copy yet
/// to be made.
///
/// # Errors
/// [`FilesError::TargetOutside`] for a tree outside of [`ReceiveRequest::within`]; a tree that cannot be opened.
pub(super) fn open_references(into: &Path, spec: &ReceiveRequest) -> Result<Vec<DirectorySandbox>, FilesError> {
    if spec.link_dest.len() > MOST_REFERENCES {
        let why = format!("at most {MOST_REFERENCES} other trees to link to are supported");
        return Err(FilesError::system(into, io::Error::new(io::ErrorKind::InvalidInput, why)));
    }
    let mut references = Vec::new();
    for path in &spec.link_dest {
        let path = beside(into, Path::new(OsStr::from_bytes(&path.0)));
        references.extend(open_target(&path, spec)?.map(DirectorySandbox::new));
    }
    Ok(references)
}

/// Returns a path that is relative to `into`, which may not exist yet, so that the system could not follow `..` in it.
fn beside(into: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() || into.exists() {
        return into.join(path);
    }
    match path.strip_prefix("..") {
        Ok(rest) => beside(parent_of(into), rest),
        Err(_) => into.join(path),
    }
}

/// Opens the target, following symbolic links; `None` if it does not exist.
///
/// # Errors
/// [`FilesError::TargetOutside`] if it is not beneath [`ReceiveRequest::within`].
pub(super) fn open_target(into: &Path, spec: &ReceiveRequest) -> Result<Option<OwnedFd>, FilesError> {
    let Some(target) = open_directory(into)? else { return Ok(None) };
    if let Some(within) = &spec.within {
        // The path is read from the open directory, so that changes to the path after the check do not matter.
        let link = format!("/proc/self/fd/{}", target.as_raw_fd());
        let path = readlinkat(CWD, link, Vec::new()).map_err(|error| FilesError::system(into, error))?;
        if !Path::new(OsStr::from_bytes(path.as_bytes())).starts_with(within) {
            return Err(FilesError::TargetOutside { path: into.to_owned() });
        }
    }
    Ok(Some(target))
}
