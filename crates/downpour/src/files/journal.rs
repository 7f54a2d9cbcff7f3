//! The record that an interrupted transfer leaves: the verified ranges of staged files, and the items it has created.
//!
//! # Layout
//! A header of [`HEADER`] bytes: magic 8, source id 16, boot id 16, zeros 20, check 4. Then records of [`RECORD`]
//! bytes:
//!
//! | bytes | | |
//! |---|---|---|
//! | 4 | kind | 1 verified, 2 synced, 3 item |
//! | 16 | id | verified: of the staged file; item: BLAKE3 of its name; synced: zeros |
//! | 8 | first | verified: start of the range in the file; synced: number of records it covers; item: inode number |
//! | 8 | second | verified: end of the range; item: birth time, nanoseconds since 1970, 0 if unknown; synced: 0 |
//! | 4 | check | BLAKE3 of the record's number and the preceding fields |
//!
//! Numbers are big-endian. The first record with a wrong check, and everything after it, is discarded: it was being
//! written when the power failed. A range is recorded only after its bytes were written, so it is valid after a kill.
//! After a reboot only the records covered by a later synced record are valid: their bytes were made durable first.
//! After a failed sync the boot id in the header matches no boot.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, fdatasync, fsync, openat, renameat};

use super::ranges::RangeSet;
use super::staged_id::StagedId;
use crate::messages::SourceId;

const NAME: &str = "journal";
const NEW_NAME: &str = "journal.new";
const MAGIC: [u8; 8] = *b"DPRJNL\0\x01";
/// Size of the header in bytes.
const HEADER: usize = 64;
/// Size of a record in bytes.
const RECORD: usize = 40;
const CHECK: usize = 4;

const VERIFIED: u32 = 1;
const SYNCED: u32 = 2;
const ITEM: u32 = 3;

/// Distinguishes one boot of the system from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BootId([u8; 16]);

impl BootId {
    /// Matches no boot.
    const NONE: Self = Self([u8::MAX; 16]);
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    /// A range of a staged file whose bytes are written and verified.
    Verified(StagedId, Range<u64>),
    /// Everything in this many first records is durable.
    Synced(u64),
    /// An item that the transfer created.
    Item(Item),
}

/// An item at the top of the transfer, identified by inode number and birth time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Item {
    name: [u8; 16],
    inode: u64,
    /// See [`birth`](super::metadata::birth).
    birth: u64,
}

impl Item {
    pub(super) fn new(name: &[u8], inode: u64, birth: u64) -> Self {
        let hash = blake3::hash(name);
        let (name, _) = hash.as_bytes().split_first_chunk().expect("32 bytes");
        Self { name: *name, inode, birth }
    }
}

/// Contents of a journal when it was opened.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Whether the journal was written during this boot: everything written is then there, synced or not.
    pub(super) same_boot: bool,
    /// Verified ranges that are still valid.
    pub(super) verified: HashMap<StagedId, RangeSet>,
    /// Items created by this transfer.
    pub(super) items: HashSet<Item>,
    /// The durable part of `verified`, kept apart to be written into the next journal.
    durable: HashMap<StagedId, RangeSet>,
}

/// An open journal, to which records are appended.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    source: SourceId,
    written: Mutex<Written>,
}

/// State of the records written to a journal.
#[derive(Debug, Default)]
struct Written {
    /// Number of records.
    count: u64,
    /// See [`Journal::distrust`].
    distrusted: bool,
}

impl Journal {
    /// Opens the journal in the folder `dir`, or creates one. The contents of the old journal, without what a reboot or
    /// another source invalidates, are passed to `clean`; what it leaves is written to a new journal.
    ///
    /// # Errors
    /// An I/O error; the old journal is then left in place.
    pub(super) fn open(
        dir: &OwnedFd,
        source: SourceId,
        clean: impl FnOnce(&mut Held) -> io::Result<()>,
    ) -> io::Result<(Self, Held)> {
        let boot = boot_id();
        let mut held = match openat(dir, NAME, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(old) => read(File::from(old), source, boot)?,
            Err(rustix::io::Errno::NOENT) => Held::default(),
            Err(error) => return Err(error.into()),
        };
        clean(&mut held)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(openat(dir, NEW_NAME, flags, Mode::RUSR | Mode::WUSR)?);
        let journal = Self { file, source, written: Mutex::default() };
        journal.file.write_all_at(&header(source, boot), 0)?;
        journal.append(&held.records())?;
        fsync(&journal.file)?;
        renameat(dir, NEW_NAME, dir, NAME)?;
        fsync(dir)?;
        Ok((journal, held))
    }

