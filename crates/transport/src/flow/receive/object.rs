//! The receiver half of an object flow: blocks that are done are digested and written.

use super::FlowLimits;
use super::block_receiver::{BlockReceiver, DecodeOutcome, Placed, SymbolOutcome, Undecodable};
use crate::flow::credit::ReceiveCredit;
use crate::flow::layout::{BadPlan, BlockShape, Layout};
use crate::flow::pool::Pool;
use crate::flow::request::{DecodeJob, Direction, FlowKey, Request};
use crate::wire::{Announcement, BlockFeedback, BlockMask, FlowId, FlowStatus, Plan, SymbolId};
use erasure::{Block, Progress};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A block that is done.
#[derive(Debug)]
enum Done {
    /// Waits until the program accepts the flow.
    Held(BlockShape, Arc<Block>),
    /// Replies that are still to come.
    Storing { cost: u32, length: usize, replies: u8 },
}

/// An object on its way in.
#[derive(Debug)]
pub(crate) struct ObjectReceiver {
    /// The first flow that carried the object: what the program knows it by.
    object: FlowId,
    per_packet: u8,
    layout: Layout,
    assembly: BlockReceiver,
    /// Blocks that are done and not written.
    done: BTreeMap<u32, Done>,
    /// `Some(digest wanted)` once the program takes the flow.
    accepted: Option<bool>,
    written_symbols: u64,
    /// The cost of blocks that are done and not written.
    waiting_symbols: u64,
    received_told: bool,
    requests: Vec<Request>,
}

impl ObjectReceiver {
    /// A flow the peer announced, which wants to hear of its blocks as `told` says.
    ///
    /// # Errors
    /// [`BadPlan`] when the announcement contradicts itself or asks for more than `limits`.
    pub(crate) fn new(announcement: &Announcement, limits: FlowLimits, told: BlockFeedback) -> Result<Self, BadPlan> {
        let plan = announcement.plan;
        let fits = plan.k <= limits.largest_k
            && announcement.symbol_size <= limits.largest_symbol
            && announcement.symbols_per_packet <= limits.most_per_packet;
        if !fits {
            return Err(BadPlan);
        }
        Ok(Self {
            object: announcement.flow,
            per_packet: announcement.symbols_per_packet,
            layout: Layout::new(announcement)?,
            assembly: BlockReceiver::new(announcement.flow, usize::from(announcement.symbol_size), told),
            done: BTreeMap::new(),
            accepted: None,
            written_symbols: 0,
            waiting_symbols: 0,
            received_told: false,
            requests: Vec::new(),
        })
    }

    /// Adds a plan.
    ///
    /// # Errors
    /// [`BadPlan`] when it does not fit the flow or is larger than `limits`.
    pub(crate) fn add_plan(&mut self, plan: Plan, limits: FlowLimits) -> Result<(), BadPlan> {
        let known = usize::from(plan.number) < self.layout.plans().len();
        // A block keeps the shape it began with: a new plan covers none that has begun.
        let begun = self.assembly.begun_below();
        if plan.k > limits.largest_k || (!known && plan.first_block < begun) {
            return Err(BadPlan);
        }
        self.layout.add(Plan { flow: self.object, ..plan })
    }

    /// Plans known: the number of the next one.
    pub(crate) fn plan_count(&self) -> usize {
        self.layout.plans().len()
    }

    /// Whether the announcement repeats the one this flow was made from.
    pub(crate) fn is_announced_by(&self, announcement: &Announcement) -> bool {
        self.layout.plans()[0] == announcement.plan
            && self.layout.length() == announcement.length
            && self.layout.unit() == announcement.symbol_size
            && self.per_packet == announcement.symbols_per_packet
    }

    /// The first flow that carried the object: what the program knows it by.
    pub(crate) const fn object(&self) -> FlowId {
        self.object
    }

    /// Goes on as another flow, of smaller symbols.
    ///
    /// # Errors
    /// [`BadPlan`] for a size that does not suit the object; nothing has changed then.
    pub(crate) fn succeed(&mut self, flow: FlowId, symbol_size: u16, pool: &mut Pool) -> Result<(), BadPlan> {
        self.layout.shrink(symbol_size)?;
        let layout = &self.layout;
        self.assembly.succeed(flow, layout.symbol_size(), pool, |shape| layout.k_of(shape));
        Ok(())
    }

    /// Bytes per symbol.
    pub(crate) fn symbol_size(&self) -> usize {
        self.layout.symbol_size()
    }

    /// r: the most symbols in a packet.
    pub(crate) const fn per_packet(&self) -> u8 {
        self.per_packet
    }

    /// The program takes the flow: blocks are digested, if wanted, and written from now on.
    pub(crate) fn accept(&mut self, digest: bool) {
        self.accepted = Some(digest);
        let held: Vec<u32> =
            self.done.iter().filter(|(_, s)| matches!(s, Done::Held(..))).map(|(number, _)| *number).collect();
        for number in held {
            if let Some(Done::Held(shape, data)) = self.done.remove(&number) {
                self.store(shape, data);
            }
        }
    }

