//! Interprets paths on the host that they refer to.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::files::SourceItem;
use crate::files::permitted::{Wildcards, has_wildcards, stands_for_contents};
use crate::home::{self, HomeError};

/// Returns the local path that a request names; an empty one is the current directory.
///
/// # Errors
/// A home that does not exist.
pub(super) fn expand(path: &Path) -> Result<PathBuf, HomeError> {
    if path.as_os_str().is_empty() { Ok(PathBuf::from(".")) } else { home::expand(path) }
}

/// Returns the matches of the wildcards of `pattern`, in alphabetical order. If it means the contents of directories,
/// the matches are directories and end in a slash.
pub(super) fn matches(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let component = component.as_os_str();
        if has_wildcards(component.as_bytes()) {
            let wildcards = Wildcards::new(component.as_bytes());
            found = found.iter().flat_map(|directory| matches_in(directory, wildcards.as_ref())).collect();
        } else {
            found.iter_mut().for_each(|path| path.push(component));
        }
    }
    // `Path` drops a slash or `/.` at the end.
    if stands_for_contents(pattern.as_os_str().as_bytes()) {
        found.retain(|path| path.is_dir());
        found.iter_mut().for_each(|path| path.push(""));
    } else {
        found.retain(|path| path.symlink_metadata().is_ok());
    }
    found
}

/// Returns the matches in one directory. An unreadable one has none, as in a shell.
fn matches_in(directory: &Path, wildcards: Option<&Wildcards>) -> Vec<PathBuf> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
    names.retain(|name| wildcards.is_some_and(|wildcards| wildcards.match_name(name.as_bytes())));
    names.sort();
    names.iter().map(|name| directory.join(name)).collect()
}

/// Returns the sources that `path` names: the path itself or, if it does not exist, the matches of its wildcards.
///
/// # Errors
/// A home that does not exist.
pub(super) fn sources(path: &Path) -> Result<Vec<SourceItem>, HomeError> {
    // As for a shell, wildcards are no part of the name of a user.
    let first = path.as_os_str().as_bytes().split(|byte| *byte == b'/').next().unwrap_or_default();
    let path = if has_wildcards(first) { path.to_owned() } else { expand(path)? };
    if has_wildcards(path.as_os_str().as_bytes()) && path.symlink_metadata().is_err() {
        let found = matches(&path);
        if !found.is_empty() {
            return Ok(found.iter().map(|path| SourceItem::typed(path.as_os_str())).collect());
        }
    }
    Ok(vec![SourceItem::typed(path.as_os_str())])
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn wildcards_match_any_bytes_in_any_component() {
        let base = tempfile::tempdir().expect("a directory");
        let names: [&[u8]; 6] = [b"a/1.txt", b"a/\xff.txt", b"b/2.txt", b"b/.3.txt", b"c", b"\xfe"];
        for name in names {
            let path = base.path().join(OsStr::from_bytes(name));
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, "").expect("a file");
        }
        let found = |pattern: &str| {
            let found = matches(&base.path().join(pattern));
            let prefix = base.path().as_os_str().len() + 1;
            found.iter().map(|path| path.as_os_str().as_bytes()[prefix..].to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(found("*"), [b"a".to_vec(), b"b".to_vec(), b"c".to_vec(), b"\xfe".to_vec()]);
        assert_eq!(found("?/*.txt"), [b"a/1.txt".to_vec(), b"a/\xff.txt".to_vec(), b"b/2.txt".to_vec()]);
        assert_eq!(found("*/.*"), [b"b/.3.txt".to_vec()]);
        assert_eq!(found("[a-c]/"), [b"a/".to_vec(), b"b/".to_vec()]);
        assert_eq!(found("[a-c]/."), [b"a/".to_vec(), b"b/".to_vec()]);
        assert_eq!(found("*/1.txt"), [b"a/1.txt".to_vec()]);
        assert!(found("d*").is_empty() && found("[").is_empty());
    }
}
