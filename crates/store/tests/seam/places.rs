//! The stores that there are, each with a tree of its own.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use store::{
    Content, Existing, FileSink, FilesError, LocalSource, MemoryStore, Modes, Mtime, Node, ReceiveSpec, Requested,
    Root, ScanOptions, TreeSource, TreeTarget,
};
use tempfile::TempDir;

use crate::trees::Tree;

/// A directory somewhere, whose contents come from there or go there.
pub(crate) enum Place {
    Local(TempDir),
    Memory(MemoryStore),
}

impl Place {
    pub(crate) fn local() -> Self {
        // In memory if possible: these tests are not about disks.
        Self::Local(tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap())
    }

    pub(crate) fn memory(name: &str) -> Self {
        Self::Memory(MemoryStore::new(name))
    }

    /// Returns the store in memory.
    pub(crate) fn store(&self) -> &MemoryStore {
        match self {
            Self::Memory(store) => store,
            Self::Local(_) => panic!("only the store in memory is made to fail"),
        }
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Local(directory) => directory.path().join("tree"),
            Self::Memory(_) => "tree".into(),
        }
    }

    /// Makes the directory with this in it, in addition to what is there.
    pub(crate) fn put(&self, tree: &Tree) {
        match self {
            Self::Memory(store) => {
                if store.tree().is_empty() {
                    store.put("tree", Node::directory(0o755, Mtime::default()));
                }
                for (path, node) in tree {
                    store.put([b"tree/", path.as_slice()].concat(), node.clone());
                }
            }
            Self::Local(_) => put_local(&self.path(), tree),
        }
    }

    /// Takes a name out of the directory, with everything beneath it.
    pub(crate) fn take(&self, path: &str) {
        match self {
            Self::Memory(store) => store.take(format!("tree/{path}")),
            Self::Local(_) => {
                let path = self.path().join(path);
                let is_directory = path.symlink_metadata().unwrap().is_dir();
                if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
            }
        }
    }

    /// Returns what is in the directory, without what an interrupted transfer keeps there for itself.
    pub(crate) fn tree(&self) -> Tree {
        match self {
            Self::Memory(store) => {
                let within = |path: &[u8]| path.strip_prefix(b"tree/").map(<[u8]>::to_vec);
                store.tree().into_iter().filter_map(|(path, node)| Some((within(&path)?, node))).collect()
            }
            Self::Local(_) => local_tree(&self.path()),
        }
    }

    /// Returns mode and time of the directory itself.
    pub(crate) fn top(&self) -> (u32, Mtime) {
        match self {
            Self::Memory(store) => {
                let top = &store.tree()[&b"tree"[..]];
                (top.mode, top.mtime)
            }
            Self::Local(_) => {
                let found = self.path().metadata().unwrap();
                (found.mode() & 0o7777, mtime(&found))
            }
        }
    }

    /// Returns the contents of the directory as a source.
    pub(crate) fn source_with(&self, options: ScanOptions) -> Result<Box<dyn TreeSource>, FilesError> {
        let roots = vec![Root::contents(self.path())];
        Ok(match self {
            Self::Memory(store) => Box::new(store.source(roots, &options, false)?),
            Self::Local(_) => Box::new(LocalSource::new(roots, options, false)?),
        })
    }

    pub(crate) fn source(&self) -> Box<dyn TreeSource> {
        self.source_with(ScanOptions::default()).unwrap()
    }

    /// Returns an item of the directory as a source.
    pub(crate) fn item(&self, name: &str) -> Box<dyn TreeSource> {
        let (roots, options) = (vec![Root::new(self.path().join(name))], ScanOptions::default());
        match self {
            Self::Memory(store) => Box::new(store.source(roots, &options, false).unwrap()),
            Self::Local(_) => Box::new(LocalSource::new(roots, options, false).unwrap()),
        }
    }

    /// A request to make the directory what the source is, as far as it is not there.
    pub(crate) fn spec(&self) -> ReceiveSpec {
        ReceiveSpec {
            existing: Existing::Replace,
            modes: Modes::Exact,
            requested: Requested { many: true, contents: true, ..Requested::default() },
            ..ReceiveSpec::into_directory(self.path())
        }
    }

    pub(crate) fn target_with(&self, spec: ReceiveSpec) -> Result<Arc<dyn TreeTarget>, FilesError> {
        let spec = Arc::new(spec);
        Ok(match self {
            Self::Memory(store) => Arc::new(store.target(spec, true)?),
            Self::Local(_) => Arc::new(FileSink::with_target(spec, true)?),
        })
    }

    pub(crate) fn target(&self) -> Arc<dyn TreeTarget> {
        self.target_with(self.spec()).unwrap()
    }
}

/// Runs a test between all pairs of stores.
pub(crate) fn between_all(test: impl Fn(&Place, &Place)) {
    let from: [fn() -> Place; 2] = [Place::local, || Place::memory("from")];
    let to: [fn() -> Place; 2] = [Place::local, || Place::memory("to")];
    for (from, to) in from.iter().flat_map(|from| to.iter().map(move |to| (from(), to()))) {
        let name = |place: &Place| if matches!(place, Place::Local(_)) { "local" } else { "memory" };
        println!("from {} to {}", name(&from), name(&to));
        test(&from, &to);
    }
}

fn put_local(top: &Path, tree: &Tree) {
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
    // What is deeper first: to make names changes the time of their directory.
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

fn local_tree(top: &Path) -> Tree {
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
    store::is_staging_name(name.as_bytes())
}

fn mtime(found: &fs::Metadata) -> Mtime {
    Mtime { seconds: found.mtime(), nanoseconds: u32::try_from(found.mtime_nsec()).unwrap() }
}
