//! The local file system.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downpour_store::{
    Content, FileSink, FilesError, LocalSource, Mtime, Node, ReceiveRequest, SourceItem, SourceOptions, TreeSource,
    TreeTarget,
};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use tempfile::TempDir;

use super::{Place, SourcePlace, TargetPlace};
use crate::trees::Tree;

pub(crate) struct Local(TempDir);

impl Local {
    pub(crate) fn new() -> Self {
        // In memory if possible: these tests do not test disks.
        Self(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }
}

impl Place for Local {
    fn store(&self) -> &'static str {
        "local"
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("tree")
    }

    fn put(&self, tree: &Tree) {
        put(&self.path(), tree);
    }

    fn take(&self, path: &str) {
        let path = self.path().join(path);
        let is_directory = path.symlink_metadata().unwrap().is_dir();
        if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    fn tree(&self) -> Tree {
        tree(&self.path())
    }

    fn top(&self) -> (u32, Mtime) {
        let found = self.path().metadata().unwrap();
        (found.mode() & 0o7777, mtime(&found))
    }
}

impl SourcePlace for Local {
    fn source_of(&self, root: SourceItem, options: SourceOptions) -> Result<Box<dyn TreeSource>, FilesError> {
        Ok(Box::new(LocalSource::new(vec![root], options, false)?))
    }
}

impl TargetPlace for Local {
    fn target_with(&self, spec: ReceiveRequest) -> Result<Arc<dyn TreeTarget>, FilesError> {
        Ok(Arc::new(FileSink::with_target(Arc::new(spec), true)?))
    }
}

fn put(top: &Path, tree: &Tree) {
    fs::create_dir_all(top).unwrap();
    let place = |path: &[u8]| top.join(OsStr::from_bytes(path));
    for (path, node) in tree {
        let path = place(path);
        match &node.content {
            Content::Directory => fs::create_dir_all(&path).unwrap(),
            Content::File(bytes) => {
                let _ = fs::remove_file(&path);
                fs::write(&path, bytes).unwrap();
            }
            Content::Symlink(target) => symlink(OsStr::from_bytes(target), &path).unwrap(),
        }
    }
    // Deeper names first: making names changes the time of their directory.
    for (path, node) in tree.iter().rev() {
        let path = place(path);
        if !matches!(node.content, Content::Symlink(_)) {
            fs::set_permissions(&path, Permissions::from_mode(node.mode)).unwrap();
        }
        let time = Timespec { tv_sec: node.mtime.seconds, tv_nsec: node.mtime.nanoseconds.into() };
        let times = Timestamps { last_access: time, last_modification: time };
        utimensat(CWD, &path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
    }
}

fn tree(top: &Path) -> Tree {
    let (mut found, mut left) = (Tree::new(), vec![top.to_owned()]);
    while let Some(path) = left.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let content = if metadata.is_dir() {
            let inside = fs::read_dir(&path).unwrap().map(|item| item.unwrap().path());
            left.extend(inside.filter(|path| !path.file_name().is_some_and(is_staging)));
            Content::Directory
        } else if metadata.is_symlink() {
            Content::Symlink(fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
        } else {
            Content::File(fs::read(&path).unwrap().into())
        };
        let key = path.strip_prefix(top).unwrap().as_os_str().as_bytes().to_vec();
        found.insert(key, Node { content, mode: metadata.mode() & 0o7777, mtime: mtime(&metadata) });
    }
    found.remove(&b""[..]);
    found
}

fn is_staging(name: &OsStr) -> bool {
    downpour_store::is_staging_name(name.as_bytes())
}

fn mtime(found: &fs::Metadata) -> Mtime {
    Mtime { seconds: found.mtime(), nanoseconds: u32::try_from(found.mtime_nsec()).unwrap() }
}
