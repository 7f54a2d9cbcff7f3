//! Reed-Solomon over GF(2^16), with the additive FFT of Lin, Chung and Han (FOCS 2014), from the crate
//! `reed-solomon-simd`.
//!
//! That crate has two layouts of the code. In the one it calls *low rate*, repair symbol `i` is the value of a
//! polynomial through the source symbols at point `c + i`, where `c` is the power of two at or above `k`: it depends on
//! `k` alone. In the other, the default for few repair symbols, it also depends on their number. Only the first is
//! used, so an esi is the same symbol whatever number either side makes, and an encoder can make more later.

use std::fmt;

use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{LowRateDecoder, LowRateEncoder, RateDecoder, RateEncoder};

use crate::repairs::Repairs;
use crate::{Block, Progress};

/// Half of the 2^16 points of the field: the code has at least one repair symbol per source symbol.
pub(super) const MAX_SOURCE_SYMBOLS: u32 = 1 << 15;

/// All points of the field, for source and repair symbols together.
const POINTS: u32 = 1 << 16;

/// Returns the first point of the repair symbols.
fn first_repair_point(k: u32) -> u32 {
    k.next_power_of_two()
}

/// Returns how many repair symbols a block of `k` has. The bound limits the transform of a decoder, which covers all
/// points up to the highest one it received, to 4 times the block, whatever a peer sends.
fn repair_symbols(k: u32) -> u32 {
    (4 * first_repair_point(k)).min(POINTS) - first_repair_point(k)
}

pub(super) fn symbol_limit(k: u32) -> u32 {
    k + repair_symbols(k)
}

/// Makes repair symbols in batches, since the transform yields many at once, and keeps them.
pub(super) struct Encoder {
    k: u32,
    symbol_size: usize,
    /// The first `repairs.len() / symbol_size` repair symbols.
    repairs: Vec<u8>,
}

impl Encoder {
    pub(super) fn new(k: u32, symbol_size: usize) -> Self {
        Self { k, symbol_size, repairs: Vec::new() }
    }

    /// Returns the size of the next batch: a quarter of a block's worth of repair symbols, then as many as the block
    /// has, then double, so that the sum of all batches stays in proportion to the last.
    fn batch(&self, needed: u32) -> u32 {
        let block = first_repair_point(self.k);
        let mut count = block / 4;
        while count < needed {
            count = if count < block { block } else { 2 * count };
        }
        count.min(repair_symbols(self.k))
    }

    fn make(&mut self, source: &Block, needed: u32) {
        let count = self.batch(needed) as usize;
        let mut code = LowRateEncoder::new(self.k as usize, count, self.symbol_size, DefaultEngine::new(), None)
            .expect("counts and size were checked");
        for symbol in source.bytes().chunks_exact(self.symbol_size) {
            code.add_original_shard(symbol).expect("one of k symbols of the right size");
        }
        let made = code.encode().expect("k symbols were added");
        let kept = self.repairs.len() / self.symbol_size;
        self.repairs.reserve_exact((count - kept) * self.symbol_size);
        for symbol in made.recovery_iter().skip(kept) {
            self.repairs.extend_from_slice(symbol);
        }
    }
}

impl crate::Encoder for Encoder {
    fn symbol_limit(&self) -> u32 {
        symbol_limit(self.k)
    }

    fn write_repair(&mut self, source: &Block, esi: u32, out: &mut [u8]) {
        assert!(
            source.is_complete() && source.k() == self.k && source.symbol_size() == self.symbol_size,
            "not the block of this encoder"
        );
        assert!((self.k..symbol_limit(self.k)).contains(&esi), "no repair symbol {esi}");
        let index = esi - self.k;
        let start = index as usize * self.symbol_size;
        if start >= self.repairs.len() {
            self.make(source, index + 1);
        }
        out.copy_from_slice(&self.repairs[start..start + self.symbol_size]);
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.repairs.len() / self.symbol_size;
        f.debug_struct("leopard::Encoder")
            .field("k", &self.k)
            .field("symbol_size", &self.symbol_size)
            .field("made", &made)
            .finish()
    }
}

/// Decodes from any `k` symbols.
#[derive(Debug)]
pub(super) struct Decoder {
    repairs: Repairs,
}

impl Decoder {
    pub(super) fn new(k: u32, symbol_size: usize) -> Self {
        Self { repairs: Repairs::new(k, symbol_size, symbol_limit(k)) }
    }

    /// Solves for the missing symbols with as many repair symbols, those of lowest esi: the transform covers the points
    /// up to the highest one used.
    fn solve(&self, block: &mut Block) {
        let (k, size) = (block.k(), block.symbol_size());
        let mut used: Vec<_> = self.repairs.iter().collect();
        used.sort_unstable_by_key(|&(esi, _)| esi);
        used.truncate((k - block.present_count()) as usize);
        let count = used.last().map_or(1, |&(esi, _)| esi - k + 1);
        let mut code = LowRateDecoder::new(k as usize, count as usize, size, DefaultEngine::new(), None)
            .expect("counts and size were checked");
        for (index, symbol) in block.bytes().chunks_exact(size).enumerate() {
            if block.is_present(index as u32) {
                code.add_original_shard(index, symbol).expect("each source symbol arrives once");
            }
        }
        for (esi, symbol) in used {
            code.add_recovery_shard((esi - k) as usize, symbol).expect("each repair symbol arrives once");
        }
        let solved = code.decode().expect("k symbols were added");
        for (index, symbol) in solved.restored_original_iter() {
            block.insert(index as u32, symbol);
        }
    }
}

impl crate::Decoder for Decoder {
    fn push(&mut self, block: &Block, esi: u32, symbol: &[u8]) -> Progress {
        self.repairs.push(block, esi, symbol)
    }

    fn recover(&mut self, block: &mut Block) -> Progress {
        let progress = self.repairs.progress(block);
        if progress == Progress::Ready && !block.is_complete() {
            self.solve(block);
            self.repairs.clear();
        }
        progress
    }
}
