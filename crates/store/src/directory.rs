//! Opening directories. Each open asks only for the rights that its use needs: a directory that others may only write
//! to and search, such as a drop box, serves as a target; docs/design/opening.md lists the opens of each use.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, openat};

/// Returns the directory that contains the last component of a path: the current one for a mere name.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flags to open a directory named by the user, in order to reach names in it: these can be looked up, made, moved and
/// removed as far as the user may do that. The directory itself only has to exist.
#[cfg(target_os = "linux")]
pub const NAMED_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Systems without `O_PATH` ask for reading.
#[cfg(not(target_os = "linux"))]
pub const NAMED_WAY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The same for a directory that must not be a link.
pub const WAY: OFlags = NAMED_WAY.union(OFlags::NOFOLLOW);

/// Flags to open a directory that is listed or synced, and must not be a link.
pub(super) const READ_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory again that was opened as a path, to list or sync it.
///
/// # Errors
/// `EACCES` if this user may not read it.
pub(super) fn readable(directory: impl AsFd) -> io::Result<OwnedFd> {
    Ok(openat(directory, ".", READ_DIRECTORY, Mode::empty())?)
}

/// Lists a directory that was opened as a path.
///
/// # Errors
/// `EACCES` if this user may not read it.
pub(super) fn entries(directory: impl AsFd) -> io::Result<Dir> {
    Ok(Dir::new(readable(directory)?)?)
}

/// Whether names can be created in a directory but not removed or changed (`chattr +a`).
#[cfg(target_os = "linux")]
pub fn is_append_only(directory: impl AsFd) -> bool {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
    let found = statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::APPEND))
}

/// Unknown on this platform.
#[cfg(not(target_os = "linux"))]
pub fn is_append_only(_: impl AsFd) -> bool {
    false
}
