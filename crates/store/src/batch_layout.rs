//! The positions of an object's bytes in the files of its batch.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::batch::Batch;
use crate::messages::Wanted;

/// The files of a batch in the order of its object, and their wanted ranges.
#[derive(Debug)]
pub(super) struct BatchLayout {
    pub(super) batch: Arc<Batch>,
    pub(super) wanted: Wanted,
    /// Entry of each non-empty regular file, and its offset in the batch, in order.
    files: Vec<(u32, u64)>,
}

/// A part of one file.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilePart {
    /// Index of the file's entry in the batch.
    pub(super) index: u32,
    /// Offset of the part in the file.
    pub(super) start: u64,
    pub(super) length: usize,
}

impl BatchLayout {
    pub(super) fn new(batch: Arc<Batch>, wanted: Wanted) -> Self {
        let mut start = 0;
        let mut files = Vec::new();
        for (index, entry) in (0..).zip(&batch.entries) {
            if entry.size() > 0 {
                files.push((index, start));
                start += entry.size();
            }
        }
        Self { batch, wanted, files }
    }

    /// Returns the length of the object in bytes.
    pub(super) fn length(&self) -> u64 {
        self.wanted.length(self.batch.length)
    }

    /// Splits a range of the object by file; bytes beyond the end of the object belong to none.
    pub(super) fn parts(&self, offset: u64, length: usize) -> impl Iterator<Item = FilePart> + '_ {
        self.wanted.locate(offset, length as u64, self.batch.length).flat_map(|range| self.parts_of(range))
    }

    /// Splits a range of the batch by file.
    fn parts_of(&self, range: Range<u64>) -> impl Iterator<Item = FilePart> + '_ {
        let first = self.files.partition_point(|(_, start)| *start <= range.start).saturating_sub(1);
        let overlapping = self.files[first..].iter().take_while(move |(_, start)| *start < range.end);
        overlapping.filter_map(move |(index, start)| {
            let end = range.end.min(start + self.batch.entries[*index as usize].size());
            let from = range.start.max(*start);
            // Not longer than the requested length.
            let length = usize::try_from(end.saturating_sub(from)).unwrap_or(usize::MAX);
            (length > 0).then_some(FilePart { index: *index, start: from - start, length })
        })
    }

    /// Returns the range of a file in the batch; `None` if it is empty, or not a regular file.
    pub(super) fn range_of(&self, index: u32) -> Option<Range<u64>> {
        let at = self.files.binary_search_by_key(&index, |(entry, _)| *entry).ok()?;
        let start = self.files[at].1;
        Some(start..start + self.batch.entries[index as usize].size())
    }

    /// Returns the files of which only a part is wanted.
    pub(super) fn partial(&self) -> HashSet<u32> {
        let end = self.batch.length;
        let borders = self.wanted.ranges(end).flat_map(|range| [range.start, range.end]);
        // A border that is not the start of a file lies in the preceding file, unless the batch ends there.
        let partial = borders.filter(|border| *border < end).filter_map(|border| {
            let next = self.files.partition_point(|(_, start)| *start <= border);
            self.files[..next].last().filter(|(_, start)| *start < border).map(|(index, _)| *index)
        });
        partial.collect()
    }

    /// Returns the name of the file that contains a byte of the object; `None` beyond its end.
    pub(super) fn name_at(&self, offset: u64) -> Option<&[u8]> {
        let at = self.position(offset)?;
        let file = self.files.partition_point(|(_, start)| *start <= at).checked_sub(1)?;
        let (index, _) = self.files.get(file)?;
        self.batch.entries.get(*index as usize).map(|entry| entry.path.as_slice())
    }

    /// Returns how many non-empty files of the batch end within the first `bytes` of the object, or before them.
    pub(super) fn files_within(&self, bytes: u64) -> u64 {
        let end = self.position(bytes).unwrap_or(if bytes == 0 { 0 } else { self.batch.length });
        let begun = self.files.partition_point(|(_, start)| *start < end);
        let is_over = |(index, start): &(u32, u64)| {
            self.batch.entries.get(*index as usize).is_some_and(|entry| start.saturating_add(entry.size()) <= end)
        };
        // Only the last file that has begun may be incomplete.
        let open = self.files[..begun].last().is_some_and(|file| !is_over(file));
        (begun - usize::from(open)) as u64
    }

    /// Returns the offset in the batch of a byte of the object; `None` at its end.
    fn position(&self, offset: u64) -> Option<u64> {
        self.wanted.locate(offset, 1, self.batch.length).next().map(|range| range.start)
    }
}
