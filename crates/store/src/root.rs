//! The items that the user names to be sent, and the names under which they are sent.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use request::permitted::stands_for_contents;
use request::{Filter, LinkPolicy, MAX_COMPONENT, SourceOptions};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::error::FilesError;
use super::metadata::Status;
use super::outputs::SourceOutputs;
use super::sorted_names::Listing;

/// The reason for sockets, FIFOs and devices.
const NOT_SENT: &str = "not a file, directory or symbolic link";

/// An item to send: a file, a link, a directory, or the contents of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceItem {
    /// Local path of the item.
    pub path: PathBuf,
    /// Name under which the item is sent, one component; `None` for the last component of its path. An empty name means
    /// the contents: everything in the directory is sent under its own name, the directory itself is not.
    pub name: Option<Vec<u8>>,
}

impl SourceItem {
    /// Creates a root for the item itself, sent under the last component of its path; if the path ends in `.` or `..`,
    /// the component to which this resolves. A link is sent as a link unless the path ends in `/`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), name: None }
    }

    /// Creates a root for the contents of a directory, without the directory.
    #[must_use]
    pub fn contents(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), name: Some(Vec::new()) }
    }

    /// Interprets a user's argument as rsync does: a path that ends in `/`, `.` or `..` means the contents of a
    /// directory, any other for the item itself.
    #[must_use]
    pub fn typed(argument: &OsStr) -> Self {
        if stands_for_contents(argument.as_bytes()) { Self::contents(argument) } else { Self::new(argument) }
    }

    /// Whether the root means the contents of a directory.
    #[must_use]
    pub fn is_contents(&self) -> bool {
        self.name.as_ref().is_some_and(Vec::is_empty)
    }

    /// Returns the target of this root under the link's name if the root is a symbolic link.
    ///
    /// # Errors
    /// [`FilesError::SourceUnusable`] if the link is dangling or part of a loop.
    fn follow(&self) -> Result<Option<Self>, FilesError> {
        if self.is_contents() || !self.path.is_symlink() {
            return Ok(None);
        }
        let name = self.name.clone().map_or_else(|| own_name(&self.path), Ok)?;
        let path = self.path.canonicalize().map_err(|error| {
            // Such as /dev/stdin: a link to a FIFO, which has no path.
            if self.path.metadata().is_ok() {
                return FilesError::SourceUnusable { path: self.path.clone(), reason: NOT_SENT.to_owned() };
            }
            let dead_end = match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::NOENT | Errno::NOTDIR) => "dangling symbolic link",
                Some(Errno::LOOP) => "symbolic link that forms a loop",
                _ => return FilesError::system(&self.path, error),
            };
            FilesError::SourceUnusable { path: self.path.clone(), reason: dead_end.to_owned() }
        })?;
        Ok(Some(Self { path, name: Some(name) }))
    }

    /// Checks the item. Returns the name under which it is sent (empty for contents) and its status. `lists` is whether
    /// all contents of a directory are sent.
    fn check(&self, links: LinkPolicy, specials: bool, lists: bool) -> Result<(Vec<u8>, Status), FilesError> {
        let unusable = |reason: &str| FilesError::SourceUnusable { path: self.path.clone(), reason: reason.to_owned() };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                FilesError::SourceAbsent { path: self.path.clone() }
            }
            _ => FilesError::system(&self.path, error),
        };
        let follow = self.is_contents() || links == LinkPolicy::Follow;
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let seen = Status::from(statat(CWD, &self.path, flags).map_err(|e| failed(e.into()))?);
        match seen.file_type {
            FileType::Directory => {}
            _ if self.is_contents() => return Err(unusable("not a directory")),
            FileType::RegularFile => {}
            FileType::Symlink if links == LinkPolicy::Skip => {
                return Err(unusable("symbolic link, and links are skipped"));
            }
            FileType::Symlink => {}
            _ if specials => {}
            _ => return Err(unusable(NOT_SENT)),
        }
        if self.is_contents() && lists {
            // Fail now if the directory cannot be read: nothing at all would be sent.
            openat(CWD, &self.path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|e| failed(e.into()))?;
        }
        let name = match &self.name {
            Some(name) if is_component(name) || name.is_empty() => name.clone(),
            Some(name) => return Err(unusable(&format!("invalid name {}", String::from_utf8_lossy(name)))),
            None => own_name(&self.path)?,
        };
        Ok((name, seen))
    }
}

