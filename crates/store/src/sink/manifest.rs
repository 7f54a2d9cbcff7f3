//! The sender's announcements: its messages in the order of flow 0, checked without the file system and hashed into the
//! root.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use request::{AllowedNames, ReceiveRequest, check_path, check_target};

use super::super::delete::SentPaths;
use super::super::error::FilesError;
use super::super::ids::LocalIds;
use super::super::staged_id::path_hash;
use super::announcement_check::AnnouncedNames;
use super::batch::{FileState, OpenBatch, ReceivedFile};
use super::name_collisions::Spellings;
use crate::lock::lock;
use crate::messages::{
    Attributes, Entry, EntryKind, IdName, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES, MAX_OPEN_BATCHES, ManifestPart,
    MessageError, RootHasher, SkipReason, Skipped, SourceId, TransferEnd, Wanted,
};

/// The announcements of one sender.
#[derive(Debug)]
pub(crate) struct Manifest {
    intake: Mutex<Intake>,
}

/// State that depends on the order of messages on flow 0.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    /// The names so far, which determine the names that may follow.
    announced: AnnouncedNames,
    pub(crate) source: Option<SourceId>,
    /// Mode and mtime of the directory whose contents are sent.
    pub(crate) top: Option<Attributes>,
    pub(crate) batches: Batches,
    root: RootHasher,
    skipped: u64,
    /// Users and groups of the sender, by their local numbers.
    pub(super) ids: LocalIds,
    /// Files that have changed while they were read, by the hashes of their paths as sent, each with its length and
    /// whether it was to be received: each may be sent once more.
    pub(crate) voided: HashMap<u64, (bool, u64)>,
    /// Whether the sender has skipped names that it should send.
    pub(crate) incomplete: bool,
    /// The announced paths, if names that are not sent are deleted.
    pub(crate) sent: Option<SentPaths>,
    /// All paths so far, to detect those that the target's file system treats as equal.
    pub(super) spellings: Spellings,
    /// In a dry run: the files that would be in place, by the hashes of their paths, each with whether it is the
    /// existing file.
    pub(super) placed: HashMap<u64, bool>,
    /// Reused to encode messages for the root.
    encoded: Vec<u8>,
}

impl Manifest {
    /// Creates the state before the first message.
    pub(crate) fn new(spec: &ReceiveRequest) -> Self {
        let (announced, sent) =
            (AnnouncedNames::new(&spec.permitted), spec.delete.as_ref().map(|_| SentPaths::default()));
        let ids = LocalIds::new(spec.preserve);
        Self { intake: Mutex::new(Intake { announced, sent, ids, ..Intake::default() }) }
    }

    /// Locks the announcements so far; held while one is processed.
    pub(crate) fn intake(&self) -> MutexGuard<'_, Intake> {
        lock(&self.intake)
    }

    /// Hashes a message that is processed by other code.
    pub(crate) fn hash(&self, encode: impl FnOnce(&mut Vec<u8>) -> Result<(), MessageError>) -> Result<(), FilesError> {
        self.intake().hash(encode)
    }
}

impl Intake {
    /// Processes the first message.
    pub(crate) fn begin(&mut self, source: SourceId) -> Result<(), FilesError> {
        self.source = Some(source);
        self.hash(|out| source.encode(out))
    }

    /// Processes mode and mtime of the directory whose contents are sent.
    pub(crate) fn top(&mut self, top: Attributes) -> Result<(), FilesError> {
        if self.source.is_none() || self.top.is_some() {
            return Err(FilesError::Protocol {
                batch: 0,
                reason: "sent the top attributes twice, or before the beginning",
            });
        }
        self.hash(|out| top.encode(out))?;
        self.top = Some(top);
        Ok(())
    }

    /// Takes the name of a user or group.
    pub(crate) fn id_name(&mut self, name: &IdName) -> Result<(), FilesError> {
        self.hash(|out| name.encode(out))?;
        self.ids.name(name).map_err(|reason| FilesError::Protocol { batch: 0, reason })
    }

    /// Lets a file be sent again. Returns whether it was to be received before.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] for a file that has not changed before, or that is sent a third time.
    pub(crate) fn repeat(&mut self, batch: u32, entry: &Entry) -> Result<bool, FilesError> {
        let is_file = matches!(entry.kind, EntryKind::File { .. });
        let was = self.voided.remove(&path_hash(&entry.path)).filter(|_| is_file);
        let was = was.map(|(was_due, _)| was_due);
        was.ok_or(FilesError::Protocol { batch, reason: "announced a file again that was not voided" })
    }

