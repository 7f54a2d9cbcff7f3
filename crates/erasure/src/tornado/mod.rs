//! Tornado codes (Luby, Mitzenmacher, Shokrollahi, Spielman and Stemann, "Practical loss-resilient codes", STOC 1997;
//! Byers, Luby, Mitzenmacher and Rege, "A digital fountain approach to reliable distribution of bulk data", SIGCOMM
//! 1998; ttp §II-A).
//!
//! A cascade of sparse bipartite graphs: the check symbols of each are the exclusive or of a few of its left symbols,
//! and are the left symbols of the next, smaller graph. An MDS code ends it. Decoding is iterative: a check with a
//! single unknown symbol gives that symbol. It costs a few exclusive ors per lost symbol, but takes more than `k`
//! symbols.
//!
//! Every number of a graph follows from `k`, the rate and the longest tail by integer arithmetic; docs/PROTOCOL.md,
//! section 6.4, states it for other implementations.

mod cascade;
mod decoder;
mod encoder;
mod graph;
mod peeling;
mod rate;
#[cfg(test)]
mod tests;

use crate::{BlockCode, CodeError, Decoder, Encoder};

use self::graph::Graph;
use self::peeling::Peeling;
pub use self::rate::CheckShare;

/// Largest block: the analysis favours large ones, but a decoder's graph takes some 50 bytes for each symbol.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = 1 << 16;

/// Returns the source symbols of the MDS code that ends the cascade.
pub(crate) fn symbols_of_end(k: u32, rate: CheckShare) -> u32 {
    cascade::end(k, rate).0.len() as u32
}

/// A Tornado code: how many check symbols it has, and how heavy the tail of its left degrees is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornadoCode {
    rate: CheckShare,
    longest_tail: u32,
}

impl TornadoCode {
    /// `D` of the code on the wire. With 20, edges cost 4.7 exclusive ors for each left symbol, and the asymptotic
    /// overhead over a code that needs `k` symbols is 1 / 20 of the check symbols; beyond, blocks of up to 10,000
    /// symbols gain nothing (measured).
    const LONGEST_TAIL: u32 = 20;

    /// Returns the code of [`BlockCode::Tornado`].
    #[must_use]
    pub const fn new(rate: CheckShare) -> Self {
        Self { rate, longest_tail: Self::LONGEST_TAIL }
    }

    /// Returns the same code with another `D`, clamped to 1 to 1000: left symbols have 2 to `D` + 1 edges.
    #[must_use]
    pub fn with_longest_tail(self, longest_tail: u32) -> Self {
        Self { longest_tail: longest_tail.clamp(1, 1000), ..self }
    }

    /// Returns the first encoding symbol id that does not exist; `k` itself if `k` is outside the limits. The levels
    /// and the end have the rate's share of check symbols, and each half the square root of its size in addition.
    #[must_use]
    pub fn symbol_limit(self, k: u32) -> u32 {
        if k == 0 || k > MAX_SOURCE_SYMBOLS { k } else { cascade::end(k, self.rate).1.end }
    }

    /// As [`BlockCode::check`].
    ///
    /// # Errors
    ///
    /// The exceeded limit; see [`CodeError`].
    pub fn check(self, k: u32, symbol_size: usize) -> Result<(), CodeError> {
        BlockCode::Tornado(self.rate).check(k, symbol_size)
    }

    /// As [`BlockCode::encoder`].
    ///
    /// # Errors
    ///
    /// As [`TornadoCode::check`].
    pub fn encoder(self, k: u32, symbol_size: usize) -> Result<Box<dyn Encoder>, CodeError> {
        self.check(k, symbol_size)?;
        Ok(Box::new(encoder::Encoder::new(self, k, symbol_size)))
    }

    /// As [`BlockCode::decoder`].
    ///
    /// # Errors
    ///
    /// As [`TornadoCode::check`].
    pub fn decoder(self, k: u32, symbol_size: usize) -> Result<Box<dyn Decoder>, CodeError> {
        self.check(k, symbol_size)?;
        Ok(Box::new(decoder::Decoder::new(self, k, symbol_size)))
    }

    /// Returns how many of `arrivals` it takes until a block of `k` source symbols decodes, found without data; `None`
    /// if all of them do not suffice, or `k` is outside the limits. Skips ids that do not exist.
    pub fn needed(self, k: u32, arrivals: impl IntoIterator<Item = u32>) -> Option<usize> {
        let limit = self.symbol_limit(k);
        if limit == k {
            return None;
        }
        let mut peeling = Peeling::new(Graph::of(self, k));
        let learn = |esi| {
            if esi < limit {
                peeling.learn(esi);
            }
            peeling.missing() == 0
        };
        arrivals.into_iter().map(learn).position(|complete| complete).map(|before| before + 1)
    }
}
