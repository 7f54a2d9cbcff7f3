//! Erasure codes behind one interface, without any network, clock or randomness.
//!
//! A source block is `k` source symbols of `symbol_size` bytes (RFC 5052). Every block code is systematic: the source
//! symbols (encoding symbol ids `0..k`) are the bytes of the block itself and are stored in a [`Block`], so an
//! [`Encoder`] makes only repair symbols (`k..symbol_limit`) and a [`Decoder`] holds only repair symbols. Where no
//! symbol is lost, neither is ever built.
//!
//! A [`WindowCode`] has no blocks: its repair symbols are made from a window that slides over the source symbols. See
//! [`rlc`].
//!
//! ```
//! use downpour_erasure::{Block, BlockCode, Progress};
//!
//! let (k, symbol_size) = (4, 8);
//! let sent = Block::new_complete(k, symbol_size, (0..32).collect());
//! let mut encoder = BlockCode::ReedSolomon.encoder(k, symbol_size)?;
//! let mut repair = vec![0; symbol_size];
//! encoder.write_repair(&sent, 4, &mut repair);
//!
//! let mut received = Block::new_missing(k, symbol_size, Vec::new());
//! for esi in [0, 1, 3] {
//!     received.insert(esi, sent.symbol(esi).expect("a full block"));
//! }
//! let mut decoder = BlockCode::ReedSolomon.decoder(k, symbol_size)?;
//! assert_eq!(decoder.push(&received, 4, &repair), Progress::Ready);
//! assert_eq!(decoder.recover(&mut received), Progress::Ready);
//! assert_eq!(received.bytes(), sent.bytes());
//! # Ok::<(), downpour_erasure::CodeError>(())
//! ```

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod block;
mod code;
mod field;
mod inactivation;
mod kernel;
mod linear;
pub mod lt;
mod matrix;
mod raptor;
mod raptorq;
mod reed_solomon;
mod repairs;
pub mod rlc;
mod splitmix;
mod systematic;
#[cfg(test)]
mod testing;
pub mod tornado;
mod uncoded;
mod window;

use std::fmt::Debug;

pub use block::Block;
pub use code::{BlockCode, CodeError, ParseCodeError};
#[doc(hidden)]
pub mod bench_support {
    //! Items that benchmarks need beyond the interface of the codes.

    pub use crate::raptorq::forget_plans;
}
pub use raptorq::padded as raptorq_padded;
pub use window::{AnyCode, UnknownWindowCode, WindowCode};

/// Makes the repair symbols of one source block; the source symbols come from the block's own buffer.
pub trait Encoder: Send + Debug {
    /// First encoding symbol id that does not exist.
    fn symbol_limit(&self) -> u32;

    /// Writes repair symbol `esi` of `source` to `out`. The first call does the work that all repair symbols share;
    /// every later call must pass the same block.
    ///
    /// # Panics
    ///
    /// When the caller violates the contract: `source` is complete and has the `k` and symbol size of this encoder,
    /// `esi` lies in `k..symbol_limit()`, and `out` is one symbol long.
    fn write_repair(&mut self, source: &Block, esi: u32, out: &mut [u8]);

    /// Writes the repair symbols from `first` on to `out`, one after the other, as many as it holds: the same as
    /// [`Encoder::write_repair`] for each of them, which takes much longer with some codes.
    ///
    /// # Panics
    ///
    /// As [`Encoder::write_repair`], for each of the symbols.
    fn repairs(&mut self, source: &Block, first: u32, out: &mut [u8]) {
        for (esi, out) in (first..).zip(out.chunks_mut(source.symbol_size())) {
            self.write_repair(source, esi, out);
        }
    }
}

/// Holds the repair symbols of one source block until the missing source symbols can be computed. No symbol makes it
/// panic.
pub trait Decoder: Send + Debug {
    /// Takes one repair symbol. A duplicate of a held one, an id outside `k..symbol_limit`, a wrong length, a block of
    /// another shape, and any symbol after enough have arrived, is [`Progress::Redundant`] and not kept.
    fn push(&mut self, block: &Block, esi: u32, symbol: &[u8]) -> Progress;

    /// Sets the number of symbols, source and repair, to wait for before the first solve, as far as that many exist:
    /// those beyond `k` are held and used too. Has no effect for a code of which any `k` symbols decode.
    fn wait_for(&mut self, _symbols: u32) {}

    /// Fills in the missing source symbols of `block`. Between the first call that returns [`Progress::Need`] and the
    /// last, `block` may gain source symbols and nothing else. No solve is attempted before the requested number of
    /// symbols has arrived.
    ///
    /// # Panics
    ///
    /// It may when the caller violates that contract and passes another block of the same shape; or the bytes are
    /// wrong.
    fn recover(&mut self, block: &mut Block) -> Progress;
}

/// The effect of a symbol, or of an attempt to recover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The symbol adds nothing and was not kept.
    Redundant,
    /// Wait for this many more symbols, source or repair: a lower bound of the need, and never 0. Tornado, without a
    /// known bound, returns a small step.
    Need(u32),
    /// From [`Decoder::push`]: [`Decoder::recover`] may succeed now. From [`Decoder::recover`]: the block is complete.
    Ready,
}