impl From<PathBuf> for SourceItem {
    fn from(path: PathBuf) -> Self {
        Self::new(path)
    }
}

/// Whether `name` is a single path component that names something in a directory.
fn is_component(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && name.len() <= MAX_COMPONENT && !name.iter().any(|b| matches!(b, 0 | b'/'))
}

fn own_name(path: &Path) -> Result<Vec<u8>, FilesError> {
    // The component after the last `/` decides: `Path` would treat `link/.` as `link`.
    let last = trim_slashes(path.as_os_str().as_bytes()).rsplit(|b| *b == b'/').next().unwrap_or_default();
    if !matches!(last, b"" | b"." | b"..") {
        return Ok(last.to_vec());
    }
    let canonical = path.canonicalize().map_err(|error| FilesError::system(path, error))?;
    match canonical.file_name() {
        Some(name) => Ok(name.as_bytes().to_vec()),
        None => Err(FilesError::SourceUnusable {
            path: path.to_owned(),
            reason: "has no name; name its contents instead".to_owned(),
        }),
    }
}

/// Returns the path without trailing slashes.
fn trim_slashes(path: &[u8]) -> &[u8] {
    let kept = path.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
    &path[..kept]
}

/// The local items of a transfer, by the name under which they are sent.
#[derive(Debug)]
pub struct Roots {
    items: Vec<Item>,
    /// Items by name, except those without one.
    named: HashMap<Vec<u8>, usize>,
    /// Items without a name whose contents are known in advance.
    listed: Vec<usize>,
    pub(super) links: LinkPolicy,
    /// See [`SourceOptions::follow_parent_links`]; only with a list.
    pub(super) follow_ways: bool,
    top: Option<Status>,
    /// Number of items that are symbolic links and were followed.
    followed: u64,
}

/// A root that was checked.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) path: PathBuf,
    /// Name under which the item is sent; empty if its contents are sent.
    pub(super) name: Vec<u8>,
    is_directory: bool,
    /// Contents of the item, read in advance if names of several items might clash.
    pub(super) listing: Option<Arc<Listing>>,
}

impl Roots {
    /// Checks every item.
    ///
    /// # Errors
    /// [`FilesError::SourceAbsent`], [`FilesError::SourceUnusable`], [`FilesError::NotRecursive`] unless directories
    /// may be sent, [`FilesError::SameName`], [`FilesError::SourceEmpty`].
    pub(super) fn new(roots: Vec<SourceItem>, options: &SourceOptions) -> Result<Self, FilesError> {
        let SourceOptions { links, follow_items, ref filter, .. } = *options;
        let directories = options.recursive || options.files_from.is_some();
        let mut made = Self {
            items: Vec::with_capacity(roots.len()),
            named: HashMap::new(),
            listed: Vec::new(),
            links,
            follow_ways: options.follow_parent_links && options.files_from.is_some(),
            top: None,
            followed: 0,
        };
        let is_alone = roots.len() == 1;
        let outputs = SourceOutputs::of(&options.outputs);
        for root in roots {
            let target = if follow_items { root.follow()? } else { None };
            if let Some(target) = target.as_ref().filter(|_| options.remove_sources)
                && !target.path.is_dir()
            {
                let reason = "sources cannot be removed through symbolic links; name the file itself".to_owned();
                return Err(FilesError::SourceUnusable { path: root.path, reason });
            }
            made.followed += u64::from(target.is_some());
            let root = target.unwrap_or(root);
            let (name, seen) = root.check(links, options.preserve.specials, options.files_from.is_none())?;
            outputs.check(&root.path, seen.identity)?;
            if is_alone && name.is_empty() {
                made.top = Some(seen);
            }
            if seen.is_directory() && !directories {
                return Err(FilesError::NotRecursive { path: root.path });
            }
            if !name.is_empty()
                && let Some(first) = made.named.insert(name.clone(), made.items.len())
            {
                return Err(same_name(&name, &made.items[first].path, &root.path));
            }
            let is_directory = seen.is_directory();
            made.items.push(Item { path: root.path, name, is_directory, listing: None });
        }
        made.list_contents(filter, options.refuse_empty)?;
        Ok(made)
    }

