//! Writing a range of a file, leaving holes where it is zeros.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Zeros are looked for in windows of this size, aligned in the file.
const WINDOW: u64 = 64 << 10;
/// A window cut by the range's edge is left out only from here on: a smaller one is cheaper written.
const SMALLEST_HOLE: usize = 4 << 10;

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
