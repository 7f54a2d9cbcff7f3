//! The staging directory: files are written in it and moved to their final names once they are verified and durable.
//!
//! Layout of `.downpour-XXXXXXXX` (mode 0700, named after the source unless another user has taken that name), which
//! is inside the target directory and thus on the same file system, unless that directory cannot be written
//! ([`Site`]):
//!
//! - directories `a` to `z` and `2` to `7` with the staged files, each named by its [`StagedId`]: files can be created
//!   in one directory while others are moved out of another;
//! - `lock`, locked while a process uses the directory;
//! - `journal` ([`super::journal`]);
//! - `directories` and `links`, lists of work left for the end of the transfer;
//! - `files`, a list of the files in place;
//! - temporarily, `moving` and the files of a probe ([`super::folding`]).

mod find;
mod layout;
mod leftovers;
mod remove;
mod site;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, chmodat, fstat, fsync, ftruncate, futimens,
    makedev, mkdirat, mknodat, openat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;

#[cfg(test)]
pub(super) use self::find::staging_name;
pub use self::find::under_random_name;
use self::find::{Finder, StagingHandle};
use self::layout::{DIRECTORIES, FILES, LINKS, MOVING, SPELLING, lock_directory, staged_files};
pub(super) use self::leftovers::abandoned;
pub use self::leftovers::{StaleStaging, leftovers};
pub use self::remove::{LeftReason, StagingLeft};
use self::remove::{clear, clear_moving};
pub use self::site::outside_staging_directory;
pub(super) use self::site::{Site, may_hold_outside};
use super::disk_stack::List;
use super::error::FilesError;
use super::folding::Folding;
use super::inheritance::InheritedAcl;
use super::journal::{self, Journal, JournalContents};
use super::metadata::{Status, mode_of, timestamps, tolerate_own};
use super::path_handle;
use super::sandbox::READ_DIRECTORY;
use super::staged_id::StagedId;
use crate::lock::lock;
use crate::messages::{DeviceNumber, Mtime, SourceId, Special};

/// A staging directory in use.
#[derive(Debug)]
pub(super) struct Staging {
    /// Path of the staging directory, for error messages.
    path: PathBuf,
    /// The directory that contains it.
    parent: OwnedFd,
    /// Its name in that directory.
    name: String,
    pub(super) dir: OwnedFd,
    /// Held until the directory is removed.
    lock: Mutex<Option<File>>,
    pub(super) journal: Journal,
    /// Journal contents that no entry has claimed yet.
    held: Mutex<JournalContents>,
    /// Files staged by an earlier run that no entry has claimed yet.
    staged: Mutex<BTreeSet<StagedId>>,
    pub(super) directories: Mutex<List>,
    pub(super) links: Mutex<List>,
    /// Hashes of the paths of files that are in place as they were sent.
    pub(super) files: Mutex<List>,
    /// Whether this process created the directory.
    pub(super) is_new: bool,
    /// Which names the file system treats as equal.
    pub(super) folding: Folding,
    /// Attributes that files staged here inherit.
    inherited: InheritedAcl,
}

impl Staging {
    /// Opens the staging directory at `site`. Creates it if it does not exist and `make` is set.
    ///
    /// # Errors
    /// [`FilesError::Busy`] if another process holds the lock; [`FilesError`] of an I/O error.
    pub(super) fn open(site: &Site, make: bool) -> Result<Option<Self>, FilesError> {
        let Site { directory: parent, path: into, source } = site;
        let source = *source;
        // A staging directory that could not be created does not exist; the user knows the target.
        let failed = |error: io::Error| FilesError::system(into, error);
        let finder = Finder::new(parent, true);
        loop {
            let found = match make {
                true => Some(finder.find_or_create(source).map_err(failed)?),
                false => finder.find(source).map_err(failed)?,
            };
            let Some(StagingHandle { name, dir, is_new }) = found else { return Ok(None) };
            let path = into.join(&name);
            // A new one is removed again.
            let failed = |error: io::Error| FilesError::system(if is_new { into } else { &path }, error);
            match lock_directory(&dir) {
                Ok(Some(lock)) => {
                    // The directory is locked until both are dropped.
                    let (held, locked) = (dir.try_clone().map_err(failed)?, lock.try_clone().map_err(failed)?);
                    let parent_too = parent.try_clone().map_err(failed)?;
                    let opened = Self::with(path.clone(), (parent_too, name.clone()), dir, lock, source, is_new);
                    if opened.is_err() && is_new {
                        // On a full disk every attempt would leave another directory behind. Only the first error is
                        // reported.
                        let _ = clear(parent, &name, &held, || drop(locked));
                    }
                    return opened.map(Some).map_err(failed);
                }
                // Its last user has just removed it.
                Ok(None) => {}
                Err(Errno::AGAIN) => return Err(FilesError::Busy { path }),
                Err(error) => {
                    if is_new {
                        // Succeeds only if the directory is empty, and therefore unused.
                        let _ = unlinkat(parent, &name, AtFlags::REMOVEDIR);
                    }
                    return Err(failed(error.into()));
                }
            }
        }
    }

