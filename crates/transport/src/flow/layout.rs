//! Where blocks lie in an object: what both ends compute alike from a flow's announcement and its plans.

use crate::wire::{Announcement, Plan};
use erasure::BlockCode;

/// A block's place and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// The block's number in its flow.
    pub number: u32,
    /// The plan that says how it is coded.
    pub plan: u8,
    /// Source symbols.
    pub k: u32,
    /// The code.
    pub code: BlockCode,
    /// First byte in the object.
    pub offset: u64,
    /// Bytes of the object in it; the rest of the last symbol is zero.
    pub length: usize,
}

/// Why a plan is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan does not fit the flow")]
pub struct BadPlan;

/// An object cut into blocks by its plans.
#[derive(Clone, Debug)]
pub struct Layout {
    length: u64,
    symbol_size: u16,
    plans: Vec<Plan>,
}

impl Layout {
    /// The layout that an announcement describes.
    ///
    /// # Errors
    /// [`BadPlan`] when the numbers contradict each other or no block can be made of them.
    pub fn new(announcement: &Announcement) -> Result<Self, BadPlan> {
        let plan = announcement.plan;
        let fits = announcement.symbol_size > 0
            && plan.number == 0
            && plan.first_block == 0
            && plan.first_symbol == 0
            && plan.code.check(plan.k, usize::from(announcement.symbol_size)).is_ok();
        let layout = Self { length: announcement.length, symbol_size: announcement.symbol_size, plans: vec![plan] };
        // Block numbers are 32 bits: a claimed length that needs more cannot be carried.
        let countable = layout.symbols().div_ceil(u64::from(plan.k.max(1))) <= u64::from(u32::MAX);
        (fits && countable).then_some(layout).ok_or(BadPlan)
    }

    /// Adds a plan. Plans come in order of their numbers; one that is known already is ignored.
    ///
    /// # Errors
    /// [`BadPlan`] when it leaves a gap, overlaps, or contradicts what is known.
    pub fn add(&mut self, plan: Plan) -> Result<(), BadPlan> {
        if let Some(known) = self.plans.get(usize::from(plan.number)) {
            return (*known == plan).then_some(()).ok_or(BadPlan);
        }
        let last = self.plans[self.plans.len() - 1];
        let blocks = plan.first_block.checked_sub(last.first_block).ok_or(BadPlan)?;
        let next = usize::from(plan.number) == self.plans.len();
        let joined = plan.first_symbol == last.first_symbol + u64::from(blocks) * u64::from(last.k);
        let coded = plan.code.check(plan.k, usize::from(self.symbol_size)).is_ok();
        if !(next && joined && coded && blocks > 0 && plan.first_symbol <= self.symbols()) {
            return Err(BadPlan);
        }
        self.plans.push(plan);
        Ok(())
    }

    /// Source symbols of the whole object.
    pub fn symbols(&self) -> u64 {
        self.length.div_ceil(u64::from(self.symbol_size))
    }

    /// Bytes per symbol.
    pub fn symbol_size(&self) -> usize {
        usize::from(self.symbol_size)
    }

    /// Bytes of the whole object.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The plans known so far, in order of their numbers.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// The shape of block `number` as `plan` describes it; `None` when the object has no such block, or the plan is not
    /// known or not the block's.
    pub fn shape(&self, number: u32, plan: u8) -> Option<BlockShape> {
        let at = usize::from(plan);
        let chosen = self.plans.get(at)?;
        if self.plans.get(at + 1).is_some_and(|next| number >= next.first_block) {
            return None;
        }
        let nth = u64::from(number.checked_sub(chosen.first_block)?);
        let first = chosen.first_symbol + nth * u64::from(chosen.k);
        let left = self.symbols().checked_sub(first).filter(|left| *left > 0)?;
        let k = chosen.k.min(u32::try_from(left).unwrap_or(u32::MAX));
        let offset = first * u64::from(self.symbol_size);
        let full = u64::from(k) * u64::from(self.symbol_size);
        let length = usize::try_from(full.min(self.length - offset)).ok()?;
        Some(BlockShape { number, plan, k, code: chosen.code, offset, length })
    }

    /// The shape of block `number` by the plan in force there.
    pub fn block(&self, number: u32) -> Option<BlockShape> {
        let plan = self.plans.iter().rev().find(|plan| plan.first_block <= number)?;
        self.shape(number, plan.number)
    }
}
