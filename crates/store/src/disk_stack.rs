//! A list on disk, read from its end: work deferred to the end of a transfer. It can have any length without using
//! memory.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;

/// Bytes buffered in memory before they are written.
const BUFFER: usize = 64 << 10;
/// Size in bytes of the length that follows each part of a record.
const LENGTH: usize = 4;

/// A list of records of two byte strings each.
#[derive(Debug)]
pub(super) struct List {
    /// `None` once the list is closed.
    file: Option<File>,
    /// Bytes in the file.
    written: u64,
    /// Records not yet written.
    buffer: Vec<u8>,
    count: u64,
}

impl List {
    /// Creates a list in an empty file.
    pub(super) fn new(file: File) -> Self {
        Self { file: Some(file), written: 0, buffer: Vec::new(), count: 0 }
    }

    /// Returns the number of records.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn push(&mut self, first: &[u8], second: &[u8]) -> io::Result<()> {
        for part in [first, second] {
            let length = u32::try_from(part.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            self.buffer.extend_from_slice(part);
            self.buffer.extend(length.to_be_bytes());
        }
        self.count += 1;
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// Iterates over the records, last one first.
    pub(super) fn backwards(&mut self) -> io::Result<Backwards<'_>> {
        self.flush()?;
        Ok(Backwards { file: open(&self.file)?, start: self.written, window: Vec::new(), end: 0 })
    }

    /// Closes the list, whose file is about to be removed.
    pub(super) fn close(&mut self) {
        self.file = None;
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut file = open(&self.file)?;
        file.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

fn open(file: &Option<File>) -> io::Result<&File> {
    file.as_ref().ok_or_else(|| io::Error::other("the list is closed"))
}

/// An iterator over a list from its end.
#[derive(Debug)]
pub(super) struct Backwards<'a> {
    file: &'a File,
    /// Offset of the window in the file.
    start: u64,
    window: Vec<u8>,
    /// Bytes of the window not yet returned.
    end: usize,
}

impl Backwards<'_> {
    /// Returns the next record.
    pub(super) fn next(&mut self) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.start == 0 && self.end == 0 {
            return Ok(None);
        }
        let second = self.part()?;
        let first = self.part()?;
        Ok(Some((first, second)))
    }

    fn part(&mut self) -> io::Result<Vec<u8>> {
        let length = self.take(LENGTH)?.try_into().map_err(|_| io::ErrorKind::InvalidData)?;
        self.take(u32::from_be_bytes(length) as usize)
    }

    fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        if self.end < count {
            // Read at least a buffer's worth in front of the bytes not yet returned.
            let more = (count - self.end).max(BUFFER).min(usize::try_from(self.start).unwrap_or(usize::MAX));
            let mut window = vec![0; more];
            self.start -= more as u64;
            self.file.read_exact_at(&mut window, self.start)?;
            window.extend_from_slice(&self.window[..self.end]);
            self.end += more;
            self.window = window;
        }
        let start = self.end.checked_sub(count).ok_or(io::ErrorKind::InvalidData)?;
        let taken = self.window[start..self.end].to_vec();
        self.end = start;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_returns_last_record_first() {
        let mut list = List::new(tempfile::tempfile().unwrap());
        let record = |n: usize| (vec![b'a'; n * 37 % 4000], vec![n as u8; n % 3]);
        for n in 0..3000 {
            let (first, second) = record(n);
            list.push(&first, &second).unwrap();
        }
        assert_eq!(list.count(), 3000);
        let mut back = list.backwards().unwrap();
        for n in (0..3000).rev() {
            assert_eq!(back.next().unwrap(), Some(record(n)), "{n}");
        }
        assert_eq!(back.next().unwrap(), None);
    }
}
