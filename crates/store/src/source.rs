//! Reading byte ranges of a batch's object from its files.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering as Atomic};
use std::sync::{Arc, Mutex, MutexGuard};

use request::LinkPolicy;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;

use super::batch::{Batch, InvalidatedFile};
use super::batch_layout::{BatchLayout, FilePart};
use super::consistency::{ReadConsistency, digest, fill, sum};
use super::cursor::DirectoryCursor;
use super::kernel_copy::{self, CopyResult};
use super::metadata::Status;
use super::object::{CopiedRange, EndsDigest};
use super::open_files::OpenFiles;
use super::root::Roots;
use crate::lock::lock;
use crate::messages::{Entry, EntryKind, VoidReason, Wanted};

/// The object of one batch: the wanted ranges of its regular files, one after another.
///
/// After every read of a file its size, time and version are compared with those before its first read. A file that
/// differs, has vanished or cannot be read is voided: it is reported once, and reads as zeros from then on.
///
/// Size and time must equal the scan's. The version also changes with mode, owner, names or access time; the parts of
/// the file read before are then compared (`consistency.rs`) or, at the first read, its hash if one was sent. If the
/// receiver holds part of the file from an earlier transfer and no hash was sent, there is nothing to compare, and the
/// version at the first read must equal the scan's.
///
/// A file that is wanted in full may grow once its first part was read in the scan's version, as a log does: the bytes
/// seen by the scan are sent, and compared with the file once, after the last read.
#[derive(Debug)]
pub struct BatchSource {
    layout: BatchLayout,
    roots: Arc<Roots>,
    /// Files of which only a part is wanted.
    partial: HashSet<u32>,
    /// The digests of some files' ends, if their length was read just before.
    ends: HashMap<u32, EndsDigest>,
    open: OpenFiles<u32>,
    /// Cursors not in use.
    cursors: Mutex<Vec<DirectoryCursor>>,
    states: Mutex<States>,
    /// Held while a file is compared with the pieces read before, so that only one comparison runs at a time.
    comparing: Mutex<()>,
    /// The end of the last read, in the object.
    read_to: AtomicU64,
    /// Set when no reader is left.
    stopped: Arc<AtomicBool>,
}

/// State of the files beyond the scan.
#[derive(Debug, Default)]
struct States {
    consistency: ReadConsistency,
    /// Files of which the kernel has copied a part.
    copied: HashSet<u32>,
    /// All voided files so far.
    voided: HashSet<u32>,
    /// Voided files not yet taken by [`BatchSource::take_voided`].
    news: Vec<InvalidatedFile>,
}

/// A wanted part of one file.
#[derive(Debug, Clone, Copy)]
struct SourceRange<'a> {
    index: u32,
    entry: &'a Entry,
    /// Offset of the part in the file.
    start: u64,
}

impl BatchSource {
    /// Creates the source of a batch that the scanner with these roots produced. Opens nothing yet.
    #[must_use]
    pub fn new(batch: Arc<Batch>, roots: Arc<Roots>, wanted: Wanted) -> Self {
        let layout = BatchLayout::new(batch, wanted);
        Self {
            partial: layout.partial(),
            layout,
            roots,
            ends: HashMap::new(),
            open: OpenFiles::new(),
            cursors: Mutex::default(),
            states: Mutex::default(),
            comparing: Mutex::default(),
            read_to: AtomicU64::new(0),
            stopped: Arc::default(),
        }
    }

    /// Lets files grow before they are read, if the digests of their ends still match.
    #[must_use]
    pub fn with_ends(mut self, ends: HashMap<u32, EndsDigest>) -> Self {
        self.ends = ends;
        self
    }

    /// Stops comparing files once another thread sets `stopped`: nothing read afterwards is used.
    #[must_use]
    pub fn until(mut self, stopped: Arc<AtomicBool>) -> Self {
        self.stopped = stopped;
        self
    }

