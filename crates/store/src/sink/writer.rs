//! The writer: writes received bytes to staged files, with holes for zeros.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Mutex;

use rustix::fs::fstat;

use super::super::attributes::{ExtraRule, SetResult};
use super::super::error::FilesError;
use super::super::metadata::Status;
use super::super::mode_rule::ModeRule;
use super::super::open_files::OpenFiles;
use super::super::staging::Staging;
use super::batch::{FileRange, OpenBatch, ReceivedFile, SMALL_FILE};
use super::target::TargetDirectory;
use crate::lock::lock;
use crate::object::{COPIED_AT_ONCE, TreeObject};
use crate::refusal::refusal_of;

/// Permissions that a file needs while it is written in several pieces.
pub(super) const WRITABLE: u32 = 0o600;

/// Size of the windows, aligned in the file, in which zeros are detected.
const WINDOW: u64 = 64 << 10;
/// Smallest part of a window, at the edge of a range, that becomes a hole: a smaller one is cheaper to write.
const SMALLEST_HOLE: usize = 4 << 10;

/// A file that cannot be written.
#[derive(Debug)]
pub(super) struct WriteError {
    /// Its index in the batch.
    file: usize,
    source: io::Error,
}

impl WriteError {
    /// Converts it to an error of a batch at `place`.
    pub(super) fn of(self, batch: &OpenBatch, place: &TargetDirectory) -> FilesError {
        FilesError::system(place.shown(&batch.files[self.file].path), self.source)
    }
}

/// Writes staged files.
#[derive(Debug)]
pub(super) struct Writer {
    modes: ModeRule,
    extras: ExtraRule,
    /// Open files by batch number and index in the batch's files.
    open: OpenFiles<(u32, usize)>,
    /// Held while a staged file is created or removed.
    making: Mutex<()>,
}

impl Writer {
    /// Creates a writer without open files.
    pub(super) fn new(modes: ModeRule, extras: ExtraRule) -> Self {
        Self { modes, extras, open: OpenFiles::new(), making: Mutex::default() }
    }

    /// Writes a range of a batch's object. Bytes beyond the end of the object are padding and dropped; windows of zeros
    /// become holes.
    pub(super) fn write(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        for piece in batch.pieces(offset, bytes.len()) {
            let file = piece.file;
            if batch.state(file).dropped {
                continue;
            }
            match self.write_piece(place, batch, &piece, &bytes[piece.bytes.clone()]) {
                Ok(()) => batch.note_part(&piece, bytes),
                // Voided, and therefore removed, since the check above.
                Err(_) if batch.state(file).dropped => {}
                Err(source) => return Err(WriteError { file, source }),
            }
        }
        Ok(())
    }

    /// Takes a range of a batch's object from `from`. Large files are copied by the kernel if it can; files sent again
    /// are read, since reading follows a changing file.
    pub(super) fn copy(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        range: Range<u64>,
        from: &dyn TreeObject,
    ) -> Result<(), WriteError> {
        let mut bytes = Vec::new();
        let mut offset = range.start;
        while offset < range.end {
            let length = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
            let first = batch.pieces(offset, length).next();
            let is_large = |piece: &FileRange| batch.files[piece.file].size > SMALL_FILE && piece.bytes.start == 0;
            if let Some(piece) = first.filter(|piece| is_large(piece) && !batch.again) {
                let copied = self.copy_piece(place, batch, offset, &piece, from);
                let file = piece.file;
                if let Some(copied) = copied.map_err(|source| WriteError { file, source })? {
                    offset += copied;
                    continue;
                }
            }
            bytes.resize(COPIED_AT_ONCE, 0);
            let length = length.min(COPIED_AT_ONCE);
            from.read(offset, &mut bytes[..length]);
            self.write(place, batch, offset, &bytes[..length])?;
            offset += length as u64;
        }
        Ok(())
    }

