//! The tree at the target, before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use crate::draws::Draws;

/// Few names, so that they collide.
pub(crate) const NAMES: [&str; 6] = ["a", "b", "c", ".ssh", "A", "x.sh"];

/// The content of every file at the target before a transfer.
const OLD: [u8; 3] = [b'o'; 3];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Object {
    File(Vec<u8>),
    Directory,
    Link(PathBuf),
    Pipe,
}

/// An object and its permission bits; those of links are meaningless and zero.
pub(crate) type ModedObject = (Object, u32);

/// Objects by their paths, relative to the tree.
pub(crate) type Tree = BTreeMap<Vec<u8>, ModedObject>;

/// Returns everything beneath `dir` without the staging directories.
pub(crate) fn snapshot(dir: &Path) -> Tree {
    let mut found = Tree::new();
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("a readable directory") {
            let path = entry.expect("a readable directory").path();
            if path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".downpour-")) {
                continue;
            }
            let name = path.strip_prefix(dir).expect("beneath it").as_os_str().as_bytes().to_vec();
            let object = object(&path);
            if object.0 == Object::Directory {
                directories.push(path);
            }
            found.insert(name, object);
        }
    }
    found
}

fn object(path: &Path) -> ModedObject {
    let metadata = path.symlink_metadata().expect("it was listed");
    let mode = metadata.mode() & 0o7777;
    if metadata.is_symlink() {
        (Object::Link(path.read_link().expect("a link")), 0)
    } else if metadata.is_dir() {
        (Object::Directory, mode)
    } else if metadata.file_type().is_fifo() {
        (Object::Pipe, mode)
    } else {
        (Object::File(fs::read(path).expect("a readable file")), mode)
    }
}

/// Draws a path of up to `depth` components.
pub(crate) fn path(draws: &mut Draws<'_>, depth: u8) -> String {
    (0..=draws.below(depth)).map(|_| draws.one_of(&NAMES)).collect::<Vec<_>>().join("/")
}

/// Creates the directory `into` with a few files, directories and links.
pub(crate) fn populate(draws: &mut Draws<'_>, into: &Path) {
    fs::create_dir(into).expect("a new directory");
    for _ in 0..draws.below(8) {
        let path = into.join(path(draws, 3));
        let parent = path.parent().expect("beneath the target");
        // Something else may be in the way.
        if fs::create_dir_all(parent).is_err() || path.symlink_metadata().is_ok() {
            continue;
        }
        let created = match draws.below(5) {
            0 | 1 => fs::write(&path, OLD),
            2 => fs::create_dir(&path),
            3 => symlink("../outside", &path),
            _ => symlink(draws.one_of(&NAMES), &path),
        };
        // The parent may be a dangling link.
        if created.is_ok() && !path.is_symlink() && draws.one_in(2) {
            let mode = if path.is_dir() { 0o750 } else { 0o640 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("one's own file");
        }
    }
}
