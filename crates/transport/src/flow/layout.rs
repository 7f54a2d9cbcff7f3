//! The position of blocks in an object, which both ends compute from the flow's announcement and its plans.

use super::stream_layout::WindowShape;
use crate::wire::{Announcement, Plan};
use erasure::BlockCode;

/// A block's position and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockShape {
    /// The block's number in its flow.
    pub(crate) number: u32,
    /// The plan that defines its size and code.
    pub(crate) plan: u8,
    /// Source symbols.
    pub(crate) k: u32,
    /// The code.
    pub(crate) code: BlockCode,
    /// First byte in the object.
    pub(crate) offset: u64,
    /// Bytes of the object in the block; the rest of the last symbol is zero.
    pub(crate) length: usize,
    /// Credit that it takes: its source symbols at the symbol size with which the object was announced.
    pub(crate) cost: u32,
}

/// The reason for refusing a plan: it is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan does not fit the flow")]
pub(crate) struct BadPlan;

/// Returns how many symbols of this size hold `bytes` bytes.
pub(super) fn cut(bytes: u64, symbol_size: u16) -> u32 {
    u32::try_from(bytes.div_ceil(u64::from(symbol_size.max(1)))).unwrap_or(u32::MAX)
}

/// How a flow's blocks are cut into symbols, which shrink when the path MTU does.
pub(crate) trait FlowLayout {
    /// Returns the bytes per symbol.
    fn symbol_size(&self) -> usize;

    /// Returns whether the blocks can be cut into symbols of this size: smaller than now, at least half of the first
    /// size, so that blocks do not grow without bound, and suitable for every code.
    fn can_shrink(&self, symbol_size: u16) -> bool;

    /// Cuts the same blocks into smaller symbols. Each keeps its number, bytes and cost.
    ///
    /// # Errors
    /// [`BadPlan`] where [`FlowLayout::can_shrink`] returns false; nothing has changed then.
    fn shrink(&mut self, symbol_size: u16) -> Result<(), BadPlan>;

    /// Returns the source symbols of one of the flow's blocks at the present size.
    fn k_of(&self, shape: &BlockShape) -> u32;

    /// Returns the source symbols of block `first` and all later known ones at the present size.
    fn source_from(&self, first: u32) -> u64;

    /// Returns the shape of the flow's window code at the present size, if it has one.
    fn window(&self) -> Option<WindowShape>;
}

/// An object cut into blocks by its plans.
#[derive(Clone, Debug)]
pub(crate) struct ObjectLayout {
    length: u64,
    /// Bytes per symbol that the object was announced with: the unit of plans and credit for the object's lifetime.
    unit: u16,
    /// Bytes per symbol now, into which blocks are cut.
    symbol_size: u16,
    plans: Vec<Plan>,
}

impl ObjectLayout {
    /// Creates the layout that an announcement describes.
    ///
    /// # Errors
    /// [`BadPlan`] when the numbers contradict each other or allow no block.
    pub(crate) fn new(announcement: &Announcement) -> Result<Self, BadPlan> {
        let plan = announcement.plan;
        let fits = announcement.symbol_size > 0
            && plan.number == 0
            && plan.first_block == 0
            && plan.first_symbol == 0
            && plan.code.check(plan.k, usize::from(announcement.symbol_size)).is_ok();
        let unit = announcement.symbol_size;
        let layout = Self { length: announcement.length, unit, symbol_size: unit, plans: vec![plan] };
        // Block numbers have 32 bits: a claimed length that needs more cannot be carried.
        let countable = layout.symbols().div_ceil(u64::from(plan.k.max(1))) <= u64::from(u32::MAX);
        (fits && countable).then_some(layout).ok_or(BadPlan)
    }

    /// Adds a plan. Plans are added in order of their numbers; a known one is ignored.
    ///
    /// # Errors
    /// [`BadPlan`] when it leaves a gap, overlaps, or contradicts a known plan.
    pub(crate) fn add(&mut self, plan: Plan) -> Result<(), BadPlan> {
        if let Some(known) = self.plans.get(usize::from(plan.number)) {
            return (*known == plan).then_some(()).ok_or(BadPlan);
        }
        let last = self.plans[self.plans.len() - 1];
        let blocks = plan.first_block.checked_sub(last.first_block).ok_or(BadPlan)?;
        let next = usize::from(plan.number) == self.plans.len();
        let joined = plan.first_symbol == last.first_symbol + u64::from(blocks) * u64::from(last.k);
        let coded = self.codes(&plan, self.unit) && self.codes(&plan, self.symbol_size);
        if !(next && joined && coded && blocks > 0 && plan.first_symbol <= self.symbols()) {
            return Err(BadPlan);
        }
        self.plans.push(plan);
        Ok(())
    }

    /// Returns whether a full block of the plan can be cut into symbols of this size.
    fn codes(&self, plan: &Plan, symbol_size: u16) -> bool {
        let k = cut(u64::from(plan.k) * u64::from(self.unit), symbol_size);
        plan.code.check(k, usize::from(symbol_size)).is_ok()
    }

    /// Returns the source symbols of the whole object at the size with which it was announced.
    pub(crate) fn symbols(&self) -> u64 {
        self.length.div_ceil(u64::from(self.unit))
    }