    /// Copies a piece of one file in the kernel; returns the number of bytes, or `None` if it cannot.
    fn copy_piece(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        offset: u64,
        piece: &FileRange,
        from: &dyn TreeObject,
    ) -> io::Result<Option<u64>> {
        let (file, state) = (&batch.files[piece.file], batch.state(piece.file));
        let length = piece.bytes.len() as u64;
        if state.dropped {
            return Ok(Some(length));
        }
        // Holes would keep the existing bytes.
        if state.dense {
            return Ok(None);
        }
        let open = || match self.make(place, batch, piece.file, false)? {
            Some(made) => Ok(made),
            None => place.staging.open_made(file.id),
        };
        let open = self.open.get((batch.number, piece.file), open)?;
        let Some(copied) = from.copy(offset, length, &open, piece.inside).transpose()? else { return Ok(None) };
        if copied.has_holes {
            batch.change(piece.file, |state| state.short = true);
        }
        Ok(Some(copied.bytes))
    }

    /// Writes bytes of one file of a batch that were not received.
    pub(super) fn write_at(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        file: usize,
        inside: u64,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let piece = FileRange { file, inside, bytes: 0..bytes.len() };
        self.write_piece(place, batch, &piece, bytes).map_err(|source| WriteError { file, source })
    }

    /// Removes the staged part of a voided file; returns whether it was being received.
    pub(super) fn discard(&self, place: &TargetDirectory, batch: &OpenBatch, file: usize) -> io::Result<bool> {
        // Prevents other threads from creating it meanwhile.
        let _making = lock(&self.making);
        if batch.state(file).dropped {
            return Ok(false);
        }
        batch.change(file, |state| state.dropped = true);
        self.open.forget((batch.number, file));
        place.staging.remove_file(batch.files[file].id)?;
        Ok(true)
    }

    /// Closes all files.
    pub(super) fn close(&self) {
        self.open.clear();
    }

