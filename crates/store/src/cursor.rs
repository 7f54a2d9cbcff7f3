//! The directory cursor of a sender: opens the directories of the sources without leaving them.
//!
//! Each directory is opened from its parent. Symbolic links are followed only if the user asks for it, or if a listed
//! name lies behind a link made by this user or root. Otherwise anyone with write access to a directory that another
//! user sends could swap in a link and make that user send files that only they may read. (`openat2` would do the same
//! in one call, on Linux only.)

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use request::LinkPolicy;
use rustix::fs::{CWD, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::directory::{NAMED_WAY, READ_DIRECTORY, WAY};
use super::path_handle::PathHandle;
use super::root::Roots;

/// The use of an opened directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To open names in it or read their status.
    Way,
    /// To list it, too.
    Listing,
}

/// Maximum number of directories that a cursor keeps open. Parents of deeper ones are reopened on the way back up.
const MAX_OPEN: usize = 16;

/// The open directories on the path from a source item down to the directory used last.
///
/// Names arrive directory by directory, so the next one is nearly always in this directory or close to it.
#[derive(Debug)]
pub(super) struct DirectoryCursor {
    roots: Arc<Roots>,
    /// Whether links in a path are followed.
    links: LinkPolicy,
    /// Whether links in the parent path of a listed name are followed.
    follow_ways: bool,
    /// The current item, and the path beneath it.
    item: usize,
    path: Vec<u8>,
    /// The last directories on the path, deepest last, each with the length of its own path within `path`.
    open: VecDeque<(usize, OwnedFd)>,
}

impl DirectoryCursor {
    pub(super) fn new(roots: Arc<Roots>) -> Self {
        let (links, follow_ways) = (roots.links, roots.follow_ways);
        Self { roots, links, follow_ways, item: 0, path: Vec::new(), open: VecDeque::new() }
    }

    /// Creates a cursor that follows no links beneath the items, even if the user asks to follow links.
    pub(super) fn without_links(roots: Arc<Roots>) -> Self {
        Self { links: LinkPolicy::Copy, follow_ways: false, ..Self::new(roots) }
    }

    /// Returns the open parent directory of the entry at `path`, and the entry's name in it.
    pub(super) fn place<'a>(&'a mut self, path: &'a [u8]) -> io::Result<(BorrowedFd<'a>, &'a [u8])> {
        let (item, rest) = self.resolve(path)?;
        if rest.is_empty() {
            return Ok((CWD, self.roots.items()[item].path.as_os_str().as_bytes()));
        }
        let (parent, name) = match rest.iter().rposition(|b| *b == b'/') {
            Some(slash) => (&rest[..slash], &rest[slash + 1..]),
            None => (&rest[..0], rest),
        };
        Ok((self.directory_of(item, parent, Purpose::Way)?, name))
    }

    /// Opens the entry at `path`, a directory, to list it.
    pub(super) fn directory(&mut self, path: &[u8]) -> io::Result<BorrowedFd<'_>> {
        let (item, rest) = self.resolve(path)?;
        self.directory_of(item, rest, Purpose::Listing)
    }

    fn resolve<'a>(&self, path: &'a [u8]) -> io::Result<(usize, &'a [u8])> {
        self.roots.resolve(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the directory at `path` beneath an item.
    pub(super) fn directory_of(&mut self, item: usize, path: &[u8], purpose: Purpose) -> io::Result<BorrowedFd<'_>> {
        if item != self.item {
            self.open.clear();
        }
        let shared = shared_length(&self.path, path);
        // A directory opened as a parent is opened again to be listed.
        let stays = |length: usize| length <= shared && (length < path.len() || purpose == Purpose::Way);
        while self.open.back().is_some_and(|(length, _)| !stays(*length)) {
            self.open.pop_back();
        }
        self.item = item;
        self.path.clear();
        self.path.extend_from_slice(path);
        let purpose_of = |length: usize| if length == path.len() { purpose } else { Purpose::Way };
        if self.open.is_empty() {
            let root = &self.roots.items()[item];
            // The path of contents is followed through a link, since the user named it.
            let links = if root.name.is_empty() { LinkPolicy::Follow } else { self.links };
            let opened = openat(CWD, &root.path, flags(links, purpose_of(0)), Mode::empty())?;
            self.open.push_back((0, opened));
        }
        while let Some((length, directory)) = self.open.back()
            && *length < path.len()
        {
            let start = if *length == 0 { 0 } else { length + 1 };
            let end = path[start..].iter().position(|b| *b == b'/').map_or(path.len(), |at| start + at);
            let opened = match self.links {
                LinkPolicy::Copy | LinkPolicy::Skip if self.follow_ways => {
                    open_way(directory.as_fd(), &path[start..end], purpose_of(end))?
                }
                links => openat(directory, &path[start..end], flags(links, purpose_of(end)), Mode::empty())?,
            };
            if self.open.len() >= MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back((end, opened));
        }
        match self.open.back() {
            Some((_, directory)) => Ok(directory.as_fd()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Opens a parent directory of a listed name, or the target of a link made by this user or root.
pub(super) fn open_way(directory: BorrowedFd<'_>, name: &[u8], purpose: Purpose) -> io::Result<OwnedFd> {
    let error = match openat(directory, name, flags(LinkPolicy::Copy, purpose), Mode::empty()) {
        Err(error @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) => error,
        opened => return Ok(opened?),
    };
    let link = PathHandle::open(directory, name)?;
    let seen = link.status()?;
    let is_trusted = seen.owner == 0 || seen.owner == geteuid().as_raw();
    if seen.file_type != FileType::Symlink || !is_trusted {
        return Err(error.into());
    }
    // Reads the link that was just inspected, even if something else has its name by now.
    let target = readlinkat(&link, "", Vec::new())?;
    Ok(openat(directory, target, flags(LinkPolicy::Follow, purpose), Mode::empty())?)
}

/// Returns the length of the longest common prefix of both paths, in whole components.
pub(super) fn shared_length(one: &[u8], other: &[u8]) -> usize {
    let same = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let ends = |path: &[u8]| path.get(same).is_none_or(|b| *b == b'/');
    if ends(one) && ends(other) {
        return same;
    }
    one[..same].iter().rposition(|b| *b == b'/').unwrap_or(0)
}

fn flags(links: LinkPolicy, purpose: Purpose) -> OFlags {
    match (purpose, links == LinkPolicy::Follow) {
        (Purpose::Way, true) => NAMED_WAY,
        (Purpose::Way, false) => WAY,
        (Purpose::Listing, true) => READ_DIRECTORY.difference(OFlags::NOFOLLOW),
        (Purpose::Listing, false) => READ_DIRECTORY,
    }
}
