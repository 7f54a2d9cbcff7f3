//! A store in memory, in place of the disk of the local source and target. It is for tests, of this crate and of its
//! users, and shows which parts of the seam do not depend on a file system.
//!
//! It holds files, directories and symbolic links with modes and modification times. There are no owners, extended
//! attributes, hard links, special files, mounts, umask (022 is assumed) or other processes. Paths are components
//! joined by `/`; no links are followed, so no path leaves the store.

mod admission;
mod deletion;
mod disk;
mod items;
mod object;
mod placed;
mod source;
mod target;

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};
use std::sync::{Arc, Mutex};

use request::{ReceiveRequest, SourceOptions};

use self::disk::Disk;
pub use self::disk::{Content, Node};
pub use self::source::MemorySource;
pub use self::target::MemoryTarget;
use super::error::FilesError;
use super::faults::Faults;
use super::lock::lock;
use super::root::SourceItem;
use crate::messages::Mtime;

/// A tree in memory. Clones share the tree.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    disk: Arc<Mutex<Disk>>,
}

impl MemoryStore {
    /// Creates an empty store. Its name distinguishes it from others: it is part of the identity of its sources, and
    /// precedes the paths in its errors.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { disk: Arc::new(Mutex::new(Disk::new(name))) }
    }

    /// Puts a file, directory or link into the tree, in place of any existing name, with its parent directories.
    pub fn put(&self, path: impl AsRef<[u8]>, node: Node) {
        lock(&self.disk).put(path.as_ref(), node);
    }

    /// Removes a name from the tree, with everything beneath it.
    pub fn take(&self, path: impl AsRef<[u8]>) {
        lock(&self.disk).take(path.as_ref());
    }

    /// Returns everything in the tree by path, without the top.
    #[must_use]
    pub fn tree(&self) -> BTreeMap<Vec<u8>, Node> {
        lock(&self.disk).tree()
    }

    /// Injects faults into future calls of the sources and targets of this store.
    pub fn fail(&self, faults: Faults) {
        lock(&self.disk).faults = faults;
    }

    /// Returns the faults last given to [`MemoryStore::fail`], with those that have occurred since.
    #[must_use]
    pub fn faults(&self) -> Faults {
        lock(&self.disk).faults.clone()
    }

    /// Returns these items as a source. A dry run removes nothing.
    ///
    /// # Errors
    /// Errors of [`Scanner::new`](super::Scanner::new), and [`FilesError::NotSupported`] for unsupported options:
    /// following links, lists of names, owners and further attributes, and contents of a directory beside other items.
    pub fn source(
        &self,
        roots: Vec<SourceItem>,
        options: &SourceOptions,
        dry_run: bool,
    ) -> Result<MemorySource, FilesError> {
        MemorySource::new(Arc::clone(&self.disk), roots, options, dry_run)
    }

    /// Returns a target of this store. `target_is_directory` is whether [`ReceiveRequest::target`] was a directory when
    /// the transfer began.
    ///
    /// # Errors
    /// [`FilesError::TargetNotADirectory`], and [`FilesError::NotSupported`] for unsupported requests: a target that
    /// is the name of the item, backups, limits of deletion, attributes beyond modes and times, and a comparison of two
    /// trees.
    pub fn target(&self, spec: Arc<ReceiveRequest>, target_is_directory: bool) -> Result<MemoryTarget, FilesError> {
        MemoryTarget::new(Arc::clone(&self.disk), spec, target_is_directory)
    }
}

impl Node {
    /// Creates a file.
    #[must_use]
    pub fn file(bytes: impl Into<Arc<[u8]>>, mode: u32, mtime: Mtime) -> Self {
        Self { content: Content::File(bytes.into()), mode, mtime }
    }

    /// Creates a directory.
    #[must_use]
    pub const fn directory(mode: u32, mtime: Mtime) -> Self {
        Self { content: Content::Directory, mode, mtime }
    }

    /// Creates a symbolic link.
    #[must_use]
    pub fn symlink(target: impl Into<Vec<u8>>, mtime: Mtime) -> Self {
        Self { content: Content::Symlink(target.into()), mode: 0o777, mtime }
    }
}

/// Returns the error for a part of a request that this store does not support.
const fn unsupported(feature: &'static str) -> FilesError {
    FilesError::NotSupported { store: "a store in memory", feature }
}

/// Returns the path in the tree for a user's path: from its top, with or without a leading slash.
fn key(path: &Path) -> Result<Vec<u8>, FilesError> {
    let mut key = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => key = join(&key, name.as_bytes()),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(unsupported("paths with ..")),
        }
    }
    Ok(key)
}

