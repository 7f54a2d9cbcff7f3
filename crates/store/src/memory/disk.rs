//! The tree in memory and its calls, each of which is complete before the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::error::FilesError;
use crate::faults::{Call, Fault, Faults};
use crate::messages::{Mtime, SourceId};

/// A name of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// File, directory or link.
    pub content: Content,
    /// Permission bits, which nothing in memory obeys.
    pub mode: u32,
    /// Time of last modification, which only a transfer changes.
    pub mtime: Mtime,
}

/// The content of a name.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// The bytes of a file.
    File(Arc<[u8]>),
    /// Further names.
    Directory,
    /// The target of a symbolic link, never resolved.
    Symlink(Vec<u8>),
}

/// A name as it was inspected.
#[derive(Debug, Clone)]
pub(super) struct NodeStatus {
    pub(super) node: Node,
    /// Differs after every change.
    pub(super) version: u64,
}

/// Why the bytes of a file differ from those that were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadError {
    Vanished,
    Changed,
    Broken,
}

/// The tree.
#[derive(Debug)]
pub(super) struct Disk {
    name: String,
    tree: BTreeMap<Vec<u8>, NodeStatus>,
    changes: u64,
    /// Items made by unfinished transfers.
    unfinished: BTreeSet<([u8; 16], Vec<u8>)>,
    pub(super) faults: Faults,
}

impl Node {
    pub(super) const fn is_directory(&self) -> bool {
        matches!(self.content, Content::Directory)
    }
}

impl fmt::Debug for Content {
    /// Names the bytes of a file by number and digest: a test that compares trees shows both.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(bytes) => write!(f, "File({} bytes, {})", bytes.len(), &blake3::hash(bytes).to_hex()[..16]),
            Self::Directory => f.write_str("Directory"),
            Self::Symlink(target) => write!(f, "Symlink({})", target.escape_ascii()),
        }
    }
}

impl Disk {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            tree: BTreeMap::new(),
            changes: 0,
            unfinished: BTreeSet::new(),
            faults: Faults::none(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path as errors show it.
    pub(super) fn shown(&self, path: &[u8]) -> PathBuf {
        Path::new(&self.name).join(OsStr::from_bytes(path))
    }

    /// Puts a name into the tree, with its parent directories.
    pub(super) fn put(&mut self, path: &[u8], node: Node) {
        for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            if !self.is_directory(&path[..at]) {
                self.insert(&path[..at], Node::directory(0o755, Mtime::default()));
            }
        }
        self.take(path);
        self.insert(path, node);
    }

    /// Removes a name from the tree, with everything beneath it.
    pub(super) fn take(&mut self, path: &[u8]) {
        self.tree.remove(path);
        for name in self.beneath(path).map(<[u8]>::to_vec).collect::<Vec<_>>() {
            self.tree.remove(&name);
        }
    }

    pub(super) fn tree(&self) -> BTreeMap<Vec<u8>, Node> {
        self.tree
            .iter()
            .filter(|(path, _)| !path.is_empty())
            .map(|(path, seen)| (path.clone(), seen.node.clone()))
            .collect()
    }

    /// Whether an unfinished transfer from `source` has made an item.
    pub(super) fn is_own(&self, source: SourceId, path: &[u8]) -> bool {
        self.unfinished.contains(&(source.0, path.to_vec()))
    }

    /// Notes that a transfer from `source` makes an item.
    pub(super) fn own(&mut self, source: SourceId, path: &[u8]) {
        self.unfinished.insert((source.0, path.to_vec()));
    }

    /// Forgets which items a transfer has made.
    pub(super) fn disown(&mut self, source: SourceId) {
        self.unfinished.retain(|(id, _)| *id != source.0);
    }