    /// Sets length and attributes of a file whose bytes are all verified. Returns `None` if it was voided.
    pub(super) fn complete(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        at: usize,
    ) -> io::Result<Option<SetResult>> {
        let (file, state) = (&batch.files[at], batch.state(at));
        self.open.forget((batch.number, at));
        if state.dropped {
            return Ok(None);
        }
        let staging = &place.staging;
        let work = || -> io::Result<SetResult> {
            let mut made = CreatedMode { wrong_mode: state.wrong_mode, denied: state.denied };
            if !state.made {
                // An empty file, which no block has created.
                made = self.make_with(staging, file, true)?.1;
            }
            if state.short {
                staging.set_length(file.id, file.size)?;
            }
            let mut mode = match file.keeps_mode {
                true => file.mode,
                false => self.modes.without(file.mode, made.denied),
            };
            let inherited = if self.extras.sets_acls() { None } else { Some(place.target.inherited(&file.path)?) };
            if let Some(inherited) = inherited.filter(|inherited| inherited != staging.inherited()) {
                // Its ACL is that of the staging directory.
                mode = file.mode;
                made.wrong_mode = true;
                inherited.give(&staging.hold(&file.id.place())?, mode)?;
            }
            if self.extras.is_active() {
                let held = staging.hold(&file.id.place())?;
                return self.extras.apply(&held, Some(mode), Some(file.mtime), &file.extra);
            }
            let moded = if made.wrong_mode { staging.set_mode(file.id, mode) } else { Ok(()) };
            // Its content is complete without them.
            match moded.and_then(|()| staging.set_time(file.id, file.mtime)) {
                Err(error) if refusal_of(&error).is_none() || error.kind() == io::ErrorKind::NotFound => Err(error),
                set => Ok(if set.is_ok() { SetResult::All } else { SetResult::MetadataLost }),
            }
        };
        match work() {
            Ok(applied) => Ok(Some(applied)),
            Err(_) if batch.state(at).dropped => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write_piece(
        &self,
        place: &TargetDirectory,
        batch: &OpenBatch,
        piece: &FileRange,
        bytes: &[u8],
    ) -> io::Result<()> {
        let file = &batch.files[piece.file];
        if bytes.len() as u64 == file.size && file.size <= SMALL_FILE && !batch.state(piece.file).made {
            // The whole file at once, the usual case: opened once, by this thread only.
            let Some(open) = self.make(place, batch, piece.file, true)? else { return Ok(()) };
            if write_sparse(&open, 0, bytes)? {
                open.set_len(file.size)?;
            }
            return Ok(());
        }
        let open = || match self.make(place, batch, piece.file, false)? {
            Some(made) => Ok(made),
            None => place.staging.open_made(file.id),
        };
        let open = self.open.get((batch.number, piece.file), open)?;
        if batch.state(piece.file).dense {
            return open.write_all_at(bytes, piece.inside);
        }
        if write_sparse(&open, piece.inside, bytes)? {
            batch.change(piece.file, |state| state.short = true);
        }
        Ok(())
    }

    /// Creates a staged file; `None` if it exists already, or is dropped.
    fn make(&self, place: &TargetDirectory, batch: &OpenBatch, at: usize, whole: bool) -> io::Result<Option<File>> {
        if batch.state(at).made {
            return Ok(None);
        }
        let _making = lock(&self.making);
        let state = batch.state(at);
        if state.made || state.dropped {
            return Ok(None);
        }
        let file = &batch.files[at];
        let (opened, CreatedMode { wrong_mode, denied }) = self.make_with(&place.staging, file, whole)?;
        batch.change(at, |state| {
            state.made = true;
            state.wrong_mode = wrong_mode;
            state.denied = denied;
        });
        Ok(Some(opened))
    }

    /// Creates a file, to be written in one piece if `whole`. Its mode is read back from the system: an ACL, or the
    /// mount options of the file system, may have denied some of it.
    fn make_with(&self, staging: &Staging, file: &ReceivedFile, whole: bool) -> io::Result<(File, CreatedMode)> {
        // To set extended attributes, its owner has to be able to write it.
        let asked = if whole && !self.extras.is_active() { file.mode } else { file.mode | WRITABLE } & 0o777;
        let opened = staging.open_file(file.id, asked)?;
        let found = Status::from(fstat(&opened)?).mode;
        Ok((opened, CreatedMode { wrong_mode: found != file.mode, denied: asked & !found }))
    }
}

/// The mode that the system has given to a new file.
struct CreatedMode {
    /// Whether it differs from the final one.
    wrong_mode: bool,
    /// The permissions that the file lacks compared with the requested mode.
    denied: u32,
}

/// Writes `bytes` at `offset` of a new file, except windows of zeros. Returns whether any were skipped: the file may
/// then be too short and must be extended to its size at the end.
pub(super) fn write_sparse(file: &File, offset: u64, bytes: &[u8]) -> io::Result<bool> {
    let mut holes = false;
    let mut unwritten = 0;
    let mut at = 0;
    while at < bytes.len() {
        let to_edge = WINDOW - (offset + at as u64) % WINDOW;
        let end = bytes.len().min(at + usize::try_from(to_edge).expect("at most 64 Ki"));
        let window = &bytes[at..end];
        if window.len() >= SMALLEST_HOLE && is_zero(window) {
            file.write_all_at(&bytes[unwritten..at], offset + unwritten as u64)?;
            unwritten = end;
            holes = true;
        }
        at = end;
    }
    file.write_all_at(&bytes[unwritten..], offset + unwritten as u64)?;
    Ok(holes)
}

fn is_zero(bytes: &[u8]) -> bool {
    /// Long enough for vector instructions, short enough to stop soon after data is found.
    const STEP: usize = 256;
    bytes.chunks(STEP).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::super::super::staged_id::StagedId;
    use super::super::batch::{FileState, ReceivedFile};
    use super::*;
    use crate::{Entry, EntryKind, Extra, Modes, Mtime, Preserve, ReceiveRequest, SourceId, Wanted};

    /// Creates a place in `dir`, and a batch of one file of `size` bytes.
    fn staged(dir: &Path, size: u64) -> (TargetDirectory, OpenBatch) {
        let spec = Arc::new(ReceiveRequest::into_directory(dir));
        let place =
            TargetDirectory::open(&spec, &spec.in_target(), &Arc::default(), &Arc::default(), SourceId([1; 16]), true)
                .unwrap()
                .unwrap();
        let mtime = Mtime { seconds: 77, nanoseconds: 0 };
        let kind = EntryKind::File { size, version: 0, hash: None };
        let entry = Entry { path: b"file".to_vec(), kind, mode: 0o444, mtime, extra: Extra::default() };
        let id = StagedId::new(&entry.path, &entry);
        let path = entry.path.as_slice().into();
        let (extra, keeps_mode) = (Extra::default(), false);
        let file = ReceivedFile { path, entry: 0, id, start: 0, size, mode: 0o444, keeps_mode, mtime, extra };
        (place, OpenBatch::new((0, false), size, Wanted::all(), 1, vec![(file, FileState::fresh(size))]))
    }

    fn writer(modes: Modes) -> Writer {
        Writer::new(ModeRule::new(modes, Preserve::default()), ExtraRule::default())
    }

    #[test]
    fn pieces_in_any_order_make_complete_file() {
        let dir = tempfile::tempdir().unwrap();
        let size = 2 * SMALL_FILE;
        let (place, batch) = staged(dir.path(), size);
        let writer = writer(Modes::Exact);
        let half = vec![7; SMALL_FILE as usize];
        writer.write(&place, &batch, 0, &half).unwrap();
        // Zeros at the end, and padding beyond it, are not written.
        writer.write(&place, &batch, SMALL_FILE, &vec![0; SMALL_FILE as usize + 100]).unwrap();
        assert_eq!(writer.complete(&place, &batch, 0).unwrap(), Some(SetResult::All));
        let found = place.staging.look(batch.files[0].id).unwrap();
        assert_eq!((found.size, found.mode, found.mtime.seconds), (size, 0o444, 77));
    }

    #[test]
    fn voided_file_is_removed_and_not_recreated() {
        let dir = tempfile::tempdir().unwrap();
        let (place, batch) = staged(dir.path(), 1000);
        let writer = writer(Modes::Masked);
        writer.write(&place, &batch, 0, &[7; 500]).unwrap();
        assert!(writer.discard(&place, &batch, 0).unwrap());
        assert!(!writer.discard(&place, &batch, 0).unwrap());
        writer.write(&place, &batch, 500, &[7; 500]).unwrap();
        assert_eq!(writer.complete(&place, &batch, 0).unwrap(), None);
        assert!(place.staging.look(batch.files[0].id).is_err());
    }

    #[test]
    fn write_error_names_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let (place, batch) = staged(dir.path(), 1000);
        let writer = writer(Modes::Masked);
        std::fs::remove_dir_all(place.staging.path()).unwrap();
        let error = writer.write(&place, &batch, 0, &[7; 1000]).unwrap_err().of(&batch, &place);
        assert!(matches!(&error, FilesError::Io { path, .. } if *path == dir.path().join("file")), "{error}");
    }

    #[test]
    fn sparse_write_reads_back_equal() {
        let file = tempfile::tempfile().unwrap();
        let mut bytes = vec![0; 300_000];
        bytes[70_000] = 1;
        bytes[299_999] = 2;
        let mut holes = false;
        for (index, chunk) in bytes.chunks(50_001).enumerate() {
            holes |= write_sparse(&file, index as u64 * 50_001, chunk).unwrap();
        }
        assert!(holes);
        let mut back = vec![7; bytes.len()];
        file.read_exact_at(&mut back, 0).unwrap();
        assert!(back == bytes);
    }

    #[test]
    fn trailing_zeros_write_nothing() {
        let file = tempfile::tempfile().unwrap();
        assert!(write_sparse(&file, 0, &[0; 1 << 20]).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 0);
        assert!(!write_sparse(&file, 5, &[0; 100]).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 105);
    }
}
