//! The repair symbols of a decoder, and the number still needed.

use std::collections::BTreeSet;

use crate::{Block, Progress};

/// Symbols of a chunk: at most that many are moved to make room.
const CHUNK: usize = 32;

/// Repair symbols in order of arrival. Holds no more of them than an attempt to decode can use, whatever arrives.
#[derive(Debug)]
pub(crate) struct Repairs {
    k: u32,
    symbol_size: usize,
    symbol_limit: u32,
    /// The number of symbols, source and repair together, at which the next attempt is worth its cost.
    wanted: u32,
    esis: Vec<u32>,
    known: BTreeSet<u32>,
    /// [`CHUNK`] symbols each.
    chunks: Vec<Vec<u8>>,
}

impl Repairs {
    pub(crate) fn new(k: u32, symbol_size: usize, symbol_limit: u32) -> Self {
        Self { k, symbol_size, symbol_limit, wanted: k, esis: Vec::new(), known: BTreeSet::new(), chunks: Vec::new() }
    }

    /// Returns whether `block` has the shape for which this decoder was made.
    fn fits(&self, block: &Block) -> bool {
        block.k() == self.k && block.symbol_size() == self.symbol_size
    }

    pub(crate) fn push(&mut self, block: &Block, esi: u32, symbol: &[u8]) -> Progress {
        let exists = (self.k..self.symbol_limit).contains(&esi) && symbol.len() == self.symbol_size;
        if !exists || !self.fits(block) || self.lacking(block) == 0 || !self.known.insert(esi) {
            return Progress::Redundant;
        }
        if self.esis.len().is_multiple_of(CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK.min(self.k as usize) * self.symbol_size));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.extend_from_slice(symbol);
        }
        self.esis.push(esi);
        match self.lacking(block) {
            0 => Progress::Ready,
            lacking => Progress::Need(lacking),
        }
    }

    /// Returns the progress before an attempt: [`Progress::Ready`] if it may be made, or need not for a complete block.
    pub(crate) fn progress(&self, block: &Block) -> Progress {
        match self.lacking(block) {
            _ if !block.is_complete() && !self.fits(block) => Progress::Redundant,
            0 => Progress::Ready,
            lacking => Progress::Need(lacking),
        }
    }

    /// Returns how many more symbols the next attempt waits for: 0 when it may be made, and for a complete block.
    pub(crate) fn lacking(&self, block: &Block) -> u32 {
        if block.is_complete() {
            return 0;
        }
        self.wanted.saturating_sub(block.present_count() + self.count())
    }

    /// Makes the first attempt wait for `symbols` symbols, or for all that exist.
    pub(crate) fn wait_for_first(&mut self, symbols: u32) {
        self.wanted = self.wanted.max(symbols.min(self.symbol_limit));
    }

    /// Handles a failed attempt with all available symbols: waits for `more` symbols before the next.
    pub(crate) fn wait_for(&mut self, block: &Block, more: u32) -> Progress {
        self.wanted = block.present_count() + self.count() + more;
        Progress::Need(more)
    }

    /// Drops those of the symbols from the `first` on that `is_of_use` refuses. It is called in order of arrival, with
    /// the place that the symbol has if it stays.
    pub(crate) fn retain(&mut self, first: usize, mut is_of_use: impl FnMut(usize, u32) -> bool) {
        let mut kept = first;
        for at in first..self.esis.len() {
            let esi = self.esis[at];
            if is_of_use(kept, esi) {
                self.esis[kept] = esi;
                self.copy(at, kept);
                kept += 1;
            } else {
                self.known.remove(&esi);
            }
        }
        self.esis.truncate(kept);
        self.chunks.truncate(kept.div_ceil(CHUNK));
        if let Some(last) = self.chunks.last_mut() {
            last.truncate((kept - (kept - 1) / CHUNK * CHUNK) * self.symbol_size);
        }
    }

    /// Returns the bytes in a symbol.
    pub(crate) fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Returns the number of repair symbols held.
    pub(crate) fn count(&self) -> u32 {
        // Fits: every id is below 2^24 and held once.
        self.esis.len() as u32
    }

    /// Iterates over the symbols held, in order of arrival.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let symbols = self.chunks.iter().flat_map(|chunk| chunk.chunks_exact(self.symbol_size));
        self.esis.iter().copied().zip(symbols)
    }

    /// Copies symbol `from` over an earlier one.
    fn copy(&mut self, from: usize, to: usize) {
        let range = |at: usize| at % CHUNK * self.symbol_size..(at % CHUNK + 1) * self.symbol_size;
        if from / CHUNK == to / CHUNK {
            self.chunks[to / CHUNK].copy_within(range(from), range(to).start);
        } else {
            let (earlier, later) = self.chunks.split_at_mut(from / CHUNK);
            earlier[to / CHUNK][range(to)].copy_from_slice(&later[0][range(from)]);
        }
    }

    /// Drops the symbols, when the block is complete.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.k, self.symbol_size, self.symbol_limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_move_up_where_others_are_dropped() {
        let (k, size) = (200, 3);
        let block = Block::new_missing(k, size, Vec::new());
        let mut repairs = Repairs::new(k, size, 1000);
        for esi in 200..300 {
            assert_ne!(repairs.push(&block, esi, &[esi as u8, 7, (esi >> 8) as u8]), Progress::Redundant);
        }
        repairs.retain(10, |_, esi| esi % 3 == 0);
        let expected: Vec<u32> = (200..210).chain((210..300).filter(|esi| esi % 3 == 0)).collect();
        assert_eq!(repairs.iter().map(|(esi, _)| esi).collect::<Vec<_>>(), expected);
        assert!(repairs.iter().all(|(esi, symbol)| symbol == [esi as u8, 7, (esi >> 8) as u8]));
        let lacking = repairs.push(&block, 500, &[1, 2, 3]);
        assert_eq!((repairs.count(), lacking), (41, Progress::Need(159)));
        assert_eq!(repairs.iter().last(), Some((500, &[1, 2, 3][..])));
        repairs.retain(0, |_, _| false);
        assert_eq!((repairs.count(), repairs.iter().count()), (0, 0));
    }
}