    /// Appends records.
    ///
    /// # Errors
    /// An I/O error, now or earlier: see [`Journal::distrust`].
    pub(super) fn append(&self, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut written = self.written();
        written.check()?;
        let mut bytes = Vec::with_capacity(records.len() * RECORD);
        for (number, record) in (written.count..).zip(records) {
            bytes.extend(record.encode(number));
        }
        // After a failure the next attempt overwrites the partial write.
        self.file.write_all_at(&bytes, HEADER as u64 + written.count * RECORD as u64)?;
        written.count += records.len() as u64;
        Ok(())
    }

    /// Invalidates what is not durable yet, after a failed sync. The kernel reports such a failure only once, so the
    /// next sync may succeed although data was lost. From now on only what was durable before counts, as after a
    /// reboot, and no record is accepted.
    ///
    /// # Errors
    /// An I/O error: the next run during this boot may then trust data that this one did not make durable.
    pub(super) fn distrust(&self) -> io::Result<()> {
        let mut written = self.written();
        written.distrusted = true;
        self.file.write_all_at(&header(self.source, BootId::NONE), 0)?;
        self.sync()
    }

    /// Checks that the journal has not been distrusted.
    ///
    /// # Errors
    /// After [`Journal::distrust`].
    pub(super) fn check(&self) -> io::Result<()> {
        self.written().check()
    }

    /// Returns the number of records.
    pub(super) fn records(&self) -> u64 {
        self.written().count
    }

    /// Makes the journal durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(fdatasync(&self.file)?)
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    fn check(&self) -> io::Result<()> {
        match self.distrusted {
            true => Err(io::Error::other("an earlier sync to disk has failed")),
            false => Ok(()),
        }
    }
}

impl Held {
    /// Forgets all files for which `is_staged` returns false.
    pub(super) fn retain(&mut self, is_staged: impl Fn(StagedId) -> bool) {
        self.verified.retain(|id, _| is_staged(*id));
        self.durable.retain(|id, _| is_staged(*id));
    }

    /// Returns the files of which not all verified ranges are durable.
    pub(super) fn not_durable(&self) -> impl Iterator<Item = StagedId> + '_ {
        self.verified.iter().filter(|(id, set)| self.durable.get(id) != Some(set)).map(|(id, _)| *id)
    }

    /// Whether nothing is recorded.
    pub(super) fn is_empty(&self) -> bool {
        self.verified.is_empty() && self.items.is_empty()
    }

    /// Returns all contents as records: first items and durable ranges, then the `Synced` record that covers them, then
    /// the rest.
    fn records(&self) -> Vec<Record> {
        let of = |ranges: &HashMap<StagedId, RangeSet>| -> Vec<Record> {
            let each = ranges.iter().flat_map(|(id, set)| set.iter().map(|range| Record::Verified(*id, range)));
            each.collect()
        };
        let mut records: Vec<_> = self.items.iter().copied().map(Record::Item).collect();
        records.extend(of(&self.durable));
        records.push(Record::Synced(records.len() as u64));
        let mut rest = HashMap::new();
        for (id, set) in &self.verified {
            let durable = self.durable.get(id).cloned().unwrap_or_default();
            // Durable ranges are subsets of verified ones.
            let gaps = set.iter().flat_map(|range| {
                let inside = durable.gaps(range.end).map(move |gap| gap.start.max(range.start)..gap.end);
                inside.filter(|gap| !gap.is_empty()).collect::<Vec<_>>()
            });
            let mut left = RangeSet::default();
            gaps.for_each(|gap| {
                left.insert(gap);
            });
            rest.insert(*id, left);
        }
        records.extend(of(&rest));
        records
    }
}