    /// Reads in advance the contents of each directory that is sent without its own name, if there are other items,
    /// since two names may clash. Files created in such a directory later are not sent.
    fn list_contents(&mut self, filter: &Filter, refuse_empty: bool) -> Result<(), FilesError> {
        if self.items.len() < 2 {
            return Ok(());
        }
        for at in 0..self.items.len() {
            if !self.items[at].name.is_empty() {
                continue;
            }
            let path = &self.items[at].path;
            let listing = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(io::Error::from)
                .and_then(Listing::read)
                .map_err(|error| FilesError::system(path, error))?;
            if refuse_empty && listing.get(0).is_none() {
                return Err(FilesError::SourceEmpty { path: path.clone() });
            }
            // Each directory is compared with the named items and with the directories before it.
            let taken = listing.iter().find_map(|name| {
                let left_out = !filter.allows(name, true) && !filter.allows(name, false);
                self.find(name).filter(|_| !left_out).map(|first| (name.to_vec(), first))
            });
            if let Some((name, first)) = taken {
                return Err(same_name(&name, &self.items[first].path, path));
            }
            self.items[at].listing = Some(Arc::new(listing));
            self.listed.push(at);
        }
        Ok(())
    }

    /// Finds the item of entries beginning with `top`, among the items whose names are known.
    fn find(&self, top: &[u8]) -> Option<usize> {
        let holds = |item: &usize| self.items[*item].listing.as_ref().is_some_and(|listing| listing.contains(top));
        self.named.get(top).copied().or_else(|| self.listed.iter().copied().find(holds))
    }

    /// Returns the item of an entry's path, and the path beneath the item, which is empty if the entry is the item
    /// itself.
    pub(super) fn resolve<'a>(&self, path: &'a [u8]) -> Option<(usize, &'a [u8])> {
        if let [item] = self.items.as_slice()
            && item.name.is_empty()
        {
            return Some((0, path));
        }
        let top_length = path.iter().position(|b| *b == b'/').unwrap_or(path.len());
        let (top, rest) = path.split_at(top_length);
        let item = self.find(top)?;
        if self.items[item].name.is_empty() {
            Some((item, path))
        } else {
            Some((item, rest.strip_prefix(b"/").unwrap_or(rest)))
        }
    }

    /// Returns the only item, to which the names of a list are relative.
    ///
    /// # Errors
    /// [`FilesError::SourceUnusable`] if it is not a directory or not the only item.
    pub(super) fn only_directory(&self) -> Result<&Item, FilesError> {
        let unusable = |item: &Item, reason: &str| FilesError::SourceUnusable {
            path: item.path.clone(),
            reason: reason.to_owned(),
        };
        match self.items.as_slice() {
            [item] if item.is_directory => Ok(item),
            [item] => Err(unusable(item, "a list of names needs a directory as source")),
            [_, second, ..] => Err(unusable(second, "a list of names needs a single directory as source")),
            [] => Err(FilesError::SourceAbsent { path: PathBuf::new() }),
        }
    }

    /// Returns the status of the directory whose contents are sent.
    pub(super) fn top(&self) -> Option<Status> {
        self.top
    }

    /// Returns the number of items that are symbolic links and were followed because of
    /// [`SourceOptions::follow_items`].
    #[must_use]
    pub fn followed(&self) -> u64 {
        self.followed
    }

    /// Returns the items in the order in which they were named.
    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }
}

fn same_name(name: &[u8], first: &Path, second: &Path) -> FilesError {
    FilesError::SameName { name: name.to_vec(), first: first.to_owned(), second: second.to_owned() }
}
