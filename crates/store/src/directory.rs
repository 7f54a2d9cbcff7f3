//! Opening directories. Each open asks for the least that its use needs: a directory that others may only write to and
//! search, such as a drop box, serves as a target; docs/design/opening.md lists what is opened for what.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, openat};

/// Returns the directory in which the last component of a path is: the current one for a mere name.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flags to open a directory that the user has named, on the way to names in it: these can be looked up, made, moved
/// and removed as far as the user may do that, and nothing is asked of the directory itself but that it is there.
#[cfg(target_os = "linux")]
pub const NAMED_WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Elsewhere this asks for reading.
#[cfg(not(target_os = "linux"))]
pub const NAMED_WAY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The same for a directory that must not be a link.
pub const WAY: OFlags = NAMED_WAY.union(OFlags::NOFOLLOW);

/// Flags to open a directory that is listed or synced, and must not be a link.
pub(super) const READ_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a directory that was opened on the way once more, to list or sync it.
///
/// # Errors
/// `EACCES` if this user may not read it.
pub(super) fn readable(directory: impl AsFd) -> io::Result<OwnedFd> {
    Ok(openat(directory, ".", READ_DIRECTORY, Mode::empty())?)
}

/// Lists a directory that was opened on the way.
///
/// # Errors
/// `EACCES` if this user may not read it.
pub(super) fn entries(directory: impl AsFd) -> io::Result<Dir> {
    Ok(Dir::new(readable(directory)?)?)
}

/// Whether names can be created in a directory and not removed or changed (`chattr +a`).
#[cfg(target_os = "linux")]
pub fn is_append_only(directory: impl AsFd) -> bool {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
    let found = statx(directory, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::APPEND))
}

/// Not known how.
#[cfg(not(target_os = "linux"))]
pub fn is_append_only(_: impl AsFd) -> bool {
    false
}