    /// Returns the plans known so far, in order of their numbers.
    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Returns the shape of block `number` as `plan` describes it; `None` when the object has no such block, or the
    /// plan is unknown or not the block's.
    pub(crate) fn shape(&self, number: u32, plan: u8) -> Option<BlockShape> {
        let at = usize::from(plan);
        let chosen = self.plans.get(at)?;
        if self.plans.get(at + 1).is_some_and(|next| number >= next.first_block) {
            return None;
        }
        let nth = u64::from(number.checked_sub(chosen.first_block)?);
        let first = chosen.first_symbol + nth * u64::from(chosen.k);
        let left = self.symbols().checked_sub(first).filter(|left| *left > 0)?;
        let cost = chosen.k.min(u32::try_from(left).unwrap_or(u32::MAX));
        let offset = first * u64::from(self.unit);
        let length = (u64::from(cost) * u64::from(self.unit)).min(self.length - offset);
        let k = cut(length, self.symbol_size);
        Some(BlockShape { number, plan, k, code: chosen.code, offset, length: usize::try_from(length).ok()?, cost })
    }

    /// Returns the shape of block `number` under its plan.
    pub(crate) fn block(&self, number: u32) -> Option<BlockShape> {
        let plan = self.plans.iter().rev().find(|plan| plan.first_block <= number)?;
        self.shape(number, plan.number)
    }
}

impl FlowLayout for ObjectLayout {
    fn symbol_size(&self) -> usize {
        usize::from(self.symbol_size)
    }

    fn can_shrink(&self, symbol_size: u16) -> bool {
        let fits = symbol_size < self.symbol_size && u32::from(symbol_size) * 2 >= u32::from(self.unit);
        fits && self.plans.iter().all(|plan| self.codes(plan, symbol_size))
    }

    fn shrink(&mut self, symbol_size: u16) -> Result<(), BadPlan> {
        if !self.can_shrink(symbol_size) {
            return Err(BadPlan);
        }
        self.symbol_size = symbol_size;
        Ok(())
    }

    fn k_of(&self, shape: &BlockShape) -> u32 {
        cut(shape.length as u64, self.symbol_size)
    }

    fn source_from(&self, first: u32) -> u64 {
        let ends = self.plans.iter().skip(1).map(|plan| plan.first_block).chain([u32::MAX]);
        let mut symbols = 0;
        for (plan, end) in self.plans.iter().zip(ends) {
            let begin = first.max(plan.first_block);
            // In bytes: with smaller symbols, a last block of k symbols that ends in a short one may take fewer than a
            // full block.
            let (unit, k) = (u64::from(self.unit), u64::from(plan.k));
            let whole = self.length.saturating_sub(plan.first_symbol.saturating_mul(unit)) / (k * unit);
            let full_end = end.min(plan.first_block.saturating_add(u32::try_from(whole).unwrap_or(u32::MAX)));
            if let Some(shape) = self.shape(plan.first_block, plan.number).filter(|_| begin < full_end) {
                symbols += u64::from(full_end - begin) * u64::from(shape.k);
            }
            // The remainder of the object is its last block.
            if (begin..end).contains(&full_end) {
                symbols += self.shape(full_end, plan.number).map_or(0, |last| u64::from(last.k));
            }
        }
        symbols
    }

    fn window(&self) -> Option<WindowShape> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::{BlockSizing, FixedBlocks, PathEstimate};
    use crate::wire::FlowId;

    fn layout(length: u64, k: u32) -> ObjectLayout {
        let (code, small_code) = (BlockCode::RaptorQ, BlockCode::ReedSolomon);
        let plans = BlockSizing::Fixed(FixedBlocks { k, code, small_code, small_k: k / 4 }).plans(
            FlowId(1),
            length.div_ceil(1_408),
            1_408,
            u32::MAX,
            &PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 },
        );
        let announcement =
            Announcement { flow: FlowId(1), length, symbol_size: 1_408, symbols_per_packet: 1, tag: 0, plan: plans[0] };
        let mut layout = ObjectLayout::new(&announcement).expect("sensible");
        plans[1..].iter().for_each(|plan| layout.add(*plan).expect("sensible"));
        layout
    }

    /// Whatever the symbol size, block n holds the same bytes at the same cost, and its symbols have room for them.
    #[test]
    fn smaller_symbols_leave_blocks_as_they_are() {
        let short = [1_408 * 64 - 700, 1_408 * 128 - 1_000];
        let lengths = [0, 1, 1_408, 1_409, 20_000, 1_408 * 64, 1_408 * 64 + 1, 1_000_000, 1_408 * 640 + 20_000];
        for length in lengths.into_iter().chain(short) {
            let before = layout(length, 64);
            let mut after = before.clone();
            for symbol_size in [1_344, 1_280, 1_152] {
                after.shrink(symbol_size).expect("smaller");
                let mut source = 0;
                for number in (0..).take_while(|number| before.block(*number).is_some()) {
                    let (old, new) = (before.block(number).expect("it is"), after.block(number).expect("the same"));
                    let same = BlockShape { k: old.k, ..new };
                    assert_eq!(same, old, "length {length}, size {symbol_size}");
                    let bytes = new.k as usize * usize::from(symbol_size);
                    assert!((new.length..new.length + usize::from(symbol_size)).contains(&bytes), "{new:?}");
                    source += u64::from(new.k);
                }
                assert_eq!(after.source_from(0), source, "length {length}, size {symbol_size}");
                for number in (0..).take_while(|number| before.block(*number).is_some()) {
                    assert_eq!(after.source_from(number), source);
                    source -= u64::from(after.block(number).expect("it is").k);
                }
                assert_eq!(after.source_from(u32::MAX), 0);
            }
            assert_eq!(after.shrink(1_152), Err(BadPlan), "not smaller");
            assert_eq!(after.shrink(702), Err(BadPlan), "less than half");
            assert_eq!(after.symbols(), before.symbols());
        }
    }
}
