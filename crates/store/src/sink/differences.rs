//! Files that the target has in another version: the chunks common to both versions are copied locally, and only the
//! rest is wanted.
//!
//! The sender lists the chunks of its version ([`super::super::chunks`]). Each one found in the local version is read
//! from it, compared with its digest, and written to the staged file, as if it had been received.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt as _;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::super::chunks::{Cuts, digest};
use super::super::error::FilesError;
use super::super::journal::Record;
use super::batch::{OpenBatch, ReceivedFile, SMALL_FILE};
use super::shared::Shared;
use super::target::TargetDirectory;
use super::writer::Writer;
use crate::lock::lock;
use crate::messages::{Chunk, ChunkDigest, Chunks, ListState, Wanted, shortest};

/// Maximum number of indexed chunks of the local version. A sender's list has at most half as many, unless its chunks
/// are very short.
const MAX_PLACES: usize = 1 << 22;

/// Maximum number of copied ranges kept for a batch; beyond it only the longest half is kept, and the others are
/// received although they were copied.
const MAX_COPIED: usize = 1 << 18;

/// Records written to the journal at a time.
const RECORDS: usize = 4096;

/// Bytes after which a copied range is recorded, with a digest of its own.
const MAX_RECORD: u64 = 8 << 20;

/// The shorter version must have at least one byte for this many of the longer one.
const LEAST_SHARE: u64 = 16;

/// Whether a file of `size` bytes may have much in common with the local one of `local` bytes.
pub(super) fn is_comparable(size: u64, local: u64) -> bool {
    Cuts::of(size).is_some() && size.min(local) >= size.max(local) / LEAST_SHARE
}

/// Batches whose manifest is complete and whose wanted ranges depend on chunks not yet received.
#[derive(Debug, Default)]
pub(super) struct Differences {
    open: Mutex<BTreeMap<u32, Comparison>>,
}

/// A batch with files of which the target has other versions.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) batch: OpenBatch,
    /// The ranges wanted without a comparison.
    pub(super) wanted: Wanted,
    /// Indices in the batch's files of those whose lists are outstanding, in this order.
    awaited: VecDeque<usize>,
    /// The list being received, of the first of them.
    listing: Option<ListedFile>,
    /// Ranges of the batch that were copied, in order, merged where they touch.
    copied: Vec<Range<u64>>,
    /// Not yet in the journal.
    records: Vec<Record>,
    /// Whether some copied ranges were dropped.
    forgets: bool,
}

/// A file whose chunks are being received.
#[derive(Debug)]
struct ListedFile {
    /// The local version, if it can be read.
    basis: Option<Basis>,
    /// End of the chunks so far.
    position: u64,
    /// The range that was copied last, while it may still grow, and its hash.
    run: (Range<u64>, blake3::Hasher),
    /// Whether the journal has records of it.
    recorded: bool,
}

/// The local version of a file.
#[derive(Debug)]
struct Basis {
    file: File,
    /// Its chunks, sorted.
    places: Vec<ChunkPlace>,
}

/// The position of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ChunkPlace {
    /// The beginning of its digest: the bytes read there are compared in full.
    key: u64,
    offset: u64,
    length: u32,
}

impl Differences {
    /// Returns the number of batches with outstanding chunks.
    pub(super) fn len(&self) -> usize {
        lock(&self.open).len()
    }

    /// Adds a batch with these files, by their indices, of which the target has other versions.
    pub(super) fn add(&self, batch: OpenBatch, wanted: Wanted, files: Vec<usize>) {
        let comparison = Comparison {
            wanted,
            awaited: files.into(),
            listing: None,
            copied: vec![],
            records: vec![],
            forgets: false,
            batch,
        };
        lock(&self.open).insert(comparison.batch.number, comparison);
    }

