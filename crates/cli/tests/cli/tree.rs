//! Creates files to send, and checks that they arrived.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Creates a file with pseudo-random bytes.
pub(crate) fn file(path: &Path, bytes: usize) -> PathBuf {
    let mut random = fastrand::Rng::with_seed(bytes as u64);
    let mut content = vec![0; bytes];
    random.fill(&mut content);
    fs::write(path, content).expect("a file");
    path.to_owned()
}

/// Creates a directory with files of all sizes, an empty directory, nested directories, a link and various modes.
pub(crate) fn directory(path: &Path) -> PathBuf {
    fs::create_dir_all(path.join("in/deep")).expect("directories");
    fs::create_dir(path.join("empty directory")).expect("a directory");
    for (name, bytes) in [("empty", 0), ("one", 1), ("in/some", 100_000), ("in/deep/large Grüße", 3_000_001)] {
        file(&path.join(name), bytes);
    }
    fs::set_permissions(path.join("one"), fs::Permissions::from_mode(0o700)).expect("a mode");
    symlink("in/some", path.join("link")).expect("a link");
    path.to_owned()
}

/// Panics unless both trees have the same names, types, modes and bytes.
#[track_caller]
pub(crate) fn assert_same(a: &Path, b: &Path) {
    let (kind, other) = (fs::symlink_metadata(a).expect("the source"), fs::symlink_metadata(b).expect("the copy"));
    assert_eq!(kind.file_type(), other.file_type(), "{}", b.display());
    if kind.is_symlink() {
        assert_eq!(fs::read_link(a).expect("a link"), fs::read_link(b).expect("a link"));
        return;
    }
    assert_eq!(kind.permissions(), other.permissions(), "{}", b.display());
    if kind.is_dir() {
        assert_eq!(names(a), names(b), "{}", b.display());
        for name in names(a) {
            assert_same(&a.join(&name), &b.join(&name));
        }
        return;
    }
    assert!(fs::read(a).expect("the source") == fs::read(b).expect("the copy"), "{} has other bytes", b.display());
}

/// Panics if the directory, which did not exist before, contains anything.
#[track_caller]
pub(crate) fn assert_untouched(directory: &Path) {
    if directory.exists() {
        assert_eq!(names(directory), Vec::<PathBuf>::new());
    }
}

/// Returns the sorted names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into())
        .collect();
    names.sort();
    names
}

/// Returns the sorted paths of all names beneath a directory that are not directories themselves.
pub(crate) fn files(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for item in fs::read_dir(directory).expect("a directory") {
            let path = item.expect("a name").path();
            if path.is_dir() && !path.is_symlink() { left.push(path) } else { found.push(path) }
        }
    }
    let shown = |path: &Path| path.strip_prefix(directory).expect("beneath it").to_string_lossy().into_owned();
    let mut found: Vec<_> = found.iter().map(|path| shown(path)).collect();
    found.sort();
    found
}