    /// Checks a part before it is processed: whether it is expected, consistent and permitted. `open` is the number of
    /// batches not yet verified. Returns the source.
    ///
    /// # Errors
    /// [`FilesError::Protocol`], [`FilesError::BadName`], [`FilesError::NotPermitted`].
    pub(crate) fn check(
        &mut self,
        part: &ManifestPart,
        permitted: &AllowedNames,
        open: usize,
    ) -> Result<SourceId, FilesError> {
        let broken = |reason| FilesError::Protocol { batch: part.batch, reason };
        let source = self.source.ok_or(broken("sent a manifest before the beginning"))?;
        self.batches.check(part)?;
        if !self.batches.is_building() && open >= MAX_OPEN_BATCHES {
            return Err(broken("opened too many batches"));
        }
        for entry in &part.entries {
            if part.again {
                self.withdraw(entry);
            }
            self.announced.add(entry, permitted)?;
        }
        Ok(source)
    }

    /// Removes a file that is sent again from the announcements.
    fn withdraw(&mut self, entry: &Entry) {
        if let Some((_, size)) = self.voided.get(&path_hash(&entry.path)) {
            self.announced.withdraw(*size);
        }
    }

    /// Counts a name that the sender skipped.
    pub(crate) fn skip(&mut self, skipped: &Skipped) -> Result<(), FilesError> {
        self.hash(|out| skipped.encode(out))?;
        self.skipped += 1;
        self.incomplete |= skipped.reason.is_failure() && skipped.reason != SkipReason::LargeXattrs;
        Ok(())
    }

    /// Adds a message to the root.
    pub(crate) fn hash(
        &mut self,
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), MessageError>,
    ) -> Result<(), FilesError> {
        self.encoded.clear();
        encode(&mut self.encoded)?;
        self.root.add(&self.encoded);
        Ok(())
    }

    /// Compares the sender's last message with the received ones.
    pub(crate) fn check_end(&self, end: &TransferEnd) -> Result<(), FilesError> {
        let Batches { count, entries, bytes, .. } = self.batches;
        if (end.batches, end.entries, end.bytes, end.skipped) != (count, entries, bytes, self.skipped) {
            return Err(FilesError::Protocol { batch: count, reason: "reported other totals than it sent" });
        }
        if end.root != self.root.root() {
            return Err(FilesError::Root);
        }
        Ok(())
    }
}

/// The batches so far, and the one whose parts are arriving.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    /// Batches whose last part has arrived.
    count: u32,
    /// Entries in all parts.
    entries: u64,
    /// Total length of complete batches.
    bytes: u64,
    building: Option<PartialManifest>,
    /// Bytes wanted of complete batches.
    pub(super) wanted: u64,
}

/// A batch whose parts are arriving.
#[derive(Debug)]
pub(crate) struct PartialManifest {
    /// Length of the batch as every part states it.
    full: u64,
    /// Whether the whole batch is sent, whatever is wanted.
    pub(crate) whole: bool,
    /// Whether its files were voided before.
    again: bool,
    /// Length of the entries so far.
    pub(crate) length: u64,
    pub(crate) entries: u32,
    name_bytes: usize,
    pub(crate) wanted: Wanted,
    pub(crate) files: Vec<(ReceivedFile, FileState)>,
    /// Indices of those among `files` that are compared with another version at the target.
    pub(super) compared: Vec<usize>,
}

/// A batch whose manifest is complete.
#[derive(Debug)]
pub(crate) struct CompleteManifest {
    pub(crate) batch: OpenBatch,
    /// The needed bytes of its object.
    pub(crate) wanted: Wanted,
    /// Whether its object is all of it.
    pub(crate) whole: bool,
    /// See [`PartialManifest::compared`].
    pub(super) compared: Vec<usize>,
}

impl Batches {
    /// Whether a batch has begun and not ended.
    pub(crate) fn is_building(&self) -> bool {
        self.building.is_some()
    }

    /// Checks everything about a part that can be checked without the file system.
    fn check(&self, part: &ManifestPart) -> Result<(), FilesError> {
        let broken = |reason| FilesError::Protocol { batch: part.batch, reason };
        if part.batch != self.count {
            return Err(broken("sent manifest parts out of order"));
        }
        let (mut length, mut entries, mut name_bytes) = (0_u64, 0, 0);
        if let Some(building) = &self.building {
            if (building.full, building.whole, building.again) != (part.length, part.whole, part.again) {
                return Err(broken("changed the length or kind between manifest parts"));
            }
            (length, entries, name_bytes) = (building.length, building.entries as usize, building.name_bytes);
        }
        for entry in &part.entries {
            check_path(&entry.path).map_err(|reason| FilesError::bad_name(&entry.path, reason))?;
            match &entry.kind {
                EntryKind::Symlink { target } => {
                    check_target(target).map_err(|reason| FilesError::bad_name(target, reason))?
                }
                EntryKind::HardLink { target } => {
                    check_path(target).map_err(|reason| FilesError::bad_name(target, reason))?;
                }
                EntryKind::File { .. } | EntryKind::Directory | EntryKind::Special(_) => {}
            }
            length = length.checked_add(entry.size()).ok_or(broken("announced files longer than any object"))?;
            name_bytes += entry.name_bytes();
        }
        entries += part.entries.len();
        if entries > MAX_BATCH_ENTRIES {
            return Err(broken("announced too many entries"));
        }
        if name_bytes > MAX_BATCH_NAMES {
            return Err(broken("announced names that are too long in total"));
        }
        if length > part.length || (part.last && length < part.length) {
            return Err(broken("announced a length other than the sum of its files"));
        }
        Ok(())
    }