    /// Takes chunks: copies those found locally, and records them. Returns the batch and its wanted ranges after the
    /// last of its lists.
    ///
    /// # Errors
    /// [`FilesError::Protocol`] for chunks that were not requested, or that lie beyond the end of the file; a failure
    /// of the disk; [`FilesError::Over`].
    pub(super) fn take(
        &self,
        shared: &Shared,
        writer: &Writer,
        chunks: &Chunks,
    ) -> Result<Option<(OpenBatch, Wanted)>, FilesError> {
        let mut open = lock(&self.open);
        let broken = |reason| FilesError::Protocol { batch: chunks.batch, reason };
        // In their order, so that only one older version is in memory at a time.
        let first = open.first_entry().filter(|first| *first.key() == chunks.batch);
        let comparison = first.ok_or(broken("listed chunks that were not requested"))?.into_mut();
        let at = *comparison.awaited.front().ok_or(broken("listed chunks that were not requested"))?;
        if comparison.batch.files[at].entry != chunks.entry {
            return Err(broken("listed chunks of another file than requested"));
        }
        if chunks.state != ListState::Void && !chunks.chunks.is_empty() {
            comparison.copy(shared, writer, at, &chunks.chunks)?;
        }
        match chunks.state {
            ListState::Going => return Ok(None),
            ListState::Complete => comparison.complete(shared.place()?, at)?,
            ListState::Void => comparison.forget(shared.place()?, at)?,
        }
        comparison.awaited.pop_front();
        if !comparison.awaited.is_empty() {
            return Ok(None);
        }
        Ok(open.remove(&chunks.batch).map(|comparison| comparison.end(shared)))
    }
}

impl Comparison {
    /// Copies those of the next chunks of a file that exist locally and would be wanted.
    fn copy(&mut self, shared: &Shared, writer: &Writer, at: usize, chunks: &[Chunk]) -> Result<(), FilesError> {
        let place = shared.place()?;
        let file = &self.batch.files[at];
        let listing = match &mut self.listing {
            Some(listing) => listing,
            none => none.insert(ListedFile {
                basis: Basis::read(place, &file.path, file.size, shared.phase.stopped()).ok(),
                position: 0,
                run: (0..0, blake3::Hasher::new()),
                recorded: false,
            }),
        };
        let mut bytes = Vec::new();
        for chunk in chunks {
            shared.phase.check_stopped()?;
            let range = listing.position..listing.position.saturating_add(chunk.length.into());
            if range.end > file.size {
                let reason = "listed chunks beyond the end of the file";
                return Err(FilesError::Protocol { batch: self.batch.number, reason });
            }
            listing.position = range.end;
            let in_batch = file.start + range.start..file.start + range.end;
            // A chunk that is partly present would replace the record of that part.
            let is_wanted = self.wanted.bytes_in(&in_batch, u64::MAX) == u64::from(chunk.length);
            let Some(basis) = listing.basis.as_ref().filter(|_| is_wanted) else { continue };
            if !basis.find(chunk, range.start, &mut bytes) {
                continue;
            }
            let written = writer.write_at(place, &self.batch, at, range.start, &bytes);
            written.map_err(|error| error.of(&self.batch, place))?;
            if listing.run.0.end != range.start || listing.run.0.end - listing.run.0.start >= MAX_RECORD {
                self.records.extend(listing.record(file));
                listing.run = (range.start..range.start, blake3::Hasher::new());
                if self.records.len() >= RECORDS {
                    listing.recorded = true;
                    put_on_record(place, &mut self.records)?;
                }
            }
            listing.run.0.end = range.end;
            listing.run.1.update(&bytes);
            match self.copied.last_mut() {
                Some(last) if last.end == in_batch.start => last.end = in_batch.end,
                _ => self.copied.push(in_batch),
            }
            if self.copied.len() > MAX_COPIED {
                keep_longest(&mut self.copied, MAX_COPIED / 2);
                self.forgets = true;
            }
        }
        Ok(())
    }

    /// Completes the list of a file.
    fn complete(&mut self, place: &TargetDirectory, at: usize) -> Result<(), FilesError> {
        if let Some(listing) = self.listing.take() {
            self.records.extend(listing.record(&self.batch.files[at]));
        }
        put_on_record(place, &mut self.records)
    }

    /// Discards everything copied of a file.
    fn forget(&mut self, place: &TargetDirectory, at: usize) -> Result<(), FilesError> {
        let Some(ListedFile { recorded, .. }) = self.listing.take() else { return Ok(()) };
        let ReceivedFile { start, id, size, .. } = self.batch.files[at];
        while let Some(last) = self.copied.last_mut().filter(|last| last.end > start) {
            // The range before the file's first one may have grown into it.
            last.end = start;
            if last.is_empty() || last.start > start {
                self.copied.pop();
            }
        }
        self.records.clear();
        if recorded {
            self.records.push(Record::Dropped(id, 0..size));
        }
        // The staged file contains the copied bytes, so that zeros have to be written too.
        self.batch.change(at, |state| state.dense = true);
        put_on_record(place, &mut self.records)
    }

