//! The verifier: compares the digests of received blocks with those that the sender announces.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::super::error::FilesError;
use super::super::journal::Record;
use super::batch::{OpenBatch, Verification};
use crate::lock::lock;

/// Open batches, and their verified data until the publisher takes it.
#[derive(Debug, Default)]
pub(crate) struct Verifier {
    open: Mutex<BTreeMap<u32, Arc<OpenBatch>>>,
    queue: Mutex<VerifiedQueue>,
}

/// Verified data.
#[derive(Debug, Default)]
struct VerifiedQueue {
    /// Complete files, by their index in the batch.
    files: VecDeque<(Arc<OpenBatch>, usize)>,
    /// Verified ranges to be recorded in the journal.
    records: Vec<Record>,
}

impl Verifier {
    /// Opens a batch whose wanted ranges are known. Files that need no bytes are complete at once.
    pub(crate) fn open(&self, batch: OpenBatch) {
        if batch.files.is_empty() {
            return;
        }
        let batch = Arc::new(batch);
        lock(&self.open).insert(batch.number, Arc::clone(&batch));
        let verified = Verification { files: batch.complete_files(), records: Vec::new() };
        self.add(&batch, verified);
    }

    /// Returns an open batch.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] if the batch is not open.
    pub(crate) fn batch(&self, number: u32) -> Result<Arc<OpenBatch>, FilesError> {
        let batch = lock(&self.open).get(&number).cloned();
        batch.ok_or(FilesError::Protocol { batch: number, reason: "referred to a batch that is not open" })
    }

    /// Drops a batch whose files are all in place.
    pub(crate) fn close(&self, number: u32) {
        lock(&self.open).remove(&number);
    }

    /// Returns the number of open batches.
    pub(crate) fn open_batches(&self) -> usize {
        lock(&self.open).len()
    }

    /// Adds a digest received from the sender. Returns whether it verified anything.
    pub(crate) fn expect(&self, batch: u32, block: u32, digest: [u8; 32]) -> Result<bool, FilesError> {
        let batch = self.batch(batch)?;
        let verified = batch.expect(block, digest).map_err(|error| error.of(&batch))?;
        Ok(self.add(&batch, verified))
    }

    /// Adds the digest of a block that was written. Returns whether it verified anything.
    pub(crate) fn found(
        &self,
        batch: u32,
        block: u32,
        range: Range<u64>,
        digest: [u8; 32],
    ) -> Result<bool, FilesError> {
        let batch = self.batch(batch)?;
        let verified = batch.found(block, range, digest).map_err(|error| error.of(&batch))?;
        Ok(self.add(&batch, verified))
    }

    /// Counts a range of a batch's object as verified. Returns whether it completes a file.
    pub(crate) fn trust(&self, batch: u32, range: Range<u64>) -> Result<bool, FilesError> {
        let batch = self.batch(batch)?;
        let files = batch.trust(range).map_err(|error| error.of(&batch))?;
        Ok(self.add(&batch, Verification { files, records: Vec::new() }))
    }

    /// Returns the open batches.
    pub(super) fn all(&self) -> Vec<Arc<OpenBatch>> {
        lock(&self.open).values().cloned().collect()
    }

    /// Returns the file of an entry that the sender voids; `None` if it is not received anyway.
    pub(crate) fn voided(&self, batch: &OpenBatch, entry: u32) -> Result<Option<usize>, FilesError> {
        batch.voided(entry).map_err(|error| error.of(batch))
    }

    /// Counts a complete file as settled; returns whether it was the last of its batch.
    pub(crate) fn settled(&self, batch: &OpenBatch) -> Result<bool, FilesError> {
        batch.settled().map_err(|error| error.of(batch))
    }

    /// Returns the next complete file, and all ranges verified before it was complete.
    pub(crate) fn take(&self) -> (Option<(Arc<OpenBatch>, usize)>, Vec<Record>) {
        let mut queue = lock(&self.queue);
        (queue.files.pop_front(), std::mem::take(&mut queue.records))
    }

