//! RaptorQ, RFC 6330, bit-exact, over the crate `raptorq`: its encoder, its decoder, and a shorter way to decode when little is lost.
//!
//! RFC 6330 pads a block of `k` symbols with zero symbols to the next size `K'` of its Table 2. An encoder here always hands the crate
//! the padded block, so that one plan (the elimination of section 5.4, recorded) serves every `k` with the same `K'`. A `k` that is
//! itself in the table needs no padded copy.
//!
//! That crate asserts on what it is given: ids of 24 bits, sizes of 16 bits, symbols of the block's size. All of it is checked before
//! ([`BlockCode::check`](crate::BlockCode::check), [`Repairs::push`]).

mod inactivation;
mod plan;
mod syndrome;

use std::borrow::Cow;
use std::fmt;

use ::raptorq::extended_source_block_symbols;

use self::plan::Intermediate;
use self::syndrome::Syndrome;
use crate::repairs::Repairs;
use crate::{Block, Progress};

/// K'_max of RFC 6330, section 5.1.2.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = 56_403;

/// Ids have 24 bits. Departs: RFC 6330 bounds the esi, this the internal symbol id (`esi + K' - k`, section 5.3.1), at most 559 ids
/// fewer, since the crate numbers the symbols of a padded block.
pub(crate) fn symbol_limit(k: u32) -> u32 {
    (1 << 24) - (padded(k) - k)
}

/// `K'` for `k`, from Table 2 of RFC 6330.
fn padded(k: u32) -> u32 {
    extended_source_block_symbols(k)
}

/// Makes repair symbols from the intermediate symbols, which the first call computes.
pub(crate) struct Encoder {
    k: u32,
    symbol_size: usize,
    intermediate: Option<Intermediate>,
}

impl Encoder {
    pub(crate) fn new(k: u32, symbol_size: usize) -> Self {
        Self { k, symbol_size, intermediate: None }
    }
}

impl crate::Encoder for Encoder {
    fn symbol_limit(&self) -> u32 {
        symbol_limit(self.k)
    }

    fn repair(&mut self, source: &Block, esi: u32, out: &mut [u8]) {
        assert!(
            source.is_complete() && source.k() == self.k && source.symbol_size() == self.symbol_size,
            "not the block of this encoder"
        );
        assert!((self.k..symbol_limit(self.k)).contains(&esi), "no repair symbol {esi}");
        let (k, size) = (self.k, self.symbol_size);
        let intermediate = self.intermediate.get_or_insert_with(|| {
            let mut bytes = Cow::Borrowed(source.bytes());
            if padded(k) != k {
                bytes.to_mut().resize(padded(k) as usize * size, 0);
            }
            Intermediate::new(k, size, &bytes)
        });
        out.copy_from_slice(&intermediate.repair(esi));
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("raptorq::Encoder")
            .field("k", &self.k)
            .field("symbol_size", &self.symbol_size)
            .field("built", &self.intermediate.is_some())
            .finish()
    }
}

/// Which way a decoder solves for the missing symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Solver {
    /// By the number of missing symbols.
    Fastest,
    /// Always over the syndromes of the missing symbols.
    Syndrome,
    /// Always by inactivation decoding over the whole block, RFC 6330, section 5.4.
    Inactivation,
}

/// Holds repair symbols until the missing source symbols follow from them.
#[derive(Debug)]
pub(crate) struct Decoder {
    repairs: Repairs,
    solver: Solver,
    /// An attempt over syndromes that lacked rows; the next one goes on from it.
    syndrome: Option<Syndrome>,
    /// Attempts by inactivation that failed: the next waits for as many symbols.
    failed: u32,
}

impl Decoder {
    pub(crate) fn new(k: u32, symbol_size: usize) -> Self {
        Self::with_solver(k, symbol_size, Solver::Fastest)
    }

    fn with_solver(k: u32, symbol_size: usize, solver: Solver) -> Self {
        Self { repairs: Repairs::new(k, symbol_size, symbol_limit(k)), solver, syndrome: None, failed: 0 }
    }

    fn solves_by_syndrome(&self, block: &Block) -> bool {
        syndrome::fits(block)
            && match self.solver {
                Solver::Fastest => syndrome::is_faster(block),
                Solver::Syndrome => true,
                Solver::Inactivation => false,
            }
    }

    /// An attempt with every symbol held: how many more symbols the next one needs, 0 when the block is complete.
    fn attempt(&mut self, block: &mut Block) -> u32 {
        if self.syndrome.is_none() && self.solves_by_syndrome(block) {
            self.syndrome = Some(Syndrome::new(block));
        }
        if let Some(syndrome) = &mut self.syndrome {
            return syndrome.solve(&self.repairs, block);
        }
        if inactivation::solve(&self.repairs, block) {
            return 0;
        }
        self.failed += 1;
        self.failed
    }
}

impl crate::Decoder for Decoder {
    fn push(&mut self, block: &Block, esi: u32, symbol: &[u8]) -> Progress {
        self.repairs.push(block, esi, symbol)
    }

    fn recover(&mut self, block: &mut Block) -> Progress {
        if block.is_complete() {
            return Progress::Ready;
        }
        if !self.repairs.fits(block) {
            return Progress::Useless;
        }
        match self.repairs.lacking(block) {
            0 => (),
            lacking => return Progress::Need(lacking),
        }
        match self.attempt(block) {
            0 => {
                self.repairs.clear();
                self.syndrome = None;
                Progress::Ready
            }
            more => self.repairs.wait_for(block, more),
        }
    }
}

/// What `examples/measure.rs` needs to compare the two solvers.
#[doc(hidden)]
pub mod measuring {
    pub use super::Solver;

    /// A RaptorQ decoder that always uses `solver`.
    ///
    /// # Errors
    ///
    /// As [`BlockCode::decoder`](crate::BlockCode::decoder).
    pub fn raptorq_decoder(
        k: u32,
        symbol_size: usize,
        solver: Solver,
    ) -> Result<Box<dyn crate::Decoder>, crate::CodeError> {
        crate::BlockCode::RaptorQ.check(k, symbol_size)?;
        Ok(Box::new(super::Decoder::with_solver(k, symbol_size, solver)))
    }
}

#[cfg(test)]
mod tests;
