//! Directories of the program that belong to its user, and that no other user can change.

use std::env;
use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Returns the path in an environment variable, if it is absolute.
pub fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Returns `$XDG_CACHE_HOME` or `~/.cache`; `None` without a home.
pub fn cache_home() -> Option<PathBuf> {
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
}

/// Returns whether a file belongs to this user and no other user may write it.
pub fn is_own(found: &Metadata) -> bool {
    found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0
}

/// Returns the directory `downpour` in `base`, and creates it if asked.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if the directory, or an existing one above it, belongs to another user; the
/// system's.
pub fn own_directory(base: &Path, create: bool) -> io::Result<PathBuf> {
    // The parent directory may not exist yet, but then its own parent must be this user's: `sudo` keeps another's HOME.
    let above = base.ancestors().find_map(|path| path.metadata().ok());
    if above.is_none_or(|found| found.uid() != geteuid().as_raw()) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let directory = base.join("downpour");
    if create {
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    }
    if is_own(&directory.symlink_metadata()?) { Ok(directory) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Returns a directory of this user for sockets that last no longer than their processes, in `/tmp` like those of tmux:
/// a home shows nothing of a transfer. Creates it if asked.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`] if another user has taken the name, or has access; the system's.
pub fn temporary_directory(create: bool) -> io::Result<PathBuf> {
    let directory = PathBuf::from(format!("/tmp/downpour-{}", geteuid().as_raw()));
    if create {
        match DirBuilder::new().mode(0o700).create(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let found = directory.symlink_metadata()?;
    let is_private = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if is_private { Ok(directory) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}
