//! Reed-Solomon: any `k` symbols decode. `k` alone decides which of two codes it is.
//!
//! Up to [`cauchy::MAX_SOURCE_SYMBOLS`] source symbols, the code of [`cauchy`]: over GF(256), one product per byte and
//! repair symbol, which is fastest for few symbols. Above, that of [`leopard`]: over GF(2^16), with a fast transform.

mod cauchy;
mod leopard;

use crate::{Decoder, Encoder};

/// Half of the 2^16 points of the larger field: the code has at least one repair symbol per source symbol.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = leopard::MAX_SOURCE_SYMBOLS;

/// Returns the bytes of an element of the field for a block of `k`: symbols are a whole number of them.
pub(crate) const fn element_size(k: u32) -> usize {
    if k <= cauchy::MAX_SOURCE_SYMBOLS { 1 } else { 2 }
}

pub(crate) fn symbol_limit(k: u32) -> u32 {
    if k <= cauchy::MAX_SOURCE_SYMBOLS { cauchy::SYMBOL_LIMIT } else { leopard::symbol_limit(k) }
}

pub(crate) fn encoder(k: u32, symbol_size: usize) -> Box<dyn Encoder> {
    if k <= cauchy::MAX_SOURCE_SYMBOLS {
        Box::new(cauchy::Encoder::new(k, symbol_size))
    } else {
        Box::new(leopard::Encoder::new(k, symbol_size))
    }
}

pub(crate) fn decoder(k: u32, symbol_size: usize) -> Box<dyn Decoder> {
    if k <= cauchy::MAX_SOURCE_SYMBOLS {
        Box::new(cauchy::Decoder::new(k, symbol_size))
    } else {
        Box::new(leopard::Decoder::new(k, symbol_size))
    }
}
