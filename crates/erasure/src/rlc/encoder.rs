//! The sender's half: the last source symbols, and repair made from them.

use super::coefficients::{Density, Field, coefficients};
use super::{MAX_WINDOW, RepairId};
use crate::kernel::add_scaled;
use std::ops::Range;

/// The window of the source symbols sent last, in a ring buffer that grows as they are added.
#[derive(Clone, Debug)]
pub struct WindowEncoder {
    field: Field,
    symbol_size: usize,
    window: u32,
    ring: Vec<u8>,
    present: Range<u64>,
}

impl WindowEncoder {
    /// Creates an encoder whose window holds at most `window` symbols of `symbol_size` bytes.
    ///
    /// # Panics
    ///
    /// When a size is 0 or `window` exceeds [`MAX_WINDOW`].
    #[must_use]
    pub fn new(field: Field, symbol_size: usize, window: u32) -> Self {
        assert!(symbol_size > 0 && (1..=MAX_WINDOW).contains(&window), "{window} symbols of {symbol_size} bytes");
        Self { field, symbol_size, window, ring: Vec::new(), present: 0..0 }
    }

    /// Returns the source symbols that repair made now would cover.
    #[must_use]
    pub fn window(&self) -> Range<u64> {
        self.present.clone()
    }

    /// Takes the next source symbol into the window, and returns its id. The oldest leaves when the window is full.
    ///
    /// # Panics
    ///
    /// When the symbol has another size than the encoder's.
    pub fn push(&mut self, symbol: &[u8]) -> u64 {
        assert_eq!(symbol.len(), self.symbol_size, "a symbol of another size");
        let id = self.present.end;
        let at = self.place(id);
        if self.ring.len() < at.end {
            self.ring.resize(at.end, 0);
        }
        self.ring[at].copy_from_slice(symbol);
        self.present.end += 1;
        self.forget_below(self.present.end.saturating_sub(u64::from(self.window)));
        id
    }

    /// Drops the symbols below `id` from the window, since the receiver lacks none of them.
    pub fn forget_below(&mut self, id: u64) {
        self.present.start = id.clamp(self.present.start, self.present.end);
    }

    /// Empties the window; the next source symbol is `id`.
    pub fn restart(&mut self, id: u64) {
        self.present = id..id;
    }

    /// Writes a repair symbol over the whole window to `out`; `None` if the window is empty.
    ///
    /// Repair symbols over the same window need different keys.
    ///
    /// # Panics
    ///
    /// When `out` is not one symbol long.
    pub fn repair(&self, key: u16, density: Density, out: &mut [u8]) -> Option<RepairId> {
        assert_eq!(out.len(), self.symbol_size, "a symbol of another size");
        let symbols = u16::try_from(self.present.end - self.present.start).ok().filter(|symbols| *symbols > 0)?;
        let mut factors = vec![0; usize::from(symbols)];
        coefficients(self.field, density, key, &mut factors);
        out.fill(0);
        for (id, factor) in self.present.clone().zip(factors) {
            if factor != 0 {
                add_scaled(out, &self.ring[self.place(id)], factor);
            }
        }
        Some(RepairId { key, density, first: self.present.start, symbols })
    }

    fn place(&self, id: u64) -> Range<usize> {
        let start = (id % u64::from(self.window)) as usize * self.symbol_size;
        start..start + self.symbol_size
    }
}
