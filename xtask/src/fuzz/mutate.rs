//! New inputs from old ones.

use fastrand::Rng;

/// Longer inputs only cost time: no datagram and no message is longer.
const MAX_LENGTH: usize = 1 << 17;

/// Numbers on the borders of what fields hold.
const BORDERS: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 40,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

/// One input of the corpus, changed a few times.
pub(super) fn mutated(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = rng.choice(corpus).cloned().unwrap_or_default();
    for _ in 0..1 << rng.u32(0..5) {
        change(&mut input, corpus, rng);
    }
    input.truncate(MAX_LENGTH);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.usize(..=input.len());
    match rng.u32(0..10) {
        0 => flip(input, rng),
        1 => overwrite(input, at, &[rng.u8(..)]),
        2 | 3 => border(input, at, rng),
        4 => step(input, rng),
        5 => input.truncate(at),
        6 => drop(input.drain(range(input.len(), rng))),
        7 => splice(input, at, &bytes(rng)),
        8 => {
            let copy = input[range(input.len(), rng)].to_vec();
            splice(input, at, &copy);
        }
        _ => {
            let other = rng.choice(corpus).map_or(&[][..], Vec::as_slice);
            splice(input, at, &other[range(other.len(), rng)]);
        }
    }
}

fn flip(input: &mut [u8], rng: &mut Rng) {
    if let Some(byte) = rng.choice(input) {
        *byte ^= 1 << rng.u32(0..8);
    }
}

/// A field one more or less than it was.
fn step(input: &mut [u8], rng: &mut Rng) {
    if let Some(byte) = rng.choice(input) {
        *byte = if rng.bool() { byte.wrapping_add(1) } else { byte.wrapping_sub(1) };
    }
}

/// A number on a border, as a field of 1, 2, 3, 4 or 8 bytes in either order.
fn border(input: &mut [u8], at: usize, rng: &mut Rng) {
    let number = *rng.choice(&BORDERS).expect("there are some");
    let width = *rng.choice(&[1, 2, 3, 4, 8]).expect("there are some");
    if rng.bool() {
        overwrite(input, at, &number.to_be_bytes()[8 - width..]);
    } else {
        overwrite(input, at, &number.to_le_bytes()[..width]);
    }
}

fn overwrite(input: &mut [u8], at: usize, bytes: &[u8]) {
    for (to, from) in input[at..].iter_mut().zip(bytes) {
        *to = *from;
    }
}

fn splice(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

fn bytes(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; rng.usize(1..=64)];
    rng.fill(&mut bytes);
    bytes
}

/// A part of so many bytes.
fn range(length: usize, rng: &mut Rng) -> std::ops::Range<usize> {
    let start = rng.usize(..=length);
    start..rng.usize(start..=length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_follows_from_its_seed() {
        let corpus = [b"first".to_vec(), vec![7; 1400], Vec::new()];
        let inputs = |seed| {
            let mut rng = Rng::with_seed(seed);
            (0..2000).map(|_| mutated(&corpus, &mut rng)).collect::<Vec<_>>()
        };
        let once = inputs(1);
        assert_eq!(once, inputs(1));
        assert_ne!(once, inputs(2));
        assert!(once.iter().all(|input| input.len() <= MAX_LENGTH));
        assert!(once.iter().any(Vec::is_empty) && once.iter().any(|input| input.len() > 1400));
    }

    #[test]
    fn no_corpus_is_no_obstacle() {
        let mut rng = Rng::with_seed(1);
        assert!((0..100).any(|_| !mutated(&[], &mut rng).is_empty()));
    }
}
