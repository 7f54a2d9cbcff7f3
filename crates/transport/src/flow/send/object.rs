//! The source of an object's blocks: ranges that the program reads on request, kept until the receiver has them.

use super::block::SendBlock;
use super::block_sender::BlockSender;
use crate::flow::credit::SendCredit;
use crate::flow::layout::{BadPlan, BlockShape, FlowLayout, ObjectLayout};
use crate::flow::pool::Pool;
use crate::flow::schedule::PathEstimate;
use crate::flow::sizing::BlockSizer;
use crate::flow::work::{Direction, FlowKey, WorkRequest};
use crate::wire::{Announcement, FlowId, Plan};
use std::collections::BTreeMap;

/// Largest number of plans of an object: plan numbers, and their count, have 8 bits.
const MOST_PLANS: usize = 255;

/// The last of them are reserved for larger blocks: once plans run out, the rest of an object should not be cut into
/// its smallest blocks.
const LAST_PLANS: usize = 16;

/// The blocks of an object as they are read.
#[derive(Debug)]
pub(super) struct ObjectSource {
    /// The id by which the program knows the object.
    object: FlowId,
    pub(super) layout: ObjectLayout,
    digest: bool,
    /// Blocks whose digest is requested and not made yet, with their cost.
    digesting: BTreeMap<u32, u32>,
    /// The cost of received blocks whose digest is still being made: they stay buffered.
    done_digesting: u64,
    /// Sets the size of each block as it is opened; without it the plans apply.
    sizer: Option<Sizer>,
}

/// A rule, and the most source symbols that the receiver accepts in a block.
#[derive(Debug)]
struct Sizer {
    rule: Box<dyn BlockSizer>,
    largest_k: u32,
}

impl ObjectSource {
    pub(super) fn new(announcement: &Announcement, further: &[Plan], digest: bool) -> Result<Self, BadPlan> {
        let mut layout = ObjectLayout::new(announcement)?;
        further.iter().try_for_each(|plan| layout.add(*plan))?;
        let object = announcement.flow;
        Ok(Self { object, layout, digest, digesting: BTreeMap::new(), done_digesting: 0, sizer: None })
    }

    pub(super) fn set_sizer(&mut self, rule: Option<Box<dyn BlockSizer>>, largest_k: u32) {
        self.sizer = rule.map(|rule| Sizer { rule, largest_k });
    }

    /// Returns whether the receiver has every block and knows of the flow, and every digest is made.
    pub(super) fn is_finished(&self, blocks: &BlockSender) -> bool {
        blocks.announced() && blocks.span() == 0 && blocks.source_left() == 0 && self.digesting.is_empty()
    }

    pub(super) const fn done_digesting(&self) -> u64 {
        self.done_digesting
    }

    /// Opens the next block when credit and the read-ahead allow it.
    pub(super) fn open_block(
        &mut self,
        blocks: &mut BlockSender,
        credit: &mut SendCredit,
        read_ahead: u64,
        path: &PathEstimate,
        pool: &mut Pool,
    ) -> Option<WorkRequest> {
        let read_ahead = self.sizer.as_ref().map_or(read_ahead, |sizer| sizer.rule.read_ahead(path).min(read_ahead));
        if blocks.unsent() >= read_ahead {
            return None;
        }
        self.plan_next(blocks, path);
        let shape = self.layout.block(blocks.next_number())?;
        if !credit.take(shape.cost) {
            return None;
        }
        let BlockShape { number, offset, length, .. } = shape;
        blocks.open(shape);
        Some(WorkRequest::Read { flow: self.object, block: number, offset, length, buffer: pool.take() })
    }

    /// Asks the sizer for the size of the next block, and plans it if it differs from the current plan. A block that
    /// has its own plan keeps it, as do all once there are [`MOST_PLANS`].
    fn plan_next(&mut self, blocks: &mut BlockSender, path: &PathEstimate) {
        let Some(sizer) = &mut self.sizer else { return };
        let number = blocks.next_number();
        let Some(last) = self.layout.plans().last().copied() else { return };
        let Some(planned) = number.checked_sub(last.first_block).filter(|planned| *planned > 0) else { return };
        let first_symbol = last.first_symbol + u64::from(planned) * u64::from(last.k);
        let Some(left) = self.layout.symbols().checked_sub(first_symbol).filter(|left| *left > 0) else { return };
        if self.layout.plans().len() >= MOST_PLANS {
            return;
        }
        let (k, code) = sizer.rule.next(left, path);
        let k = k.clamp(1, sizer.largest_k.max(1));
        let plan = Plan { number: self.layout.plans().len() as u8, first_block: number, first_symbol, k, code, ..last };
        let few_left = self.layout.plans().len() + LAST_PLANS >= MOST_PLANS;
        if (k, code) == (last.k, last.code) || (few_left && k <= last.k) {
            return;
        }
        let before = self.layout.source_from(number);
        // A size that no block can have is ignored.
        if self.layout.add(plan).is_ok() {
            blocks.recut(before, self.layout.source_from(number));
        }
    }

    /// Handles the bytes of a block.
    pub(super) fn on_read(&mut self, blocks: &mut BlockSender, number: u32, buffer: Vec<u8>) -> Option<WorkRequest> {
        let block = blocks.block_mut(number).filter(|block| !block.is_done() && !block.is_filled())?;
        let BlockShape { offset, length, cost, .. } = *block.shape();
        let data = block.fill(buffer);
        if !self.digest {
            return None;
        }
        self.digesting.insert(number, cost);
        let key = FlowKey { direction: Direction::Sending, flow: self.object };
        Some(WorkRequest::Digest { key, block: number, offset, length, data })
    }

    /// Handles the digest of a block.
    pub(super) fn on_digest(&mut self, blocks: &BlockSender, number: u32) {
        let Some(cost) = self.digesting.remove(&number) else { return };
        if blocks.block(number).is_none_or(SendBlock::is_done) {
            self.done_digesting -= u64::from(cost);
        }
    }

    /// Handles the receipt of a block by the receiver; returns the block's bytes.
    pub(super) fn on_block_done(&mut self, shape: &BlockShape) -> u64 {
        // While a worker digests it, its memory is still held.
        self.done_digesting += self.digesting.get(&shape.number).map_or(0, |cost| u64::from(*cost));
        shape.length as u64
    }
}

#[cfg(test)]
mod tests;
