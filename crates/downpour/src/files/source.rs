//! Reads byte ranges of a batch's object from its files.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;

use super::entry::{Batch, Entry, Kind, VoidReason, Voided};
use super::open::OpenFiles;
use super::scan::{Roots, mtime};

/// The object of one batch: its regular files, one after another.
///
/// Each file's size and time are compared with the scan's when it is opened and after every read of it, so also before
/// the first and after the last. A file that differs, has vanished or cannot be read is voided: it is reported once, and
/// what is read of it from then on is zeros. A change that keeps the size and falls within the file system's clock tick
/// after the scan cannot be seen this way.
#[derive(Debug)]
pub struct BatchSource {
    batch: Arc<Batch>,
    roots: Arc<Roots>,
    /// Entry and start of each regular file that is not empty, in the order of the object.
    files: Vec<(u32, u64)>,
    open: OpenFiles<u32>,
    voided: Mutex<VoidedFiles>,
}

#[derive(Debug, Default)]
struct VoidedFiles {
    /// Every one so far.
    entries: HashSet<u32>,
    /// Those not yet taken.
    news: Vec<Voided>,
}

impl BatchSource {
    /// The source of a batch that the scanner with these roots made. Opens nothing yet.
    #[must_use]
    pub fn new(batch: Arc<Batch>, roots: Arc<Roots>, _wanted: super::Wanted) -> Self {
        let mut start = 0;
        let mut files = Vec::new();
        for (index, entry) in (0..).zip(&batch.entries) {
            if entry.size() > 0 {
                files.push((index, start));
                start += entry.size();
            }
        }
        Self { batch, roots, files, open: OpenFiles::new(), voided: Mutex::default() }
    }

    /// Length of the object in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.batch.length
    }

    /// Fills `out` with the object's bytes from `offset`; zeros stand for voided files and behind the object's end.
    ///
    /// Several threads may read at once. A range read twice may differ if a file was voided in between.
    pub fn read(&self, offset: u64, out: &mut [u8]) {
        let mut at = self.files.partition_point(|(_, start)| *start <= offset).saturating_sub(1);
        let mut position = offset;
        let mut rest = out;
        while let Some(&(index, start)) = self.files.get(at).filter(|_| !rest.is_empty()) {
            let entry = &self.batch.entries[index as usize];
            let inside = position - start;
            let left = entry.size().saturating_sub(inside);
            let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let (piece, after) = rest.split_at_mut(wanted);
            if wanted > 0
                && let Err(reason) = self.read_file(index, entry, inside, piece)
            {
                self.void(index, reason);
            }
            position += wanted as u64;
            rest = after;
            at += 1;
        }
        rest.fill(0);
    }

    /// The files voided since the last call. Announce them before the digest of the block whose reading came before
    /// this call.
    pub fn take_voided(&self) -> Vec<Voided> {
        std::mem::take(&mut self.voided.lock().unwrap_or_else(PoisonError::into_inner).news)
    }

    /// Fills `piece` from one file; on an error the rest of it is zeros.
    fn read_file(&self, index: u32, entry: &Entry, inside: u64, piece: &mut [u8]) -> Result<(), VoidReason> {
        if self.is_voided(index) {
            piece.fill(0);
            return Ok(());
        }
        let file = match self.open.get(index, || self.open_file(entry)) {
            Ok(file) => file,
            Err(error) => {
                piece.fill(0);
                return Err(void_reason(&error));
            }
        };
        let mut filled = 0;
        let result = loop {
            if filled == piece.len() {
                break check(&file, entry);
            }
            match file.read_at(&mut piece[filled..], inside + filled as u64) {
                Ok(0) => break Err(VoidReason::Shrank),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break Err(VoidReason::Unreadable),
            }
        };
        piece[filled..].fill(0);
        if inside + piece.len() as u64 == entry.size() {
            self.open.forget(index);
        }
        result
    }

    /// Opens an entry's file; one that is not as the scan saw it fails with its [`VoidReason`] inside.
    fn open_file(&self, entry: &Entry) -> io::Result<File> {
        let path = self.roots.locate(&entry.path).ok_or(io::ErrorKind::NotFound)?;
        // Not blocking: what was a file may be a pipe by now.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).expect("open flags are an int in C");
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        check(&file, entry).map_err(|reason| io::Error::other(Unlike(reason)))?;
        Ok(file)
    }

    fn is_voided(&self, index: u32) -> bool {
        self.voided.lock().unwrap_or_else(PoisonError::into_inner).entries.contains(&index)
    }

    fn void(&self, index: u32, reason: VoidReason) {
        self.open.forget(index);
        let mut voided = self.voided.lock().unwrap_or_else(PoisonError::into_inner);
        if voided.entries.insert(index) {
            voided.news.push(Voided { entry: index, reason });
        }
    }
}

/// An opened file is not as the scan saw it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unlike(VoidReason);

fn void_reason(error: &io::Error) -> VoidReason {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Unlike>()) {
        Some(Unlike(reason)) => *reason,
        None if error.kind() == io::ErrorKind::NotFound => VoidReason::Vanished,
        None => VoidReason::Unreadable,
    }
}

/// Compares a file with what the scan saw.
fn check(file: &File, entry: &Entry) -> Result<(), VoidReason> {
    let metadata = file.metadata().map_err(|_| VoidReason::Unreadable)?;
    let Kind::File { size, .. } = entry.kind else { return Err(VoidReason::Changed) };
    if metadata.is_file() && metadata.len() < size {
        return Err(VoidReason::Shrank);
    }
    if !metadata.is_file() || metadata.len() != size || mtime(&metadata) != entry.mtime {
        return Err(VoidReason::Changed);
    }
    Ok(())
}
