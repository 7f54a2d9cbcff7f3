//! A batch whose manifest is complete and whose bytes are still arriving.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::journal::{RangeDigest, Record};
use super::super::ranges::RangeSet;
use super::super::staged_id::StagedId;
use crate::error::FilesError;
use crate::lock::lock;
use crate::messages::{Extra, Mtime, Wanted};

/// Maximum number of digests received ahead of their blocks. Credit keeps an honest sender far below: it reads a block,
/// and so computes its digest, only when it may send the block.
const MAX_DIGESTS_AHEAD: usize = 65_536;

/// Size in bytes up to which a file that is not in place is received again as a whole after an interruption. Verified
/// ranges of larger files are recorded in the journal.
pub(super) const SMALL_FILE: u64 = 1 << 20;

/// Maximum number of wanted ranges of a batch, besides one for each entry. A sender accepts 65,536 besides two for
/// each.
const MAX_WANTED: usize = 60_000;

/// A regular file of a batch to be received.
#[derive(Debug)]
pub(crate) struct ReceivedFile {
    /// Final path.
    pub(crate) path: Box<[u8]>,
    /// Index in the batch's entries.
    pub(crate) entry: u32,
    pub(crate) id: StagedId,
    /// Offset of its bytes in the batch.
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// Final mode.
    pub(crate) mode: u32,
    /// Whether it is the mode of the replaced file, which inherited attributes do not change.
    pub(crate) keeps_mode: bool,
    pub(crate) mtime: Mtime,
    /// Owner and group by their local numbers, and extended attributes.
    pub(crate) extra: Extra,
}

/// State of a file that is being received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileState {
    /// Bytes wanted and not yet verified.
    pub(super) left: u64,
    /// Whether it exists in the staging directory.
    pub(super) made: bool,
    /// Whether its length may still be wrong, because zeros at its end were not written.
    pub(super) short: bool,
    /// Whether zeros must be written too, because the staged file may contain other data.
    pub(super) dense: bool,
    /// Whether its mode is not yet the final one.
    pub(super) wrong_mode: bool,
    /// Permissions that the system denied it when it was created.
    pub(super) denied: u32,
    /// Whether its bytes are discarded, because it was voided or refused.
    pub(crate) dropped: bool,
    /// Whether ranges of it were recorded in this run.
    pub(super) is_recorded: bool,
}

impl FileState {
    /// Creates the state of a file with `left` missing bytes and no others.
    pub(crate) const fn fresh(left: u64) -> Self {
        Self {
            left,
            made: false,
            short: false,
            dense: false,
            wrong_mode: false,
            denied: 0,
            dropped: false,
            is_recorded: false,
        }
    }
}

/// A batch whose bytes are still arriving.
#[derive(Debug)]
pub(crate) struct OpenBatch {
    pub(crate) number: u32,
    /// Whether its files were voided before.
    pub(crate) again: bool,
    /// Length of the whole batch.
    full: u64,
    /// The ranges of the batch that make up the object.
    wanted: Wanted,
    /// Number of entries in its manifest.
    entries: u32,
    /// Files that need bytes or other work, in the order of the batch.
    pub(crate) files: Vec<ReceivedFile>,
    progress: Mutex<BatchProgress>,
}

#[derive(Debug)]
struct BatchProgress {
    /// Digests waiting for their block.
    expected: HashMap<u32, [u8; 32]>,
    /// Blocks waiting for their digest.
    found: HashMap<u32, (Range<u64>, [u8; 32])>,
    /// Digests of the parts of blocks that lie in more than one file, until the block is verified.
    parts: HashMap<(usize, Range<u64>), RangeDigest>,
    /// Verified ranges of the object.
    verified: RangeSet,
    /// States of `files`, in the same order.
    states: Vec<FileState>,
    /// Number of files not yet settled.
    unsettled: usize,
}

/// A part of a range that lies in one file.
pub(crate) struct FileRange {
    /// Index in the batch's files.
    pub(crate) file: usize,
    /// Offset in the file.
    pub(crate) inside: u64,
    /// Bytes of the range.
    pub(crate) bytes: Range<usize>,
}

impl FileRange {
    /// Returns its range in the file.
    fn range(&self) -> Range<u64> {
        self.inside..self.inside + self.bytes.len() as u64
    }
}

/// Results of verifying a block.
#[derive(Debug, Default)]
pub(super) struct Verification {
    /// Files that it completed.
    pub(super) files: Vec<usize>,
    /// Records for the journal.
    pub(super) records: Vec<Record>,
}

