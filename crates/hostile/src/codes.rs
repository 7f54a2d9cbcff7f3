//! Turns any bytes into a block, a decoder and the symbols for it.

mod random;

use std::collections::BTreeSet;

use erasure::{Block, BlockCode, Decoder, Encoder, Progress};

pub use random::check_random_code;

/// Limits the cost of an input, not its coverage: blocks on either side of every relevant threshold fit.
const MAX_K: u32 = 400;
const MAX_OPERATIONS: usize = 400;

/// Interprets `data` as a code, a block and a list of operations on its decoder; panics if the decoder is wrong.
///
/// Layout: code (1 byte), `k` (2), symbol size (1), seed of the content (1), then operations of 3 bytes: the low 3 bits
/// of the first select the operation, its high 5 bits plus one the number of consecutive ids, the other two a number
/// `v`. Numbers are little-endian and reduced modulo their limits, so that every input is valid.
pub fn fuzz_decoder(data: &[u8]) {
    let Some((head, operations)) = data.split_first_chunk::<5>() else {
        return;
    };
    let code = BlockCode::ALL[usize::from(head[0]) % BlockCode::ALL.len()];
    let k = 1 + u32::from(u16::from_le_bytes([head[1], head[2]])) % MAX_K;
    let mut symbol_size = 1 + usize::from(head[3]) % 80;
    // Some codes support only even sizes.
    if code.check(k, symbol_size).is_err() {
        symbol_size += 1;
    }
    let mut case = Case::new(code, k, symbol_size, head[4]);
    for operation in operations.chunks_exact(3).take(MAX_OPERATIONS) {
        let number = u32::from(u16::from_le_bytes([operation[1], operation[2]]));
        for step in 0..=u32::from(operation[0] >> 3) {
            case.apply(operation[0] & 7, number, step);
        }
    }
    case.finish();
}

struct Case {
    source: Block,
    encoder: Box<dyn Encoder>,
    decoder: Box<dyn Decoder>,
    block: Block,
    taken: BTreeSet<u32>,
    /// Accepted since the last attempt, which may drop symbols that are linearly dependent.
    held: BTreeSet<u32>,
    symbol: Vec<u8>,
}

impl Case {
    fn new(code: BlockCode, k: u32, symbol_size: usize, seed: u8) -> Self {
        let content = (0..k as usize * symbol_size)
            .map(|i| (i as u32).wrapping_add(u32::from(seed)).wrapping_mul(0x9e37_79b1).to_le_bytes()[3]);
        Self {
            source: Block::new_complete(k, symbol_size, content.collect()),
            encoder: code.encoder(k, symbol_size).expect("within the limits"),
            decoder: code.decoder(k, symbol_size).expect("within the limits"),
            // Missing bytes must not be right by accident: start from a buffer of noise.
            block: Block::new_missing(k, symbol_size, vec![0xa5; k as usize * symbol_size]),
            taken: BTreeSet::new(),
            held: BTreeSet::new(),
            symbol: vec![0; symbol_size],
        }
    }

    fn apply(&mut self, operation: u8, number: u32, step: u32) {
        let (k, limit) = (self.source.k(), self.encoder.symbol_limit());
        match operation {
            0 => self.insert((number + step) % k),
            1 => self.push(k + number + step),
            2 => self.push((limit + step).saturating_sub(1 + number).max(k)),
            3 => self.refuse(k + number, self.symbol.len() + 1 + step as usize),
            4 => self.refuse(u32::MAX - number - step, self.symbol.len()),
            5 => self.recover(),
            6 => assert!(!self.block.insert(number % k, &vec![0; self.symbol.len() + 1]), "a symbol too long"),
            _ => self.refuse((number + step) % k, self.symbol.len()),
        }
    }

    fn insert(&mut self, esi: u32) {
        let symbol = self.source.symbol(esi).expect("the source is complete");
        let missing = !self.block.is_present(esi);
        assert_eq!(self.block.insert(esi, symbol), missing, "source symbol {esi}");
    }

    fn push(&mut self, esi: u32) {
        if esi >= self.encoder.symbol_limit() {
            return self.refuse(esi, self.symbol.len());
        }
        self.encoder.write_repair(&self.source, esi, &mut self.symbol);
        let known = self.held.contains(&esi);
        match self.decoder.push(&self.block, esi, &self.symbol) {
            Progress::Redundant => (),
            progress => {
                assert!(!known, "repair symbol {esi} taken twice");
                assert_ne!(progress, Progress::Need(0));
                self.taken.insert(esi);
                self.held.insert(esi);
            }
        }
    }

    fn refuse(&mut self, esi: u32, length: usize) {
        let progress = self.decoder.push(&self.block, esi, &vec![0x5a; length]);
        assert_eq!(progress, Progress::Redundant, "esi {esi} of {length} bytes");
    }

    fn recover(&mut self) {
        let symbols = self.block.present_count() + self.taken.len() as u32;
        self.held.clear();
        match self.decoder.recover(&mut self.block) {
            Progress::Ready => {
                assert!(symbols >= self.source.k(), "decoded from {symbols} symbols");
                assert_eq!(self.block, self.source, "decoded to other bytes");
            }
            Progress::Need(more) => assert!(more > 0 && !self.block.is_complete(), "need {more}"),
            Progress::Redundant => panic!("recover of the decoder's own block is never useless"),
        }
    }

    /// Completes the block with the missing source symbols, whatever came before.
    fn finish(&mut self) {
        self.recover();
        for esi in 0..self.source.k() {
            self.insert(esi);
            if esi % 16 == 0 {
                self.recover();
            }
        }
        assert_eq!(self.block, self.source);
        assert_eq!(self.decoder.recover(&mut self.block), Progress::Ready);
    }
}
