//! Interpretation of paths on the machine that they refer to.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::files::Root;
use crate::files::permitted::{AS_A_SHELL, has_wildcards};

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

/// Returns the paths that match the wildcards of `pattern`, in alphabetical order.
pub(super) fn matches(pattern: &Path) -> Vec<PathBuf> {
    let found = pattern.to_str().and_then(|pattern| glob::glob_with(pattern, AS_A_SHELL).ok());
    found.into_iter().flatten().flatten().collect()
}

/// Returns the sources that `path` names: the path itself or, if it does not exist, the matches of its wildcards.
pub(super) fn sources(path: &Path) -> Vec<Root> {
    let path = expand(path);
    if has_wildcards(path.as_os_str().as_bytes()) && path.symlink_metadata().is_err() {
        let found = matches(&path);
        if !found.is_empty() {
            return found.into_iter().map(Root::new).collect();
        }
    }
    vec![Root::typed(path.as_os_str())]
}
