//! Read consistency: whether a file that is sent in several pieces is unchanged from the first piece to the last.
//!
//! A change of mode, owner, names or access time changes a file's version just as a write does, and a write followed by
//! resetting the modification time shows in nothing else. If the version changes but size and time do not, the earlier
//! pieces are therefore read again and compared by checksum.

use std::array;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::messages::VoidReason;

/// Bytes read at a time for a comparison.
const CHUNK: usize = 256 << 10;
/// Maximum number of times that a file is compared with the pieces read before. Each comparison may take as long as
/// sending the file up to that point, and a file touched more often than this may be touched for ever.
const MAX_COMPARISONS: u32 = 64;
/// Odd, hence invertible modulo 2^64, so that multiplying loses nothing.
const BASE: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// Read state of files, by the index of their entry.
#[derive(Debug, Default)]
pub(super) struct ReadConsistency {
    files: HashMap<u32, FileReadState>,
}

/// The state in which all pieces of a file must be read.
#[derive(Debug)]
struct FileReadState {
    version: u64,
    runs: PieceRuns,
    /// Number of pieces accepted.
    taken: u64,
    comparisons: u32,
    /// Whether the file was longer than it should be when some piece was read.
    grown: bool,
}

/// Pieces read of a file, by start offset. Consecutive pieces of equal length form one run, so a file read from start
/// to end takes no more room than a single piece.
#[derive(Debug, Clone, Default)]
pub(super) struct PieceRuns(BTreeMap<u64, PieceRun>);

#[derive(Debug, Clone, Copy)]
struct PieceRun {
    /// Length of each piece in bytes.
    each: usize,
    /// Number of pieces.
    count: u64,
    /// The pieces' [`sum`]s as digits of a number to the base [`BASE`].
    sum: u64,
}

/// The pieces with which a file is compared, and their number.
pub(super) type EarlierPieces = (PieceRuns, u64);

impl ReadConsistency {
    /// Accepts a piece (start and length) that was read while the file had `version`. Returns false, without accepting
    /// it, if other pieces were read at another version, or if it is the first and `version` is not `first`.
    pub(super) fn take(&mut self, index: u32, first: u64, version: u64, piece: (u64, usize), sum: u64) -> bool {
        let state = match self.files.entry(index) {
            Entry::Occupied(state) if state.get().version == version => state.into_mut(),
            Entry::Vacant(state) if first == version => state.insert(FileReadState::new(version)),
            _ => return false,
        };
        state.add(piece, sum);
        true
    }

    /// Accepts a piece that was read while the file was longer than it should be. Returns false, without accepting it,
    /// if it is the first, unless it may `begin` with that version.
    pub(super) fn grow(&mut self, index: u32, begin: Option<u64>, piece: (u64, usize), sum: u64) -> bool {
        let state = match (self.files.entry(index), begin) {
            (Entry::Occupied(state), _) => state.into_mut(),
            (Entry::Vacant(state), Some(version)) => state.insert(FileReadState::new(version)),
            (Entry::Vacant(_), None) => return false,
        };
        state.grown = true;
        state.add(piece, sum);
        true
    }

    /// Returns the pieces read of a file that has grown, if they have at least `bytes`.
    pub(super) fn grown(&self, index: u32, bytes: u64) -> Option<PieceRuns> {
        let state = self.files.get(&index).filter(|state| state.grown)?;
        (state.runs.bytes() >= bytes).then(|| state.runs.clone())
    }

    /// Returns the pieces read of a file, for a comparison; `None` before the first piece.
    ///
    /// # Errors
    /// [`VoidReason::Changed`] if the file was compared too often.
    pub(super) fn compare(&mut self, index: u32) -> Result<Option<EarlierPieces>, VoidReason> {
        let Some(state) = self.files.get_mut(&index) else { return Ok(None) };
        state.comparisons += 1;
        if state.comparisons > MAX_COMPARISONS {
            return Err(VoidReason::Changed);
        }
        Ok(Some((state.runs.clone(), state.taken)))
    }

    /// Moves a file to a new version, at which `piece` was read and `compared` earlier pieces were found unchanged.
    /// Returns false if more than `compared` pieces have been accepted.
    pub(super) fn go_on(&mut self, index: u32, version: u64, compared: u64, piece: (u64, usize), sum: u64) -> bool {
        let state = self.files.entry(index).or_insert_with(|| FileReadState::new(version));
        if state.taken != compared {
            return false;
        }
        state.version = version;
        state.add(piece, sum);
        true
    }
}

