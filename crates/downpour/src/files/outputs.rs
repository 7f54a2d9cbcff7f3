//! Files that this side writes about a transfer: they are neither sent nor replaced by it.

use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::error::FilesError;
use super::metadata::Identity;

/// What is written about a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// The list of BLAKE3 checksums.
    Checksums,
    /// The engine's trace.
    Trace,
}

impl fmt::Display for OutputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Checksums => "the list of checksums",
            Self::Trace => "the trace",
        })
    }
}

/// The files that are written about a transfer. A source that is one of them is refused, one that is met in a folder is
/// left out ([`SkipReason::Output`](super::SkipReason::Output)), and none is replaced or deleted at the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs(Vec<(OutputKind, PathBuf)>);

impl Outputs {
    /// Names the list of checksums and the trace, as far as they are written.
    #[must_use]
    pub fn new(checksums: Option<&Path>, trace: Option<&Path>) -> Self {
        let named = [(OutputKind::Checksums, checksums), (OutputKind::Trace, trace)];
        Self(named.into_iter().filter_map(|(kind, path)| Some((kind, path?.to_owned()))).collect())
    }

    /// Returns those that exist. What is no regular file is never one of a transfer's.
    pub(super) fn existing(&self) -> ExistingOutputs {
        let identity = |path: &PathBuf| {
            let found = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
            Some(Identity { device: found.dev(), inode: found.ino() })
        };
        ExistingOutputs(self.0.iter().filter_map(|(kind, path)| Some((*kind, identity(path)?))).collect())
    }

    /// Returns the paths of those in `directory` and beneath it, relative to it, whether they exist yet or not.
    pub(super) fn beneath(&self, directory: &Path) -> Vec<(OutputKind, Vec<u8>)> {
        let Some(directory) = (!self.0.is_empty()).then(|| resolved(directory)).flatten() else { return Vec::new() };
        let relative = |path: &Path| {
            let path = resolved(path)?;
            Some(path.strip_prefix(&directory).ok()?.as_os_str().as_bytes().to_vec())
        };
        self.0.iter().filter_map(|(kind, path)| Some((*kind, relative(path)?))).collect()
    }
}

/// The outputs that existed at some time.
#[derive(Clone, Debug, Default)]
pub(super) struct ExistingOutputs(Vec<(OutputKind, Identity)>);

impl ExistingOutputs {
    /// Whether a file is one of them.
    pub(super) fn has(&self, file: Identity) -> bool {
        self.0.iter().any(|(_, output)| *output == file)
    }

    /// Checks that a source which the user named is none of them.
    ///
    /// # Errors
    /// [`FilesError::IsOutput`].
    pub(super) fn check(&self, path: &Path, file: Identity) -> Result<(), FilesError> {
        match self.0.iter().find(|(_, output)| *output == file) {
            Some((kind, _)) => Err(FilesError::IsOutput { path: path.to_owned(), kind: *kind }),
            None => Ok(()),
        }
    }
}

/// Returns the path without links, also of a file that does not exist in a directory that does.
fn resolved(path: &Path) -> Option<PathBuf> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.canonicalize().ok().or_else(|| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(parent.canonicalize().ok()?.join(path.file_name()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_found_by_any_path_that_leads_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("real/sub")).unwrap();
        std::os::unix::fs::symlink("real", at("link")).unwrap();
        let outputs = Outputs::new(Some(&at("link/sub/list")), Some(&at("link/../trace")));
        let list = (OutputKind::Checksums, b"sub/list".to_vec());
        for directory in ["real", "link/sub/.."] {
            assert_eq!(outputs.beneath(&at(directory)), std::slice::from_ref(&list));
        }
        assert_eq!(outputs.beneath(&at("real/sub")), [(OutputKind::Checksums, b"list".to_vec())]);
        assert_eq!(outputs.beneath(&at("absent")), []);
        assert!(outputs.existing().0.is_empty());

        fs::write(at("real/list"), "").unwrap();
        std::os::unix::fs::symlink("../list", at("real/sub/list")).unwrap();
        assert_eq!(outputs.beneath(&at("real")), [(OutputKind::Checksums, b"list".to_vec())]);
        let found = fs::metadata(at("real/list")).unwrap();
        let identity = Identity { device: found.dev(), inode: found.ino() };
        assert!(outputs.existing().has(identity));
        let error = outputs.existing().check(Path::new("x"), identity).unwrap_err();
        assert!(matches!(error, FilesError::IsOutput { kind: OutputKind::Checksums, .. }), "{error}");
    }
}
