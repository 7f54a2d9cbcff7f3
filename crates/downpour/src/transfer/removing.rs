//! Removes the sources that the receiver reports as stored.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::error::Error;
use crate::files::{Batch, Entry, EntryKind, Notice, NoticeKind, SkipReason, SourceOutcome, TreeSource, Versions};
use crate::messages::{Stored, StoredEntry};

/// The removal of sources during one transfer. The receiver can only name entries that it was sent.
pub(super) struct Removing {
    source: Arc<dyn TreeSource>,
    /// Whether names of one file are sent as hard links: they are removed together at the end, since the next run could
    /// not create the links if this one is interrupted.
    hard_links: bool,
    /// Batches that the receiver has not stored yet.
    awaited: BTreeMap<u32, Awaited>,
    /// Hard links that it has not created yet, by batch and entry, each with its version.
    links: BTreeMap<(u32, u32), (Entry, u64)>,
    /// Stored names of files with several names, each with the versions of its source and of its copy.
    shared: Vec<(Entry, Versions)>,
    removed: u64,
    /// Whether the receiver has reported the end of its storing.
    is_over: bool,
}

struct Awaited {
    batch: Arc<Batch>,
    /// Entries that were not sent unchanged.
    spoiled: BTreeSet<u32>,
    /// Entries before this one are settled.
    next: u32,
}

impl Removing {
    pub(super) fn new(source: Arc<dyn TreeSource>, hard_links: bool) -> Self {
        Self {
            source,
            hard_links,
            awaited: BTreeMap::new(),
            links: BTreeMap::new(),
            shared: Vec::new(),
            removed: 0,
            is_over: false,
        }
    }

    /// Takes a batch whose manifest is sent.
    pub(super) fn expect(&mut self, batch: &Arc<Batch>) {
        let lossy = batch.skipped.iter().filter(|skipped| skipped.reason == SkipReason::LargeXattrs);
        let lossy: HashSet<_> = lossy.map(|skipped| &skipped.path).collect();
        let mut spoiled = BTreeSet::new();
        for ((number, entry), version) in (0..).zip(&batch.entries).zip(&batch.versions) {
            if matches!(entry.kind, EntryKind::HardLink { .. }) {
                self.links.insert((batch.number, number), (entry.clone(), *version));
            }
            if lossy.contains(&entry.path) {
                spoiled.insert(number);
            }
        }
        self.awaited.insert(batch.number, Awaited { batch: Arc::clone(batch), spoiled, next: 0 });
    }

    /// Keeps the source of an entry that could not be read unchanged.
    pub(super) fn spoil(&mut self, batch: u32, entry: u32) {
        if let Some(awaited) = self.awaited.get_mut(&batch) {
            awaited.spoiled.insert(entry);
        }
    }

    /// Removes stored sources; returns the result for each name.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if the receiver names entries that it cannot have, or names them twice.
    pub(super) fn take(&mut self, stored: &Stored) -> Result<Vec<Notice>, Error> {
        let broken = || {
            Error::ProtocolViolation(format!("entries of batch {} reported as stored that were not sent", stored.batch))
        };
        if self.is_over {
            return Err(broken());
        }
        let mut notices = Vec::new();
        let mut awaited = self.awaited.remove(&stored.batch);
        for StoredEntry { entry: number, version } in &stored.entries {
            let awaited = awaited.as_mut();
            let found = awaited.as_ref().and_then(|awaited| {
                let entry = awaited.batch.entries.get(*number as usize)?;
                let version = awaited.batch.versions.get(*number as usize)?;
                Some((entry.clone(), *version)).filter(|_| *number >= awaited.next)
            });
            let (entry, sent) = match (found, self.links.remove(&(stored.batch, *number))) {
                (None, Some(link)) => link,
                // In a dry run, links are not distinguished.
                (Some(found), _) if !matches!(found.0.kind, EntryKind::Directory) => found,
                _ => return Err(broken()),
            };
            if let Some(awaited) = awaited {
                awaited.next = number + 1;
                if awaited.spoiled.contains(number) {
                    continue;
                }
            }
            self.remove(entry, Versions { sent, stored: *version }, self.hard_links, &mut notices);
        }
        if let Some(awaited) = awaited.filter(|_| !stored.last) {
            self.awaited.insert(stored.batch, awaited);
        }
        Ok(notices)
    }

