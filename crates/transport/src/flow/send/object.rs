//! The sender half of an object flow: blocks read in order and kept until the receiver has them.

use super::block::SendBlock;
use super::block_sender::BlockSender;
use crate::flow::credit::SendCredit;
use crate::flow::layout::{BadPlan, BlockShape, FlowLayout, ObjectLayout};
use crate::flow::pool::Pool;
use crate::flow::request::{Direction, FlowKey, Request};
use crate::flow::schedule::{PathEstimate, Schedule};
use crate::flow::sizing::BlockSizer;
use crate::wire::{Announcement, FlowId, FlowStatus, Plan, Successor};
use std::collections::BTreeMap;

/// Plans that an object has at most: their numbers are 8 bits, and what counts them too.
const MOST_PLANS: usize = 255;

/// The last of them are for larger blocks alone: those that are left to an object once there are no more plans are not to be its smallest.
const LAST_PLANS: usize = 16;

/// An object on its way out.
#[derive(Debug)]
pub(crate) struct ObjectSender {
    flow: BlockSender,
    /// The first flow that carried the object: what the program knows it by.
    object: FlowId,
    /// r: the most symbols in a packet.
    per_packet: u8,
    layout: ObjectLayout,
    tag: u64,
    digest: bool,
    /// Blocks whose digest is asked for and not come yet, with their cost.
    digesting: BTreeMap<u32, u32>,
    /// The cost of blocks that the receiver has and whose digest is still being made: their memory is held.
    done_digesting: u64,
    /// Says how blocks are cut as they are opened; without it the plans stand.
    sizer: Option<Sizer>,
}

/// Who says how blocks are cut, and the most source symbols that the receiver takes in one.
#[derive(Debug)]
struct Sizer {
    rule: Box<dyn BlockSizer>,
    largest_k: u32,
}

impl ObjectSender {
    /// A flow that will send an object cut as `plans` say.
    ///
    /// # Errors
    /// [`BadPlan`] for plans that do not make the object; those of [`BlockSizing`](super::BlockSizing) do.
    pub(crate) fn new(
        announcement: &Announcement,
        further: &[Plan],
        schedule: Box<dyn Schedule>,
        digest: bool,
    ) -> Result<Self, BadPlan> {
        let mut layout = ObjectLayout::new(announcement)?;
        further.iter().try_for_each(|plan| layout.add(*plan))?;
        Ok(Self {
            flow: BlockSender::new(announcement.flow, layout.symbol_size(), layout.symbols(), schedule),
            object: announcement.flow,
            per_packet: announcement.symbols_per_packet,
            layout,
            tag: announcement.tag,
            digest,
            digesting: BTreeMap::new(),
            done_digesting: 0,
            sizer: None,
        })
    }

    /// Blocks that are not open yet are cut as `rule` says, into at most `largest_k` source symbols each.
    pub(crate) fn set_sizer(&mut self, rule: Option<Box<dyn BlockSizer>>, largest_k: u32) {
        self.sizer = rule.map(|rule| Sizer { rule, largest_k });
    }

    /// The flow.
    pub(crate) const fn id(&self) -> FlowId {
        self.flow.id()
    }

    /// Its blocks on their way.
    pub(crate) const fn flow(&self) -> &BlockSender {
        &self.flow
    }

    /// Its blocks on their way.
    pub(crate) const fn flow_mut(&mut self) -> &mut BlockSender {
        &mut self.flow
    }

    /// The announcement of the object.
    pub(crate) fn announcement(&self) -> Announcement {
        Announcement {
            flow: self.object,
            length: self.layout.length(),
            symbol_size: self.layout.unit(),
            symbols_per_packet: self.per_packet,
            tag: self.tag,
            plan: self.layout.plans()[0],
        }
    }

    /// The first flow that carried the object: what the program knows it by.
    pub(crate) const fn object(&self) -> FlowId {
        self.object
    }

    /// r: the most symbols in a packet, as announced.
    pub(crate) const fn per_packet(&self) -> u8 {
        self.per_packet
    }

    /// What announces the flow, where it is not the object's first.
    pub(crate) fn successor(&self) -> Option<Successor> {
        let symbol_size = self.layout.symbol_size() as u16;
        (self.id() != self.object).then(|| Successor { flow: self.id(), symbol_size, object: self.announcement() })
    }

    /// Whether the object can go on in symbols of this size.
    pub(crate) fn can_shrink(&self, symbol_size: u16) -> bool {
        self.layout.can_shrink(symbol_size)
    }

    /// Goes on as another flow, of smaller symbols.
    ///
    /// # Errors
    /// [`BadPlan`] where [`ObjectSender::can_shrink`] says no; nothing has changed then.
    pub(crate) fn succeed(&mut self, flow: FlowId, symbol_size: u16) -> Result<(), BadPlan> {
        self.layout.shrink(symbol_size)?;
        let layout = &self.layout;
        let unopened = layout.source_from(self.flow.next_number());
        self.flow.succeed(flow, layout.symbol_size(), unopened, |shape| layout.k_of(shape));
        Ok(())
    }