    /// Returns the batch that a checked part belongs to.
    pub(crate) fn building(&mut self, part: &ManifestPart) -> &mut PartialManifest {
        self.building.get_or_insert_with(|| PartialManifest {
            full: part.length,
            whole: part.whole,
            again: part.again,
            length: 0,
            entries: 0,
            name_bytes: 0,
            wanted: Wanted::none(),
            files: Vec::new(),
            compared: Vec::new(),
        })
    }

    /// Counts a part whose entries were processed; for the last part returns the batch. `all` is whether the sender
    /// does not wait for wants.
    pub(crate) fn done(&mut self, part: &ManifestPart, all: bool) -> Result<Option<CompleteManifest>, FilesError> {
        self.entries += part.entries.len() as u64;
        if !part.last {
            return Ok(None);
        }
        let broken = |reason| FilesError::Protocol { batch: part.batch, reason };
        let Some(PartialManifest { full, whole, again, entries, wanted, files, compared, .. }) = self.building.take()
        else {
            return Ok(None);
        };
        self.wanted = self.wanted.saturating_add(wanted.length(full));
        let wanted = if all { Wanted::all() } else { wanted };
        let object = if whole { Wanted::all() } else { wanted.clone() };
        self.count = self.count.checked_add(1).ok_or(broken("sent too many batches"))?;
        self.bytes = self.bytes.checked_add(full).ok_or(broken("announced a total length that overflows"))?;
        let mut batch = OpenBatch::new((part.batch, again), full, object, entries, files);
        // If everything is sent, the needed bytes are only reported.
        let wanted = if all || whole { wanted } else { batch.bound_wanted() };
        Ok(Some(CompleteManifest { batch, wanted, whole, compared }))
    }
}

impl PartialManifest {
    /// Counts an entry that was processed.
    pub(crate) fn count(&mut self, size: u64, name_bytes: usize) {
        self.length += size;
        self.entries += 1;
        self.name_bytes += name_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{Message, RootHash};
    use crate::{Entry, Extra, Mtime};

    fn file(path: &str, size: u64) -> Entry {
        let kind = EntryKind::File { size, version: 0, hash: None };
        Entry { path: path.into(), kind, mode: 0o644, mtime: Mtime::default(), extra: Extra::default() }
    }

    fn part(batch: u32, length: u64, last: bool, entries: Vec<Entry>) -> ManifestPart {
        ManifestPart { batch, last, whole: false, again: false, length, entries }
    }

    fn reason(result: Result<(), FilesError>) -> &'static str {
        match result {
            Err(FilesError::Protocol { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn contradictory_manifest_parts_are_rejected() {
        let mut batches = Batches::default();
        let first = part(0, 5, false, vec![file("a", 3)]);
        batches.check(&first).unwrap();
        let building = batches.building(&first);
        building.count(3, 1);
        assert!(batches.is_building());
        assert_eq!(reason(batches.check(&part(1, 5, true, vec![]))), "sent manifest parts out of order");
        assert_eq!(
            reason(batches.check(&part(0, 6, true, vec![]))),
            "changed the length or kind between manifest parts"
        );
        assert_eq!(
            reason(batches.check(&part(0, 5, true, vec![file("b", 1)]))),
            "announced a length other than the sum of its files"
        );
        assert_eq!(
            reason(batches.check(&part(0, 5, true, vec![file("b", u64::MAX)]))),
            "announced files longer than any object"
        );
        let last = part(0, 5, true, vec![file("b", 2)]);
        batches.check(&last).unwrap();
        assert!(batches.done(&first, true).unwrap().is_none());
        let CompleteManifest { wanted, .. } = batches.done(&last, true).unwrap().unwrap();
        assert!(wanted.is_all() && !batches.is_building());
        assert_eq!((batches.count, batches.entries, batches.bytes), (1, 2, 5));
    }

    #[test]
    fn end_totals_must_match_messages() {
        let manifest = Manifest::new(&ReceiveRequest::into_directory("to"));
        let (source, mut root) = (SourceId([1; 16]), RootHasher::new());
        let mut bytes = Vec::new();
        Message::Begin(source).encode(&mut bytes).unwrap();
        root.add(&bytes);
        manifest.intake().begin(source).unwrap();
        let end = TransferEnd { batches: 0, entries: 0, bytes: 0, skipped: 0, root: root.root() };
        manifest.intake().check_end(&end).unwrap();
        let counts = TransferEnd { skipped: 1, ..end };
        assert_eq!(reason(manifest.intake().check_end(&counts)), "reported other totals than it sent");
        let other = TransferEnd { root: RootHash([0; 32]), ..end };
        assert!(matches!(manifest.intake().check_end(&other), Err(FilesError::Root)));
    }
}
