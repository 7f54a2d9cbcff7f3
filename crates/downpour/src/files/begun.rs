//! What was read of files that are not read in one piece, so that it can be told whether they still are that.
//!
//! A change of mode, owner, names or access time changes a file's version as a write does, and a write whose time is set back shows in
//! nothing else. So where the version changes and size and time do not, what was read before is read again and compared.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use super::entry::VoidReason;

/// Bytes read at a time to compare.
const CHUNK: usize = 256 << 10;

/// Files by their entry's index.
#[derive(Debug, Default)]
pub(super) struct Begun {
    files: HashMap<u32, State>,
}

/// The state of a file that all of it is sent in.
#[derive(Debug)]
struct State {
    version: u64,
    pieces: Pieces,
}

/// Start and length of each piece that was read, and its [`sum`].
pub(super) type Pieces = HashMap<(u64, usize), u64>;

impl Begun {
    /// Takes a piece that was read while the file had this version. False if other pieces were read in another version, or it is not what
    /// it was: then nothing is taken. `first` is the version to begin in, if any will not do.
    pub(super) fn take(&mut self, index: u32, first: u64, version: u64, piece: (u64, usize), sum: u64) -> bool {
        match self.files.entry(index) {
            Entry::Occupied(mut state) => {
                let state = state.get_mut();
                state.version == version && *state.pieces.entry(piece).or_insert(sum) == sum
            }
            Entry::Vacant(state) if first == version => {
                state.insert(State { version, pieces: [(piece, sum)].into() });
                true
            }
            Entry::Vacant(_) => false,
        }
    }

    /// The pieces that were read of a file; `None` before the first.
    pub(super) fn pieces(&self, index: u32) -> Option<Pieces> {
        self.files.get(&index).map(|state| state.pieces.clone())
    }

    /// Goes on in another version, in which a further piece was read and the file is the same in `compared` pieces. False if there are more.
    pub(super) fn go_on(&mut self, index: u32, version: u64, compared: usize, piece: (u64, usize), sum: u64) -> bool {
        let state = self.files.entry(index).or_insert_with(|| State { version, pieces: Pieces::new() });
        if state.pieces.len() != compared {
            return false;
        }
        state.version = version;
        *state.pieces.entry(piece).or_insert(sum) == sum
    }
}

/// Whether a file still is what was read of it.
pub(super) fn is_the_same(file: &File, pieces: &Pieces) -> Result<bool, VoidReason> {
    let mut buffer = Vec::new();
    for ((start, length), sum_before) in pieces {
        buffer.resize(*length, 0);
        fill(file, *start, &mut buffer)?;
        if sum(&buffer) != *sum_before {
            return Ok(false);
        }
    }
    Ok(true)
}

/// BLAKE3 of the first `size` bytes of a file.
pub(super) fn digest(file: &File, size: u64) -> Result<[u8; 32], VoidReason> {
    let (mut hasher, mut chunk, mut at) = (blake3::Hasher::new(), vec![0; CHUNK], 0);
    while at < size {
        let length = usize::try_from(size - at).unwrap_or(CHUNK).min(CHUNK);
        fill(file, at, &mut chunk[..length])?;
        hasher.update(&chunk[..length]);
        at += length as u64;
    }
    Ok(*hasher.finalize().as_bytes())
}

/// Fills `out` with a file's bytes from `start`.
pub(super) fn fill(file: &File, start: u64, out: &mut [u8]) -> Result<(), VoidReason> {
    file.read_exact_at(out, start).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => VoidReason::Shrank,
        _ => VoidReason::Unreadable,
    })
}

/// A checksum against chance, not against malice: whoever may write a file needs no collision to send what he likes. It runs at the speed
/// of memory, since all of every long file passes it; any change within one of its four lanes' words shows for certain.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b1_85eb_ca87;
    const LANES: usize = 4;
    const WORD: usize = size_of::<u64>();
    let mix = |lane: u64, word: u64| (lane ^ word).wrapping_mul(PRIME).rotate_left(29);
    let mut lanes: [u64; LANES] = [1, 2, 3, 4];
    let mut strides = bytes.chunks_exact(LANES * WORD);
    for stride in strides.by_ref() {
        let (words, _) = stride.as_chunks::<WORD>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let rest = strides.remainder().iter().fold(bytes.len() as u64, |sum, byte| mix(sum, (*byte).into()));
    lanes.into_iter().fold(rest, mix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_its_place_count() {
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
    fn a_file_goes_on_in_another_version_only_where_all_of_it_was_compared() {
        let mut begun = Begun::default();
        assert!(!begun.take(0, 7, 8, (0, 10), 1), "it begins in the version that was told");
        assert!(begun.take(0, 7, 7, (0, 10), 1) && begun.take(0, 7, 7, (10, 10), 2));
        assert!(!begun.take(0, 7, 7, (0, 10), 3), "it is not what it was");
        assert!(!begun.take(0, 7, 8, (20, 10), 3));
        assert!(!begun.go_on(0, 8, 1, (20, 10), 3), "one was not compared");
        assert!(begun.go_on(0, 8, 2, (20, 10), 3));
        assert!(begun.take(0, 7, 8, (30, 10), 4) && !begun.take(0, 7, 7, (40, 10), 5));
        assert_eq!(begun.pieces(0).map(|pieces| pieces.len()), Some(4));
    }
}
