//! What a path means on the machine it is for.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::{FilesError, ReceiveSettings, Root};
use crate::transfer::{Case, Otherwise, Task};

/// A path as a login shell would take it: relative to the home folder, `~` for that folder itself.
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

/// Wildcards as a shell has them: they match no dot at the beginning of a name, and no slash.
const AS_A_SHELL: glob::MatchOptions =
    glob::MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The sources that `path` stands for: itself, or what its wildcards match if there is nothing of that name.
pub(super) fn sources(path: &Path) -> Result<Vec<Root>, Error> {
    let path = expand(path);
    let has_wildcards = path.as_os_str().as_bytes().iter().any(|byte| b"*?[".contains(byte));
    if has_wildcards
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

/// Where files go: a folder, and the name of the single item in it if that is another than it has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) into: PathBuf,
    pub(super) rename: Option<Vec<u8>>,
    /// The same in another case.
    pub(super) otherwise: Option<(Case, PathBuf, Option<Vec<u8>>)>,
}

impl Destination {
    /// As scp: into `target` if that is a folder, else under its name. `many` says that it is to be a folder in any case, as does a slash at its
    /// end; `named` when it is to be one after all.
    pub(super) fn of(target: &Path, many: bool, named: Option<Case>) -> Self {
        let target = expand(target);
        let bytes = target.as_os_str().as_bytes();
        let names_folder = many || bytes.ends_with(b"/") || bytes.ends_with(b"/.");
        let under = match (target.parent(), target.file_name()) {
            (Some(parent), Some(name)) if !names_folder => {
                let into = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                Some((into.to_owned(), name.as_bytes().to_vec()))
            }
            _ => None,
        };
        match under {
            Some((into, name)) if !target.is_dir() => {
                Self { into, rename: Some(name), otherwise: named.map(|case| (case, target, None)) }
            }
            // It may have been no folder when the transfer began.
            earlier => {
                let otherwise = earlier.map(|(into, name)| (Case::Earlier, into, Some(name)));
                Self { into: target, rename: None, otherwise }
            }
        }
    }

    /// What receives there.
    pub(super) fn task(self, rest: &ReceiveSettings) -> Task {
        let to = |into, rename| ReceiveSettings { into, rename, ..rest.clone() };
        let otherwise = self.otherwise.map(|(case, into, rename)| {
            let settings = Box::new(to(into, rename));
            Otherwise { case, settings }
        });
        Task::Receive { settings: to(self.into, self.rename), otherwise, ask: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_folder_or_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("folder")).unwrap();
        std::fs::write(path("file"), "").unwrap();
        let folder = |into: PathBuf| Destination { into, rename: None, otherwise: None };
        let named =
            |name: &str| Destination { into: dir.path().to_owned(), rename: Some(name.into()), otherwise: None };
        let of = |target: &Path, many| Destination::of(target, many, None);
        let earlier = Some((Case::Earlier, dir.path().to_owned(), Some(b"folder".to_vec())));
        let there = Destination { otherwise: earlier, ..folder(path("folder")) };
        assert_eq!(of(&path("folder"), false), there);
        assert_eq!(of(&path("file"), false), named("file"));
        assert_eq!(of(&path("new"), false), named("new"));
        assert_eq!(of(&path("new/"), false), folder(path("new/")));
        assert_eq!(of(&path("new"), true), folder(path("new")));
        let here = Destination { into: ".".into(), rename: Some(b"x".into()), otherwise: None };
        assert_eq!(of(Path::new("x"), false), here);
        assert_eq!(of(Path::new(""), false), folder(".".into()));
        // What comes decides only where the target is no folder yet.
        let case = || Case::Named { folder: true, unless: None };
        let after_all = Some((case(), path("new"), None));
        let open = Destination { otherwise: after_all, ..named("new") };
        assert_eq!(Destination::of(&path("new"), false, Some(case())), open);
        assert_eq!(Destination::of(&path("folder"), false, Some(case())), there);
    }
}
