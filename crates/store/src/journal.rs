//! The record of an interrupted transfer: the verified ranges of staged files, and the items it has created.
//!
//! # Layout
//! A header of 64 bytes: magic 8, source id 16, boot id 16, zeros 20, check 4. Then records of 72 bytes:
//!
//! | bytes | | |
//! |---|---|---|
//! | 4 | kind | 1 verified, 2 synced, 3 item, 4 dropped |
//! | 16 | id | verified, dropped: of the staged file; item: BLAKE3 of its name; synced: zeros |
//! | 8 | first | verified, dropped: start of the range in the file; synced: number of records it covers; item: inode number |
//! | 8 | second | verified, dropped: end of the range; item: birth time, nanoseconds since 1970, 0 if unknown; synced: 0 |
//! | 32 | digest | verified: BLAKE3 of the range; others: zeros |
//! | 4 | check | BLAKE3 of the record's number and the preceding fields |
//!
//! Numbers are big-endian. The first record with a wrong check, and everything after it, is discarded: it was being
//! written when the power failed. A range is recorded only after its bytes were written, so it is valid after a kill.
//! After a reboot only the records covered by a later synced record are valid: their bytes were made durable first.
//! After a failed sync the boot id in the header matches no boot. A verified or dropped range replaces earlier ranges
//! that it overlaps.
//!
//! A valid record describes the bytes once written, not the present ones: a resuming run compares the digest
//! ([`super::sink`]).

mod contents;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod record;

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::{Mode, OFlags, fdatasync, fsync, openat, renameat};

pub(super) use self::contents::{JournalContents, RecordedRanges};
use self::contents::{fill, read};
use self::record::{BootId, HEADER, RECORD, decode_header, header};
pub(super) use self::record::{Item, RangeDigest, Record};
use crate::lock::lock;
use crate::messages::SourceId;

pub(super) const NAME: &str = "journal";
pub(super) const NEW_NAME: &str = "journal.new";

/// An open journal, to which records are appended.
#[derive(Debug)]
pub(super) struct Journal {
    source: SourceId,
    written: Mutex<JournalTail>,
}

/// State of the records written to a journal.
#[derive(Debug)]
struct JournalTail {
    /// `None` once the journal is closed. Shared, so that a sync does not delay writing.
    file: Option<Arc<File>>,
    /// Number of records.
    count: u64,
    /// See [`Journal::invalidate`].
    distrusted: bool,
}

impl Journal {
    /// Opens the journal in the directory `dir`, or creates one. The contents of the old journal, except those
    /// invalidated by a reboot or another source, are passed to `clean`; the rest is written to a new journal.
    ///
    /// # Errors
    /// An I/O error; the old journal is then left in place.
    pub(super) fn open(
        dir: &OwnedFd,
        source: SourceId,
        clean: impl FnOnce(&mut JournalContents) -> io::Result<()>,
    ) -> io::Result<(Self, JournalContents)> {
        let boot = boot_id();
        let mut held = match existing(dir)? {
            Some(old) => read(old, source, boot)?,
            None => JournalContents::default(),
        };
        clean(&mut held)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = Arc::new(File::from(openat(dir, NEW_NAME, flags, Mode::RUSR | Mode::WUSR)?));
        file.write_all_at(&header(source, boot), 0)?;
        let written = JournalTail { file: Some(Arc::clone(&file)), count: 0, distrusted: false };
        let journal = Self { source, written: Mutex::new(written) };
        journal.append(&held.records())?;
        fsync(&file)?;
        renameat(dir, NEW_NAME, dir, NAME)?;
        fsync(dir)?;
        Ok((journal, held))
    }

    /// Appends records.
    ///
    /// # Errors
    /// An I/O error, now or earlier: see [`Journal::invalidate`].
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
        written.file()?.write_all_at(&bytes, HEADER as u64 + written.count * RECORD as u64)?;
        written.count += records.len() as u64;
        Ok(())
    }

    /// Invalidates all records that are not durable yet, after a failed sync. The kernel reports such a failure only
    /// once, so the next sync may succeed although data was lost. From now on only what was durable before counts, as
    /// after a reboot, and no record is accepted.
    ///
    /// # Errors
    /// An I/O error: the next run during this boot may then trust data that this one did not make durable.
    pub(super) fn invalidate(&self) -> io::Result<()> {
        let file = {
            let mut written = self.written();
            written.distrusted = true;
            Arc::clone(written.file()?)
        };
        file.write_all_at(&header(self.source, BootId::NONE), 0)?;
        Ok(fdatasync(&file)?)
    }

    /// Checks that the journal was not invalidated.
    ///
    /// # Errors
    /// After [`Journal::invalidate`].
    pub(super) fn check(&self) -> io::Result<()> {
        self.written().check()
    }

    /// Returns the number of records.
    pub(super) fn records(&self) -> u64 {
        self.written().count
    }

    /// Makes the journal durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        let file = Arc::clone(self.written().file()?);
        Ok(fdatasync(&file)?)
    }

    /// Closes the journal, which is about to be removed: it takes no further record.
    pub(super) fn close(&self) {
        self.written().file = None;
    }

    fn written(&self) -> MutexGuard<'_, JournalTail> {
        lock(&self.written)
    }
}

impl JournalTail {
    fn file(&self) -> io::Result<&Arc<File>> {
        self.file.as_ref().ok_or_else(|| io::Error::other("the journal is closed"))
    }

    fn check(&self) -> io::Result<()> {
        match self.distrusted {
            true => Err(io::Error::other("an earlier sync to disk failed")),
            false => Ok(()),
        }
    }
}

/// Returns the contents of the journal of `source` in the directory `dir`, and changes nothing.
///
/// # Errors
/// An I/O error.
pub(super) fn peek(dir: &OwnedFd, source: SourceId) -> io::Result<JournalContents> {
    existing(dir)?.map_or_else(|| Ok(JournalContents::default()), |file| read(file, source, boot_id()))
}

/// Returns the source of the journal in the directory `dir`; `None` if there is none of this format.
///
/// # Errors
/// An I/O error.
pub(super) fn source(dir: &OwnedFd) -> io::Result<Option<SourceId>> {
    let Some(mut file) = existing(dir)? else { return Ok(None) };
    let mut found = [0; HEADER];
    Ok(if fill(&mut file, &mut found)? { decode_header(&found).map(|(source, _)| source) } else { None })
}

fn existing(dir: &OwnedFd) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat(dir, NAME, flags, Mode::empty()) {
        Ok(file) => Ok(Some(File::from(file))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Identifies the current boot. Where it cannot be identified every process counts as a boot of its own, so that only
/// synced records are valid.
fn boot_id() -> BootId {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    let id = data_encoding::HEXLOWER.decode(digits.as_bytes()).ok().and_then(|id| id.try_into().ok());
    BootId(id.unwrap_or_else(|| {
        let mut random = [0; 16];
        // Without randomness the id is all zeros. It still differs from that of other processes: none of them writes
        // zeros unless it fails too.
        let _ = runtime::fill(&mut random);
        random
    }))
}

#[cfg(test)]
mod tests;
