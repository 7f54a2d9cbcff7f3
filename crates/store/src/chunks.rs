//! Content-defined chunks of files: two versions of a file have the same chunks where their content is the same, at any
//! offset.
//!
//! Chunks end where FastCDC of 2020 (Xia et al., "The Design of Fast Content-Defined Chunking for Data Deduplication
//! Based Storage Systems", IEEE TPDS 31(9)) ends them, normalized at level 1. The average follows from the length of
//! the sender's file, for both versions. The cuts only determine how much is recognised, never which bytes are written.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastcdc::v2020::FastCDC;

use super::source::BatchSource;
use crate::messages::{CHUNKS_TARGET, Chunk, ChunkDigest, EntryKind, ListState};

/// Smallest file whose chunks are listed: a shorter one fits into a few packets.
const SMALLEST: u64 = 128 << 10;
/// Up to this length, chunks of 4 KiB cost less than the bytes that longer ones repeat around a change.
const SHORT: u64 = 16 << 20;
/// Approximate maximum number of chunks of a file.
const MOST: u64 = 1 << 21;
/// Longest average, in bytes; files that need longer chunks are not listed.
const LONGEST: u64 = 4 << 20;
/// Bytes read at a time.
const WINDOW: usize = 1 << 20;
/// Bytes after which the rate of listing is known.
const MEASURED: u64 = 64 << 20;

/// Lengths of a file's chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cuts {
    average: usize,
}

impl Cuts {
    /// Returns the cuts for a file of `size` bytes; `None` if it is too short or too long.
    pub(super) fn of(size: u64) -> Option<Self> {
        let least = if size <= SHORT { 4 << 10 } else { 8 << 10 };
        let average = size.div_ceil(MOST).next_power_of_two().max(least);
        let average = usize::try_from(average).ok().filter(|_| size >= SMALLEST && average <= LONGEST)?;
        Some(Self { average })
    }

    /// The longest chunk, in bytes.
    const fn max(self) -> usize {
        4 * self.average
    }

    /// Cuts the first `size` bytes of a file, and passes each chunk with its offset to `each`. Returns the end of the
    /// last chunk: before `size` if the file ends there, or if `each` breaks, or once `stopped` is set.
    ///
    /// # Errors
    /// Errors of reading.
    pub(super) fn cut(
        self,
        file: &File,
        size: u64,
        stopped: &AtomicBool,
        mut each: impl FnMut(u64, Chunk) -> ControlFlow<()>,
    ) -> io::Result<u64> {
        let mut window = vec![0; WINDOW + self.max()];
        // The filled part of the window, and its offset in the file.
        let (mut filled, mut start) = (0, 0_u64);
        loop {
            let room = usize::try_from(size - start).unwrap_or(window.len()).min(window.len());
            filled += fill(file, start + filled as u64, &mut window[filled..room])?;
            let is_end = filled < window.len();
            let cutter = FastCDC::new(&window[..filled], self.average / 4, self.average, self.max());
            let mut at = 0;
            // A chunk that ends with the window might be longer.
            while filled - at >= self.max() || (is_end && at < filled) {
                if stopped.load(Ordering::Relaxed) {
                    return Ok(start + at as u64);
                }
                let (_, end) = cutter.cut(at, filled - at);
                let length = u32::try_from(end - at).expect("at most 16 MiB");
                if each(start + at as u64, Chunk { length, digest: digest(&window[at..end]) }).is_break() {
                    return Ok(start + end as u64);
                }
                at = end;
            }
            start += at as u64;
            if is_end {
                return Ok(start);
            }
            window.copy_within(at..filled, 0);
            filled -= at;
        }
    }
}

/// Returns the digest that identifies a chunk.
pub(super) fn digest(bytes: &[u8]) -> ChunkDigest {
    *blake3::hash(bytes).as_bytes().first_chunk().expect("32 bytes")
}