    /// Returns the journal contents of the staging directory at `site`, and changes nothing in it. `may_probe` as for
    /// [`Finder::new`].
    pub(super) fn peek(site: &Site, may_probe: bool) -> io::Result<Option<JournalContents>> {
        match Finder::new(&site.directory, may_probe).find(site.source)? {
            Some(found) => journal::peek(&found.dir, site.source).map(Some),
            None => Ok(None),
        }
    }

    fn with(
        path: PathBuf,
        (parent, name): (OwnedFd, String),
        dir: OwnedFd,
        lock: File,
        source: SourceId,
        is_new: bool,
    ) -> io::Result<Self> {
        let mut staged = staged_files(&dir)?;
        let clean = |held: &mut JournalContents| {
            held.retain(|id| staged.contains(&id));
            // A file without a record cannot be checked.
            for id in staged.extract_if(.., |id| held.recorded(*id).is_none()) {
                remove(&dir, id)?;
            }
            Ok(())
        };
        let (journal, held) = Journal::open(&dir, source, clean)?;
        let list = |name| -> io::Result<_> {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            Ok(Mutex::new(List::new(File::from(openat(&dir, name, flags, Mode::RUSR | Mode::WUSR)?))))
        };
        let (directories, links, files) = (list(DIRECTORIES)?, list(LINKS)?, list(FILES)?);
        let (held, staged, lock) = (Mutex::new(held), Mutex::new(staged), Mutex::new(Some(lock)));
        let folding = Folding::probe(&dir)?;
        let inherited = InheritedAcl::of(&dir);
        Ok(Self {
            path,
            parent,
            name,
            dir,
            lock,
            journal,
            held,
            staged,
            directories,
            links,
            files,
            is_new,
            folding,
            inherited,
        })
    }

    /// Returns the path of the staging directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the staging directory was removed by another process.
    pub(super) fn is_removed(&self) -> bool {
        fstat(&self.dir).is_ok_and(|found| found.st_nlink == 0)
    }

