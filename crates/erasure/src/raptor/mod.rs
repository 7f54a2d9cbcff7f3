//! Raptor, RFC 5053: every K of its table, 4 to 8192, every encoding symbol id of 16 bits.
//!
//! Departs: the RFC has no block of less than 4 symbols; an object's last block may be one. Such a block is padded with
//! zero symbols to 4, which are not sent, as RFC 6330 pads (its section 5.3.1): id k is the RFC's symbol 4.

pub(crate) mod ldpc;
mod random;
mod structure;
mod system;
mod systematic_index;

pub(crate) use self::system::RaptorSystem;
use crate::{inactivation, systematic};

/// Largest K, section 5.4.2.1.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = structure::MAX_K;

/// Returns the first id that does not exist. Ids have 16 bits, section 3.2; those of the padding are not used.
///
/// The triples of section 5.4.4.4 repeat after Q = 65,521 ids, so that the last 15 symbols are the first 15 source
/// symbols again.
pub(crate) fn symbol_limit(k: u32) -> u32 {
    (1 << 16) - structure::MIN_K.saturating_sub(k)
}

/// Returns the probability that `k + extra` symbols do not decode, from trials with repair symbols alone, k = 4 to
/// 8192: each further symbol reduces it to 57 %, and each 870 source symbols cost one more. If four fifths of the
/// symbols are source, it is that of small blocks.
pub(crate) fn failure(k: u32, extra: u32) -> f64 {
    (0.9 * 0.57_f64.powf(f64::from(extra) - f64::from(k) / 870.0)).min(1.0)
}

/// The decoder.
pub(crate) type Decoder = inactivation::Decoder<RaptorSystem>;

/// The encoder.
pub(crate) type Encoder = systematic::Encoder<RaptorSystem>;

/// Creates an encoder of blocks of `k` source symbols.
pub(crate) fn encoder(k: u32, symbol_size: usize) -> Encoder {
    Encoder::new(RaptorSystem::new(k), symbol_size)
}

/// Creates a decoder of blocks of `k` source symbols.
pub(crate) fn decoder(k: u32, symbol_size: usize) -> Decoder {
    Decoder::new(RaptorSystem::new(k), symbol_size, symbol_limit(k))
}

#[cfg(test)]
mod tests;
