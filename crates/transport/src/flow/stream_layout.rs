//! How a stream is cut into blocks, which both ends know from its announcement.
//!
//! A block is closed when it is opened: it takes the waiting bytes and has as many symbols as they need. Its plan gives
//! the number of symbols, its first bytes the number of stream bytes, so a block describes itself and no frame has to
//! arrive with it.

use super::layout::{BadPlan, BlockShape, FlowLayout, cut};
use crate::wire::{SHORT_K, STREAM_HEADER, StreamAnnouncement};
use erasure::AnyCode;

/// Plan numbers have 8 bits: those above [`SHORT_K`] divide the sizes up to a full block.
const PLANS: u32 = 256;

/// The shapes that a stream's blocks may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLayout {
    /// Plans and credit count in symbols of the size in this announcement for the stream's lifetime.
    announcement: StreamAnnouncement,
    /// Bytes per symbol now, into which blocks are cut.
    symbol_size: u16,
}

/// The shape of a window code. Its source symbols are numbered through all blocks from 0 on: symbol `esi` of block n
/// has the number `n x per_block + esi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowShape {
    pub(crate) symbol_size: usize,
    /// Source symbols of each block.
    pub(crate) per_block: u32,
    /// Source symbols of the largest window.
    pub(crate) symbols: u32,
}

/// The beginning of a block: how many bytes of the stream it has, and whether they are the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamHeader {
    pub(crate) length: u32,
    pub(crate) end: bool,
}

impl StreamHeader {
    pub(crate) fn encode(self) -> [u8; STREAM_HEADER] {
        let [a, b, c, d] = self.length.to_be_bytes();
        [a, b, c, d, u8::from(self.end)]
    }

    /// Parses the header at the beginning of a block of `size` bytes; `None` if it is invalid: more bytes than fit,
    /// none although more follow, or unknown flags.
    pub(crate) fn decode(block: &[u8], size: usize) -> Option<Self> {
        let [a, b, c, d, flags] = *block.first_chunk()?;
        let length = u32::from_be_bytes([a, b, c, d]);
        let fits = length as usize <= size.checked_sub(STREAM_HEADER)?;
        let end = flags == 1;
        (fits && flags <= 1 && (length > 0 || end)).then_some(Self { length, end })
    }
}

impl StreamLayout {
    /// Creates the layout of an announced stream.
    pub const fn new(announcement: StreamAnnouncement) -> Self {
        Self { announcement, symbol_size: announcement.symbol_size }
    }

    /// Returns the bytes per symbol with which the stream was announced.
    pub(crate) fn unit(&self) -> usize {
        usize::from(self.announcement.symbol_size)
    }

    /// Returns the source symbols of a full block at the size with which the stream was announced.
    pub(crate) const fn full(&self) -> u32 {
        match self.announcement.code {
            AnyCode::Block(_) => self.announcement.k,
            AnyCode::Window(_) => 1,
        }
    }

    /// Returns the source symbols of a block with this plan at the size with which the stream was announced, which is
    /// the credit it takes; `None` for a plan that this stream does not have.
    pub fn cost(&self, plan: u8) -> Option<u32> {
        let full = self.full();
        let number = u32::from(plan);
        let k = match number {
            0 => return Some(full),
            1..=SHORT_K => number,
            _ => {
                let share = u64::from(number - SHORT_K) * u64::from(full.saturating_sub(SHORT_K));
                SHORT_K + share.div_ceil(u64::from(PLANS - SHORT_K)) as u32
            }
        };
        (k < full).then_some(k)
    }

    /// Returns the shape of a block with this plan and no padding.
    pub(crate) fn shape(&self, number: u32, plan: u8) -> Option<BlockShape> {
        let cost = self.cost(plan)?;
        let announcement = &self.announcement;
        let short = (1..=SHORT_K).contains(&u32::from(plan));
        let code = match announcement.code {
            AnyCode::Block(code) if !short => code,
            _ => announcement.short_code,
        };
        let length = cost as usize * self.unit();
        let k = cut(length as u64, self.symbol_size);
        Some(BlockShape { number, plan, k, code, offset: 0, length, cost })
    }

