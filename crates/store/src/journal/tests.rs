use std::fs;
use std::ops::Range;
use std::path::Path;

use super::super::sandbox::READ_DIRECTORY;
use super::super::staged_id::StagedId;
use super::*;

const SOURCE: SourceId = SourceId([7; 16]);

fn dir(path: &Path) -> OwnedFd {
    openat(rustix::fs::CWD, path, READ_DIRECTORY, Mode::empty()).unwrap()
}

fn open(path: &Path) -> (Journal, JournalContents) {
    Journal::open(&dir(path), SOURCE, |_| Ok(())).unwrap()
}

fn is_empty(held: &JournalContents) -> bool {
    held.bytes() == 0 && held.items.is_empty()
}

fn id(number: u8) -> StagedId {
    StagedId([number; 16])
}

fn ranges(held: &JournalContents, number: u8) -> Vec<(u64, u64)> {
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (range, digest) in held.recorded(id(number)).into_iter().flat_map(RecordedRanges::ranges) {
        assert_eq!(digest, of(&range));
        match merged.last_mut() {
            Some((_, end)) if *end == range.start => *end = range.end,
            _ => merged.push((range.start, range.end)),
        }
    }
    merged
}

/// Returns a digest unique to this range.
fn of(range: &Range<u64>) -> RangeDigest {
    *blake3::hash(format!("{range:?}").as_bytes()).as_bytes()
}

fn verified(number: u8, range: Range<u64>) -> Record {
    let digest = of(&range);
    Record::Verified(id(number), range, digest)
}

/// Makes the journal look as if it was written before the last reboot.
fn reboot(path: &Path) {
    let file = path.join(NAME);
    let mut bytes = fs::read(&file).unwrap();
    bytes[..HEADER].copy_from_slice(&header(SOURCE, BootId([9; 16])));
    fs::write(&file, bytes).unwrap();
}

/// Writes five records: a range of file 1, an item, the marker that both are durable, ranges of files 1 and 2.
fn some(path: &Path) {
    let (journal, held) = open(path);
    assert!(is_empty(&held) && !held.same_boot);
    let start = journal.records();
    journal.append(&[verified(1, 0..10), Record::Item(Item::new(b"top", 4, 6))]).unwrap();
    journal.append(&[Record::Synced(start + 2)]).unwrap();
    journal.append(&[verified(1, 10..20), verified(2, 5..6)]).unwrap();
}

#[test]
fn journal_kill_keeps_all_reboot_keeps_synced() {
    let temp = tempfile::tempdir().unwrap();
    some(temp.path());
    for _ in 0..3 {
        let (_, held) = open(temp.path());
        assert!(held.same_boot);
        assert_eq!(ranges(&held, 1), [(0, 20)]);
        assert_eq!(ranges(&held, 2), [(5, 6)]);
        assert!(held.items.contains(&Item::new(b"top", 4, 6)));
        assert!(!held.items.contains(&Item::new(b"top", 5, 6)));
        assert!(!held.items.contains(&Item::new(b"top", 4, 7)), "made anew under the same inode");
    }
    reboot(temp.path());
    let (journal, held) = open(temp.path());
    assert!(!held.same_boot);
    assert_eq!(ranges(&held, 1), [(0, 10)]);
    assert_eq!(ranges(&held, 2), []);
    journal.append(&[verified(1, 10..15)]).unwrap();
    assert_eq!(ranges(&open(temp.path()).1, 1), [(0, 15)]);
    reboot(temp.path());
    assert_eq!(ranges(&open(temp.path()).1, 1), [(0, 10)]);
}

#[test]
fn record_during_sync_is_not_durable() {
    let temp = tempfile::tempdir().unwrap();
    let (journal, _) = open(temp.path());
    journal.append(&[verified(1, 0..10)]).unwrap();
    let until = journal.records();
    journal.append(&[verified(1, 10..20)]).unwrap();
    journal.append(&[Record::Synced(until)]).unwrap();
    reboot(temp.path());
    assert_eq!(ranges(&open(temp.path()).1, 1), [(0, 10)]);
}

