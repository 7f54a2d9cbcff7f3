//! The location of a target's staging directory: in the target, or among the user's own files if the target itself
//! cannot be written but directories in it can, or if nothing could be removed from it.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, DirEntry, FileType, Mode, accessat, fstat, openat};
use rustix::io::Errno;

use crate::directory::{NAMED_WAY, entries, is_append_only};
use crate::messages::SourceId;
use crate::private_directory::{cache_home, own_directory};
use crate::sandbox::READ_DIRECTORY;

/// The directory that contains a staging directory.
#[derive(Debug)]
pub(crate) struct Site {
    pub(super) directory: OwnedFd,
    pub(super) path: PathBuf,
    /// The id from which the staging directory gets its name, and to which it belongs.
    pub(super) source: SourceId,
}

impl Site {
    /// Chooses the place where data from `source` is staged for `target`, whose path is `into`: outside if the target
    /// is append-only and the other place is on the same file system, or if the target cannot be written and has
    /// directories, since nothing else could be put into it. Data staged outside is copied if it belongs on another
    /// file system. With `within` ([`ReceiveRequest::within`](crate::ReceiveRequest::within)), nothing is staged
    /// outside, and the transfer fails as it does in any directory that cannot be written.
    ///
    /// # Errors
    /// A failure of the system.
    pub(crate) fn of(target: &OwnedFd, into: &Path, source: SourceId, within: Option<&Path>) -> io::Result<Self> {
        if within.is_none()
            && is_append_only(target)
            && let Some(base) = cache_home()
            && let Ok(outside) = Self::within(&base, target, source)
            // Files moved there from another mount get a temporary name first, which could not be removed again.
            && is_same_mount(&outside.directory, target)
        {
            return Ok(outside);
        }
        let written = accessat(target, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        if let Err(Errno::ACCESS | Errno::PERM) = written
            && within.is_none()
            && has_directories(target)
            && let Some(base) = cache_home()
            // Without such a directory the transfer fails as it would in the target.
            && let Ok(outside) = Self::within(&base, target, source)
        {
            return Ok(outside);
        }
        Ok(Self { directory: target.try_clone()?, path: into.to_owned(), source })
    }

    /// Creates the directory for staging in `base`.
    fn within(base: &Path, target: &OwnedFd, SourceId(source): SourceId) -> io::Result<Self> {
        let path = shared_directory(base, true)?;
        let directory = openat(CWD, &path, READ_DIRECTORY, Mode::empty())?;
        // The same source may go to several such targets.
        let found = fstat(target)?;
        let mut named = blake3::Hasher::new();
        named.update(&source).update(&found.st_dev.to_le_bytes()).update(&found.st_ino.to_le_bytes());
        let mut id = [0; 16];
        named.finalize_xof().fill(&mut id);
        Ok(Self { directory, path, source: SourceId(id) })
    }
}

/// Whether a rename is possible from one directory to the other.
#[cfg(target_os = "linux")]
fn is_same_mount(one: &OwnedFd, other: &OwnedFd) -> bool {
    use rustix::fs::{StatxFlags, statx};
    let mount = |of: &OwnedFd| {
        let found = statx(of, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        is_known.then_some((found.stx_dev_major, found.stx_dev_minor, found.stx_mnt_id))
    };
    mount(one).is_some_and(|one| mount(other) == Some(one))
}

/// Unknown on this platform.
#[cfg(not(target_os = "linux"))]
fn is_same_mount(_: &OwnedFd, _: &OwnedFd) -> bool {
    false
}

/// Whether data for this target may be staged outside of it: see [`Site::of`].
pub(crate) fn may_hold_outside(target: &Path) -> bool {
    let stages_elsewhere = || {
        let target = openat(CWD, target, NAMED_WAY, Mode::empty()).ok()?;
        let written = accessat(&target, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        Some(is_append_only(&target) || written.is_err())
    };
    let holds_some = outside_staging_directory()
        .and_then(|path| path.read_dir().ok())
        .is_some_and(|mut names| names.next().is_some());
    holds_some && stages_elsewhere().unwrap_or(false)
}

/// Whether a directory contains others, or may.
fn has_directories(target: &OwnedFd) -> bool {
    let is_directory = |item: DirEntry| {
        let is_other = !matches!(item.file_name().to_bytes(), b"." | b"..");
        is_other && matches!(item.file_type(), FileType::Directory | FileType::Unknown)
    };
    // An unlistable directory may still be entered.
    entries(target).map_or(true, |items| items.flatten().any(is_directory))
}

/// Returns the directory in which files are staged for targets that this user cannot write; `None` if there is none.
#[must_use]
pub fn outside_staging_directory() -> Option<PathBuf> {
    shared_directory(&cache_home()?, false).ok()
}

fn shared_directory(base: &Path, create: bool) -> io::Result<PathBuf> {
    let path = own_directory(base, create)?.join("staging");
    if create {
        DirBuilder::new().recursive(true).mode(0o700).create(&path)?;
    }
    if path.is_dir() { Ok(path) } else { Err(io::ErrorKind::NotFound.into()) }
}