/// Joins the path of a directory, which may be empty, and a name in it.
fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    match (directory, name) {
        ([], name) => name.to_vec(),
        (directory, []) => directory.to_vec(),
        (directory, name) => [directory, b"/", name].concat(),
    }
}

#[cfg(test)]
mod tests {
    use request::{AllowedNames, Backup, Filter, LinkPolicy, Preserve};

    use super::*;
    use crate::seam::TreeSource as _;

    const TIME: Mtime = Mtime { seconds: 7, nanoseconds: 0 };

    fn store() -> MemoryStore {
        let store = MemoryStore::new("store");
        store.put("a/b/file", Node::file(*b"text", 0o644, TIME));
        store
    }

    #[test]
    fn memory_put_makes_parents_take_removes_tree() {
        let store = store();
        store.put("a/b-c", Node::symlink("b", TIME));
        let names = |store: &MemoryStore| store.tree().into_keys().collect::<Vec<_>>();
        assert_eq!(names(&store), [&b"a"[..], b"a/b", b"a/b-c", b"a/b/file"]);
        store.take("a/b");
        assert_eq!(names(&store), [&b"a"[..], b"a/b-c"]);
        store.put("a", Node::file(*b"", 0o600, TIME));
        assert_eq!(names(&store.clone()), [b"a"]);
    }

    #[test]
    fn memory_unsupported_request_is_refused() {
        let spec = || ReceiveRequest::into_directory("a");
        let backup = Backup::new(None, Some(b"~")).unwrap();
        let asked = [
            ReceiveRequest { max_delete: Some(1), ..spec() },
            ReceiveRequest { compare_trees: true, ..spec() },
            ReceiveRequest { backup: Some(backup), ..spec() },
            ReceiveRequest { within: Some("a".into()), ..spec() },
            ReceiveRequest { preserve: Preserve { owner: true, ..Preserve::default() }, ..spec() },
            ReceiveRequest {
                permitted: AllowedNames {
                    items: Some(vec![request::ItemName::NewDirectory]),
                    ..AllowedNames::default()
                },
                ..spec()
            },
            ReceiveRequest::into_directory("a/../b"),
            ReceiveRequest::to_target("new name"),
        ];
        for spec in asked {
            let error = store().target(Arc::new(spec.clone()), false).unwrap_err();
            assert!(matches!(error, FilesError::NotSupported { .. }), "{spec:?}: {error}");
        }
        let error = store().target(Arc::new(ReceiveRequest::into_directory("a/b/file/c")), false).unwrap_err();
        assert!(matches!(error, FilesError::TargetNotADirectory { .. }), "{error}");
        store().target(Arc::new(ReceiveRequest { delete: Some(Filter::default()), ..spec() }), true).unwrap();
    }

    #[test]
    fn memory_invalid_items_are_refused() {
        let options = SourceOptions::default;
        let preserve = Preserve { xattrs: true, ..Preserve::default() };
        for options in [
            SourceOptions { links: LinkPolicy::Follow, ..options() },
            SourceOptions { files_from: Some(Vec::new()), ..options() },
            SourceOptions { preserve, ..options() },
        ] {
            let error = store().source(vec![SourceItem::contents("a")], &options, false).unwrap_err();
            assert!(matches!(error, FilesError::NotSupported { .. }), "{options:?}: {error}");
        }
        let source = |roots: &[SourceItem], options| store().source(roots.to_vec(), &options, false);
        let flat = || SourceOptions { recursive: false, ..options() };
        assert!(matches!(source(&[SourceItem::new("none")], options()), Err(FilesError::SourceAbsent { .. })));
        assert!(matches!(source(&[SourceItem::new("a")], flat()), Err(FilesError::NotRecursive { .. })));
        assert!(matches!(
            source(&[SourceItem::contents("a/b/file")], options()),
            Err(FilesError::SourceUnusable { .. })
        ));
        let twice = [SourceItem::new("a/b"), SourceItem { path: "a".into(), name: Some(b"b".to_vec()) }];
        assert!(matches!(source(&twice, options()), Err(FilesError::SameName { .. })));
    }

    #[test]
    fn memory_source_id_depends_on_items() {
        let id = |store: &MemoryStore, root| store.source(vec![root], &SourceOptions::default(), false).unwrap().id();
        let one = store();
        let first = id(&one, SourceItem::new("a/b"));
        one.put("a/b/more", Node::file(*b"", 0o600, TIME));
        assert_eq!(id(&one, SourceItem::new("/a/./b")), first);
        assert_ne!(id(&one, SourceItem::contents("a/b")), first);
        assert_ne!(id(&one, SourceItem::new("a")), first);
        let other = MemoryStore::new("other");
        other.put("a/b/file", Node::file(*b"text", 0o644, TIME));
        assert_ne!(id(&other, SourceItem::new("a/b")), first);
    }
}