#[test]
fn failed_sync_keeps_only_earlier_durable_records() {
    let temp = tempfile::tempdir().unwrap();
    some(temp.path());
    let (journal, held) = open(temp.path());
    assert_eq!(ranges(&held, 1), [(0, 20)]);
    journal.append(&[verified(2, 0..9)]).unwrap();
    journal.invalidate().unwrap();
    assert!(journal.append(&[Record::Synced(journal.records())]).is_err());
    let (_, held) = open(temp.path());
    assert!(!held.same_boot);
    assert_eq!((ranges(&held, 1), ranges(&held, 2)), (vec![(0, 10)], vec![]));
}

#[test]
fn later_record_replaces_overlapped_ranges() {
    let temp = tempfile::tempdir().unwrap();
    let (journal, _) = open(temp.path());
    for range in [0..10, 10..20, 20..30, 30..40] {
        journal.append(&[verified(1, range)]).unwrap();
    }
    journal.append(&[Record::Synced(4)]).unwrap();
    journal.append(&[Record::Dropped(id(1), 12..25), verified(1, 12..18), verified(1, 35..50)]).unwrap();
    for _ in 0..2 {
        let held = open(temp.path()).1;
        let found: Vec<_> = held.recorded(id(1)).unwrap().ranges().map(|(range, _)| (range.start, range.end)).collect();
        assert_eq!(found, [(0, 10), (12, 18), (35, 50)]);
        assert_eq!(held.bytes(), 31);
    }
    reboot(temp.path());
    assert_eq!(ranges(&open(temp.path()).1, 1), [(0, 10)]);
}

#[test]
fn journal_of_older_format_is_empty() {
    let temp = tempfile::tempdir().unwrap();
    some(temp.path());
    let file = temp.path().join(NAME);
    let mut bytes = fs::read(&file).unwrap();
    bytes[7] = 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(source(&dir(temp.path())).unwrap(), None);
    assert!(is_empty(&open(temp.path()).1));
    assert_eq!(source(&dir(temp.path())).unwrap(), Some(SOURCE));
}

#[test]
fn journal_drops_foreign_and_unstaged_records() {
    let temp = tempfile::tempdir().unwrap();
    some(temp.path());
    let (_, held) = Journal::open(&dir(temp.path()), SOURCE, |held| {
        held.retain(|staged| staged == id(2));
        Ok(())
    })
    .unwrap();
    assert_eq!((ranges(&held, 1), ranges(&held, 2)), (vec![], vec![(5, 6)]));
    assert_eq!(ranges(&open(temp.path()).1, 1), []);
    let (_, held) = Journal::open(&dir(temp.path()), SourceId([8; 16]), |_| Ok(())).unwrap();
    assert!(is_empty(&held));
}

/// Reads every prefix of the file, and the file with every byte changed: the result must be a prefix of the written
/// records.
#[test]
fn damaged_journal_reports_only_verified_ranges() {
    // In memory if possible, since the journal is opened two thousand times.
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    some(temp.path());
    let whole = fs::read(temp.path().join(NAME)).unwrap();
    let start = HEADER;
    assert_eq!(whole.len(), start + 5 * RECORD);
    let expect = |bytes: &[u8], intact: usize, case: &str| {
        fs::write(temp.path().join(NAME), bytes).unwrap();
        let (_, held) = open(temp.path());
        let records = intact.saturating_sub(start) / RECORD;
        let first: &[_] = if intact < start || records == 0 {
            &[]
        } else if records < 4 {
            &[(0, 10)]
        } else {
            &[(0, 20)]
        };
        assert_eq!(ranges(&held, 1), first, "{case}");
        assert_eq!(!ranges(&held, 2).is_empty(), records == 5 && intact >= start, "{case}");
        assert_eq!(held.items.len(), usize::from(records >= 2 && intact >= start), "{case}");
    };
    for length in 0..=whole.len() {
        expect(&whole[..length], length, &format!("cut at {length}"));
    }
    for at in 0..whole.len() {
        let mut spoiled = whole.clone();
        spoiled[at] ^= 0x40;
        expect(&spoiled, at, &format!("byte {at} changed"));
        let mut zeroed = whole[..at].to_vec();
        zeroed.resize(whole.len() + 500, 0);
        // The overwritten bytes may have been zeros.
        let intact = at + whole[at..].iter().take_while(|byte| **byte == 0).count();
        expect(&zeroed, intact, &format!("zeros from {at}"));
    }
}
