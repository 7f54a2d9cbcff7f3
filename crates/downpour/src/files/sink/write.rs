//! Writing what is received into staged files, leaving holes where it is zeros.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::super::error::FilesError;
use super::batch::{OpenBatch, Piece, SMALL_FILE};
use super::entries::made_with;
use super::place::Place;
use super::{FileSink, lock};

/// Zeros are looked for in windows of this size, aligned in the file.
const WINDOW: u64 = 64 << 10;
/// A window cut by the range's edge is left out only from here on: a smaller one is cheaper written.
const SMALLEST_HOLE: usize = 4 << 10;

impl FileSink {
    /// Writes a range of a batch's object: of its wanted ranges one after another. Bytes behind the object's end are padding and dropped;
    /// windows of zeros become holes.
    ///
    /// # Errors
    /// A failure of the disk, or a batch that is not open.
    pub fn write(&self, batch: u32, offset: u64, bytes: &[u8]) -> Result<(), FilesError> {
        let open = self.batch(batch)?;
        let place = self.place()?;
        for piece in open.pieces(offset, bytes.len()) {
            let at = piece.file;
            if open.state(at).dropped {
                continue;
            }
            match self.write_piece(place, &open, &piece, &bytes[piece.bytes.clone()]) {
                Ok(()) => {}
                // It may have been voided, and so removed, since we asked.
                Err(_) if open.state(at).dropped => {}
                Err(error) => return Err(FilesError::system(place.shown(&open.files[at].path), error)),
            }
        }
        Ok(())
    }

    fn write_piece(&self, place: &Place, batch: &OpenBatch, piece: &Piece, bytes: &[u8]) -> io::Result<()> {
        let file = &batch.files[piece.file];
        if bytes.len() as u64 == file.size && file.size <= SMALL_FILE && !self.is_fresh(file.mtime) {
            // All of it at once, as most files come: opened once, and by nobody else.
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
        let open = self.files.get((batch.number, piece.file), open)?;
        if batch.state(piece.file).dense {
            return open.write_all_at(bytes, piece.inside);
        }
        if write_sparse(&open, piece.inside, bytes)? {
            batch.change(piece.file, |state| state.short = true);
        }
        Ok(())
    }

    /// Makes a staged file; `None` if it is made, or dropped.
    fn make(&self, place: &Place, batch: &OpenBatch, at: usize, whole: bool) -> io::Result<Option<File>> {
        if batch.state(at).made {
            return Ok(None);
        }
        let _making = lock(&self.making);
        let state = batch.state(at);
        if state.made || state.dropped {
            return Ok(None);
        }
        let file = &batch.files[at];
        let (mode, wrong_mode) = made_with(self, file.mode, whole);
        let made = place.staging.open_file(file.id, mode)?;
        let spare = !whole && file.size <= SMALL_FILE;
        if spare {
            // It must not look complete before it is, not even if this is written at the very time that it is to have in the end.
            made.set_len(file.size + 1)?;
        }
        batch.change(at, |state| {
            state.made = true;
            state.short |= spare;
            state.wrong_mode = wrong_mode;
        });
        Ok(Some(made))
    }
}

/// Writes `bytes` at `offset` of a new file, except windows of zeros. Says whether something was left out: the file may
/// then end too early and must be extended to its size at the end.
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
    /// Long enough to be compared with vector instructions, short enough to leave data early.
    const STEP: usize = 256;
    bytes.chunks(STEP).all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_is_what_was_written() {
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
    fn zeros_at_the_end_write_nothing() {
        let file = tempfile::tempfile().unwrap();
        assert!(write_sparse(&file, 0, &[0; 1 << 20]).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 0);
        assert!(!write_sparse(&file, 5, &[0; 100]).unwrap());
        assert_eq!(file.metadata().unwrap().len(), 105);
    }
}