/// Fills `out` from `offset` on; returns the number of bytes, which is less than its length at the end of the file.
fn fill(file: &File, offset: u64, out: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match file.read_at(&mut out[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Lists the chunks of a source file, some at a time; the last call of `report` has another state than
/// [`ListState::Going`]. `report` breaks when the rest is not needed. The list ends before the file does if bytes are
/// listed more slowly than `path_rate`, the rate of the path in bytes per second: it then saves no time.
///
/// A list is complete only if the file was unchanged since the scan, both before and after it was read.
pub fn list_chunks(
    source: &BatchSource,
    index: u32,
    path_rate: Option<u64>,
    mut report: impl FnMut(Vec<Chunk>, ListState) -> ControlFlow<()>,
) {
    let mut list = ChunkList { path_rate, chunks: Vec::new(), bytes: 0, spent: Duration::ZERO };
    let is_complete = list.run(source, index, &mut report);
    let state = if is_complete { ListState::Complete } else { ListState::Void };
    // The end of the list, after which a break changes nothing.
    let _ = report(std::mem::take(&mut list.chunks), state);
}

/// A list of chunks under construction.
struct ChunkList {
    path_rate: Option<u64>,
    chunks: Vec<Chunk>,
    bytes: u64,
    /// Time of reading them, without the time spent waiting for the consumer.
    spent: Duration,
}

impl ChunkList {
    /// Returns whether the file is unchanged.
    fn run(
        &mut self,
        source: &BatchSource,
        index: u32,
        report: &mut impl FnMut(Vec<Chunk>, ListState) -> ControlFlow<()>,
    ) -> bool {
        let Some((entry, file)) = source.entry_file(index) else { return false };
        let EntryKind::File { size, version, .. } = entry.kind else { return false };
        let is_as_scanned = || source.version(&file, entry).is_some_and(|found| found == version);
        let Some(cuts) = Cuts::of(size).filter(|_| is_as_scanned()) else { return false };
        let mut since = runtime::now();
        let end = cuts.cut(&file, size, source.stopped(), |_, chunk| {
            self.bytes += u64::from(chunk.length);
            self.chunks.push(chunk);
            if self.chunks.len() < CHUNKS_TARGET {
                return ControlFlow::Continue(());
            }
            self.spent += runtime::since(since);
            if self.is_slow() {
                return ControlFlow::Break(());
            }
            let flow = report(std::mem::take(&mut self.chunks), ListState::Going);
            since = runtime::now();
            flow
        });
        let is_whole = end.is_ok_and(|end| end == size || self.is_slow());
        is_whole && is_as_scanned()
    }

    /// Whether the path transfers more bytes in the same time.
    fn is_slow(&self) -> bool {
        let Some(path_rate) = self.path_rate.filter(|_| self.bytes >= MEASURED) else { return false };
        (self.bytes as f64) < path_rate as f64 * self.spent.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns bytes that follow from a seed.
    fn random(seed: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
        bytes
    }

    fn cut(bytes: &[u8], size: u64) -> Vec<(u64, Chunk)> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        let mut chunks = Vec::new();
        let cuts = Cuts::of(size).unwrap();
        let end = cuts.cut(&file, bytes.len() as u64, &AtomicBool::new(false), |at, chunk| {
            chunks.push((at, chunk));
            ControlFlow::Continue(())
        });
        assert_eq!(end.unwrap(), bytes.len() as u64);
        chunks
    }

    #[test]
    fn chunks_are_contiguous_and_average_follows_size() {
        for (size, average) in [(SMALLEST, 4 << 10), (3 << 20, 4 << 10), (20 << 20, 8 << 10)] {
            let bytes = random(size, usize::try_from(size).unwrap());
            let chunks = cut(&bytes, size);
            let mut end = 0;
            for (at, chunk) in &chunks {
                assert_eq!(*at, end);
                end += u64::from(chunk.length);
                assert!(chunk.length <= 4 * average);
                let content = &bytes[usize::try_from(*at).unwrap()..usize::try_from(end).unwrap()];
                assert_eq!(chunk.digest, digest(content));
            }
            assert_eq!(end, size);
            let mean = size / chunks.len() as u64;
            assert!((u64::from(average) / 2..2 * u64::from(average)).contains(&mean), "{mean} of {average}");
        }
        assert_eq!((Cuts::of(SMALLEST - 1), Cuts::of(MOST * LONGEST + 1)), (None, None));
        assert_eq!(Cuts::of(MOST * LONGEST).unwrap().average as u64, LONGEST);
        assert_eq!(Cuts::of(100 << 30).unwrap().average, 64 << 10);
    }

    /// Another release of the library with other cuts would recognise no chunk listed by this one.
    #[test]
    fn cuts_equal_those_of_every_release() {
        let size = 1 << 20;
        let chunks = cut(&random(7, size), size as u64);
        let lengths: Vec<u32> = chunks.iter().map(|(_, chunk)| chunk.length).take(8).collect();
        assert_eq!((chunks.len(), &lengths[..]), (207, &[3274, 7311, 4218, 2306, 4837, 4471, 5171, 8668][..]));
    }

    #[test]
    fn inserted_bytes_change_only_adjacent_chunks() {
        let before = random(1, 4 << 20);
        let mut after = before.clone();
        after.splice(1_000_000..1_000_000, random(2, 777));
        let size = after.len() as u64;
        let digests = |bytes: &[u8]| -> Vec<ChunkDigest> {
            cut(bytes, size).into_iter().map(|(_, chunk)| chunk.digest).collect()
        };
        let (before, after) = (digests(&before), digests(&after));
        let new = after.iter().filter(|digest| !before.contains(digest)).count();
        assert!((1..=4).contains(&new), "{new} of {}", after.len());
    }
}