    /// Returns the length of the object in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.layout.length()
    }

    /// Fills `out` with the object's bytes from `offset`; voided files and bytes beyond the end of the object read as
    /// zeros.
    ///
    /// Several threads may read at once. A range read twice may differ if a file was voided in between.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        let cursor = lock(&self.cursors).pop();
        let mut cursor = cursor.unwrap_or_else(|| DirectoryCursor::new(Arc::clone(&self.roots)));
        let mut rest = out;
        for FilePart { index, start, length } in self.layout.parts(offset, rest.len()) {
            let (part, after) = rest.split_at_mut(length);
            let piece = SourceRange { index, entry: &self.layout.batch.entries[index as usize], start };
            if let Err(reason) = self.read_piece(piece, part, &mut cursor) {
                self.void(index, reason);
            }
            rest = after;
        }
        rest.fill(0);
        self.read_to.fetch_max(offset, Atomic::Relaxed);
        lock(&self.cursors).push(cursor);
    }

    /// Copies bytes of one file to `to` in the kernel; `None` if they have to be read, as for a file that may have
    /// changed since the scan.
    pub(super) fn copy(&self, offset: u64, most: u64, to: &File, at: u64) -> Option<io::Result<CopiedRange>> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let FilePart { index, start, length } = self.layout.parts(offset, most).next()?;
        let bytes = length as u64;
        let piece = SourceRange { index, entry: &self.layout.batch.entries[index as usize], start };
        self.read_to.fetch_max(offset, Atomic::Relaxed);
        if self.states().voided.contains(&index) {
            return Some(Ok(CopiedRange { bytes, has_holes: true }));
        }
        // A changing file is sent again; one of these is not.
        if piece.entry.size() > COMES_AGAIN || matches!(piece.entry.kind, EntryKind::File { hash: Some(_), .. }) {
            return None;
        }
        let open = || self.open_file(piece.entry, &mut DirectoryCursor::new(Arc::clone(&self.roots)));
        let file = self.open.get(index, open).ok()?;
        if self.is_as_scanned(&file, piece.entry, false) {
            let copied = kernel_copy::copy(&file, start, bytes, to, at);
            if self.is_as_scanned(&file, piece.entry, true) {
                return self.taken(index, copied, bytes, start + bytes == piece.entry.size());
            }
        } else if !self.states().copied.contains(&index) {
            // Bytes read here are compared with themselves.
            return None;
        }
        self.void(index, self.reason_of_change(&file, piece.entry));
        Some(Ok(CopiedRange { bytes, has_holes: true }))
    }

    /// Returns the reason why a file that has changed since the scan is not sent.
    fn reason_of_change(&self, file: &File, entry: &Entry) -> VoidReason {
        let is_linked = fstat(file).is_ok_and(|seen| Status::from(seen).links > 0);
        if is_linked || self.exists(entry, &mut DirectoryCursor::new(Arc::clone(&self.roots))) {
            VoidReason::Changed
        } else {
            VoidReason::Vanished
        }
    }

    /// Notes the part of an unchanged file that the kernel has copied.
    fn taken(
        &self,
        index: u32,
        copied: io::Result<CopyResult>,
        bytes: u64,
        is_end: bool,
    ) -> Option<io::Result<CopiedRange>> {
        let has_holes = match copied {
            Ok(CopyResult::All) => false,
            Ok(CopyResult::ButHoles) => true,
            Ok(CopyResult::Nothing) => return None,
            Err(error) => {
                // Some of it may have been copied, and bytes read after that are compared with themselves alone.
                self.states().copied.insert(index);
                let is_of_target = matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::ROFS)
                );
                // Reading determines which file the error concerns.
                return is_of_target.then_some(Err(error));
            }
        };
        self.states().copied.insert(index);
        if is_end {
            self.open.forget(index);
        }
        Some(Ok(CopiedRange { bytes, has_holes }))
    }

    /// Whether an open file is in the version of the scan. Waits if it was changed a moment ago, so that a further
    /// change is visible, unless `is_settled`.
    fn is_as_scanned(&self, file: &File, entry: &Entry, is_settled: bool) -> bool {
        let EntryKind::File { version, .. } = entry.kind else { return false };
        let seen = || look(file, entry).ok().filter(|seen| seen.version() == version && !has_grown(seen, entry));
        let Some(found) = seen() else { return false };
        match found.unsettled_for().filter(|_| !is_settled) {
            Some(rest) => {
                runtime::sleep(rest);
                seen().is_some()
            }
            None => true,
        }
    }

    /// Returns the name of the file being read, of the first one before any is; `None` for an empty object.
    #[must_use]
    pub fn current(&self) -> Option<&[u8]> {
        self.layout.name_at(self.read_to.load(Atomic::Relaxed))
    }

    /// Returns how many non-empty files of the batch end within the first `bytes` of the object, or before them.
    #[must_use]
    pub fn files_within(&self, bytes: u64) -> u64 {
        self.layout.files_within(bytes)
    }

    /// Returns the files voided since the last call. Announce them before the digest of any block that was read before
    /// this call.
    pub fn take_voided(&self) -> Vec<InvalidatedFile> {
        std::mem::take(&mut self.states().news)
    }

    /// Opens the file of an entry; `None` if there is none, or if it cannot be opened.
    pub(super) fn entry_file(&self, index: u32) -> Option<(&Entry, File)> {
        let entry = self.layout.batch.entries.get(index as usize)?;
        let file = self.open_file(entry, &mut DirectoryCursor::new(Arc::clone(&self.roots))).ok()?;
        Some((entry, file))
    }

    /// Returns the present entry of a file, and the digest of its ends; `None` if it does not exist, or is not a
    /// regular file.
    #[must_use]
    pub fn entry_again(&self, index: u32) -> Option<(Entry, EndsDigest)> {
        let (entry, file) = self.entry_file(index)?;
        let seen = Status::from(fstat(&file).ok()?);
        let kind = EntryKind::File { size: seen.size, version: seen.version(), hash: None };
        // Its other attributes are not read again.
        let has_owner = entry.extra.owner.is_none_or(|owner| (owner.user, owner.group) == (seen.owner, seen.group));
        let is_file = seen.is_file() && seen.links > 0 && has_owner;
        let ends = ends_of(&file, seen.size)?;
        is_file.then(|| (Entry { kind, mode: seen.mode, mtime: seen.mtime, ..entry.clone() }, ends))
    }

    /// Returns the version of an open file; `None` if its kind, size or time differ from the scan's.
    pub(super) fn version(&self, file: &File, entry: &Entry) -> Option<u64> {
        let is_scanned = |seen: &Status| seen.links > 0 && !has_grown(seen, entry);
        let seen = || look(file, entry).ok().filter(is_scanned);
        if let Some(rest) = seen()?.unsettled_for() {
            runtime::sleep(rest);
        }
        seen().filter(|seen| seen.unsettled_for().is_none()).map(|seen| seen.version())
    }

    /// Set when no reader is left.
    pub(super) fn stopped(&self) -> &AtomicBool {
        &self.stopped
    }

    /// Fills `out` from one file, with zeros if the file is voided.
    fn read_piece(
        &self,
        piece: SourceRange<'_>,
        out: &mut [u8],
        cursor: &mut DirectoryCursor,
    ) -> Result<(), VoidReason> {
        if self.states().voided.contains(&piece.index) {
            out.fill(0);
            return Ok(());
        }
        let is_whole = out.len() as u64 == piece.entry.size();
        let mut open = || self.open_file(piece.entry, cursor);
        // A file read in a single piece needs no place among the open ones.
        let file = if is_whole { open().map(Arc::new) } else { self.open.get(piece.index, open) };
        let result = match file {
            Ok(file) => self.read_file(&file, piece, out).map_err(|reason| match reason {
                // Another file has replaced it.
                VoidReason::Vanished if self.exists(piece.entry, cursor) => VoidReason::Changed,
                reason => reason,
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(VoidReason::Vanished),
            Err(_) => Err(VoidReason::Unreadable),
        };
        if result.is_err() {
            out.fill(0);
        }
        if !is_whole && piece.start + out.len() as u64 == piece.entry.size() {
            self.open.forget(piece.index);
        }
        result
    }

    /// Fills `out` from an open file, if the file is in the state in which all of it must be sent.
    ///
    /// The file's status is read once, after the data: if its version is the expected one, it did not change before
    /// either.
    fn read_file(&self, file: &File, piece: SourceRange<'_>, out: &mut [u8]) -> Result<(), VoidReason> {
        let EntryKind::File { version: scanned, size, .. } = piece.entry.kind else { return Err(VoidReason::Changed) };
        let mut seen = read_settled(file, piece, out)?;
        let place = (piece.start, out.len());
        // Bytes copied by the kernel cannot be compared.
        if seen.version() != scanned && self.states().copied.contains(&piece.index) {
            return Err(if seen.links == 0 { VoidReason::Vanished } else { VoidReason::Changed });
        }
        if has_grown(&seen, piece.entry) {
            return self.take_grown(file, piece, place, sum(out));
        }
        // Most files are read in one piece, in the state in which they were scanned: no state is kept of them.
        if out.len() as u64 == size && seen.version() == scanned {
            return Ok(());
        }
        // Computed before taking the lock that all readers need.
        let found = sum(out);
        if self.states().consistency.take(piece.index, scanned, seen.version(), place, found) {
            return self.compare_grown(file, piece.index);
        }
        if seen.links == 0 {
            return Err(VoidReason::Vanished);
        }
        let _comparing = lock(&self.comparing);
        for _ in 0..ATTEMPTS {
            let compared = self.compare(file, piece)?;
            let again = read_settled(file, piece, out)?;
            if has_grown(&again, piece.entry) {
                return Err(VoidReason::Changed);
            }
            let (stays, found) = (again.version() == seen.version(), sum(out));
            if stays && self.states().consistency.go_on(piece.index, seen.version(), compared, place, found) {
                return Ok(());
            }
            seen = again;
        }
        Err(VoidReason::Changed)
    }

    /// Takes a piece that was read while the file was longer than expected: if an earlier one was not, or if the digest
    /// of the file's ends is that of the moment when its length was read.
    fn take_grown(&self, file: &File, piece: SourceRange<'_>, place: (u64, usize), sum: u64) -> Result<(), VoidReason> {
        // The receiver's part of it was read at another time.
        if self.partial.contains(&piece.index) {
            return Err(VoidReason::Changed);
        }
        let EntryKind::File { size, version, .. } = piece.entry.kind else { return Err(VoidReason::Changed) };
        let ends = self.ends.get(&piece.index);
        let may_begin = ends.is_some_and(|ends| ends_of(file, size).is_some_and(|found| found == *ends));
        let begun = self.states().consistency.grow(piece.index, may_begin.then_some(version), place, sum);
        if begun { self.compare_grown(file, piece.index) } else { Err(VoidReason::Changed) }
    }

    /// Compares a file that has grown with the pieces read of it, if all wanted bytes were read.
    fn compare_grown(&self, file: &File, index: u32) -> Result<(), VoidReason> {
        let range = self.layout.range_of(index).ok_or(VoidReason::Changed)?;
        let BatchLayout { batch, wanted, .. } = &self.layout;
        let EntryKind::File { hash, .. } = batch.entries[index as usize].kind else { return Ok(()) };
        let (size, wanted) = (range.end - range.start, wanted.bytes_in(&range, batch.length));
        let Some(runs) = self.states().consistency.grown(index, wanted) else { return Ok(()) };
        let is_same =
            runs.are_in(file, &self.stopped)? && (hash.is_none() || digest(file, size, &self.stopped)? == hash);
        if is_same { Ok(()) } else { Err(VoidReason::Changed) }
    }

    /// Compares a file with the pieces read of it, or with the hash that was sent; returns the number of pieces.
    fn compare(&self, file: &File, piece: SourceRange<'_>) -> Result<u64, VoidReason> {
        let EntryKind::File { size, hash, .. } = piece.entry.kind else { return Err(VoidReason::Changed) };
        let before = self.states().consistency.compare(piece.index)?;
        let is_same = match (&before, hash) {
            (_, Some(hash)) if before.is_none() || self.partial.contains(&piece.index) => {
                digest(file, size, &self.stopped)? == Some(hash)
            }
            // The receiver's part of it was read at another time, and there is nothing to compare it with.
            (_, None) if self.partial.contains(&piece.index) => false,
            (Some((runs, _)), _) => runs.are_in(file, &self.stopped)?,
            (None, _) => true,
        };
        if is_same { Ok(before.map_or(0, |(_, pieces)| pieces)) } else { Err(VoidReason::Changed) }
    }

    /// Whether an object exists under an entry's name.
    fn exists(&self, entry: &Entry, cursor: &mut DirectoryCursor) -> bool {
        let flags = if self.roots.links == LinkPolicy::Follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        cursor.place(&entry.path).is_ok_and(|(directory, name)| statat(directory, name, flags).is_ok())
    }

    /// Opens an entry's file, or its replacement.
    fn open_file(&self, entry: &Entry, cursor: &mut DirectoryCursor) -> io::Result<File> {
        let (directory, name) = cursor.place(&entry.path)?;
        // Non-blocking: the file may have been replaced by a FIFO.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = if self.roots.links == LinkPolicy::Follow { flags } else { flags | OFlags::NOFOLLOW };
        Ok(File::from(openat(directory, name, flags, Mode::empty())?))
    }

    fn states(&self) -> MutexGuard<'_, States> {
        lock(&self.states)
    }

    fn void(&self, index: u32, reason: VoidReason) {
        self.open.forget(index);
        let mut states = self.states();
        if states.voided.insert(index) {
            states.news.push(InvalidatedFile { entry: index, reason });
        }
    }
}

