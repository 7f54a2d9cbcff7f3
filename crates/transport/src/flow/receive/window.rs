//! Receives a window code's repair symbols of a stream.

use crate::flow::stream_layout::WindowShape;
use crate::wire::{FlowId, SymbolId, WINDOW_REPAIR};
use erasure::Progress;
use erasure::rlc::{Density, Field, RepairId, WindowDecoder};

/// After this many windows without a repair symbol the path is assumed to lose nothing, and nothing is kept (law 5).
const QUIET_WINDOWS: u32 = 2;

/// A window has at most this part of a stream's own symbols. The decoder keeps two windows of symbols and half a window
/// of equations, so that a stream takes five eighths of its own again. Each equation has a coefficient for each symbol
/// kept: at most w^2 bytes for a window of w symbols.
const SHARE_OF_OWN: u32 = 4;

/// Returns the largest window of a stream that has `own` symbols of its own.
pub(crate) fn largest_window(own: u32) -> u32 {
    (own / SHARE_OF_OWN).max(1)
}

/// Recovers lost symbols of a stream.
#[derive(Debug)]
pub(in crate::flow) struct WindowReceiver {
    shape: WindowShape,
    /// `None` while no repair is expected.
    decoder: Option<WindowDecoder>,
    /// Source symbols since the last repair symbol.
    quiet: u32,
}

impl WindowReceiver {
    pub(in crate::flow) fn new(shape: WindowShape) -> Self {
        Self { shape, decoder: Some(Self::decoder(shape)), quiet: 0 }
    }

    fn decoder(shape: WindowShape) -> WindowDecoder {
        WindowDecoder::new(Field::Gf256, shape.symbol_size, shape.symbols)
    }

    /// Returns whether this is a repair symbol.
    pub(in crate::flow) const fn is_repair(id: SymbolId) -> bool {
        id.esi >= WINDOW_REPAIR
    }

    /// Returns whether its block has such a source symbol.
    pub(in crate::flow) const fn has_source(&self, id: SymbolId) -> bool {
        id.esi < self.shape.per_block
    }

    /// Parses a repair symbol's header; `None` for an impossible window.
    pub(in crate::flow) fn repair(&self, id: SymbolId) -> Option<RepairId> {
        let (symbols, key) = (id.esi / WINDOW_REPAIR, (id.esi % WINDOW_REPAIR) as u16);
        let end = (u64::from(id.block) + 1) * u64::from(self.shape.per_block);
        let first = end.checked_sub(symbols.into()).filter(|_| symbols <= self.shape.symbols)?;
        Some(RepairId { key, density: Density::FULL, first, symbols: symbols as u16 })
    }

    /// Handles an arrived source symbol.
    pub(in crate::flow) fn on_source(&mut self, id: SymbolId, symbol: &[u8]) {
        let Some(decoder) = &mut self.decoder else { return };
        decoder.source(u64::from(id.block) * u64::from(self.shape.per_block) + u64::from(id.esi), symbol);
        self.quiet += 1;
        if self.quiet > QUIET_WINDOWS * self.shape.symbols {
            self.decoder = None;
        }
    }

    /// Handles an arrived repair symbol; returns whether it was useful. Symbols that arrived before any were kept count
    /// as missing.
    pub(in crate::flow) fn on_repair(&mut self, repair: RepairId, symbol: &[u8]) -> bool {
        self.quiet = 0;
        let shape = self.shape;
        let decoder = self.decoder.get_or_insert_with(|| Self::decoder(shape));
        decoder.repair(repair, symbol) != Progress::Redundant
    }

    /// Returns the next recovered symbol.
    pub(in crate::flow) fn next_recovered(&mut self, flow: FlowId) -> Option<(SymbolId, &[u8])> {
        let per_block = u64::from(self.shape.per_block);
        let (number, symbol) = self.decoder.as_mut()?.next_recovered()?;
        let (block, esi) = (u32::try_from(number / per_block).ok()?, (number % per_block) as u32);
        Some((SymbolId { flow, block, esi }, symbol))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: WindowShape = WindowShape { symbol_size: 4, per_block: 1, symbols: 8 };

    fn id(block: u32, esi: u32) -> SymbolId {
        SymbolId { flow: FlowId(1), block, esi }
    }

    #[test]
    fn headers_of_repair() {
        let receiver = WindowReceiver::new(SHAPE);
        let repair = |first, symbols, key| Some(RepairId { key, density: Density::FULL, first, symbols });
        assert!(!WindowReceiver::is_repair(id(7, 0xfff)) && WindowReceiver::is_repair(id(7, 0x1000)));
        assert_eq!(receiver.repair(id(7, 8 << 12 | 0xabc)), repair(0, 8, 0xabc));
        assert_eq!(receiver.repair(id(6, 8 << 12)), None, "it begins before the first symbol");
        assert_eq!(receiver.repair(id(20, 9 << 12)), None, "larger than was announced");
        let halved = WindowReceiver::new(WindowShape { symbol_size: 3, per_block: 2, symbols: 16 });
        assert_eq!(halved.repair(id(u32::MAX, 3 << 12 | 1)), repair((1 << 33) - 3, 3, 1));
    }

    /// After two windows without repair nothing is kept; a repair symbol restarts it, and losses from then on are
    /// recovered.
    #[test]
    fn a_quiet_path_needs_no_memory() {
        let mut receiver = WindowReceiver::new(SHAPE);
        (0..17).for_each(|block| receiver.on_source(id(block, 0), &[1; 4]));
        assert!(receiver.decoder.is_none());
        let mut encoder = erasure::rlc::WindowEncoder::new(Field::Gf256, 4, 8);
        encoder.restart(17);
        let mut repair = |block: u8, lost: bool, key| {
            encoder.push(&[block; 4]);
            if !lost {
                receiver.on_source(id(block.into(), 0), &[block; 4]);
            }
            let mut symbol = [0; 4];
            let repair = encoder.repair(key, Density::FULL, &mut symbol).expect("not empty");
            receiver.on_repair(repair, &symbol);
            receiver.next_recovered(FlowId(1)).map(|(id, symbol)| (id.block, symbol.to_vec()))
        };
        // 17 itself arrived before anything was kept; the first repair covers only it.
        assert_eq!(repair(17, false, 1), Some((17, vec![17; 4])));
        assert_eq!(repair(18, false, 2), None);
        assert_eq!(repair(19, true, 3), Some((19, vec![19; 4])));
    }
}