    /// Returns the plan of a block for `symbols` source symbols of the announced size and of at most `most`, both at
    /// least 1: the smallest that has room for all, otherwise the largest possible.
    pub(crate) fn plan_for(&self, symbols: u32, most: u32) -> u8 {
        let wanted = symbols.min(most);
        if wanted >= self.full() {
            return 0;
        }
        if wanted <= SHORT_K {
            return wanted as u8;
        }
        let allowed = |plan: &u8| self.cost(*plan).is_some_and(|k| k <= most);
        let key = |plan: &u8| {
            let k = self.cost(*plan).unwrap_or(u32::MAX);
            (k < wanted, if k < wanted { u32::MAX - k } else { k })
        };
        (0..=u8::MAX).filter(allowed).min_by_key(key).unwrap_or(1)
    }
}

impl FlowLayout for StreamLayout {
    fn symbol_size(&self) -> usize {
        usize::from(self.symbol_size)
    }

    fn can_shrink(&self, symbol_size: u16) -> bool {
        let StreamAnnouncement { code, short_code, .. } = self.announcement;
        let k = self.full();
        let size = usize::from(symbol_size);
        // The first symbol of a block must hold its whole header.
        let fits = size >= STREAM_HEADER && symbol_size < self.symbol_size && size * 2 >= self.unit();
        let codes = |cost: u32| cut((cost as usize * self.unit()) as u64, symbol_size);
        let code = match code {
            AnyCode::Block(code) => code,
            AnyCode::Window(_) => short_code,
        };
        fits && code.check(codes(k), size).is_ok() && short_code.check(codes(k.min(SHORT_K)), size).is_ok()
    }

    fn shrink(&mut self, symbol_size: u16) -> Result<(), BadPlan> {
        if !self.can_shrink(symbol_size) {
            return Err(BadPlan);
        }
        self.symbol_size = symbol_size;
        Ok(())
    }

    fn k_of(&self, shape: &BlockShape) -> u32 {
        cut((shape.cost as usize * self.unit()) as u64, self.symbol_size)
    }

    fn source_from(&self, _first: u32) -> u64 {
        0
    }