impl FileReadState {
    fn new(version: u64) -> Self {
        Self { version, runs: PieceRuns::default(), taken: 0, comparisons: 0, grown: false }
    }

    fn add(&mut self, piece: (u64, usize), sum: u64) {
        self.taken += 1;
        self.runs.add(piece, sum);
    }
}

impl PieceRuns {
    fn add(&mut self, (mut start, each): (u64, usize), sum: u64) {
        let mut run = PieceRun { each, count: 1, sum };
        if let Some((&before, &earlier)) = self.0.range(..=start).next_back() {
            if start + each as u64 <= earlier.end(before) {
                // Read again at the same version: its content is known.
                return;
            }
            if start == earlier.end(before) && each == earlier.each {
                (start, run) = (before, earlier.followed_by(run));
            }
        }
        if let Some(later) = self.0.get(&run.end(start)).copied().filter(|later| later.each == each) {
            self.0.remove(&run.end(start));
            run = run.followed_by(later);
        }
        self.0.insert(start, run);
    }

    /// Returns the number of bytes in all pieces.
    fn bytes(&self) -> u64 {
        self.0.values().map(|run| run.count * run.each as u64).sum()
    }

    /// Whether a file still contains the pieces read of it. Returns false early once `stopped` is set; the result is
    /// then meaningless.
    pub(super) fn are_in(&self, file: &File, stopped: &AtomicBool) -> Result<bool, VoidReason> {
        let mut buffer = Vec::new();
        for (start, run) in &self.0 {
            buffer.resize(run.each, 0);
            let mut found = 0_u64;
            for number in 0..run.count {
                if stopped.load(Ordering::Relaxed) {
                    return Ok(false);
                }
                fill(file, start + number * run.each as u64, &mut buffer)?;
                found = found.wrapping_mul(BASE).wrapping_add(sum(&buffer));
            }
            if found != run.sum {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl PieceRun {
    /// Returns the end offset of a run that starts at `start`.
    const fn end(self, start: u64) -> u64 {
        start + self.count * self.each as u64
    }

    /// Joins two runs of pieces of the same length.
    fn followed_by(self, next: Self) -> Self {
        let sum = self.sum.wrapping_mul(power(next.count)).wrapping_add(next.sum);
        Self { each: self.each, count: self.count + next.count, sum }
    }
}

/// Returns [`BASE`] to the power of `exponent`.
fn power(mut exponent: u64) -> u64 {
    let (mut power, mut square) = (1_u64, BASE);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        exponent /= 2;
    }
    power
}

/// Returns the BLAKE3 hash of the first `size` bytes of a file; `None` once `stopped` is set.
pub(super) fn digest(file: &File, size: u64, stopped: &AtomicBool) -> Result<Option<[u8; 32]>, VoidReason> {
    let (mut hasher, mut chunk, mut at) = (blake3::Hasher::new(), vec![0; CHUNK], 0);
    while at < size {
        if stopped.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let length = usize::try_from(size - at).unwrap_or(CHUNK).min(CHUNK);
        fill(file, at, &mut chunk[..length])?;
        hasher.update(&chunk[..length]);
        at += length as u64;
    }
    Ok(Some(*hasher.finalize().as_bytes()))
}

/// Fills `out` with a file's bytes from `start`.
pub(super) fn fill(file: &File, start: u64, out: &mut [u8]) -> Result<(), VoidReason> {
    file.read_exact_at(out, start).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => VoidReason::Shrank,
        _ => VoidReason::Unreadable,
    })
}

/// Computes a checksum that protects against accidents, not attacks: anyone who can write the file can send arbitrary
/// content without needing a collision. It runs at memory speed, since all bytes of every long file pass through it.
/// Any change within one word of one of its four lanes is detected with certainty.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    const LANES: usize = 4;
    const WORD: usize = size_of::<u64>();
    let mix = |lane: u64, word: u64| (lane ^ word).wrapping_mul(PRIME).rotate_left(29);
    let (strides, _) = bytes.as_chunks::<WORD>().0.as_chunks::<LANES>();
    // Arrays, so that this is fast however the compiler divides the crate: slices here cost a tenth of a whole
    // transfer.
    let lanes = strides.iter().fold([1, 2, 3, 4], |lanes: [u64; LANES], stride| {
        array::from_fn(|lane| mix(lanes[lane], u64::from_le_bytes(stride[lane])))
    });
    let rest = &bytes[strides.len() * LANES * WORD..];
    let rest = rest.iter().fold(bytes.len() as u64, |sum, byte| mix(sum, (*byte).into()));
    lanes.into_iter().fold(rest, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_depends_on_every_byte_and_position() {
        for length in [1, 7, 32, 33, 100] {
            let bytes: Vec<u8> = (0..length).collect();
            let mut sums = vec![sum(&bytes), sum(&bytes[1..]), sum(&[&bytes[..], &[0]].concat())];
            for at in 0..bytes.len() {
                let mut other = bytes.clone();
                other[at] ^= 0x80;
                sums.push(sum(&other));
                if at > 0 {
                    other.clone_from(&bytes);
                    other.swap(at - 1, at);
                    sums.push(sum(&other));
                }
            }
            let count = sums.len();
            sums.sort_unstable();
            sums.dedup();
            assert_eq!(sums.len(), count, "{length}");
        }
    }

    #[test]
    fn new_version_accepted_only_after_full_comparison() {
        let mut begun = ReadConsistency::default();
        assert!(!begun.take(0, 7, 8, (0, 10), 1), "another version than the expected one");
        assert!(begun.take(0, 7, 7, (0, 10), 1) && begun.take(0, 7, 7, (10, 10), 2));
        assert!(!begun.take(0, 7, 8, (20, 10), 3));
        assert!(!begun.go_on(0, 8, 1, (20, 10), 3), "one was not compared");
        assert!(begun.go_on(0, 8, 2, (20, 10), 3));
        assert!(begun.take(0, 7, 8, (30, 10), 4) && !begun.take(0, 7, 7, (40, 10), 5));
        assert_eq!(begun.compare(0).unwrap().unwrap().1, 4);
        assert!(begun.compare(1).unwrap().is_none());
    }

    #[test]
    fn comparisons_of_a_touched_file_are_limited() {
        let mut begun = ReadConsistency::default();
        assert!(begun.take(0, 7, 7, (0, 10), 1));
        assert!((0..MAX_COMPARISONS).all(|_| begun.compare(0).is_ok()));
        assert_eq!(begun.compare(0).unwrap_err(), VoidReason::Changed);
    }

    #[test]
    fn overlapping_piece_counts() {
        let bytes: Vec<u8> = (0..50).collect();
        let file = tempfile::tempfile().unwrap();
        let mut runs = PieceRuns::default();
        for piece in [0..10, 10..20, 15..40, 20..30, 0..20, 18..35] {
            runs.add((piece.start as u64, piece.len()), sum(&bytes[piece]));
        }
        let going = AtomicBool::new(false);
        for at in 0..bytes.len() {
            file.write_all_at(&bytes, 0).unwrap();
            file.write_all_at(&[!bytes[at]], at as u64).unwrap();
            assert_eq!(runs.are_in(&file, &going).unwrap(), at >= 40, "{at}");
        }
    }

    #[test]
    fn piece_runs_are_compact_and_complete() {
        const EACH: usize = 100;
        const PIECES: usize = 50;
        let bytes: Vec<u8> = (0..EACH * PIECES + 30).map(|at| (at * at % 251) as u8).collect();
        let file = tempfile::tempfile().unwrap();
        let mut runs = PieceRuns::default();
        // The order in which several readers read: the second half first, some pieces twice. The last piece is short.
        let order = (0..PIECES).map(|at| ((at + PIECES / 2) % PIECES) ^ 1);
        for at in order.chain([3, 17, PIECES, PIECES]) {
            let piece = &bytes[at * EACH..bytes.len().min((at + 1) * EACH)];
            runs.add(((at * EACH) as u64, piece.len()), sum(piece));
        }
        assert_eq!(
            runs.0.values().map(|run| (run.each, run.count)).collect::<Vec<_>>(),
            [(EACH, PIECES as u64), (30, 1)]
        );
        let going = AtomicBool::new(false);
        file.write_all_at(&bytes, 0).unwrap();
        assert!(runs.are_in(&file, &going).unwrap());
        for at in (0..bytes.len()).step_by(37) {
            file.write_all_at(&[!bytes[at]], at as u64).unwrap();
            assert!(!runs.are_in(&file, &going).unwrap(), "{at}");
            file.write_all_at(&bytes[at..=at], at as u64).unwrap();
        }
        // Two pieces swapped.
        file.write_all_at(&bytes[EACH..2 * EACH], 0).unwrap();
        file.write_all_at(&bytes[..EACH], EACH as u64).unwrap();
        assert!(!runs.are_in(&file, &going).unwrap());
        file.set_len(10).unwrap();
        assert_eq!(runs.are_in(&file, &going).unwrap_err(), VoidReason::Shrank);
        // Stopped: the comparison returns false at once.
        assert!(!runs.are_in(&file, &AtomicBool::new(true)).unwrap());
    }
}
