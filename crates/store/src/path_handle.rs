//! Files opened as a mere path: their attributes can be read and set without the right to read them. Unlike a name,
//! such a handle always refers to the same file; unlike an open file, it may be of any kind: opening a device or FIFO
//! may have effects.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, chmodat, chownat, fstat, openat, utimensat};
use rustix::io::Errno;
use rustix::path::Arg;
use rustix::process::{Gid, Uid};

use super::metadata::{Status, mode_of, timestamps, tolerate};
use crate::messages::Mtime;

#[cfg(target_os = "linux")]
const MERE_PATH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const MERE_PATH: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// A file, directory, link or special file, opened as a mere path.
#[derive(Debug)]
pub(super) struct PathHandle(OwnedFd);

impl PathHandle {
    /// Opens a name in a directory; of a symbolic link, the link itself.
    pub(super) fn open(directory: impl AsFd, name: impl Arg) -> io::Result<Self> {
        Self::with(directory, name, OFlags::NOFOLLOW)
    }

    /// Opens a name in a directory; of a symbolic link, its target.
    pub(super) fn follow(directory: impl AsFd, name: impl Arg) -> io::Result<Self> {
        Self::with(directory, name, OFlags::empty())
    }

    fn with(directory: impl AsFd, name: impl Arg, follow: OFlags) -> io::Result<Self> {
        Ok(Self(openat(directory, name, MERE_PATH | OFlags::CLOEXEC | follow, Mode::empty())?))
    }

    pub(super) fn status(&self) -> io::Result<Status> {
        Ok(fstat(&self.0)?.into())
    }

    /// Returns a path to the file, even if something else has its name by now.
    pub(super) fn path(&self) -> String {
        path_of(self.as_fd())
    }

    /// Sets the given owner and group.
    pub(super) fn set_owner(&self, user: Option<Uid>, group: Option<Gid>) -> io::Result<()> {
        Ok(chownat(&self.0, "", user, group, AtFlags::EMPTY_PATH)?)
    }

    /// Sets the mode of anything but a link.
    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        tolerate(there(chmodat(CWD, self.path(), mode_of(mode), AtFlags::empty())), self.as_fd(), || fstat(&self.0))
    }

    /// Sets the given mode and modification time.
    pub(super) fn set(&self, mode: Option<u32>, mtime: Option<Mtime>) -> io::Result<()> {
        mode.map_or(Ok(()), |mode| self.set_mode(mode))?;
        mtime.map_or(Ok(()), |mtime| self.set_mtime(mtime))
    }

    pub(super) fn set_mtime(&self, mtime: Mtime) -> io::Result<()> {
        let set = utimensat(CWD, self.path(), &timestamps(mtime), AtFlags::empty());
        tolerate(there(set), self.as_fd(), || fstat(&self.0))
    }
}

/// Returns a path to an open file.
pub(super) fn path_of(opened: BorrowedFd<'_>) -> String {
    let directory = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    format!("{directory}/{}", opened.as_raw_fd())
}

/// Without `/proc` the path does not resolve, which does not mean that the file was removed.
fn there(set: rustix::io::Result<()>) -> rustix::io::Result<()> {
    set.map_err(|error| if error == Errno::NOENT { Errno::STALE } else { error })
}

impl From<OwnedFd> for PathHandle {
    fn from(opened: OwnedFd) -> Self {
        Self(opened)
    }
}

impl AsFd for PathHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