    fn window(&self) -> Option<WindowShape> {
        let AnyCode::Window(_) = self.announcement.code else { return None };
        let per_block = cut(self.unit() as u64, self.symbol_size);
        Some(WindowShape { symbol_size: self.symbol_size(), per_block, symbols: self.announcement.k * per_block })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FlowId;
    use erasure::{BlockCode, WindowCode};

    fn layout(k: u32) -> StreamLayout {
        let (code, short_code) = (BlockCode::RaptorQ.into(), BlockCode::ReedSolomon);
        StreamLayout::new(StreamAnnouncement { flow: FlowId(1), symbol_size: 100, tag: 0, k, code, short_code })
    }

    #[test]
    fn a_block_has_room_for_its_bytes() {
        for full in [1, 2, 10, 127, 128, 129, 130, 200, 256, 300, 1_024, 8_192, 56_403] {
            let layout = layout(full);
            for symbols in (1..300).chain([1_000, 5_000, 60_000]) {
                for most in [1, 2, 50, 128, 129, 255, 256, 1_000, 60_000] {
                    let plan = layout.plan_for(symbols, most);
                    let k = layout.cost(plan).expect("a plan of the stream");
                    assert!(k <= most && k <= full, "{k} of {full} for {symbols} of at most {most}");
                    let wanted = symbols.min(most).min(full);
                    let slack = full.saturating_sub(SHORT_K) / 128 + 1;
                    assert!(k + slack > wanted && k < wanted + slack, "{k} of {full} for {symbols} of at most {most}");
                    assert!(
                        k >= symbols.min(full) || k + slack > most,
                        "{k} of {full} for {symbols} of at most {most}"
                    );
                }
            }
        }
    }

    #[test]
    fn plans_of_a_full_block_and_of_short_ones() {
        let sizes = |k: u32| [0, 1, 9, 10, 128, 129, 255].map(|plan| layout(k).cost(plan));
        assert_eq!(sizes(10), [Some(10), Some(1), Some(9), None, None, None, None]);
        assert_eq!(sizes(256), [Some(256), Some(1), Some(9), Some(10), Some(128), Some(129), Some(255)]);
        assert_eq!(sizes(1_024), [Some(1_024), Some(1), Some(9), Some(10), Some(128), Some(135), Some(1_017)]);
        let code = |plan| layout(1_024).shape(0, plan).map(|shape| shape.code);
        assert_eq!(
            [0, 1, 128].map(code),
            [BlockCode::RaptorQ, BlockCode::ReedSolomon, BlockCode::ReedSolomon].map(Some)
        );
        assert_eq!(code(129), Some(BlockCode::RaptorQ));
    }

    /// Whatever the symbol size, a plan has the same bytes at the same cost, and its symbols have room for them.
    #[test]
    fn smaller_symbols_leave_blocks_as_they_are() {
        for full in [1, 10, 128, 200, 1_024, 8_192] {
            let mut after = layout(full);
            for size in [98, 76, 50] {
                after.shrink(size).expect("smaller");
                for plan in (0..=u8::MAX).filter(|plan| layout(full).cost(*plan).is_some()) {
                    let (old, new) = (layout(full).shape(7, plan), after.shape(7, plan).expect("one exists"));
                    assert_eq!(old, Some(BlockShape { k: new.cost, ..new }));
                    let bytes = new.k as usize * usize::from(size);
                    assert!((new.length..new.length + usize::from(size)).contains(&bytes), "{new:?}");
                    assert_eq!(after.k_of(&new), new.k);
                }
            }
            assert!(!after.can_shrink(50), "not smaller");
            assert_eq!(layout(full).shrink(48), Err(BadPlan), "less than half");
            // Reed-Solomon does not support odd symbol sizes above 128 symbols: 97 symbols of 100 bytes are 130 of 75.
            assert_eq!(layout(full).can_shrink(75), full < 97, "unsuited to the code of short blocks");
        }
        // RaptorQ has no blocks that large.
        assert_eq!(layout(56_403).shrink(98), Err(BadPlan));
    }

    /// With a window code every block is one symbol, or two once symbols have shrunk.
    #[test]
    fn a_window_slides_over_blocks_of_one_symbol() {
        let (code, short_code) = (AnyCode::Window(WindowCode::Rlc), BlockCode::Uncoded);
        let announcement = StreamAnnouncement { flow: FlowId(1), symbol_size: 100, tag: 0, k: 64, code, short_code };
        let mut layout = StreamLayout::new(announcement);
        assert_eq!((layout.cost(0), layout.cost(1), layout.plan_for(30, 1_000)), (Some(1), None, 0));
        let shape = layout.shape(7, 0).expect("the only plan");
        assert_eq!((shape.k, shape.code, shape.length), (1, BlockCode::Uncoded, 100));
        assert_eq!(layout.window(), Some(WindowShape { symbol_size: 100, per_block: 1, symbols: 64 }));
        layout.shrink(75).expect("smaller");
        assert_eq!(layout.window(), Some(WindowShape { symbol_size: 75, per_block: 2, symbols: 128 }));
        assert_eq!(layout.shape(7, 0).map(|shape| (shape.k, shape.cost)), Some((2, 1)));
        assert_eq!(self::layout(64).window(), None);
    }

    #[test]
    fn headers_that_make_no_sense() {
        let header = StreamHeader { length: 95, end: false };
        assert_eq!(StreamHeader::decode(&header.encode(), 100), Some(header));
        assert_eq!(StreamHeader::decode(&header.encode(), 99), None, "more than present");
        assert_eq!(StreamHeader::decode(&[0, 0, 0, 0, 0], 100), None, "none, and more to follow");
        assert_eq!(StreamHeader::decode(&[0, 0, 0, 0, 1], 100), Some(StreamHeader { length: 0, end: true }));
        assert_eq!(StreamHeader::decode(&[0, 0, 0, 1, 2], 100), None, "a flag of no meaning");
        assert_eq!(StreamHeader::decode(&[255; 5], 100), None);
        assert_eq!(StreamHeader::decode(&[0; 4], 4), None);
    }
}
