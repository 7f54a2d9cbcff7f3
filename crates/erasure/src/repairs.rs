//! The repair symbols a decoder holds, and the count of what is still needed.

use std::collections::BTreeSet;

use crate::{Block, Progress};

/// Symbols of a chunk: no larger one is ever moved to make room.
const CHUNK: usize = 32;

/// Repair symbols as they came. Holds no more of them than an attempt to decode can use, whatever arrives.
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

    /// Whether `block` has the shape this decoder was made for.
    pub(crate) fn fits(&self, block: &Block) -> bool {
        block.k() == self.k && block.symbol_size() == self.symbol_size
    }

    pub(crate) fn push(&mut self, block: &Block, esi: u32, symbol: &[u8]) -> Progress {
        let exists = (self.k..self.symbol_limit).contains(&esi) && symbol.len() == self.symbol_size;
        if !exists || !self.fits(block) || self.lacking(block) == 0 || !self.known.insert(esi) {
            return Progress::Useless;
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

    /// What an attempt can come to, for a code that decodes from any `k` symbols.
    pub(crate) fn progress(&self, block: &Block) -> Progress {
        match self.lacking(block) {
            _ if !block.is_complete() && !self.fits(block) => Progress::Useless,
            0 => Progress::Ready,
            lacking => Progress::Need(lacking),
        }
    }

    /// How many more symbols the next attempt waits for: 0 when it may be made, and for a complete block.
    pub(crate) fn lacking(&self, block: &Block) -> u32 {
        if block.is_complete() {
            return 0;
        }
        self.wanted.saturating_sub(block.present() + self.count())
    }

    /// An attempt with all that is here has failed: wait for `more` symbols before the next.
    pub(crate) fn wait_for(&mut self, block: &Block, more: u32) -> Progress {
        self.wanted = block.present() + self.count() + more;
        Progress::Need(more)
    }

    /// The number of repair symbols held.
    pub(crate) fn count(&self) -> u32 {
        // Fits: every id is below 2^24 and held once.
        self.esis.len() as u32
    }

    /// The symbols held, in the order they came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let symbols = self.chunks.iter().flat_map(|chunk| chunk.chunks_exact(self.symbol_size));
        self.esis.iter().copied().zip(symbols)
    }

    /// Forgets the symbols, when the block is complete.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.k, self.symbol_size, self.symbol_limit);
    }
}