    /// A symbol arrived. `credit` is asked when it opens a block.
    pub(crate) fn on_symbol(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        credit: &mut ReceiveCredit,
        pool: &mut Pool,
    ) -> SymbolOutcome {
        let layout = &self.layout;
        let open = || {
            if usize::from(plan) >= layout.plans().len() {
                return Err(SymbolOutcome::UnknownPlan);
            }
            let shape = layout.shape(id.block, plan).ok_or(SymbolOutcome::Refused)?;
            let granted = id.esi < shape.code.symbol_limit(shape.k) && credit.start(shape.cost);
            granted.then_some(shape).ok_or(SymbolOutcome::Refused)
        };
        let taken = match self.assembly.on_symbol(id, plan, symbol, pool, open) {
            Placed::Symbol(SymbolOutcome::New) => SymbolOutcome::New,
            Placed::Symbol(taken) => return taken,
            Placed::Decodable(job) => {
                self.requests.push(Request::Decode(job));
                if self.assembly.is_early() { SymbolOutcome::CompletesBlock } else { SymbolOutcome::New }
            }
            Placed::Complete(shape, block) => {
                self.finish_block(shape, block);
                SymbolOutcome::CompletesBlock
            }
        };
        credit.note_arrival();
        taken
    }

    /// A decoder has tried.
    ///
    /// # Errors
    /// [`Undecodable`] when it failed and the sender was told that the block is done.
    pub(crate) fn on_decoded(&mut self, job: DecodeJob, progress: Progress) -> Result<(), Undecodable> {
        match self.assembly.on_decoded(job, progress) {
            DecodeOutcome::Complete(shape, block) => self.finish_block(shape, block),
            DecodeOutcome::Incomplete => {}
            DecodeOutcome::Lost => return Err(Undecodable),
        }
        Ok(())
    }

    /// The sender was told that a block is done which a decoder still has.
    pub(crate) fn has_promised(&self) -> bool {
        self.assembly.has_promised()
    }

    /// A digest or a write of a block is done; answers with the block's cost and bytes when nothing of it is
    /// pending any more.
    pub(crate) fn on_stored(&mut self, number: u32) -> Option<(u32, usize)> {
        let Some(Done::Storing { cost, length, replies }) = self.done.get_mut(&number) else {
            return None;
        };
        *replies -= 1;
        if *replies > 0 {
            return None;
        }
        let stored = (*cost, *length);
        self.done.remove(&number);
        self.written_symbols += u64::from(stored.0);
        self.waiting_symbols -= u64::from(stored.0);
        Some(stored)
    }

    /// Work this flow wants done.
    pub(crate) fn take_requests(&mut self) -> impl Iterator<Item = Request> {
        self.requests.drain(..)
    }

    /// True once: when every byte of an accepted flow is written.
    pub(crate) fn newly_received(&mut self) -> bool {
        let now = self.accepted.is_some() && self.is_received() && !self.received_told;
        self.received_told |= now;
        now
    }

    /// Every byte is written.
    pub(crate) fn is_received(&self) -> bool {
        self.written_symbols == self.layout.symbols()
    }

    /// Every byte is written and the program knows.
    pub(crate) fn is_received_and_told(&self) -> bool {
        self.received_told
    }

    /// Every block is done, written or not.
    pub(crate) fn is_complete(&self) -> bool {
        self.layout.block(self.assembly.done_below()).is_none()
    }

    /// The cost of blocks that are done and not written.
    pub(crate) const fn waiting_symbols(&self) -> u64 {
        self.waiting_symbols
    }

    /// Something of it has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.assembly.begun_below() > 0
    }

    /// The first source symbol, by block and esi, that has not come.
    pub(crate) fn gap(&mut self) -> (u32, u32) {
        self.assembly.gap()
    }

    /// What feedback says of this flow in a mask, if the sender wants that and it is long enough.
    pub(crate) fn mask(&self) -> Option<BlockMask> {
        self.assembly.mask().filter(|_| self.layout.block(256).is_none())
    }

    /// What feedback says of this flow.
    pub(crate) fn status(&self) -> FlowStatus {
        self.assembly.status()
    }

    fn finish_block(&mut self, shape: BlockShape, block: Block) {
        self.waiting_symbols += u64::from(shape.cost);
        self.store(shape, Arc::new(block));
    }

    fn store(&mut self, shape: BlockShape, data: Arc<Block>) {
        let BlockShape { number, cost, offset, length, .. } = shape;
        let Some(digest) = self.accepted else {
            self.done.insert(number, Done::Held(shape, data));
            return;
        };
        let flow = self.object;
        if digest {
            let key = FlowKey { direction: Direction::Receiving, flow };
            self.requests.push(Request::Digest { key, block: number, offset, length, data: Arc::clone(&data) });
        }
        self.done.insert(number, Done::Storing { cost, length, replies: 1 + u8::from(digest) });
        self.requests.push(Request::Write { flow, block: number, offset, length, data });
    }
}
