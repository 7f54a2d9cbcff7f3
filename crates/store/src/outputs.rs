//! Finds the files that this host writes about a transfer, which the transfer neither sends nor replaces.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use request::{OutputKind, Outputs};
use rustix::fs::fstat;

use super::directory::parent_of;
use super::error::FilesError;
use super::folding::{Case, Folding};
use super::metadata::{Identity, Status};

/// A name of an output file.
#[derive(Clone, Debug)]
struct Output {
    kind: OutputKind,
    /// Without links above the name.
    path: PathBuf,
    /// The file, if it exists.
    file: Option<Identity>,
}

/// Finds the output files, whether they exist yet or not: under the given names, and at the targets of symbolic links
/// with these names.
fn located(outputs: &Outputs) -> Vec<Output> {
    let mut found = Vec::new();
    for (kind, path) in outputs.iter() {
        let places = [in_directory(path), path.canonicalize().ok().filter(|_| path.is_symlink())];
        let file = path.metadata().ok().filter(Metadata::is_file).map(|file| Identity::from(&file));
        found.extend(places.into_iter().flatten().map(|path| Output { kind, path, file }));
    }
    found
}

#[derive(Clone, Debug)]
struct SourceOutput {
    output: Output,
    directory: Identity,
    name: Vec<u8>,
}

/// Output files that could be among the sources.
#[derive(Clone, Debug)]
pub(super) struct SourceOutputs(Vec<SourceOutput>);

impl SourceOutputs {
    /// Prepares to find the output files among sources.
    pub(super) fn of(outputs: &Outputs) -> Self {
        let source = |output: Output| {
            let directory = Identity::from(&output.path.parent()?.metadata().ok()?);
            Some(SourceOutput { name: output.path.file_name()?.as_bytes().to_vec(), directory, output })
        };
        Self(located(outputs).into_iter().filter_map(source).collect())
    }

    /// Whether the file with a name in an open directory is an output file. The file of a trace changes under all of
    /// its names; a list replaces only the name.
    pub(super) fn has(&self, directory: BorrowedFd<'_>, name: &[u8], file: Identity) -> bool {
        self.0.iter().any(|source| {
            let is_traced = source.output.kind == OutputKind::Trace && source.output.file == Some(file);
            let is_here = || fstat(directory).is_ok_and(|found| Status::from(found).identity == source.directory);
            is_traced || (source.name == name && is_here())
        })
    }

    /// Checks that a source named by the user is not an output file.
    ///
    /// # Errors
    /// [`FilesError::IsOutput`].
    pub(super) fn check(&self, path: &Path, file: Identity) -> Result<(), FilesError> {
        let resolved = in_directory(path);
        let is_one = |output: &Output| {
            let is_traced = output.kind == OutputKind::Trace && output.file == Some(file);
            is_traced || resolved.as_ref() == Some(&output.path)
        };
        match self.0.iter().map(|source| &source.output).find(|output| is_one(output)) {
            Some(output) => Err(FilesError::IsOutput { path: path.to_owned(), kind: output.kind }),
            None => Ok(()),
        }
    }
}

/// An output file beneath a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetOutput {
    pub(super) kind: OutputKind,
    /// Relative to the target.
    pub(super) path: Vec<u8>,
    /// The file, if it existed when it was looked up.
    pub(super) file: Option<Identity>,
}

impl TargetOutput {
    /// Returns the output files in `directory` and beneath it, with paths relative to it.
    pub(super) fn beneath(outputs: &Outputs, directory: &Path) -> Vec<Self> {
        let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
        let Some(directory) = (!outputs.is_empty()).then(|| directory.canonicalize().ok()).flatten() else {
            return Vec::new();
        };
        let relative = |Output { kind, path, file }| {
            let path = path.strip_prefix(&directory).ok()?.as_os_str().as_bytes().to_vec();
            Some(Self { kind, path, file })
        };
        located(outputs).into_iter().filter_map(relative).collect()
    }

    /// Whether its path beneath the target is `path`, a directory included: as spelled, or as the file system resolves
    /// it.
    pub(super) fn is_at(&self, directory: &Path, path: &[u8]) -> bool {
        self.path == path || (self.folds_like(path) && self.is_file(&directory.join(OsStr::from_bytes(path))))
    }

    /// Whether a file system that folds names may treat this path as equal to its own.
    fn folds_like(&self, path: &[u8]) -> bool {
        let folding = Folding { case: Case::Unicode, normalization: true, dots: true };
        folding.key(&self.path) == folding.key(path)
    }

    /// Whether its file has this path.
    fn is_file(&self, path: &Path) -> bool {
        self.file.is_some() && path.symlink_metadata().ok().map(|found| Identity::from(&found)) == self.file
    }

    /// Whether it is beneath `path`.
    pub(super) fn is_beneath(&self, path: &[u8]) -> bool {
        self.path.strip_prefix(path).is_some_and(|rest| rest.starts_with(b"/"))
    }
}

/// Returns the path without links above its last component, which need not exist.
fn in_directory(path: &Path) -> Option<PathBuf> {
    let Some(name) = path.file_name() else { return path.canonicalize().ok() };
    Some(parent_of(path).canonicalize().ok()?.join(name))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn outputs_found_by_any_path() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("real/sub")).unwrap();
        std::os::unix::fs::symlink("real", at("link")).unwrap();
        let outputs = Outputs::new(Some(&at("link/sub/list")), Some(&at("link/../trace")));
        let beneath = |directory: &str| {
            let found = TargetOutput::beneath(&outputs, &at(directory)).into_iter();
            found.map(|output| String::from_utf8(output.path).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(beneath("real"), ["sub/list"]);
        assert_eq!(beneath("link/sub/.."), ["sub/list"]);
        assert_eq!(beneath("real/sub"), ["list"]);
        assert_eq!(
            beneath(""),
            ["sub/list", "trace"].map(|name| if name == "trace" { name.into() } else { format!("real/{name}") })
        );
        assert!(beneath("absent").is_empty());

        // A list of this name would be at the target of the link.
        fs::write(at("real/list"), "").unwrap();
        std::os::unix::fs::symlink("../list", at("real/sub/list")).unwrap();
        assert_eq!(beneath("real"), ["sub/list", "list"]);
    }

    #[test]
    fn output_trace_has_all_names_list_only_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("other")).unwrap();
        for (name, second) in [("list", "other/list"), ("trace", "other/file")] {
            fs::write(at(name), name).unwrap();
            fs::hard_link(at(name), at(second)).unwrap();
        }
        let outputs = SourceOutputs::of(&Outputs::new(Some(&at("list")), Some(&at("trace"))));
        for (name, is_output) in [("list", true), ("trace", true), ("other/file", true), ("other/list", false)] {
            let path = at(name);
            let file = Identity::from(&path.metadata().unwrap());
            let directory = fs::File::open(path.parent().unwrap()).unwrap();
            let name = path.file_name().unwrap().as_bytes();
            assert_eq!(outputs.has(directory.as_fd(), name, file), is_output, "{}", path.display());
            assert_eq!(outputs.check(&path, file).is_err(), is_output, "{}", path.display());
        }
    }
}