    /// Removes the sources that waited for the end; returns the result for each name, and the total number of removed
    /// names.
    ///
    /// # Errors
    /// [`Error::ProtocolViolation`] if the receiver has not reported its stored entries of each batch.
    pub(super) fn finish(&mut self) -> Result<(Vec<Notice>, u64), Error> {
        if self.is_over || !self.awaited.is_empty() {
            return Err(Error::ProtocolViolation("end of storing reported early or twice".to_owned()));
        }
        self.is_over = true;
        let mut notices = Vec::new();
        for (entry, versions) in std::mem::take(&mut self.shared) {
            self.remove(entry, versions, false, &mut notices);
        }
        Ok((notices, self.removed))
    }

    /// Returns whether the receiver has reported the end of its storing.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    fn remove(&mut self, entry: Entry, versions: Versions, waits: bool, notices: &mut Vec<Notice>) {
        let kind = match self.source.remove(&entry, versions, waits) {
            SourceOutcome::Removed => {
                self.removed += 1;
                NoticeKind::SourceRemoved
            }
            SourceOutcome::Kept(kind) => kind,
            SourceOutcome::Shared => return self.shared.push((entry, versions)),
            SourceOutcome::Gone => return,
        };
        notices.push(Notice::new(kind, &entry.path));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::files::{LocalSource, SourceItem, SourceOptions};

    /// Creates a directory with a file, a directory and another file, and their removal.
    fn expecting(base: &Path) -> Removing {
        fs::create_dir(base.join("b")).unwrap();
        for name in ["a", "c"] {
            fs::write(base.join(name), name).unwrap();
        }
        let options = SourceOptions { remove_sources: true, ..SourceOptions::default() };
        let source = Arc::new(LocalSource::new(vec![SourceItem::contents(base)], options, false).unwrap());
        let batch = source.next_batch().unwrap().unwrap();
        let mut removing = Removing::new(source, false);
        removing.expect(&Arc::new(batch));
        removing
    }

    fn stored(batch: u32, last: bool, entries: &[u32]) -> Stored {
        let entries = entries.iter().map(|entry| StoredEntry { entry: *entry, version: 0 }).collect();
        Stored { batch, last, entries }
    }

    fn count(base: &Path) -> usize {
        base.read_dir().unwrap().count()
    }

    #[test]
    fn removal_of_unsent_entries_refused() {
        for (batch, entries) in [(0, &[3][..]), (0, &[u32::MAX]), (0, &[1]), (1, &[0]), (0, &[2, 0]), (0, &[0, 0])] {
            let base = tempfile::tempdir().unwrap();
            let mut removing = expecting(base.path());
            let error = removing.take(&stored(batch, true, entries)).unwrap_err();
            assert!(matches!(error, Error::ProtocolViolation(_)), "{error}");
            assert!(count(base.path()) >= 2, "{entries:?}");
        }
    }

    #[test]
    fn removal_batch_reported_once_end_last() {
        let base = tempfile::tempdir().unwrap();
        let mut removing = expecting(base.path());
        assert!(matches!(removing.finish(), Err(Error::ProtocolViolation(_))));
        assert_eq!(removing.take(&stored(0, false, &[0])).unwrap().len(), 1);
        assert_eq!(removing.take(&stored(0, true, &[])).unwrap(), []);
        assert!(matches!(removing.take(&stored(0, true, &[2])), Err(Error::ProtocolViolation(_))));
        assert_eq!(removing.finish().unwrap(), (vec![], 1));
        assert!(removing.is_over() && matches!(removing.take(&stored(0, true, &[])), Err(Error::ProtocolViolation(_))));
        assert_eq!(count(base.path()), 2);
    }

    #[test]
    fn removal_keeps_changed_sources() {
        let base = tempfile::tempdir().unwrap();
        let mut removing = expecting(base.path());
        removing.spoil(0, 0);
        let notices = removing.take(&stored(0, true, &[0, 2])).unwrap();
        assert_eq!(notices, [Notice::new(NoticeKind::SourceRemoved, b"c")]);
        assert!(base.path().join("a").exists());
    }
}