    /// Returns the batch with the ranges still wanted.
    fn end(self, shared: &Shared) -> (OpenBatch, Wanted) {
        let (mut batch, before) = (self.batch, self.wanted);
        if self.forgets {
            (0..batch.files.len()).for_each(|at| batch.change(at, |state| state.dense |= state.made));
        }
        batch.want(before.without(&self.copied, u64::MAX));
        let wanted = batch.bound_wanted();
        let copied = before.length(u64::MAX).saturating_sub(wanted.length(u64::MAX));
        shared.report.update(|outcome| outcome.present += copied);
        (batch, wanted)
    }
}

/// Writes the copied ranges to the journal.
fn put_on_record(place: &TargetDirectory, records: &mut Vec<Record>) -> Result<(), FilesError> {
    let put = place.staging.journal.append(records);
    records.clear();
    put.map_err(|error| FilesError::system(place.staging.path(), error))
}

impl ListedFile {
    /// Returns the record of the range that was copied last, if its file is long enough for one.
    fn record(&self, file: &ReceivedFile) -> Option<Record> {
        let (range, hasher) = &self.run;
        let digest = || *hasher.finalize().as_bytes();
        (file.size > SMALL_FILE && !range.is_empty()).then(|| Record::Verified(file.id, range.clone(), digest()))
    }
}

impl Basis {
    /// Reads the existing file at `path`, and indexes the chunks into which a file of `size` bytes would be cut.
    fn read(place: &TargetDirectory, path: &[u8], size: u64, stopped: &AtomicBool) -> io::Result<Self> {
        let (file, cuts) = (place.target.open(path)?, Cuts::of(size));
        let found = file.metadata()?;
        let cuts = cuts.filter(|_| found.is_file()).ok_or(io::ErrorKind::InvalidInput)?;
        let mut places = Vec::new();
        cuts.cut(&file, found.len(), stopped, |offset, Chunk { length, digest }| {
            places.push(ChunkPlace { key: key(&digest), offset, length });
            if places.len() < MAX_PLACES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        places.sort_unstable();
        Ok(Self { file, places })
    }

    /// Reads a chunk into `bytes`, preferably from `offset`; returns false if it does not exist locally, or no longer.
    fn find(&self, chunk: &Chunk, offset: u64, bytes: &mut Vec<u8>) -> bool {
        let key = key(&chunk.digest);
        let from = self.places.partition_point(|place| (place.key, place.offset) < (key, offset));
        let is_it = |place: &&ChunkPlace| place.key == key && place.length == chunk.length;
        let first = || self.places.get(self.places.partition_point(|place| place.key < key));
        let Some(place) = self.places.get(from).filter(is_it).or_else(|| first().filter(is_it)) else { return false };
        bytes.resize(chunk.length as usize, 0);
        self.file.read_exact_at(bytes, place.offset).is_ok() && digest(bytes) == chunk.digest
    }
}

fn key(digest: &ChunkDigest) -> u64 {
    u64::from_be_bytes(*digest.first_chunk().expect("24 bytes"))
}

/// Removes the shortest ranges until at most `most` are left.
fn keep_longest(ranges: &mut Vec<Range<u64>>, most: usize) {
    let excess = ranges.len().saturating_sub(most);
    if excess == 0 {
        return;
    }
    let length = |range: &Range<u64>| range.end - range.start;
    let mut goes = shortest(ranges.iter().map(length).collect(), excess);
    ranges.retain(|range| !goes(length(range)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_ranges_are_kept() {
        let ranges = || vec![0..3, 10..11, 20..22, 30..31, 40..45, 50..51];
        for most in 0..=7 {
            let mut kept = ranges();
            keep_longest(&mut kept, most);
            assert_eq!(kept.len(), most.min(6));
            let shortest = kept.iter().map(|range| range.end - range.start).min().unwrap_or(u64::MAX);
            let lost = ranges().into_iter().filter(|range| !kept.contains(range)).map(|range| range.end - range.start);
            assert!(lost.max().is_none_or(|longest| longest <= shortest), "{kept:?}");
            assert!(kept.is_sorted_by(|one, next| one.end < next.start));
        }
    }

    #[test]
    fn files_of_very_different_size_not_compared() {
        assert!(
            is_comparable(1 << 20, 1 << 20) && is_comparable(1 << 30, 64 << 20) && is_comparable(1 << 20, 16 << 20)
        );
        assert!(!is_comparable(1 << 30, 63 << 20) && !is_comparable(1 << 20, 17 << 20) && !is_comparable(1 << 20, 0));
        assert!(!is_comparable(1000, 1 << 20) && !is_comparable(1000, 1000));
    }
}