impl OpenBatch {
    pub(super) fn new(
        (number, again): (u32, bool),
        full: u64,
        wanted: Wanted,
        entries: u32,
        files: Vec<(ReceivedFile, FileState)>,
    ) -> Self {
        let (files, states): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        let progress = BatchProgress {
            expected: HashMap::new(),
            found: HashMap::new(),
            parts: HashMap::new(),
            verified: RangeSet::default(),
            states,
            unsettled: files.len(),
        };
        Self { number, again, full, wanted, entries, files, progress: Mutex::new(progress) }
    }

    /// Sets the wanted ranges, and with them the missing bytes of each file. If more of a file is wanted than before,
    /// its staged bytes may be of another version.
    pub(super) fn want(&mut self, wanted: Wanted) {
        let progress = self.progress.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (file, state) in self.files.iter().zip(&mut progress.states) {
            let left = wanted.bytes_in(&(file.start..file.start + file.size), self.full);
            state.dense |= left > state.left;
            state.left = left;
        }
        self.wanted = wanted;
    }

    /// Returns the bytes of a file that are not wanted because they are present.
    pub(super) fn held(&self, file: usize) -> u64 {
        let ReceivedFile { start, size, .. } = self.files[file];
        size - self.wanted.bytes_in(&(start..start + size), self.full)
    }

    /// Limits the number of wanted ranges, since a sender accepts no longer list. Returns the resulting ranges.
    pub(super) fn bound_wanted(&mut self) -> Wanted {
        if let Some(fewer) = self.wanted.in_at_most(MAX_WANTED + self.entries as usize) {
            self.want(fewer);
        }
        self.wanted.clone()
    }

    /// Returns the indices of the files without missing bytes.
    pub(super) fn complete_files(&self) -> Vec<usize> {
        let progress = self.lock();
        (0..self.files.len()).filter(|at| progress.states[*at].left == 0).collect()
    }

