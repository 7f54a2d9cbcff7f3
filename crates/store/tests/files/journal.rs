//! Worst-case staging directories after a power loss: data that was not synced is arbitrary, with the old sizes and
//! times.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use data_encoding::BASE32_NOPAD;
use fastrand::Rng;

const HEADER: usize = 64;
const RECORD: usize = 72;
const VERIFIED: u8 = 1;
const SYNCED: u8 = 2;

/// Returns the only staging directory in a target, if any.
pub(crate) fn staging(into: &Path) -> Option<PathBuf> {
    let mut found = fs::read_dir(into).ok()?.map(|item| item.unwrap().path());
    found.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".downpour-"))
}

/// Returns the sorted staged files in it.
pub(crate) fn staged_files(staging: &Path) -> Vec<PathBuf> {
    let within = |directory: &Path| fs::read_dir(directory).unwrap().map(|item| item.unwrap().path());
    let directories = within(staging).filter(|path| path.is_dir() && path.file_name().unwrap().len() == 1);
    let mut files: Vec<_> = directories.flat_map(|directory| within(&directory)).collect();
    files.sort();
    files
}

/// Corrupts all data without a synced record, and makes the journal look as if it was written before a reboot.
pub(crate) fn lose_power(staging: &Path, rng: &mut Rng) {
    let path = staging.join("journal");
    let mut journal = fs::read(&path).unwrap();
    let records: Vec<_> = journal[HEADER..].chunks_exact(RECORD).map(<[u8]>::to_vec).collect();
    let marker = records.iter().rposition(|record| record[3] == SYNCED);
    let covered = marker.map_or(0, |at| number(&records[at], 20));
    let durable: Vec<_> = (0..)
        .zip(&records)
        .filter(|(at, record)| *at < covered && record[3] == VERIFIED)
        .map(|(_, record)| (record[4..20].to_vec(), number(record, 20)..number(record, 28)))
        .collect();
    for staged in staged_files(staging) {
        let name = staged.file_name().unwrap().to_str().unwrap().to_uppercase();
        let id = BASE32_NOPAD.decode(name.as_bytes()).unwrap();
        spoil(&staged, durable.iter().filter(|(of, _)| *of == id).map(|(_, range)| range.clone()).collect(), rng);
    }
    // The journal is arbitrary after the last marker.
    let certain = HEADER + marker.map_or(0, |at| at + 1) * RECORD;
    let torn = rng.usize(certain..=journal.len());
    journal.truncate(torn);
    if rng.bool() {
        journal.resize(torn + rng.usize(..3 * RECORD), rng.u8(..));
    }
    journal[24..40].fill(rng.u8(..));
    let check = [&u64::MAX.to_be_bytes()[..], &journal[..HEADER - 4]].concat();
    journal[HEADER - 4..HEADER].copy_from_slice(&blake3::hash(&check).as_bytes()[..4]);
    fs::write(path, journal).unwrap();
}

fn spoil(staged: &Path, durable: Vec<Range<u64>>, rng: &mut Rng) {
    let metadata = staged.metadata().unwrap();
    let bytes = fs::read(staged).unwrap();
    let mut spoiled = vec![0; bytes.len()];
    if rng.bool() {
        rng.fill(&mut spoiled);
    }
    for range in durable {
        let end = (range.end as usize).min(bytes.len());
        let start = (range.start as usize).min(end);
        spoiled[start..end].copy_from_slice(&bytes[start..end]);
    }
    let file = fs::File::options().write(true).open(staged).unwrap();
    file.write_all_at(&spoiled, 0).unwrap();
    file.set_modified(metadata.modified().unwrap()).unwrap();
}

fn number(record: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(record[at..at + 8].try_into().unwrap())
}
