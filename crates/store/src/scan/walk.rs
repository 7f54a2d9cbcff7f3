//! The order in which names are visited.

use std::ffi::CStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use request::SourceOptions;
use rustix::fs::{Dir, DirEntry, fstat};
use rustix::io::fcntl_dupfd_cloexec;

use super::super::cursor::{DirectoryCursor, Purpose};
use super::super::metadata::{Identity, Status};
use super::super::root::Roots;
use super::super::sorted_names::Listing;
use super::candidate::{Candidate, Provenance, join, skip_reason};
use super::listed::ListedNames;
use crate::messages::{SkipReason, Skipped};

/// A walk through all items: depth first, sorted by name in each directory.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) cursor: DirectoryCursor,
    roots: Arc<Roots>,
    next_item: usize,
    /// Directories on another file system than the outermost one are not entered.
    one_file_system: bool,
    /// The user's list, if there is one: visited instead of the item.
    pub(super) listed: Option<ListedNames>,
    /// The directories that the walk is inside.
    stack: Vec<Directory>,
}

#[derive(Debug)]
struct Directory {
    /// Path of the entry; empty for an item without a name.
    sent: Vec<u8>,
    identity: Identity,
    listing: Arc<Listing>,
    /// Index in the listing.
    next: usize,
}

impl Walk {
    pub(super) fn new(roots: Arc<Roots>, listed: Option<ListedNames>, options: &SourceOptions) -> Self {
        let next_item = if listed.is_some() { roots.items().len() } else { 0 };
        let cursor = DirectoryCursor::new(Arc::clone(&roots));
        Self { cursor, roots, next_item, one_file_system: options.one_file_system, listed, stack: Vec::new() }
    }

    /// Returns the next name, or an item whose contents cannot be listed.
    pub(super) fn next(&mut self) -> Option<Result<Candidate, Skipped>> {
        loop {
            while let Some(directory) = self.stack.last_mut() {
                if let Some(name) = directory.listing.get(directory.next) {
                    directory.next += 1;
                    return Some(Ok(Candidate { sent: join(&directory.sent, name), provenance: Provenance::Met }));
                }
                self.stack.pop();
            }
            if let Some(step) = self.listed.as_mut().and_then(ListedNames::next) {
                return Some(Ok(step));
            }
            let item = self.next_item;
            let name = &self.roots.items().get(item)?.name;
            self.next_item += 1;
            if !name.is_empty() {
                return Some(Ok(Candidate { sent: name.clone(), provenance: Provenance::Met }));
            }
            if let Err(error) = self.enter_item(item) {
                let path = self.roots.items()[item].path.as_os_str().as_bytes().to_vec();
                return Some(Err(Skipped::new(path, skip_reason(&error))));
            }
        }
    }

    /// Whether no name is left.
    pub(super) fn is_over(&self) -> bool {
        self.next_item >= self.roots.items().len()
            && self.listed.as_ref().is_none_or(ListedNames::is_over)
            && self.stack.iter().all(|directory| directory.listing.get(directory.next).is_none())
    }

    /// Whether the walk is inside this directory.
    pub(super) fn is_in(&self, directory: Identity) -> bool {
        self.stack.iter().any(|outer| outer.identity == directory)
    }

    /// Continues in the directory at `sent`; returns `sent` if that fails.
    pub(super) fn enter(&mut self, sent: Vec<u8>) -> Result<(), Skipped> {
        let opened = self.cursor.directory(&sent).and_then(|directory| open(directory, None));
        match opened {
            Ok((identity, _)) if self.is_other_file_system(identity) => {
                return Err(Skipped::new(sent, SkipReason::OtherFileSystem));
            }
            Ok((identity, listing)) => self.stack.push(Directory { sent, identity, listing, next: 0 }),
            Err(error) => return Err(Skipped::new(sent, skip_reason(&error))),
        }
        Ok(())
    }

    /// Whether the directory at `sent` has contents, or cannot be read.
    pub(super) fn has_contents(&mut self, sent: &[u8]) -> bool {
        let names = self.cursor.directory(sent).and_then(|directory| Ok(Dir::read_from(directory)?));
        let is_name = |name: &CStr| !matches!(name.to_bytes(), b"." | b"..");
        let is_any = |item: rustix::io::Result<DirEntry>| item.map_or(true, |item| is_name(item.file_name()));
        names.map_or(true, |mut names| names.any(is_any))
    }

    /// Whether a directory must not be entered because it is on another file system than the outermost one, which is
    /// the item, or the directory named by the user's list.
    fn is_other_file_system(&self, directory: Identity) -> bool {
        let is_other_file_system = |outermost: &Directory| outermost.identity.device != directory.device;
        self.one_file_system && self.stack.first().is_some_and(is_other_file_system)
    }

    /// Continues in an item without a name.
    fn enter_item(&mut self, item: usize) -> io::Result<()> {
        let known = self.roots.items()[item].listing.clone();
        let (identity, listing) = open(self.cursor.directory_of(item, b"", Purpose::Listing)?, known)?;
        self.stack.push(Directory { sent: Vec::new(), identity, listing, next: 0 });
        Ok(())
    }
}

/// Returns the identity of a directory and the names in it, which are read unless `known`.
fn open(directory: BorrowedFd<'_>, known: Option<Arc<Listing>>) -> io::Result<(Identity, Arc<Listing>)> {
    let identity = Status::from(fstat(directory)?).identity;
    let listing = match known {
        Some(listing) => listing,
        None => Arc::new(Listing::read(fcntl_dupfd_cloexec(directory, 0)?)?),
    };
    Ok((identity, listing))
}
