//! What interrupted transfers have left: staging folders, found and removed on request.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, open, openat, statat};
use rustix::io::Errno;

use super::find::Finder;
use super::{clear, is_folder_name, is_staging_name, lock};
use crate::files::error::FilesError;
use crate::files::journal;
use crate::files::sandbox::FOLDER;
use crate::files::staged_id::StagedId;

/// A staging folder of this user's that an interrupted transfer has left, or that one uses now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its path, which begins with that of the folder that was searched.
    pub path: PathBuf,
    /// When it was last used.
    pub used: SystemTime,
    /// Number of incomplete files in it.
    pub files: u64,
    /// The space that they take, in bytes.
    pub bytes: u64,
    /// A transfer uses it now.
    pub is_in_use: bool,
}

impl Leftover {
    /// Removes it, and what has been received into it. The files that the transfer has put under their final names
    /// stay.
    ///
    /// # Errors
    /// [`FilesError::Busy`] if a transfer uses it; a failure of the disk. Nothing happens if it is gone.
    pub fn remove(&self) -> Result<(), FilesError> {
        let failed = |error: io::Error| FilesError::system(&self.path, error);
        let Some((folder, name)) = self.path.parent().zip(self.path.file_name()) else { return Ok(()) };
        let target = open_folder(folder).map_err(failed)?;
        let name = name.to_string_lossy();
        let Some(found) = Finder::new(&target, false).open(name.clone().into_owned()).map_err(failed)? else {
            return Ok(());
        };
        match lock(&found.dir) {
            Ok(Some(_locked)) => clear(&target, &name, &found.dir).map_err(failed),
            Ok(None) => Ok(()),
            Err(Errno::AGAIN) => Err(FilesError::Busy { path: self.path.clone() }),
            Err(error) => Err(failed(error.into())),
        }
    }
}

/// Finds the staging folders of this user in `folder`, or also in all folders below it, whose links are not followed.
/// What cannot be read is told to `unread` and left out.
///
/// # Errors
/// `folder` itself cannot be read.
pub fn leftovers(
    folder: &Path,
    recursive: bool,
    mut found: impl FnMut(Leftover),
    mut unread: impl FnMut(&Path, &io::Error),
) -> io::Result<()> {
    search(folder, recursive, &mut found).map(|below| {
        let mut folders = below;
        while let Some(next) = folders.pop() {
            match search(&next, recursive, &mut found) {
                Ok(below) => folders.extend(below),
                // It was removed in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unread(&next, &error),
            }
        }
    })
}

/// Looks into one folder; returns those below it, if they are to be searched.
fn search(folder: &Path, recursive: bool, found: &mut impl FnMut(Leftover)) -> io::Result<Vec<PathBuf>> {
    let target = open_folder(folder)?;
    let finder = Finder::new(&target, false);
    let mut below = Vec::new();
    for item in fs::read_dir(folder)? {
        let (item, path) = item.map(|item| (item.file_name(), item.path()))?;
        if is_staging_name(item.as_bytes()) {
            if let Some(leftover) = look(&finder, &item, path)? {
                found(leftover);
            }
        } else if recursive && fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
            below.push(path);
        }
    }
    Ok(below)
}

/// Looks at what has the name of a staging folder.
fn look(finder: &Finder<'_>, name: &OsString, path: PathBuf) -> io::Result<Option<Leftover>> {
    let Some(name) = name.to_str() else { return Ok(None) };
    let Some(found) = finder.open(name.to_owned())? else { return Ok(None) };
    let (mut files, mut bytes) = (0, 0);
    for item in Dir::read_from(&found.dir)? {
        let item = item?;
        if !is_folder_name(item.file_name().to_bytes()) {
            continue;
        }
        let folder = openat(&found.dir, item.file_name(), FOLDER, Mode::empty())?;
        for item in Dir::read_from(&folder)? {
            let item = item?;
            if StagedId::from_name(item.file_name().to_bytes()).is_some()
                && let Ok(found) = statat(&folder, item.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            {
                files += 1;
                bytes += found.st_blocks.cast_unsigned() * 512;
            }
        }
    }
    // Creating the journal is what each run begins with, and appending to it what it does last.
    let used = fs::symlink_metadata(path.join(journal::NAME)).or_else(|_| fs::symlink_metadata(&path))?;
    let is_in_use = is_locked(&found.dir);
    Ok(Some(Leftover { path, used: used.modified()?, files, bytes, is_in_use }))
}

/// Whether a process uses a staging folder. A transfer that begins while this lock is held for a moment tries again.
fn is_locked(dir: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, super::LOCK, flags, Mode::empty());
    file.is_ok_and(|file| matches!(flock(&file, FlockOperation::NonBlockingLockShared), Err(Errno::AGAIN)))
}

fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Ok(open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}