    /// Splits a range of the object by file. Bytes beyond the end of the object belong to none.
    pub(crate) fn pieces(&self, offset: u64, length: usize) -> impl Iterator<Item = FileRange> + '_ {
        let mut before = 0;
        self.wanted.locate(offset, length as u64, self.full).flat_map(move |range| {
            let at = before;
            before += usize::try_from(range.end - range.start).expect("a part of a slice");
            self.pieces_of(range, at)
        })
    }

    /// Splits a range of the batch by file; its bytes start at `at` in the received range.
    fn pieces_of(&self, range: Range<u64>, at: usize) -> impl Iterator<Item = FileRange> + '_ {
        let first = self.files.partition_point(|file| file.start + file.size <= range.start);
        let overlapping = self.files[first..].iter().zip(first..).take_while(move |(file, _)| file.start < range.end);
        overlapping.filter(|(file, _)| file.size > 0).map(move |(file, index)| {
            let (from, to) = (range.start.max(file.start), range.end.min(file.start + file.size));
            let slice = |position: u64| at + usize::try_from(position - range.start).expect("inside a slice");
            FileRange { file: index, inside: from - file.start, bytes: slice(from)..slice(to) }
        })
    }

    pub(crate) fn state(&self, file: usize) -> FileState {
        self.lock().states[file]
    }

    pub(crate) fn change(&self, file: usize, change: impl FnOnce(&mut FileState)) {
        change(&mut self.lock().states[file]);
    }

    /// Notes the digest of a written piece, if the journal needs one that is not the block's: if the piece is only a
    /// part of the block with the bytes `block`.
    pub(super) fn note_part(&self, piece: &FileRange, block: &[u8]) {
        if piece.bytes.len() < block.len() && self.files[piece.file].size > SMALL_FILE {
            let digest = *blake3::hash(&block[piece.bytes.clone()]).as_bytes();
            self.lock().parts.insert((piece.file, piece.range()), digest);
        }
    }

    /// Returns the file of a voided entry; `None` if it is not received anyway.
    pub(super) fn voided(&self, entry: u32) -> Result<Option<usize>, VerifyError> {
        if entry >= self.entries {
            return Err(VerifyError::Protocol("voided an entry that does not exist"));
        }
        Ok(self.files.binary_search_by_key(&entry, |file| file.entry).ok())
    }

    /// Adds a digest received from the sender.
    pub(super) fn expect(&self, block: u32, digest: [u8; 32]) -> Result<Verification, VerifyError> {
        let mut progress = self.lock();
        if let Some((range, found)) = progress.found.remove(&block) {
            return self.compare(&mut progress, block, range, digest, found);
        }
        if progress.expected.len() >= MAX_DIGESTS_AHEAD {
            return Err(VerifyError::Protocol("sent too many digests ahead of their blocks"));
        }
        match progress.expected.insert(block, digest) {
            None => Ok(Verification::default()),
            Some(_) => Err(VerifyError::Protocol("sent a digest twice")),
        }
    }

    /// Adds the digest of bytes that were written.
    pub(super) fn found(&self, block: u32, range: Range<u64>, digest: [u8; 32]) -> Result<Verification, VerifyError> {
        let mut progress = self.lock();
        if let Some(expected) = progress.expected.remove(&block) {
            return self.compare(&mut progress, block, range, expected, digest);
        }
        progress.found.insert(block, (range, digest));
        Ok(Verification::default())
    }

    /// Counts a range of the object as verified without a digest; returns the files completed by it.
    pub(super) fn trust(&self, range: Range<u64>) -> Result<Vec<usize>, VerifyError> {
        self.count(&mut self.lock(), range, None).map(|verified| verified.files)
    }

    /// Returns the files with written bytes but no record: these bytes do not help a later run.
    pub(super) fn unrecorded(&self) -> Vec<usize> {
        let progress = self.lock();
        let is_useless = |at: &usize| {
            let state = &progress.states[*at];
            state.made && !state.dropped && state.left > 0 && !state.is_recorded && self.held(*at) == 0
        };
        (0..self.files.len()).filter(is_useless).collect()
    }

    /// Counts one file as settled; returns whether it was the last and the batch is complete.
    pub(super) fn settled(&self) -> Result<bool, VerifyError> {
        let mut progress = self.lock();
        progress.unsettled -= 1;
        if progress.unsettled > 0 {
            return Ok(false);
        }
        if progress.expected.is_empty() && progress.found.is_empty() {
            return Ok(true);
        }
        Err(VerifyError::Protocol("sent more digests than blocks"))
    }

    fn compare(
        &self,
        progress: &mut BatchProgress,
        block: u32,
        range: Range<u64>,
        expected: [u8; 32],
        found: [u8; 32],
    ) -> Result<Verification, VerifyError> {
        if expected != found {
            let file = self.pieces(range.start, 1).next().map(|piece| piece.file);
            return Err(VerifyError::Mismatch { block, file });
        }
        self.count(progress, range, Some(found))
    }

    /// Counts a range as verified: a block with this digest, which is recorded, or bytes without one.
    fn count(
        &self,
        progress: &mut BatchProgress,
        range: Range<u64>,
        found: Option<RangeDigest>,
    ) -> Result<Verification, VerifyError> {
        let whole = range.end.saturating_sub(range.start);
        let range = range.start..range.end.min(self.wanted.length(self.full));
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        if !progress.verified.insert(range.clone()) {
            return Err(VerifyError::Protocol("sent an empty or overlapping block"));
        }
        let mut verified = Verification::default();
        for piece in self.pieces(range.start, length) {
            let (file, state) = (&self.files[piece.file], &mut progress.states[piece.file]);
            let bytes = piece.bytes.len() as u64;
            state.left = state.left.saturating_sub(bytes);
            if state.left == 0 {
                verified.files.push(piece.file);
            }
            if file.size <= SMALL_FILE {
                continue;
            }
            let part = progress.parts.remove(&(piece.file, piece.range()));
            let digest = if bytes == whole { found } else { part };
            if let Some(digest) = digest.filter(|_| !state.dropped) {
                state.is_recorded = true;
                verified.records.push(Record::Verified(file.id, piece.range(), digest));
            }
        }
        Ok(verified)
    }

    fn lock(&self) -> MutexGuard<'_, BatchProgress> {
        lock(&self.progress)
    }
}

/// The reason why data is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerifyError {
    /// The sender broke a rule.
    Protocol(&'static str),
    /// A block differs from the bytes that the sender read. The file is the first one that it touches.
    Mismatch { block: u32, file: Option<usize> },
}

impl VerifyError {
    /// Converts it to an error of a batch.
    pub(super) fn of(self, batch: &OpenBatch) -> FilesError {
        match self {
            Self::Protocol(reason) => FilesError::Protocol { batch: batch.number, reason },
            Self::Mismatch { block, file } => {
                let path = file.map(|file| batch.files[file].path.to_vec());
                FilesError::Integrity { batch: batch.number, block, path }
            }
        }
    }
}