    /// Returns the names in a directory, in order.
    ///
    /// # Errors
    /// `ENOTDIR` for anything else.
    pub(super) fn list(&mut self, path: &[u8]) -> Result<Vec<Vec<u8>>, FilesError> {
        self.call(Call::Look, path)?;
        if !self.is_directory(path) {
            return Err(self.error(path, Errno::NOTDIR));
        }
        let skipped = if path.is_empty() { 0 } else { path.len() + 1 };
        let names = self.beneath(path).map(|found| &found[skipped..]).filter(|name| !name.contains(&b'/'));
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// Inspects a name.
    pub(super) fn look(&mut self, path: &[u8]) -> Result<Option<NodeStatus>, FilesError> {
        self.call(Call::Look, path)?;
        Ok(self.find(path))
    }

    fn find(&self, path: &[u8]) -> Option<NodeStatus> {
        if path.is_empty() {
            let top = Node::directory(0o755, Mtime::default());
            return Some(self.tree.get(path).cloned().unwrap_or(NodeStatus { node: top, version: 0 }));
        }
        self.tree.get(path).cloned()
    }

    /// Reads a file of that version from `offset`: at least one byte, unless the file ends there.
    pub(super) fn read(&mut self, path: &[u8], version: u64, offset: u64, out: &mut [u8]) -> Result<usize, ReadError> {
        let fault = self.faults.strike(Call::Read);
        let seen = self.tree.get(path).ok_or(ReadError::Vanished)?;
        let Content::File(bytes) = &seen.node.content else { return Err(ReadError::Changed) };
        if seen.version != version {
            return Err(ReadError::Changed);
        }
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let length = match fault {
            Some(Fault::Short) => short(rest.len().min(out.len())),
            Some(Fault::Full | Fault::Broken | Fault::LostPublish | Fault::LostAnswer) => {
                return Err(ReadError::Broken);
            }
            None => rest.len().min(out.len()),
        };
        out[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    /// Writes to the future file `path`, which has no name yet. Returns how many of `bytes` were written: at least one,
    /// if there are any.
    pub(super) fn write(
        &mut self,
        path: &[u8],
        staged: &mut Vec<u8>,
        offset: u64,
        bytes: &[u8],
    ) -> Result<usize, FilesError> {
        let bytes = match self.call(Call::Write, path)? {
            Some(Fault::Short) => &bytes[..short(bytes.len())],
            Some(Fault::Full | Fault::Broken | Fault::LostPublish | Fault::LostAnswer) | None => bytes,
        };
        let Some(end) = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(bytes.len())) else {
            return Err(FilesError::TooLarge { path: self.shown(path) });
        };
        if staged.len() < end {
            staged.resize(end, 0);
        }
        staged[end - bytes.len()..end].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Publishes a node under a name, in place of the existing one.
    ///
    /// # Errors
    /// `ENOTDIR` without a directory above it, `ENOTEMPTY` for a directory with names in it.
    pub(super) fn publish(&mut self, path: &[u8], node: Node) -> Result<(), FilesError> {
        let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |slash| &path[..slash]);
        if !self.is_directory(parent) {
            return Err(self.error(path, Errno::NOTDIR));
        }
        if self.beneath(path).next().is_some() {
            return Err(self.error(path, Errno::NOTEMPTY));
        }
        match self.call(Call::Publish, path)? {
            Some(Fault::LostPublish) => Ok(()),
            Some(Fault::LostAnswer) => {
                self.insert(path, node);
                Err(self.error(path, Errno::IO))
            }
            Some(Fault::Full | Fault::Broken | Fault::Short) | None => {
                self.insert(path, node);
                Ok(())
            }
        }
    }

    /// Sets mode and time of an existing name.
    ///
    /// # Errors
    /// `ENOENT`.
    pub(super) fn set_attributes(&mut self, path: &[u8], mode: u32, mtime: Mtime) -> Result<(), FilesError> {
        self.call(Call::Look, path)?;
        let Some(seen) = self.find(path) else { return Err(self.error(path, Errno::NOENT)) };
        self.insert(path, Node { mode, mtime, ..seen.node });
        Ok(())
    }

    /// Removes a name, if its node has this version.
    ///
    /// # Errors
    /// `ESTALE` if it has another, `ENOTEMPTY` for a directory with names in it.
    pub(super) fn remove(&mut self, path: &[u8], version: u64) -> Result<(), FilesError> {
        if self.tree.get(path).is_none_or(|seen| seen.version != version) {
            return Err(self.error(path, Errno::STALE));
        }
        if self.beneath(path).next().is_some() {
            return Err(self.error(path, Errno::NOTEMPTY));
        }
        let fault = self.call(Call::Remove, path)?;
        self.tree.remove(path);
        if fault == Some(Fault::LostAnswer) { Err(self.error(path, Errno::IO)) } else { Ok(()) }
    }

    /// Begins a call: it fails, or returns a fault that the caller has to carry out.
    fn call(&mut self, call: Call, path: &[u8]) -> Result<Option<Fault>, FilesError> {
        match self.faults.strike(call) {
            Some(Fault::Full) => Err(FilesError::DiskFull { path: self.shown(path) }),
            Some(Fault::Broken) => Err(self.error(path, Errno::IO)),
            other @ (Some(Fault::Short | Fault::LostPublish | Fault::LostAnswer) | None) => Ok(other),
        }
    }

    fn error(&self, path: &[u8], errno: Errno) -> FilesError {
        FilesError::Io { path: self.shown(path), source: errno.into() }
    }

    fn is_directory(&self, path: &[u8]) -> bool {
        path.is_empty() || self.tree.get(path).is_some_and(|seen| seen.node.is_directory())
    }

    /// Returns the paths beneath a directory; none for anything else.
    fn beneath(&self, path: &[u8]) -> impl Iterator<Item = &[u8]> {
        let start = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
        let range = (Bound::Excluded(start.clone()), Bound::Unbounded);
        self.tree.range(range).map(|(found, _)| found.as_slice()).take_while(move |found| found.starts_with(&start))
    }

    /// Versions differ between stores, so that a removal in one store never confuses its node with one of another.
    fn insert(&mut self, path: &[u8], node: Node) {
        self.changes += 1;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.changes.to_be_bytes()).update(self.name.as_bytes());
        let version = u64::from_be_bytes(*hasher.finalize().as_bytes().first_chunk().expect("32 bytes"));
        self.tree.insert(path.to_vec(), NodeStatus { node, version });
    }
}

/// Returns how many bytes a shortened call handles: some, if there are any.
const fn short(length: usize) -> usize {
    length.div_ceil(2)
}
