//! Raptor, RFC 5053: every K of its table, 4 to 8192, every encoding symbol id of 16 bits.
//!
//! Departs: the RFC has no block of less than 4 symbols; an object's last block may be one. Such a block is padded with zero symbols to
//! 4, which are not sent, as RFC 6330 pads (its section 5.3.1): id k names the RFC's symbol 4.

pub(crate) mod ldpc;
mod random;
mod structure;
mod system;
mod systematic_index;

use std::fmt;

pub(crate) use self::system::System;
use crate::Block;
use crate::inactivation::{self, System as _};
use crate::linear::Solved;

/// Largest K, section 5.4.2.1.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = structure::MAX_K;

/// Ids have 16 bits, section 3.2; those of the padding are not used.
///
/// The triples of section 5.4.4.4 repeat after Q = 65,521 ids, so that the last 15 symbols are the first 15 source symbols again.
pub(crate) fn symbol_limit(k: u32) -> u32 {
    (1 << 16) - System::new(k).padding()
}

/// The chance that `k + extra` symbols do not decode, from trials with repair symbols alone, k = 4 to 8192: each symbol more leaves 57 %
/// of it, and each 870 source symbols cost one symbol more. With four fifths of the source among the symbols it is that of small blocks.
pub(crate) fn failure(k: u32, extra: u32) -> f64 {
    (0.9 * 0.57_f64.powf(f64::from(extra) - f64::from(k) / 870.0)).min(1.0)
}

/// The decoder.
pub(crate) type Decoder = inactivation::Decoder<System>;

/// A decoder of blocks of `k` source symbols.
pub(crate) fn decoder(k: u32, symbol_size: usize) -> Decoder {
    Decoder::new(System::new(k), symbol_size, symbol_limit(k))
}

/// Makes repair symbols from the intermediate symbols, which the first call computes.
pub(crate) struct Encoder {
    system: System,
    symbol_size: usize,
    solved: Option<Solved>,
}

impl Encoder {
    pub(crate) fn new(k: u32, symbol_size: usize) -> Self {
        Self { system: System::new(k), symbol_size, solved: None }
    }
}

impl crate::Encoder for Encoder {
    fn symbol_limit(&self) -> u32 {
        symbol_limit(self.system.k())
    }

    fn repair(&mut self, source: &Block, esi: u32, out: &mut [u8]) {
        assert_eq!(out.len(), self.symbol_size, "one symbol");
        self.repairs(source, esi, out);
    }

    fn repairs(&mut self, source: &Block, first: u32, out: &mut [u8]) {
        let Self { system, symbol_size, solved } = self;
        let k = system.k();
        assert!(
            source.is_complete() && source.k() == k && source.symbol_size() == *symbol_size,
            "not the block of this encoder"
        );
        let count = (out.len() / *symbol_size) as u32;
        assert!(first >= k && first + count <= symbol_limit(k), "no repair symbols {first} to {}", first + count);
        let inputs = || system.source_inputs(source);
        let solved = solved.get_or_insert_with(|| Solved::new(system.encoding_plan(), &inputs()));
        let mut outputs: Vec<_> = out.chunks_exact_mut(*symbol_size).collect();
        solved.expect(outputs.len(), inputs);
        solved.output(&system.symbols(first..first + count), &mut outputs);
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("raptor::Encoder")
            .field("k", &self.system.k())
            .field("symbol_size", &self.symbol_size)
            .field("built", &self.solved.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests;
