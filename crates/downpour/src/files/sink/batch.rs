//! A batch whose manifest is complete and whose bytes are still coming.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::entry::Mtime;
use super::super::error::FilesError;
use super::super::names::display_name;
use super::super::ranges::RangeSet;
use super::super::staging::sync_at_once;

/// Digests that may be ahead of their blocks. Credit keeps an honest sender far below: it reads a block, and so has its
/// digest, only when it may send it.
const MAX_DIGESTS_AHEAD: usize = 65_536;

/// A regular file of a batch.
#[derive(Debug)]
pub(super) struct ReceivedFile {
    pub(super) path: Box<[u8]>,
    /// Index in the batch's entries.
    pub(super) entry: u32,
    /// Where its bytes start in the object.
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) mode: u32,
    pub(super) mtime: Mtime,
}

#[derive(Debug)]
pub(super) struct OpenBatch {
    pub(super) number: u32,
    /// Length of the object.
    length: u64,
    /// In the order of the object.
    pub(super) files: Vec<ReceivedFile>,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    /// Digests that wait for their block.
    expected: HashMap<u32, [u8; 32]>,
    /// Blocks that wait for their digest.
    found: HashMap<u32, (Range<u64>, [u8; 32])>,
    verified: RangeSet,
    /// As `files`.
    states: Vec<FileState>,
    /// Files that are not yet settled.
    unsettled: usize,
}

#[derive(Debug, Clone, Copy)]
struct FileState {
    /// Bytes not yet verified.
    left: u64,
    /// Something was left out as a hole.
    holes: bool,
    voided: bool,
}

/// A part of a range that lies in one file.
pub(super) struct Piece {
    /// Index in the batch's files.
    pub(super) file: usize,
    /// Where in the file.
    pub(super) inside: u64,
    /// Which bytes of the range.
    pub(super) bytes: Range<usize>,
}

impl OpenBatch {
    pub(super) fn new(number: u32, length: u64, files: Vec<ReceivedFile>) -> Self {
        let states = files.iter().map(|f| FileState { left: f.size, holes: false, voided: false }).collect();
        let progress = Progress {
            expected: HashMap::new(),
            found: HashMap::new(),
            verified: RangeSet::default(),
            states,
            unsettled: files.len(),
        };
        Self { number, length, files, progress: Mutex::new(progress) }
    }

    /// Indices of the empty files, which no block covers.
    pub(super) fn empty_files(&self) -> Vec<usize> {
        (0..self.files.len()).filter(|at| self.files[*at].size == 0).collect()
    }

    /// Whether the files are made durable all at once when the batch is complete.
    pub(super) fn synced_at_once(&self) -> bool {
        sync_at_once(self.files.len() as u64)
    }

    /// The files a range lies in. What is behind the object's end lies in none.
    pub(super) fn pieces(&self, offset: u64, length: usize) -> impl Iterator<Item = Piece> + '_ {
        let end = self.length.min(offset.saturating_add(length as u64));
        let first = self.files.partition_point(|f| f.start + f.size <= offset);
        let overlapping = (first..self.files.len()).take_while(move |at| self.files[*at].start < end);
        overlapping.filter(|at| self.files[*at].size > 0).map(move |at| {
            let file = &self.files[at];
            let (from, to) = (offset.max(file.start), end.min(file.start + file.size));
            let index = |position: u64| usize::try_from(position - offset).expect("inside a slice");
            Piece { file: at, inside: from - file.start, bytes: index(from)..index(to) }
        })
    }

    pub(super) fn is_voided(&self, file: usize) -> bool {
        self.lock().states[file].voided
    }

    pub(super) fn has_holes(&self, file: usize) -> bool {
        self.lock().states[file].holes
    }

    pub(super) fn note_holes(&self, file: usize) {
        self.lock().states[file].holes = true;
    }

    /// Voids the file of an entry; returns it the first time.
    pub(super) fn void(&self, entry: u32) -> Result<Option<usize>, FilesError> {
        let at = self.files.binary_search_by_key(&entry, |f| f.entry);
        let at = at.map_err(|_| self.broken("a void names no regular file"))?;
        let was = std::mem::replace(&mut self.lock().states[at].voided, true);
        Ok((!was).then_some(at))
    }

    /// Takes a digest from the sender; returns files that are verified by it.
    pub(super) fn expect(&self, block: u32, digest: [u8; 32]) -> Result<Vec<usize>, FilesError> {
        let mut progress = self.lock();
        if let Some((range, found)) = progress.found.remove(&block) {
            return self.compare(&mut progress, block, range, digest, found);
        }
        if progress.expected.len() >= MAX_DIGESTS_AHEAD {
            return Err(self.broken("too many digests ahead of their blocks"));
        }
        match progress.expected.insert(block, digest) {
            None => Ok(Vec::new()),
            Some(_) => Err(self.broken("a digest came twice")),
        }
    }

    /// Takes a digest of bytes that are written; returns files that are verified by it.
    pub(super) fn found(&self, block: u32, range: Range<u64>, digest: [u8; 32]) -> Result<Vec<usize>, FilesError> {
        let mut progress = self.lock();
        if let Some(expected) = progress.expected.remove(&block) {
            return self.compare(&mut progress, block, range, expected, digest);
        }
        progress.found.insert(block, (range, digest));
        Ok(Vec::new())
    }

    /// Counts one file as settled; `true` says that it was the last and the batch is complete.
    pub(super) fn settled(&self) -> Result<bool, FilesError> {
        let mut progress = self.lock();
        progress.unsettled -= 1;
        if progress.unsettled > 0 {
            return Ok(false);
        }
        if progress.expected.is_empty() && progress.found.is_empty() {
            return Ok(true);
        }
        Err(self.broken("more digests than blocks"))
    }

    /// Files that stand, and their bytes.
    pub(super) fn totals(&self) -> (u64, u64) {
        let progress = self.lock();
        let standing = self.files.iter().zip(&progress.states).filter(|(_, state)| !state.voided);
        standing.fold((0, 0), |(files, bytes), (file, _)| (files + 1, bytes + file.size))
    }

    pub(super) fn broken(&self, reason: &'static str) -> FilesError {
        FilesError::Protocol { batch: self.number, reason }
    }

    fn compare(
        &self,
        progress: &mut Progress,
        block: u32,
        range: Range<u64>,
        expected: [u8; 32],
        found: [u8; 32],
    ) -> Result<Vec<usize>, FilesError> {
        if expected != found {
            let path = self.pieces(range.start, 1).next().map(|piece| display_name(&self.files[piece.file].path));
            return Err(FilesError::Integrity { batch: self.number, block, path });
        }
        let range = range.start..range.end.min(self.length);
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        if !progress.verified.insert(range.clone()) {
            return Err(self.broken("a block is empty or overlaps another"));
        }
        let mut finished = Vec::new();
        for piece in self.pieces(range.start, length) {
            let state = &mut progress.states[piece.file];
            state.left = state.left.saturating_sub(piece.bytes.len() as u64);
            if state.left == 0 {
                finished.push(piece.file);
            }
        }
        Ok(finished)
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
