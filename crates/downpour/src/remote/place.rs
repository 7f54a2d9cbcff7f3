//! Interpretation of paths on the machine that they refer to.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::permitted::{AS_A_SHELL, has_wildcards};
use crate::files::{FilesError, Root};

/// Expands `~` and `~/`, as a login shell does; an empty path is the current directory.
pub(super) fn expand(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let home = || env::var_os("HOME").map(PathBuf::from);
    match bytes {
        b"" => PathBuf::from("."),
        b"~" => home().unwrap_or_else(|| path.to_owned()),
        [b'~', b'/', rest @ ..] => match home() {
            Some(home) => home.join(OsStr::from_bytes(rest)),
            None => path.to_owned(),
        },
        _ => path.to_owned(),
    }
}

/// Returns the sources that `path` names: the path itself or, if it does not exist, the matches of its wildcards.
pub(super) fn sources(path: &Path) -> Result<Vec<Root>, Error> {
    let path = expand(path);
    if has_wildcards(path.as_os_str().as_bytes())
        && path.symlink_metadata().is_err()
        && let Some(pattern) = path.to_str()
        && let Ok(found) = glob::glob_with(pattern, AS_A_SHELL)
    {
        let found: Vec<Root> = found.flatten().map(Root::new).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        return Err(FilesError::SourceAbsent { path }.into());
    }
    Ok(vec![Root::typed(path.as_os_str())])
}
