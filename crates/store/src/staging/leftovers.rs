//! Staging directories of interrupted transfers, found and removed on request.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use request::is_staging_name;
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, open, openat, statat};
use rustix::io::Errno;

use super::find::{Finder, StagingHandle};
use super::layout::{LOCK, is_directory_name, lock_directory, staged_files};
use super::remove::clear;
use crate::directory::entries;
use crate::error::FilesError;
use crate::journal;
use crate::metadata::Status;
use crate::sandbox::READ_DIRECTORY;
use crate::staged_id::StagedId;

/// A staging directory of this user that an interrupted transfer has left, or that a transfer uses now.
#[derive(Debug, Clone)]
pub struct StaleStaging {
    /// Its path, which begins with that of the searched directory.
    pub path: PathBuf,
    /// The time of its last use.
    pub used: SystemTime,
    /// Number of incomplete files in it.
    pub files: u64,
    /// Their space on disk in bytes.
    pub bytes: u64,
    /// Whether a transfer uses it now, or this is unknown because the file system has no locks.
    pub is_in_use: bool,
    /// The directory that contains it. Its path may refer to another directory by now.
    target: Arc<OwnedFd>,
}

impl StaleStaging {
    /// Removes it with its partial data. The files that the transfer has put under their final names stay.
    ///
    /// # Errors
    /// [`FilesError::Busy`] if a transfer uses it; a failure of the disk. Nothing happens if it does not exist any
    /// more.
    pub fn remove(&self) -> Result<(), FilesError> {
        let failed = |error: io::Error| FilesError::system(&self.path, error);
        let name = self.path.file_name().unwrap_or_default();
        let Some(found) = find(&self.target, name).map_err(failed)? else { return Ok(()) };
        if let Some(foreign) = foreign(&found.dir).map_err(failed)? {
            let error = io::Error::new(io::ErrorKind::DirectoryNotEmpty, "not a staged file; delete it by hand");
            return Err(FilesError::system(self.path.join(foreign), error));
        }
        match lock_directory(&found.dir) {
            Ok(Some(locked)) => clear(&self.target, &found.name, &found.dir, || drop(locked)).map_err(failed),
            Ok(None) => Ok(()),
            Err(Errno::AGAIN) => Err(FilesError::Busy { path: self.path.clone() }),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// Finds the staging directories of this user in `directory`, or also in all directories below it on the same file
/// system, whose links are not followed. Unreadable directories are passed to `unread` and skipped.
///
/// # Errors
/// `directory` itself cannot be read.
pub fn leftovers(
    directory: &Path,
    recursive: bool,
    mut found: impl FnMut(StaleStaging),
    mut unread: impl FnMut(&Path, &io::Error),
) -> io::Result<()> {
    let top = open(directory, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let (device, mut below) = (fstat(&top)?.st_dev, Vec::new());
    search(&Arc::new(top), directory, recursive, &mut below, &mut found, &mut unread)?;
    while let Some((parent, path)) = below.pop() {
        let name = path.file_name().unwrap_or_default();
        let searched =
            openat(&parent, name, READ_DIRECTORY, Mode::empty()).map_err(io::Error::from).and_then(|opened| {
                drop(parent);
                if fstat(&opened)?.st_dev != device {
                    return Ok(());
                }
                search(&Arc::new(opened), &path, recursive, &mut below, &mut found, &mut unread)
            });
        match searched {
            // It was removed meanwhile, or a link has its name.
            Err(error) if matches!(Errno::from_io_error(&error), Some(Errno::NOENT | Errno::LOOP | Errno::NOTDIR)) => {}
            Err(error) => unread(&path, &error),
            Ok(()) => {}
        }
    }
    Ok(())
}

/// Returns the names of this user's staging directories in `target` that no transfer uses.
pub(crate) fn abandoned(target: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for item in entries(target)? {
        let item = item?;
        let name = OsStr::from_bytes(item.file_name().to_bytes());
        if is_staging_name(name.as_bytes())
            && let Ok(Some(found)) = find(target, name)
            && !is_locked(&found.dir)
        {
            names.push(found.name);
        }
    }
    Ok(names)
}

/// Searches one open directory, and adds its directories to `below` if they are searched too.
fn search(
    directory: &Arc<OwnedFd>,
    path: &Path,
    recursive: bool,
    below: &mut Vec<(Arc<OwnedFd>, PathBuf)>,
    found: &mut impl FnMut(StaleStaging),
    unread: &mut impl FnMut(&Path, &io::Error),
) -> io::Result<()> {
    for item in Dir::read_from(directory)? {
        let item = item?;
        let name = OsStr::from_bytes(item.file_name().to_bytes());
        if matches!(name.as_bytes(), b"." | b"..") {
            continue;
        }
        if is_staging_name(name.as_bytes()) {
            match look(directory, name, path.join(name)) {
                Ok(leftover) => leftover.into_iter().for_each(&mut *found),
                // A transfer has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unread(&path.join(name), &error),
            }
        } else if recursive && is_directory(directory, &item) {
            below.push((Arc::clone(directory), path.join(name)));
        }
    }
    Ok(())
}

fn is_directory(directory: &OwnedFd, item: &rustix::fs::DirEntry) -> bool {
    match item.file_type() {
        FileType::Unknown => {
            let found = statat(directory, item.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|found| Status::from(found).is_directory())
        }
        file_type => file_type == FileType::Directory,
    }
}

/// Opens a staging directory of this user. If others can rename, they could give its name to any directory of this
/// user: a directory without a journal that is not empty is something else.
fn find(target: &OwnedFd, name: &OsStr) -> io::Result<Option<StagingHandle>> {
    let Some(name) = name.to_str() else { return Ok(None) };
    let Some(found) = Finder::new(target, false).open(name.to_owned())? else { return Ok(None) };
    let has_journal = matches!(journal::source(&found.dir), Ok(Some(_)));
    Ok((has_journal || is_empty(&found.dir)?).then_some(found))
}

/// Whether a staging directory holds only its lock: its transfer has just begun.
fn is_empty(dir: &OwnedFd) -> io::Result<bool> {
    for item in Dir::read_from(dir)? {
        if !matches!(item?.file_name().to_bytes(), b"." | b".." | b"lock") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns a file among the staged ones that this program has not created, if there is one.
fn foreign(dir: &OwnedFd) -> io::Result<Option<PathBuf>> {
    for directory in Dir::read_from(dir)? {
        let directory = directory?;
        if !is_directory_name(directory.file_name().to_bytes()) {
            continue;
        }
        for item in Dir::read_from(openat(dir, directory.file_name(), READ_DIRECTORY, Mode::empty())?)? {
            let item = item?;
            let name = item.file_name().to_bytes();
            if !matches!(name, b"." | b"..") && StagedId::from_name(name).is_none() {
                let directory = Path::new(OsStr::from_bytes(directory.file_name().to_bytes()));
                return Ok(Some(directory.join(OsStr::from_bytes(name))));
            }
        }
    }
    Ok(None)
}

/// Inspects the file with the name of a staging directory.
fn look(target: &Arc<OwnedFd>, name: &OsStr, path: PathBuf) -> io::Result<Option<StaleStaging>> {
    let Some(found) = find(target, name)? else { return Ok(None) };
    let (mut files, mut bytes) = (0, 0);
    for id in staged_files(&found.dir)? {
        if let Ok(found) = statat(&found.dir, id.place(), AtFlags::SYMLINK_NOFOLLOW) {
            files += 1;
            bytes += found.st_blocks.cast_unsigned() * 512;
        }
    }
    // Each run begins by making the journal anew, and appends to it last.
    let journal = statat(&found.dir, journal::NAME, AtFlags::SYMLINK_NOFOLLOW);
    let used = Status::from(journal.or_else(|_| fstat(&found.dir))?).mtime;
    let used = SystemTime::UNIX_EPOCH + Duration::new(used.seconds.max(0).cast_unsigned(), used.nanoseconds);
    let (is_in_use, target) = (is_locked(&found.dir), Arc::clone(target));
    Ok(Some(StaleStaging { path, used, files, bytes, is_in_use, target }))
}

/// Whether a process uses a staging directory, or may if the file system has no locks. A transfer that begins while
/// this lock is held for a moment tries again.
fn is_locked(dir: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(dir, LOCK, flags, Mode::empty());
    file.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared).is_err())
}