    /// Returns the state left by an earlier run of the transfer that this run has not used yet.
    pub(super) fn held(&self) -> MutexGuard<'_, JournalContents> {
        lock(&self.held)
    }

    /// Claims `id` for this run and returns whether an earlier run has staged it. Other staged contents of the same
    /// path are removed, since they are no longer needed.
    pub(super) fn claim(&self, id: StagedId) -> io::Result<bool> {
        let mut staged = lock(&self.staged);
        let mut known = false;
        for found in staged.extract_if(id.of_same_path(), |_| true) {
            if found == id {
                known = true;
            } else {
                self.remove_file(found)?;
            }
        }
        Ok(known)
    }

    /// Whether the file system treats two names as equal: creates a file with the first name and looks up the second.
    ///
    /// # Errors
    /// The first name cannot be made.
    pub(super) fn equates(&self, one: &[u8], other: &[u8]) -> io::Result<bool> {
        let [one, other] = [one, other].map(|name| [SPELLING, name].concat());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        drop(openat(&self.dir, &one, flags, Mode::RUSR | Mode::WUSR)?);
        let found = statat(&self.dir, &other, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        unlinkat(&self.dir, &one, AtFlags::empty())?;
        Ok(found)
    }

    /// Returns the attributes that files staged here inherit.
    pub(super) const fn inherited(&self) -> &InheritedAcl {
        &self.inherited
    }

    /// Returns the status of the file staged under `id`.
    pub(super) fn look(&self, id: StagedId) -> io::Result<Status> {
        Ok(statat(&self.dir, id.place(), AtFlags::SYMLINK_NOFOLLOW)?.into())
    }

    /// Opens a staged file for writing, creating it with `mode` if it does not exist.
    pub(super) fn open_file(&self, id: StagedId, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.dir, id.place(), flags, mode_of(mode));
        let opened = match open() {
            // First file in its directory.
            Err(Errno::NOENT) => match mkdirat(&self.dir, id.directory(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(error) => Err(error),
            },
            // A link is not a staged file.
            Err(Errno::LOOP) => unlinkat(&self.dir, id.place(), AtFlags::empty()).and_then(|()| open()),
            opened => opened,
        };
        Ok(File::from(opened?))
    }

    /// Opens an existing staged file for reading.
    pub(super) fn open_to_read(&self, id: StagedId) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.dir, id.place(), flags, Mode::empty())?))
    }

    /// Opens an existing staged file for writing.
    pub(super) fn open_made(&self, id: StagedId) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.dir, id.place(), flags, Mode::empty())?))
    }

    /// Punches a hole into a staged file: the range then reads as zeros.
    ///
    /// # Errors
    /// I/O errors, also if the file system does not support holes.
    #[cfg(target_os = "linux")]
    pub(super) fn punch(&self, id: StagedId, range: Range<u64>) -> io::Result<()> {
        let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(self.open_made(id)?, flags, range.start, range.end - range.start)?)
    }

    /// Not implemented on this platform.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn punch(&self, _: StagedId, _: Range<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Changes the directory and returns its status. By the clock of the file system, files changed after this call are
    /// newer, unless that clock is coarser than some milliseconds.
    pub(super) fn touch(&self) -> io::Result<Status> {
        /// More than a tick of any kernel.
        const LONGEST: u32 = 20;
        const STEP: Duration = Duration::from_millis(1);
        let touched = || -> io::Result<Status> {
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            futimens(&self.dir, &Timestamps { last_access: now, last_modification: now })?;
            Ok(fstat(&self.dir)?.into())
        };
        let first = touched()?;
        for _ in 0..LONGEST {
            if touched()?.changed_after(&first) {
                break;
            }
            runtime::pause(STEP);
        }
        Ok(first)
    }

    /// Sets the length of a staged file, which may end in a hole.
    pub(super) fn set_length(&self, id: StagedId, size: u64) -> io::Result<()> {
        Ok(ftruncate(self.open_made(id)?, size)?)
    }

    /// Sets the mode of a staged file. No other user can replace the file with a link.
    pub(super) fn set_mode(&self, id: StagedId, mode: u32) -> io::Result<()> {
        tolerate_own(chmodat(&self.dir, id.place(), mode_of(mode), AtFlags::empty()))
    }

    /// Sets the mtime of a staged file.
    pub(super) fn set_time(&self, id: StagedId, mtime: Mtime) -> io::Result<()> {
        tolerate_own(utimensat(&self.dir, id.place(), &timestamps(mtime), AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Makes staged files durable.
    pub(super) fn sync(&self, ids: &[StagedId]) -> io::Result<()> {
        if sync_at_once(ids.len() as u64) {
            return sync_file_system(&self.dir);
        }
        let gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound && !self.is_removed();
        let directories: BTreeSet<_> = ids.iter().map(|id| id.directory()).collect();
        let files = ids.iter().map(|id| self.sync_file(*id));
        for synced in files.chain(directories.iter().map(|directory| self.sync_directory(directory))) {
            match synced {
                // Removed by hand, or voided.
                Err(error) if gone(&error) => {}
                result => result?,
            }
        }
        Ok(fsync(&self.dir)?)
    }

    fn sync_file(&self, id: StagedId) -> io::Result<()> {
        let open = |access| openat(&self.dir, id.place(), access | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
        // The file may already have its final mode, which can deny its owner reading, writing or both.
        match open(OFlags::RDONLY).or_else(|_| open(OFlags::WRONLY)) {
            Ok(file) => Ok(fsync(file)?),
            Err(Errno::ACCESS) => sync_file_system(&self.dir),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_directory(&self, name: &str) -> io::Result<()> {
        Ok(fsync(openat(&self.dir, name, READ_DIRECTORY, Mode::empty())?)?)
    }

    /// Removes a staged file if it exists.
    pub(super) fn remove_file(&self, id: StagedId) -> io::Result<()> {
        remove(&self.dir, id)
    }

    /// Creates a directory to be moved out; returns its name and status.
    pub(super) fn make_directory(&self, mode: u32) -> io::Result<(&'static str, Status)> {
        self.clear_moving()?;
        mkdirat(&self.dir, MOVING, mode_of(mode))?;
        self.made()
    }

    /// Creates a symlink to be moved out; returns its name and status.
    pub(super) fn make_symlink(&self, target: &[u8]) -> io::Result<(&'static str, Status)> {
        self.clear_moving()?;
        symlinkat(target, &self.dir, MOVING)?;
        self.made()
    }

    /// Creates a FIFO, socket or device to be moved out; returns its name and status.
    pub(super) fn make_special(&self, special: Special, mode: u32, mtime: Mtime) -> io::Result<(&'static str, Status)> {
        const NO_DEVICE: DeviceNumber = DeviceNumber { major: 0, minor: 0 };
        let (file_type, DeviceNumber { major, minor }) = match special {
            Special::Pipe => (FileType::Fifo, NO_DEVICE),
            Special::Socket => (FileType::Socket, NO_DEVICE),
            Special::CharacterDevice(number) => (FileType::CharacterDevice, number),
            Special::BlockDevice(number) => (FileType::BlockDevice, number),
        };
        self.clear_moving()?;
        mknodat(&self.dir, MOVING, file_type, mode_of(mode & 0o600), makedev(major, minor))?;
        tolerate_own(chmodat(&self.dir, MOVING, mode_of(mode), AtFlags::empty()))?;
        tolerate_own(utimensat(&self.dir, MOVING, &timestamps(mtime), AtFlags::SYMLINK_NOFOLLOW))?;
        self.made()
    }

    /// Opens a name in it as a mere path.
    pub(super) fn hold(&self, name: &str) -> io::Result<path_handle::PathHandle> {
        path_handle::PathHandle::open(&self.dir, name)
    }

    /// Creates a hard link to `name` in `directory`, to be moved out; returns its name and status.
    pub(super) fn make_link(&self, directory: &OwnedFd, name: &[u8]) -> io::Result<(&'static str, Status)> {
        self.clear_moving()?;
        rustix::fs::linkat(directory, name, &self.dir, MOVING, AtFlags::empty())?;
        self.made()
    }

    /// Removes an object that was created to be moved out but could not be moved.
    pub(super) fn clear_moving(&self) -> io::Result<()> {
        clear_moving(&self.dir)
    }

    /// Whether the directory contains nothing that helps a later run.
    pub(super) fn is_useless(&self) -> io::Result<bool> {
        Ok(self.journal.records() == 0 && staged_files(&self.dir)?.is_empty())
    }

    /// Returns its name in the directory that contains it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Removes the staging directory and everything in it, which is not needed any more. Its files are closed before:
    /// NFS and FUSE keep a file that is removed while open, and therefore the directory, until it is closed.
    ///
    /// # Errors
    /// The remaining directory, and the reason.
    pub(super) fn remove(&self) -> Result<(), StagingLeft> {
        self.journal.close();
        for list in [&self.directories, &self.links, &self.files] {
            lock(list).close();
        }
        let unlock = || drop(lock(&self.lock).take());
        let cleared = clear(&self.parent, &self.name, &self.dir, unlock);
        cleared.map_err(|error| StagingLeft::new(&self.path, &self.parent, &error))
    }

    fn made(&self) -> io::Result<(&'static str, Status)> {
        Ok((MOVING, statat(&self.dir, MOVING, AtFlags::SYMLINK_NOFOLLOW)?.into()))
    }
}

/// Removes a staged file if it exists.
fn remove(dir: &OwnedFd, id: StagedId) -> io::Result<()> {
    match unlinkat(dir, id.place(), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether to make `count` files or directories durable by one sync of the file system rather than one by one. Syncing
/// them one by one costs a journal commit each, minutes for a full batch on a busy disk; a sync of the whole file
/// system may wait for other programs' data, which is too slow for a few files. Only Linux (5.8) reports write errors
/// from the latter.
pub(super) fn sync_at_once(count: u64) -> bool {
    cfg!(target_os = "linux") && count > 32
}

/// Makes everything on the file system durable.
#[cfg(target_os = "linux")]
pub(super) fn sync_file_system(on_it: impl AsFd) -> io::Result<()> {
    Ok(rustix::fs::syncfs(on_it)?)
}

/// Rarely called: see [`sync_at_once`].
#[cfg(not(target_os = "linux"))]
pub(super) fn sync_file_system(on_it: impl AsFd) -> io::Result<()> {
    Ok(fsync(on_it)?)
}

#[cfg(test)]
mod tests;
