//! The contents of a journal when it is opened.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufReader};
use std::ops::Range;

use super::record::{BootId, HEADER, Item, RECORD, RangeDigest, Record, decode_header};
use crate::messages::SourceId;
use crate::staged_id::StagedId;

/// Contents of a journal when it was opened.
#[derive(Debug, Default)]
pub(crate) struct JournalContents {
    /// Whether the journal was written during this boot: all its bytes then exist, synced or not.
    pub(crate) same_boot: bool,
    /// Recorded ranges that are still valid, in which every file has at least one.
    recorded: HashMap<StagedId, RecordedRanges>,
    /// Items created by this transfer.
    pub(crate) items: HashSet<Item>,
    /// Number of records that are durable.
    synced: u64,
}

/// The recorded ranges of one file: disjoint, by their starts. They are not merged, since each has a digest.
#[derive(Debug, Default)]
pub(crate) struct RecordedRanges(BTreeMap<u64, RecordedRange>);

#[derive(Debug, Clone, Copy)]
struct RecordedRange {
    end: u64,
    digest: RangeDigest,
    /// The number of its record.
    number: u64,
}

impl RecordedRanges {
    /// Returns the ranges in order, with their digests.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (Range<u64>, RangeDigest)> + '_ {
        self.0.iter().map(|(start, range)| (*start..range.end, range.digest))
    }

    /// Returns the number of bytes in all ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|(start, range)| range.end - start).sum()
    }

    /// Adds a range in place of those that it overlaps: later records win.
    fn insert(&mut self, range: Range<u64>, digest: RangeDigest, number: u64) {
        self.drop(&range);
        if !range.is_empty() {
            self.0.insert(range.start, RecordedRange { end: range.end, digest, number });
        }
    }

    /// Removes the ranges that overlap `range`.
    fn drop(&mut self, range: &Range<u64>) {
        while let Some((start, last)) = self.0.range(..range.end).next_back()
            && last.end > range.start
        {
            let start = *start;
            self.0.remove(&start);
        }
    }
}

impl JournalContents {
    /// Removes the recorded ranges of a file and returns them.
    pub(crate) fn take(&mut self, id: StagedId) -> RecordedRanges {
        self.recorded.remove(&id).unwrap_or_default()
    }

    /// Returns the recorded ranges of a file.
    pub(crate) fn recorded(&self, id: StagedId) -> Option<&RecordedRanges> {
        self.recorded.get(&id)
    }

    /// Returns the files with recorded ranges.
    #[cfg(any(test, fuzzing))]
    pub(super) fn files(&self) -> impl Iterator<Item = StagedId> + '_ {
        self.recorded.keys().copied()
    }

    /// Forgets all files for which `is_staged` returns false.
    pub(crate) fn retain(&mut self, is_staged: impl Fn(StagedId) -> bool) {
        self.recorded.retain(|id, _| is_staged(*id));
    }

    /// Returns the files of which not all recorded ranges are durable.
    pub(crate) fn not_durable(&self) -> impl Iterator<Item = StagedId> + '_ {
        let is_open = |ranges: &RecordedRanges| ranges.0.values().any(|range| range.number >= self.synced);
        self.recorded.iter().filter(move |(_, ranges)| is_open(ranges)).map(|(id, _)| *id)
    }

    /// Returns the number of bytes in all recorded ranges; a damaged journal may claim more than can exist.
    pub(crate) fn bytes(&self) -> u64 {
        self.recorded.values().map(RecordedRanges::bytes).fold(0, u64::saturating_add)
    }

    /// Returns all contents as records: first items and durable ranges, then the `Synced` record that covers them, then
    /// the rest.
    pub(super) fn records(&self) -> Vec<Record> {
        let ranges = |durable: bool| {
            let each = self.recorded.iter().flat_map(|(id, ranges)| ranges.0.iter().map(move |range| (*id, range)));
            each.filter(move |(_, (_, range))| (range.number < self.synced) == durable)
                .map(|(id, (start, range))| Record::Verified(id, *start..range.end, range.digest))
        };
        let mut records: Vec<_> = self.items.iter().copied().map(Record::Item).collect();
        records.extend(ranges(true));
        if !records.is_empty() {
            records.push(Record::Synced(records.len() as u64));
        }
        records.extend(ranges(false));
        records
    }

    fn add(&mut self, record: Record, number: u64) {
        match record {
            Record::Verified(id, range, digest) => {
                self.recorded.entry(id).or_default().insert(range, digest, number);
            }
            Record::Dropped(id, range) => {
                if let Some(ranges) = self.recorded.get_mut(&id) {
                    ranges.drop(&range);
                }
            }
            Record::Item(item) => {
                self.items.insert(item);
            }
            Record::Synced(count) => self.synced = self.synced.max(count.min(number)),
        }
    }
}

/// Reads the valid contents of a journal. A journal of another source or format counts as empty.
pub(super) fn read(file: impl io::Read, source: SourceId, boot: BootId) -> io::Result<JournalContents> {
    let mut held = JournalContents::default();
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut found = [0; HEADER];
    if !fill(&mut reader, &mut found)? {
        return Ok(held);
    }
    match decode_header(&found) {
        Some((of, old_boot)) if of == source => held.same_boot = old_boot == boot,
        _ => return Ok(held),
    }
    let mut bytes = [0; RECORD];
    for number in 0_u64.. {
        if !fill(&mut reader, &mut bytes)? {
            break;
        }
        let Some(record) = Record::decode(number, &bytes) else { break };
        held.add(record, number);
    }
    let (same_boot, synced) = (held.same_boot, held.synced);
    held.recorded.retain(|_, ranges| {
        ranges.0.retain(|_, range| same_boot || range.number < synced);
        !ranges.0.is_empty()
    });
    Ok(held)
}

/// Fills `out`; returns false at the end of the file.
pub(super) fn fill(reader: &mut impl io::Read, out: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(out) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