    /// A plan of the flow.
    pub(crate) fn plan(&self, number: u8) -> Option<Plan> {
        self.layout.plans().get(usize::from(number)).map(|plan| Plan { flow: self.id(), ..*plan })
    }

    /// Numbers of the plans after plan 0.
    pub(crate) fn further_plans(&self) -> std::ops::Range<u8> {
        1..self.layout.plans().len() as u8
    }

    /// What the next block to be opened costs of the credit.
    pub(crate) fn next_cost(&self) -> Option<u32> {
        self.layout.block(self.flow.next_number()).map(|shape| shape.cost)
    }

    /// Blocks are left to be opened.
    pub(crate) fn has_unopened(&self) -> bool {
        self.next_cost().is_some()
    }

    /// The cost of blocks whose memory is held: the receiver does not have them yet, or their digest is being made.
    pub(crate) const fn held_symbols(&self) -> u64 {
        self.flow.open_symbols() + self.done_digesting
    }

    /// The announcement has arrived.
    pub(crate) const fn on_announced(&mut self) {
        self.flow.on_announced();
    }

    /// The receiver has every block and knows of the flow, and every digest is made.
    pub(crate) fn is_finished(&self) -> bool {
        self.flow.announced() && self.flow.span() == 0 && self.flow.source_left() == 0 && self.digesting.is_empty()
    }

    /// Opens the next block when credit and the read-ahead allow it: its bytes are asked for. It may need a plan of its own, the
    /// last of [`ObjectSender::further_plans`] then.
    pub(crate) fn open_block(
        &mut self,
        credit: &mut SendCredit,
        read_ahead: u64,
        path: &PathEstimate,
        pool: &mut Pool,
    ) -> Option<Request> {
        let read_ahead = self.sizer.as_ref().map_or(read_ahead, |sizer| sizer.rule.read_ahead(path).min(read_ahead));
        if self.flow.unsent() >= read_ahead {
            return None;
        }
        self.size_next(path);
        let shape = self.layout.block(self.flow.next_number())?;
        if !credit.take(shape.cost) {
            return None;
        }
        let BlockShape { number, offset, length, .. } = shape;
        self.flow.open(shape);
        Some(Request::Read { flow: self.object, block: number, offset, length, buffer: pool.take() })
    }

    /// Asks how the next block is to be cut, and plans for it where that differs from the plan in force. A block whose plan was
    /// made for it keeps it, and so do all once there are [`MOST_PLANS`].
    fn size_next(&mut self, path: &PathEstimate) {
        let Some(sizer) = &mut self.sizer else { return };
        let number = self.flow.next_number();
        let Some(last) = self.layout.plans().last().copied() else { return };
        let Some(blocks) = number.checked_sub(last.first_block).filter(|blocks| *blocks > 0) else { return };
        let first_symbol = last.first_symbol + u64::from(blocks) * u64::from(last.k);
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
        // A size that no block can have changes nothing.
        if self.layout.add(plan).is_ok() {
            self.flow.recut(before, self.layout.source_from(number));
        }
    }

    /// The bytes of a block have come; answers with the request for its digest, when digests are wanted.
    pub(crate) fn on_read(&mut self, number: u32, buffer: Vec<u8>) -> Option<Request> {
        let (digest, flow) = (self.digest, self.object);
        let block = self.flow.block_mut(number).filter(|block| !block.is_done() && !block.is_filled())?;
        let BlockShape { offset, length, cost, .. } = *block.shape();
        let data = block.fill(buffer);
        if !digest {
            return None;
        }
        self.digesting.insert(number, cost);
        let key = FlowKey { direction: Direction::Sending, flow };
        Some(Request::Digest { key, block: number, offset, length, data })
    }

    /// A digest has been made.
    pub(crate) fn on_digest(&mut self, number: u32) {
        let Some(cost) = self.digesting.remove(&number) else { return };
        if self.flow.block(number).is_none_or(SendBlock::is_done) {
            self.done_digesting -= u64::from(cost);
        }
    }

    /// The receiver's view of the blocks; answers with the bytes newly known to have arrived. Blocks that are done give
    /// their memory back to `pool`.
    pub(crate) fn on_status(&mut self, status: &FlowStatus, pool: &mut Pool) -> u64 {
        let Self { flow, digesting, done_digesting, .. } = self;
        let mut bytes = 0;
        flow.on_status(status, pool, &mut |shape| {
            bytes += shape.length as u64;
            // While a worker digests it, its memory is held all the same.
            *done_digesting += digesting.get(&shape.number).map_or(0, |cost| u64::from(*cost));
        });
        bytes
    }
}

#[cfg(test)]
mod tests;