    /// Returns the number of complete files waiting.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock(&self.queue).files.len()
    }

    fn add(&self, batch: &Arc<OpenBatch>, verified: Verification) -> bool {
        let Verification { files, records } = verified;
        let some = !files.is_empty() || !records.is_empty();
        if some {
            let mut queue = lock(&self.queue);
            queue.records.extend(records);
            queue.files.extend(files.into_iter().map(|at| (Arc::clone(batch), at)));
        }
        some
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::staged_id::StagedId;
    use super::super::batch::{FileState, ReceivedFile, SMALL_FILE};
    use super::*;
    use crate::messages::{Entry, EntryKind, Extra, Mtime, Wanted};

    const BLOCK: u64 = 1000;

    /// Creates a verifier of one batch: a file of two blocks and an empty one.
    fn verifier(size: u64) -> Verifier {
        let file = |path: &str, start, size| {
            let entry = Entry {
                path: path.into(),
                kind: EntryKind::File { size, version: 0, hash: None },
                mode: 0o644,
                mtime: Mtime::default(),
                extra: Extra::default(),
            };
            let id = StagedId::new(path.as_bytes(), &entry);
            let path = path.as_bytes().into();
            let index = u32::from(start > 0);
            let file = ReceivedFile {
                path,
                entry: index,
                id,
                start,
                size,
                mode: 0o644,
                keeps_mode: false,
                mtime: Mtime::default(),
                extra: Extra::default(),
            };
            (file, FileState::fresh(size))
        };
        let verifier = Verifier::default();
        let files = vec![file("two", 0, size), file("none", size, 0)];
        verifier.open(OpenBatch::new((0, false), size, Wanted::all(), 2, files));
        verifier
    }

    #[test]
    fn file_completes_with_either_digest_order() {
        let verifier = verifier(2 * BLOCK);
        let (Some((_, at)), records) = verifier.take() else { panic!("the empty file is complete") };
        assert_eq!((at, records.len()), (1, 0));
        assert!(!verifier.expect(0, 0, [1; 32]).unwrap());
        assert!(!verifier.found(0, 1, BLOCK..2 * BLOCK, [2; 32]).unwrap());
        assert!(!verifier.found(0, 0, 0..BLOCK, [1; 32]).unwrap(), "a small file is not recorded in parts");
        assert!(verifier.expect(0, 1, [2; 32]).unwrap());
        assert_eq!(verifier.take().0.map(|(_, at)| at), Some(0));
        let batch = verifier.batch(0).unwrap();
        assert_eq!((verifier.settled(&batch).unwrap(), verifier.settled(&batch).unwrap()), (false, true));
        verifier.close(0);
        assert!(matches!(
            verifier.batch(0),
            Err(FilesError::Protocol { reason: "referred to a batch that is not open", .. })
        ));
    }

    #[test]
    fn long_file_ranges_are_recorded() {
        let verifier = verifier(2 * SMALL_FILE);
        drop(verifier.take());
        assert!(!verifier.found(0, 0, 0..SMALL_FILE, [1; 32]).unwrap());
        assert!(verifier.expect(0, 0, [1; 32]).unwrap());
        let (None, records) = verifier.take() else { panic!("not complete") };
        assert!(
            matches!(&records[..], [Record::Verified(_, range, digest)] if *range == (0..SMALL_FILE) && *digest == [1; 32]),
            "{records:?}"
        );
    }

    #[test]
    fn digest_mismatch_names_its_file() {
        let verifier = verifier(2 * BLOCK);
        assert!(!verifier.expect(0, 1, [2; 32]).unwrap());
        let error = verifier.found(0, 1, BLOCK..2 * BLOCK, [3; 32]).unwrap_err();
        let FilesError::Integrity { batch: 0, block: 1, path } = error else { panic!("{error}") };
        assert_eq!(path.as_deref(), Some(&b"two"[..]));
        assert!(matches!(verifier.expect(0, 7, [0; 32]), Ok(false)));
        let twice = verifier.expect(0, 7, [0; 32]);
        assert!(matches!(twice, Err(FilesError::Protocol { reason: "sent a digest twice", .. })));
    }
}
