//! Walks the items that the user named and yields them batch by batch.
//!
//! The walk is depth first and sorted by name within each directory, so the same tree gives the same batches. Only the
//! name lists of the directories that the walk is inside are kept: memory grows with the depth and with the longest
//! directory, not with the number of files.

mod candidate;
mod hard_links;
mod listed;
mod look;
mod source_id;
mod walk;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use request::{LinkPolicy, MAX_PATH, SourceOptions};
use rustix::fs::CWD;

use super::batch::Batch;
use super::error::FilesError;
use super::path_handle::PathHandle;
use super::root::{Roots, SourceItem};
use super::xattrs::is_acl;
use crate::messages::{
    Attributes, Entry, EntryKind, Extra, IdName, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES, MAX_XATTRS, SkipReason, Skipped,
    SourceId,
};
use candidate::{Candidate, Provenance, skip_reason};
use listed::ListedNames;
use look::{Inspection, Looker};
use walk::Walk;

/// The first batch closes at this many entries...
const FIRST_ENTRIES: usize = 256;
/// ... or at this many bytes; each following batch may be [`GROWTH`] times larger (`docs/design/block-sizes.md`).
const FIRST_BYTES: u64 = 64 << 20;
const GROWTH: usize = 4;
/// Maximum size of a batch in bytes, after which it closes. Files are never split: a larger one ends its batch.
const MAX_BATCH_BYTES: u64 = 64 << 30;

/// An iterator over the batches of a transfer.
#[derive(Debug)]
pub struct Scanner {
    roots: Arc<Roots>,
    id: SourceId,
    top: Option<Attributes>,
    /// Why some of its attributes are not sent.
    top_skipped: Option<Skipped>,
    recursive: bool,
    links: LinkPolicy,
    keeps_versions: bool,
    walk: Walk,
    looker: Looker,
    number: u32,
    entry_limit: usize,
    byte_limit: u64,
}

impl Scanner {
    /// Checks every item; walks nothing yet. If the contents of several directories go to one directory, their name
    /// lists are read now and compared.
    ///
    /// # Errors
    /// [`FilesError::SourceAbsent`], [`FilesError::SourceUnusable`] for an item that is not a file, directory or link,
    /// has no name (`/`), or cannot be sent with these options, [`FilesError::NotRecursive`], [`FilesError::SameName`],
    /// [`FilesError::SourceEmpty`].
    pub fn new(roots: Vec<SourceItem>, mut options: SourceOptions) -> Result<Self, FilesError> {
        let mut looker = Looker::new(&options);
        let roots = Arc::new(Roots::new(roots, &options)?);
        let (recursive, files_from) = (options.recursive, options.files_from.take());
        let mut top_skipped = None;
        // If names are listed, the directory only serves as their base.
        let top = roots.top().filter(|_| files_from.is_none()).map(|seen| {
            let hold = || PathHandle::follow(CWD, roots.items()[0].path.as_path());
            let extra = looker.extra(&seen, hold).map_err(|error| skip_reason(&error));
            let mut note = |reason| top_skipped = Some(Skipped::new(b".".to_vec(), reason));
            let mut extra = extra.unwrap_or_else(|reason| {
                note(reason);
                looker.of_status(&seen)
            });
            limit(&mut extra).unwrap_or_else(note);
            Attributes { mode: seen.mode, mtime: seen.mtime, extra }
        });
        let listed = files_from.map(|names| ListedNames::new(names, roots.only_directory()?)).transpose()?;
        let id = source_id::source_id(&roots, &options.filter, listed.as_ref().map(ListedNames::names));
        let is_everything = listed.as_ref().is_some_and(ListedNames::is_everything);
        let listed = listed.filter(|_| !(recursive && is_everything));
        if is_everything && !recursive && roots.top().is_some() {
            top_skipped = Some(Skipped::new(b".".to_vec(), SkipReason::Contents));
        }
        Ok(Self {
            walk: Walk::new(Arc::clone(&roots), listed, &options),
            roots,
            id,
            top,
            top_skipped,
            recursive,
            links: options.links,
            keeps_versions: options.remove_sources,
            looker,
            number: 0,
            entry_limit: FIRST_ENTRIES,
            byte_limit: FIRST_BYTES,
        })
    }

    /// Returns the location of the items, for [`super::BatchSource::new`].
    #[must_use]
    pub fn roots(&self) -> Arc<Roots> {
        Arc::clone(&self.roots)
    }

    /// Returns the identity of this source: equal for the same items under the same names, with the same filter and
    /// list, on the same host.
    #[must_use]
    pub fn source_id(&self) -> SourceId {
        self.id
    }

    /// Returns mode, mtime and further attributes, at the time of the check, of the directory whose contents are sent,
    /// and the names of its owner and group.
    #[must_use]
    pub fn top(&mut self) -> (Option<Attributes>, Vec<IdName>) {
        (self.top.take(), self.looker.names.take())
    }

    /// Makes the scan end soon after another thread sets `stopped`. A stopped walk has not seen everything.
    #[must_use]
    pub fn until(mut self, stopped: Arc<AtomicBool>) -> Self {
        self.looker.stopped = stopped;
        self
    }

