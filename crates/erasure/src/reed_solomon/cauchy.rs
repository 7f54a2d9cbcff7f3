//! Reed-Solomon over GF(256) with a Cauchy matrix (Blömer 1995).
//!
//! Repair symbol `i` is the sum over all source symbols `j` of `1 / (i + j)` times symbol `j`, where ids are elements
//! of the field and the sum is that of the field: exclusive or. Source ids lie below `k` and repair ids from `k` on, so
//! no denominator is 0. Every square part of such a matrix has an inverse, so any `k` of the 256 symbols decode.

use crate::matrix::invert;
use crate::repairs::Repairs;
use crate::{Block, Progress, field, kernel};

/// Half of the points of the field: at least as many repair symbols exist as source symbols.
pub(super) const MAX_SOURCE_SYMBOLS: u32 = 128;

/// Each symbol is one element of the field.
pub(super) const SYMBOL_LIMIT: u32 = 256;

/// Returns a row for each of the repair symbols, with a coefficient for each of the source symbols.
fn matrix(repairs: &[u32], sources: &[u32]) -> Vec<u8> {
    let mut matrix = Vec::with_capacity(repairs.len() * sources.len());
    for repair in repairs {
        matrix.extend(sources.iter().map(|source| field::inverse((repair ^ source) as u8)));
    }
    matrix
}

/// Makes repair symbols directly from the block's buffer, and keeps nothing.
#[derive(Debug)]
pub(super) struct Encoder {
    k: u32,
    symbol_size: usize,
}

impl Encoder {
    pub(super) fn new(k: u32, symbol_size: usize) -> Self {
        Self { k, symbol_size }
    }
}

impl crate::Encoder for Encoder {
    fn symbol_limit(&self) -> u32 {
        SYMBOL_LIMIT
    }

    fn write_repair(&mut self, source: &Block, esi: u32, out: &mut [u8]) {
        assert_eq!(out.len(), self.symbol_size, "room for one symbol");
        self.repairs(source, esi, out);
    }

    fn repairs(&mut self, source: &Block, first: u32, out: &mut [u8]) {
        assert!(
            source.is_complete() && source.k() == self.k && source.symbol_size() == self.symbol_size,
            "not the block of this encoder"
        );
        let mut outputs: Vec<_> = out.chunks_mut(self.symbol_size).collect();
        let ids: Vec<_> = (first..).take(outputs.len()).collect();
        assert!(ids.iter().all(|esi| (self.k..SYMBOL_LIMIT).contains(esi)), "no repair symbols {ids:?}");
        let sources: Vec<_> = (0..self.k).collect();
        let inputs: Vec<_> = source.bytes().chunks_exact(self.symbol_size).collect();
        kernel::combine(&mut outputs, &matrix(&ids, &sources), &inputs);
    }
}

/// Decodes from any `k` symbols.
#[derive(Debug)]
pub(super) struct Decoder {
    repairs: Repairs,
}

impl Decoder {
    pub(super) fn new(k: u32, symbol_size: usize) -> Self {
        Self { repairs: Repairs::new(k, symbol_size, SYMBOL_LIMIT) }
    }

    /// Writes the missing symbols, from as many repair symbols and the present source symbols.
    ///
    /// Let `r` be the repair symbols, `m` the missing source symbols and `s` those present: `r = A m + B s`, with two
    /// parts of the matrix. So `m = A' r + A' B s`, with `A'` the inverse of `A`: one product of a matrix and `k`
    /// symbols, as in the encoder.
    fn solve(&self, block: &mut Block) {
        let k = block.k() as usize;
        let missing: Vec<u32> = block.missing().collect();
        let (symbols, mut lost) = block.split_missing();
        let (present, held): (Vec<u32>, Vec<&[u8]>) =
            (0..).zip(symbols).filter_map(|(esi, symbol)| Some((esi, symbol?))).unzip();
        let (ids, mut inputs): (Vec<u32>, Vec<&[u8]>) = self.repairs.iter().take(lost.len()).unzip();

        let mut inverse = matrix(&ids, &missing);
        invert(&mut inverse, ids.len()).expect("every square part of a Cauchy matrix has an inverse");
        let of_present = matrix(&ids, &present);
        let of_present: Vec<_> =
            (0..ids.len()).map(|row| &of_present[row * present.len()..][..present.len()]).collect();
        let mut coefficients = vec![0; ids.len() * k];
        let mut products = Vec::with_capacity(ids.len());
        for (row, inverse) in coefficients.chunks_exact_mut(k).zip(inverse.chunks_exact(ids.len())) {
            let (of_repairs, product) = row.split_at_mut(ids.len());
            of_repairs.copy_from_slice(inverse);
            products.push(product);
        }
        kernel::combine(&mut products, &inverse, &of_present);

        inputs.extend(held);
        kernel::combine(&mut lost, &coefficients, &inputs);
        block.set_complete();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockCode, Encoder as _};

    /// Computed independently of this program, from the definition alone.
    #[test]
    fn known_symbols() {
        let source = Block::new_complete(3, 1, vec![0x01, 0x20, 0xff]);
        let mut encoder = Encoder::new(3, 1);
        for (esi, symbol) in [(3, 0x1b), (4, 0xba), (255, 0x64)] {
            let mut out = [0];
            encoder.write_repair(&source, esi, &mut out);
            assert_eq!(out, [symbol], "repair symbol {esi}");
        }
    }

    /// Every number of lost symbols from 1 to all, with the repair symbols at either end of the code.
    #[test]
    fn any_number_of_losses_is_made_good_where_it_was() {
        for (k, symbol_size) in [(1, 3), (2, 1), (32, 129), (128, 17)] {
            let bytes = (0..k as usize * symbol_size).map(|i| (i as u32).wrapping_mul(0x9e37_79b1).to_le_bytes()[3]);
            let source = Block::new_complete(k, symbol_size, bytes.collect());
            for lost in 1..=k {
                let mut received = Block::new_missing(k, symbol_size, vec![0xee; source.bytes().len()]);
                // Steps of 37 reach every id of the block once: k is a power of two.
                let order = (0..k).map(|i| i * 37 % k);
                for esi in order.skip(lost as usize) {
                    received.insert(esi, source.symbol(esi).expect("a full block"));
                }
                let address = received.bytes().as_ptr();
                let mut decoder = BlockCode::ReedSolomon.decoder(k, symbol_size).expect("within the limits");
                let first = if lost % 2 == 0 { k } else { SYMBOL_LIMIT - lost };
                let mut symbols = vec![0; lost as usize * symbol_size];
                Encoder::new(k, symbol_size).repairs(&source, first, &mut symbols);
                for (esi, symbol) in (first..first + lost).zip(symbols.chunks_exact(symbol_size)).rev() {
                    assert_eq!(decoder.recover(&mut received), Progress::Need(esi - first + 1));
                    decoder.push(&received, esi, symbol);
                }
                assert_eq!(decoder.recover(&mut received), Progress::Ready);
                assert!(received == source, "k {k}, {lost} lost");
                assert_eq!(received.bytes().as_ptr(), address, "the block's own buffer");
            }
        }
    }
}
