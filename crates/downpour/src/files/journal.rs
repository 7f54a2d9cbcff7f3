//! What a broken transfer leaves on record: which bytes of staged files are verified, and which items it has made.
//!
//! # Layout
//! A header of [`HEADER`] bytes: magic 8, source id 16, boot id 16, zeros 20, check 4. Then records of [`RECORD`] bytes:
//!
//! | bytes | | |
//! |---|---|---|
//! | 4 | kind | 1 verified, 2 synced, 3 item |
//! | 16 | id | of the staged file; of an item: BLAKE3 of its name; synced: zeros |
//! | 8 | first | verified: start of the range in the file; synced: count of records it holds for; item: its inode number |
//! | 8 | second | verified: its end; item: when it was made, nanoseconds since 1970, 0 if not known; synced: 0 |
//! | 4 | check | BLAKE3 of the record's number and the fields before |
//!
//! Numbers are big-endian. What follows the first record that does not match its check is dropped: it was being written when the power
//! failed. A range stands here only after its bytes were written, so it counts after a kill. After another boot
//! only the records count that a later synced record holds for: their bytes were made durable first. After a sync that failed the boot
//! id is that of no boot.

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
/// Bytes of the header.
const HEADER: usize = 64;
/// Bytes of a record.
const RECORD: usize = 40;
const CHECK: usize = 4;

const VERIFIED: u32 = 1;
const SYNCED: u32 = 2;
const ITEM: u32 = 3;

/// Tells one run of the system from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BootId([u8; 16]);

impl BootId {
    /// No run of the system.
    const NONE: Self = Self([u8::MAX; 16]);
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    /// These bytes of a staged file are written and verified.
    Verified(StagedId, Range<u64>),
    /// What the first so many records say is durable.
    Synced(u64),
    /// This item of the transfer, made by it, is this inode, made then.
    Item(Item),
}

/// An item at the top of the transfer and what stands for it.
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

/// What a journal held when it was opened.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// The system has not been started since: what was written is there, synced or not.
    pub(super) same_boot: bool,
    /// Verified bytes that count.
    pub(super) verified: HashMap<StagedId, RangeSet>,
    /// Items made by this transfer.
    pub(super) items: HashSet<Item>,
    /// Of `verified`, what is durable already. Kept apart to be written into the next journal.
    durable: HashMap<StagedId, RangeSet>,
}

/// An open journal, to which records are added.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    source: SourceId,
    written: Mutex<Written>,
}

/// What was written into a journal.
#[derive(Debug, Default)]
struct Written {
    /// Records in it.
    count: u64,
    /// See [`Journal::distrust`].
    distrusted: bool,
}

impl Journal {
    /// Opens the journal in the folder `dir`, or begins one. What it held, without what no longer counts after another boot or for another
    /// source, is shown to `clean`, and what that leaves is written anew.
    ///
    /// # Errors
    /// A failure of the disk; the old journal stands then.
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

    /// Adds records.
    ///
    /// # Errors
    /// A failure of the disk, now or before: see [`Journal::distrust`].
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
        // After a failure the next try overwrites what was half written.
        self.file.write_all_at(&bytes, HEADER as u64 + written.count * RECORD as u64)?;
        written.count += records.len() as u64;
        Ok(())
    }

    /// The disk could not be made to have what is on record, and may say the next time that it has: it reports a failure once. From
    /// now on only what was durable before counts, as after another boot, and no record is taken.
    ///
    /// # Errors
    /// A failure of the disk: the next run of the same boot may take what this one has not made durable.
    pub(super) fn distrust(&self) -> io::Result<()> {
        let mut written = self.written();
        written.distrusted = true;
        self.file.write_all_at(&header(self.source, BootId::NONE), 0)?;
        self.sync()
    }

    /// Whether what the disk says of the files on record is to be believed.
    ///
    /// # Errors
    /// After [`Journal::distrust`].
    pub(super) fn check(&self) -> io::Result<()> {
        self.written().check()
    }

    /// Records so far.
    pub(super) fn records(&self) -> u64 {
        self.written().count
    }

    /// Makes it durable.
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
            true => Err(io::Error::other("the disk has not kept what was written before")),
            false => Ok(()),
        }
    }
}

impl Held {
    /// Forgets all files but those that `is_staged` knows.
    pub(super) fn retain(&mut self, is_staged: impl Fn(StagedId) -> bool) {
        self.verified.retain(|id, _| is_staged(*id));
        self.durable.retain(|id, _| is_staged(*id));
    }

    /// Files of which not all that counts is durable.
    pub(super) fn not_durable(&self) -> impl Iterator<Item = StagedId> + '_ {
        self.verified.iter().filter(|(id, set)| self.durable.get(id) != Some(set)).map(|(id, _)| *id)
    }

    /// Whether anything counts.
    pub(super) fn is_empty(&self) -> bool {
        self.verified.is_empty() && self.items.is_empty()
    }

    /// Everything as it is to be written: first what is durable, then the word that it is, then the rest.
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
            // A durable range is a part of a verified one.
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

    /// `None` for what was never written as this record.
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

/// Reads what counts. A journal of another source or form holds nothing.
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
    // Ranges that no synced record holds for yet, each with its number.
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

/// Fills `out`; false if there is less.
fn fill(reader: &mut impl io::Read, out: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(out) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// This run of the system. Where it cannot be told every process is a run of its own: then only what is synced counts.
fn boot_id() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let told = data_encoding::HEXLOWER.decode(digits.as_bytes()).ok().and_then(|id| id.try_into().ok());
    BootId(told.unwrap_or_else(|| {
        let mut random = [0; 16];
        // Without randomness zeros: then all processes but this one are another run still, for none writes zeros before it fails.
        let _ = getrandom::fill(&mut random);
        random
    }))
}

#[cfg(test)]
mod tests;