    /// Inspects the next name and adds the resulting entry to `batch`; returns false if no name is left.
    fn visit(&mut self, batch: &mut Batch) -> bool {
        let candidate = match self.walk.next() {
            None => return false,
            Some(Err(skipped)) => {
                batch.skipped.push(skipped);
                return true;
            }
            Some(Ok(candidate)) => self.as_way(candidate),
        };
        if candidate.provenance == Provenance::Way && self.excludes_listed() {
            return true;
        }
        match self.look(&candidate) {
            Ok(Inspection::Present(kind, seen, mut extra)) => {
                if let Err(reason) = limit(&mut extra) {
                    batch.skipped.push(Skipped::new(candidate.sent.clone(), reason));
                }
                let walked = kind == EntryKind::Directory && self.recursive && candidate.provenance != Provenance::Way;
                if let Some(listed) = self.walk.listed.as_mut().filter(|_| candidate.provenance != Provenance::Met) {
                    listed.made(&candidate.sent, walked);
                }
                let is_bare = kind == EntryKind::Directory && !walked && candidate.provenance == Provenance::Listed;
                if is_bare && self.walk.has_contents(&candidate.sent) {
                    batch.skipped.push(Skipped::new(candidate.sent.clone(), SkipReason::Contents));
                }
                let inside = walked.then(|| candidate.sent.clone());
                let entry = Entry { path: candidate.sent, kind, mode: seen.mode, mtime: seen.mtime, extra };
                batch.length = batch.length.saturating_add(entry.size());
                if self.keeps_versions {
                    batch.versions.push(seen.version());
                }
                batch.entries.push(entry);
                if let Some(path) = inside
                    && let Err(skipped) = self.walk.enter(path)
                {
                    batch.skipped.push(skipped);
                }
            }
            Ok(Inspection::Excluded) => {}
            Err(reason) => {
                let blocked = self
                    .walk
                    .listed
                    .as_mut()
                    .filter(|_| candidate.provenance == Provenance::Way)
                    .and_then(ListedNames::blocked);
                batch.skipped.push(Skipped::new(blocked.unwrap_or(candidate.sent), reason));
            }
        }
        true
    }

    /// Treats a listed link in the path of the next listed name as a directory, as rsync does.
    fn as_way(&mut self, candidate: Candidate) -> Candidate {
        let has_next_beneath = self.walk.listed.as_ref().is_some_and(|listed| listed.has_next_beneath(&candidate.sent));
        let is_link = candidate.provenance == Provenance::Listed
            && has_next_beneath
            && self.looker.is_link_on_way(self.walk.cursor.place(&candidate.sent));
        if is_link { Candidate { provenance: Provenance::Way, ..candidate } } else { candidate }
    }

    /// Whether the next listed name is excluded: then its parent directories are not sent either.
    fn excludes_listed(&mut self) -> bool {
        let Some(name) = self.walk.listed.as_ref().and_then(ListedNames::approached).map(<[u8]>::to_vec) else {
            return false;
        };
        let is_excluded = self.looker.excludes(&name, self.walk.cursor.place(&name));
        if is_excluded {
            self.walk.listed.as_mut().and_then(ListedNames::blocked);
        }
        is_excluded
    }

    fn look(&mut self, candidate: &Candidate) -> Result<Inspection, SkipReason> {
        let looked = self.looker.look(candidate, self.walk.cursor.place(&candidate.sent))?;
        let leads_back =
            matches!(&looked, Inspection::Present(EntryKind::Directory, seen, _) if self.walk.is_in(seen.identity));
        if leads_back && self.links == LinkPolicy::Follow { Err(SkipReason::Loop) } else { Ok(looked) }
    }
}

impl Iterator for Scanner {
    type Item = Batch;

    /// Returns the next batch; it may have no entries if everything left was skipped.
    fn next(&mut self) -> Option<Batch> {
        // Growing a large batch step by step would copy it each time; unused capacity is never touched.
        let entries = Vec::with_capacity(self.entry_limit);
        let (skipped, id_names) = (self.top_skipped.take().into_iter().collect(), Vec::new());
        let versions = Vec::new();
        let mut batch = Batch { number: self.number, entries, length: 0, versions, skipped, id_names, is_last: false };
        let mut name_bytes = 0;
        while batch.entries.len() < self.entry_limit
            && batch.skipped.len() < self.entry_limit
            && batch.length < self.byte_limit
            // Reserves room for one more entry of any length.
            && name_bytes + 2 * MAX_PATH + MAX_XATTRS <= MAX_BATCH_NAMES
            && !self.looker.is_stopped()
        {
            let known = batch.entries.len();
            if !self.visit(&mut batch) {
                break;
            }
            name_bytes += batch.entries[known..].iter().map(Entry::name_bytes).sum::<usize>();
        }
        if self.looker.is_stopped() || (batch.entries.is_empty() && batch.skipped.is_empty()) {
            return None;
        }
        batch.is_last = self.walk.is_over();
        batch.id_names = self.looker.names.take();
        self.number = self.number.checked_add(1)?;
        self.entry_limit = (self.entry_limit * GROWTH).min(MAX_BATCH_ENTRIES);
        self.byte_limit = (self.byte_limit * GROWTH as u64).min(MAX_BATCH_BYTES);
        Some(batch)
    }
}

/// Drops attributes if there are too many; ACLs only if they alone are, since the mode then has another meaning.
fn limit(extra: &mut Extra) -> Result<(), SkipReason> {
    if extra.size() <= MAX_XATTRS {
        return Ok(());
    }
    extra.xattrs.retain(|xattr| is_acl(&xattr.name));
    if extra.size() > MAX_XATTRS {
        extra.xattrs.clear();
    }
    Err(SkipReason::LargeXattrs)
}