impl Record {
    fn encode(&self, number: u64) -> [u8; RECORD] {
        let (kind, id, first, second) = match self {
            Self::Verified(id, range) => (VERIFIED, id.0, range.start, range.end),
            Self::Synced(count) => (SYNCED, [0; 16], *count, 0),
            Self::Item(item) => (ITEM, item.name, item.inode, item.birth),
        };
        let mut bytes = [0; RECORD];
        bytes[..4].copy_from_slice(&kind.to_be_bytes());
        bytes[4..20].copy_from_slice(&id);
        bytes[20..28].copy_from_slice(&first.to_be_bytes());
        bytes[28..36].copy_from_slice(&second.to_be_bytes());
        let check = check(number, &bytes[..RECORD - CHECK]);
        bytes[RECORD - CHECK..].copy_from_slice(&check);
        bytes
    }

    /// Decodes a record; `None` if the check or the kind is wrong.
    fn decode(number: u64, bytes: &[u8; RECORD]) -> Option<Self> {
        let (fields, found) = bytes.split_last_chunk::<CHECK>()?;
        if *found != check(number, fields) {
            return None;
        }
        let (kind, rest) = fields.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk()?;
        let second = rest.first_chunk()?;
        let (first, second) = (u64::from_be_bytes(*first), u64::from_be_bytes(*second));
        match u32::from_be_bytes(*kind) {
            VERIFIED => Some(Self::Verified(StagedId(*id), first..second)),
            SYNCED => Some(Self::Synced(first)),
            ITEM => Some(Self::Item(Item { name: *id, inode: first, birth: second })),
            _ => None,
        }
    }
}

fn check(number: u64, fields: &[u8]) -> [u8; CHECK] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_be_bytes()).update(fields);
    *hasher.finalize().as_bytes().first_chunk().expect("32 bytes")
}

fn header(source: SourceId, boot: BootId) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..24].copy_from_slice(&source.0);
    bytes[24..40].copy_from_slice(&boot.0);
    let check = check(u64::MAX, &bytes[..HEADER - CHECK]);
    bytes[HEADER - CHECK..].copy_from_slice(&check);
    bytes
}

/// Reads the valid contents of a journal. A journal of another source or format counts as empty.
fn read(file: File, source: SourceId, boot: BootId) -> io::Result<Held> {
    let mut held = Held::default();
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut found = [0; HEADER];
    if !fill(&mut reader, &mut found)? {
        return Ok(held);
    }
    let old_boot = BootId(*found[24..].first_chunk().expect("40 bytes"));
    if found != header(source, old_boot) {
        return Ok(held);
    }
    held.same_boot = old_boot == boot;
    // Ranges not yet covered by a `Synced` record, with their record numbers.
    let mut open = std::collections::VecDeque::new();
    let mut bytes = [0; RECORD];
    for number in 0_u64.. {
        if !fill(&mut reader, &mut bytes)? {
            break;
        }
        match Record::decode(number, &bytes) {
            Some(Record::Verified(id, range)) => open.push_back((number, id, range)),
            Some(Record::Item(item)) => {
                held.items.insert(item);
            }
            Some(Record::Synced(count)) => {
                while let Some((_, id, range)) = open.pop_front_if(|(number, _, _)| *number < count) {
                    held.durable.entry(id).or_default().insert(range);
                }
            }
            None => break,
        }
    }
    held.verified.clone_from(&held.durable);
    if held.same_boot {
        for (_, id, range) in open {
            held.verified.entry(id).or_default().insert(range);
        }
    }
    Ok(held)
}

/// Fills `out`; returns false at the end of the file.
fn fill(reader: &mut impl io::Read, out: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(out) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Identifies the current boot. Where it cannot be identified every process counts as a boot of its own, so that only
/// synced records are valid.
fn boot_id() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let told = data_encoding::HEXLOWER.decode(digits.as_bytes()).ok().and_then(|id| id.try_into().ok());
    BootId(told.unwrap_or_else(|| {
        let mut random = [0; 16];
        // Without randomness the id is all zeros. It still differs from that of other processes: none of them writes
        // zeros unless it fails too.
        let _ = getrandom::fill(&mut random);
        random
    }))
}

#[cfg(test)]
mod tests;
