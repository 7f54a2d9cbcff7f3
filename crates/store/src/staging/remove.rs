//! Removes a staging directory that is not needed any more. A failure loses no received data: the caller reports the
//! remaining directory.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::layout::{LOCK, MOVING, is_directory_name, is_part};
use crate::directory::is_append_only;
use crate::metadata::Status;
use crate::sandbox::{READ_DIRECTORY, errno};
use crate::staged_id::StagedId;

/// Number of attempts to remove a directory that seems not to be empty, and the pause after each.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(2);

/// A staging directory that is not needed any more and could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot remove staging directory {}: {reason}", path.display())]
pub struct StagingLeft {
    /// Its path.
    pub path: PathBuf,
    /// Why it could not be removed.
    pub reason: LeftReason,
}

/// Why a staging directory could not be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LeftReason {
    /// The directory contains a file that is in use, or that this program has not created.
    #[error("in use; delete it later")]
    InUse,
    /// The target is append-only.
    #[error("its parent directory is append-only; delete it once that is changed")]
    AppendOnly,
    /// The system's error number.
    #[error("{}", io::Error::from_raw_os_error(*.0))]
    System(i32),
}

impl StagingLeft {
    pub(super) fn new(path: &Path, parent: &OwnedFd, error: &io::Error) -> Self {
        let reason = match errno(error) {
            Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY => LeftReason::InUse,
            Errno::PERM if is_append_only(parent) => LeftReason::AppendOnly,
            error => LeftReason::System(error.raw_os_error()),
        };
        Self { path: path.to_owned(), reason }
    }
}

/// Removes a staging directory and the files that this program has put into it, of which only the lock may be open;
/// `unlock` releases it.
pub(super) fn clear(target: &OwnedFd, name: &str, dir: &OwnedFd, unlock: impl FnOnce()) -> io::Result<()> {
    for item in Dir::read_from(dir)? {
        let item = item?;
        match item.file_name().to_bytes() {
            // The lock is removed last: until then no other process can use the directory.
            b"lock" => {}
            b"moving" => clear_moving(dir)?,
            name if is_directory_name(name) => remove_directory(dir, name)?,
            name if is_part(name) => unlinkat(dir, name, AtFlags::empty())?,
            _ => {}
        }
    }
    unlinkat(dir, LOCK, AtFlags::empty())?;
    let ours = Status::from(fstat(dir)?);
    let named = statat(target, name, AtFlags::SYMLINK_NOFOLLOW).map(Status::from);
    if !named.is_ok_and(|named| named.identity == ours.identity) {
        // Another user has moved it away.
        return Err(Errno::NOTEMPTY.into());
    }
    match unlinkat(target, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => {}
        removed => return Ok(removed?),
    }
    // If a file removed while open keeps a name, as on NFS and FUSE, so does the lock.
    unlock();
    remove_closed(target, name)
}

/// Removes a directory whose files were closed and removed. A FUSE file system is notified later that a file was
/// closed, and may keep the file until then.
fn remove_closed(directory: &OwnedFd, name: impl rustix::path::Arg + Copy) -> io::Result<()> {
    let mut attempts = 0..ATTEMPTS;
    loop {
        match unlinkat(directory, name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) if attempts.next().is_some() => runtime::pause(PAUSE),
            removed => return Ok(removed?),
        }
    }
}

/// Removes an object that was created to be moved out but could not be moved.
pub(super) fn clear_moving(dir: &OwnedFd) -> io::Result<()> {
    for flags in [AtFlags::empty(), AtFlags::REMOVEDIR] {
        match unlinkat(dir, MOVING, flags) {
            // `unlink` of a directory fails with EISDIR on Linux and with EPERM on other systems.
            Err(Errno::ISDIR | Errno::PERM) if flags.is_empty() => {}
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Removes a directory of staged files.
fn remove_directory(dir: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let directory = openat(dir, name, READ_DIRECTORY, Mode::empty())?;
    for item in Dir::read_from(&directory)? {
        let item = item?;
        if StagedId::from_name(item.file_name().to_bytes()).is_some() {
            unlinkat(&directory, item.file_name(), AtFlags::empty())?;
        }
    }
    remove_closed(dir, name)
}