/// Size in bytes up to which a file that changes while it is copied is sent again: larger ones are read, which follows
/// their changes.
pub const COMES_AGAIN: u64 = 4 << 30;

/// Number of comparisons while a file keeps changing.
const ATTEMPTS: usize = 3;

/// Bytes at either end of a file that show whether it was appended to or written anew.
const END: usize = 4096;

/// Returns the digest of both ends of the first `size` bytes of a file.
fn ends_of(file: &File, size: u64) -> Option<EndsDigest> {
    let length = usize::try_from(size).unwrap_or(END).min(END);
    let (mut hasher, mut bytes) = (blake3::Hasher::new(), vec![0; length]);
    for start in [0, size - length as u64] {
        fill(file, start, &mut bytes).ok()?;
        hasher.update(&bytes);
    }
    Some(*hasher.finalize().as_bytes())
}

/// Fills `out` from a file, and returns the file's status after that. A file that was changed a moment ago is read
/// again once every further write changes its change time, unless it has grown.
fn read_settled(file: &File, piece: SourceRange<'_>, out: &mut [u8]) -> Result<Status, VoidReason> {
    for _ in 0..ATTEMPTS {
        let filled = fill(file, piece.start, out);
        // Before reporting a failed read: a change of the file explains the failure.
        let seen = look(file, piece.entry)?;
        filled?;
        match seen.unsettled_for().filter(|_| !has_grown(&seen, piece.entry)) {
            Some(rest) => runtime::sleep(rest),
            None => return Ok(seen),
        }
    }
    Err(VoidReason::Changed)
}

/// Returns the status of a file, whose kind, size and time must equal the scan's, unless it has grown.
fn look(file: &File, entry: &Entry) -> Result<Status, VoidReason> {
    let seen = Status::from(fstat(file).map_err(|_| VoidReason::Unreadable)?);
    match (seen.file_type, seen.size.cmp(&entry.size())) {
        (FileType::RegularFile, Ordering::Less) => Err(VoidReason::Shrank),
        (FileType::RegularFile, Ordering::Equal) if seen.mtime == entry.mtime => Ok(seen),
        (FileType::RegularFile, Ordering::Greater) if seen.links > 0 => Ok(seen),
        _ => Err(VoidReason::Changed),
    }
}

fn has_grown(seen: &Status, entry: &Entry) -> bool {
    seen.size > entry.size()
}
