//! Fuzz target of the journal's reader.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::contents::{JournalContents, RecordedRanges, read};
use super::record::{BootId, Item, RECORD, RangeDigest, Record, header};
use crate::messages::SourceId;
use crate::staged_id::StagedId;

const SOURCE: SourceId = SourceId([7; 16]);
const BOOT: BootId = BootId([1; 16]);
const EARLIER: BootId = BootId([2; 16]);

/// Reads `data` as a journal, then as choices for the records of a journal with valid checks, and compares the result
/// with a second, slow reading of those records. Written to a new journal, the contents are read back unchanged.
///
/// # Panics
/// If the reader is wrong.
pub fn fuzz_journal(data: &[u8]) {
    let held = read(data, SOURCE, BOOT).expect("memory can be read");
    check_rewritten(&held);

    let mut draws = data;
    let boot = [BOOT, EARLIER][usize::from(byte(&mut draws) % 2)];
    let (mut bytes, mut model, mut number) = (header(SOURCE, boot).to_vec(), Model::default(), 0);
    let mut is_whole = true;
    while !draws.is_empty() {
        match record(&mut draws) {
            Some(record) => {
                bytes.extend(record.encode(number));
                if is_whole {
                    model.add(record, number);
                }
            }
            None => {
                is_whole = false;
                bytes.extend([byte(&mut draws); RECORD]);
            }
        }
        number += 1;
    }
    if boot != BOOT {
        model.ranges.retain(|range| range.number < model.synced);
    }
    let held = read(&*bytes, SOURCE, BOOT).expect("memory can be read");
    assert_eq!(held.same_boot, boot == BOOT);
    assert_eq!(ranges(&held), model.ranges(|_| true), "the ranges of {number} records");
    assert_eq!(held.items, model.items);
    check_rewritten(&held);
    let durable = model.ranges(|range| range.number < model.synced);
    let after_reboot = read(&*journal(EARLIER, &held), SOURCE, BOOT).expect("memory can be read");
    assert_eq!(ranges(&after_reboot), durable, "what is durable, after a reboot");
    let other = read(&*bytes, SourceId([8; 16]), BOOT).expect("memory can be read");
    assert!(ranges(&other).is_empty() && other.items.is_empty(), "the journal of another source");
}

/// Takes the next byte; zero after the last.
fn byte(draws: &mut &[u8]) -> u8 {
    draws.split_off_first().copied().unwrap_or_default()
}

/// Draws a record; `None` for a damaged one.
fn record(draws: &mut &[u8]) -> Option<Record> {
    let kind = byte(draws) % 16;
    // Numbers at both ends.
    let number = |draws: &mut &[u8]| match byte(draws) {
        small @ 0..128 => u64::from(small),
        large => u64::MAX - u64::from(255 - large),
    };
    let id = |draws: &mut &[u8]| StagedId([byte(draws) % 3; 16]);
    match kind {
        0..=7 => {
            let digest = [byte(draws); 32];
            Some(Record::Verified(id(draws), number(draws)..number(draws), digest))
        }
        8..=10 => Some(Record::Dropped(id(draws), number(draws)..number(draws))),
        11 | 12 => Some(Record::Synced(number(draws))),
        13 | 14 => Some(Record::Item(Item::new(&[byte(draws)], number(draws), number(draws)))),
        _ => None,
    }
}

/// Checks that contents written to a journal are read back unchanged.
fn check_rewritten(held: &JournalContents) {
    let again = read(&*journal(BOOT, held), SOURCE, BOOT).expect("memory can be read");
    assert_eq!(ranges(&again), ranges(held));
    assert_eq!(again.items, held.items);
    assert_eq!(again.bytes(), held.bytes());
    let not_durable = |held: &JournalContents| held.not_durable().collect::<HashSet<_>>();
    assert_eq!(not_durable(&again), not_durable(held));
}

/// Returns the bytes of a journal with these contents.
fn journal(boot: BootId, held: &JournalContents) -> Vec<u8> {
    let mut bytes = header(SOURCE, boot).to_vec();
    for (number, record) in (0..).zip(held.records()) {
        bytes.extend(record.encode(number));
    }
    bytes
}

/// Ranges with their digests, by file and start.
type Ranges = BTreeMap<StagedId, Vec<(Range<u64>, RangeDigest)>>;

fn ranges(held: &JournalContents) -> Ranges {
    let of = |id: StagedId| Some((id, held.recorded(id)?));
    let files = held.files().filter_map(of);
    files.map(|(id, recorded): (_, &RecordedRanges)| (id, recorded.ranges().collect())).collect()
}

/// The contents of a journal as a list.
#[derive(Debug, Default)]
struct Model {
    ranges: Vec<ModelRange>,
    items: HashSet<Item>,
    synced: u64,
}

#[derive(Debug)]
struct ModelRange {
    id: StagedId,
    range: Range<u64>,
    digest: RangeDigest,
    number: u64,
}

impl Model {
    fn add(&mut self, record: Record, number: u64) {
        match record {
            Record::Verified(id, range, digest) => {
                self.drop(id, &range);
                if !range.is_empty() {
                    self.ranges.push(ModelRange { id, range, digest, number });
                }
            }
            Record::Dropped(id, range) => self.drop(id, &range),
            Record::Item(item) => _ = self.items.insert(item),
            Record::Synced(count) => self.synced = self.synced.max(count.min(number)),
        }
    }

    fn drop(&mut self, id: StagedId, gone: &Range<u64>) {
        self.ranges
            .retain(|ModelRange { id: of, range, .. }| *of != id || range.end <= gone.start || range.start >= gone.end);
    }

    fn ranges(&self, which: impl Fn(&ModelRange) -> bool) -> Ranges {
        let mut ranges = Ranges::new();
        for found in self.ranges.iter().filter(|range| which(range)) {
            ranges.entry(found.id).or_default().push((found.range.clone(), found.digest));
        }
        ranges.values_mut().for_each(|of| of.sort_by_key(|(range, _)| range.start));
        ranges
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn journal_corpus_equals_slow_reading() {
        hostile::replay("journal", super::fuzz_journal);
    }
}
