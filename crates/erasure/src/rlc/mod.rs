//! RLC, the sliding window code of RFC 8681: a repair symbol is a random linear combination of the last few source
//! symbols.
//!
//! The code has no blocks. Source symbols are numbered from 0 on (the RFC's ESI) and sent as they are; between them,
//! repair symbols are sent over a *window* of the preceding ones. A lost symbol is recovered as soon as the received
//! windows have as many repair symbols as missing symbols, without waiting for the end of a block. Given the window and
//! the key of a repair symbol from the [`WindowEncoder`], both ends draw the same coefficients from TinyMT32 (RFC
//! 8682).
//!
//! ```
//! use downpour_erasure::rlc::{WindowDecoder, Density, WindowEncoder, Field};
//!
//! let (symbol_size, window) = (4, 16);
//! let mut encoder = WindowEncoder::new(Field::Gf256, symbol_size, window);
//! let mut decoder = WindowDecoder::new(Field::Gf256, symbol_size, window);
//! for (id, symbol) in [b"slid", b"ing ", b"wind", b"ows!"].into_iter().enumerate() {
//!     assert_eq!(encoder.push(symbol), id as u64);
//!     if id != 2 {
//!         decoder.source(id as u64, symbol);
//!     }
//! }
//! let mut symbol = vec![0; symbol_size];
//! let repair = encoder.repair(1, Density::FULL, &mut symbol).expect("the window holds four symbols");
//! decoder.repair(repair, &symbol);
//! assert_eq!(decoder.next_recovered(), Some((2, &b"wind"[..])));
//! ```
//!
//! Departs: ids have 64 bits and never wrap (the RFC's are the low 32). The mapping of data units to symbols and the
//! payload ids of FECFRAME (sections 3.3 and 5) are not implemented: the protocol that carries the symbols has a wire
//! format of its own.

mod coefficients;
mod decoder;
mod encoder;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod tinymt32;

#[cfg(test)]
mod tests;

pub use coefficients::{Density, Field};
pub use decoder::WindowDecoder;
pub use encoder::WindowEncoder;

/// Largest window, in symbols: the 12 bits of NSS (RFC 8681, section 4.1.3).
pub const MAX_WINDOW: u32 = 4_095;

/// The parameters of a repair symbol: the fields of the RFC's Repair FEC Payload ID (section 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairId {
    /// The seed of its coefficients. In GF(2) with the full density it has no effect.
    pub key: u16,
    /// DT.
    pub density: Density,
    /// The oldest source symbol of its window.
    pub first: u64,
    /// NSS: source symbols in its window, 1 to [`MAX_WINDOW`].
    pub symbols: u16,
}
