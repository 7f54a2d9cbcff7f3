//! The receiver half of an object flow: symbols into blocks, blocks decoded, digested and written.

use super::credit::ReceiveCredit;
use super::layout::{BadPlan, BlockShape, Layout};
use super::request::{DecodeJob, Direction, FlowKey, Request};
use super::sending::Pool;
use crate::wire::{Announcement, BlockStatus, FlowId, FlowStatus, Plan, SymbolId};
use erasure::{Block, Decoder, Progress};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Blocks beyond the first that is not done: a lost symbol is sent again long before, and feedback names what lies above.
const MOST_AHEAD: u32 = 4_096;

/// What this side accepts of a peer's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Largest number of source symbols in a block.
    pub largest_k: u32,
    /// Largest symbol in bytes.
    pub largest_symbol: u16,
}

/// What a symbol was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It brought its block forward.
    New,
    /// Nothing: known, or more than was needed.
    Surplus,
    /// It cannot be placed until a plan comes.
    UnknownPlan,
    /// It breaks the flow's layout, its limits or its credit.
    Refused,
}

/// A block that is not done yet.
#[derive(Debug)]
struct Filling {
    shape: BlockShape,
    block: Block,
    decoder: Option<Box<dyn Decoder>>,
    /// Repair symbols the decoder holds.
    repairs: u32,
    /// Symbols, source and repair, with which decoding may be tried: k, or more after a try that failed.
    wanted: u32,
}

/// A block that arrives.
#[derive(Debug)]
enum State {
    Filling(Box<Filling>),
    /// A worker has it; symbols that come meanwhile are surplus.
    Decoding(BlockShape),
    /// Complete; waits until the program accepts the flow.
    Held(BlockShape, Arc<Block>),
    /// Complete; replies that are still to come.
    Storing {
        k: u32,
        length: usize,
        replies: u8,
    },
}

/// An object on its way in.
#[derive(Debug)]
pub struct ObjectReceiver {
    id: FlowId,
    layout: Layout,
    blocks: BTreeMap<u32, State>,
    /// Every block below is done.
    done_below: u32,
    /// Blocks done from there on, at most [`MOST_AHEAD`].
    done_above: BTreeSet<u32>,
    /// `Some(digest wanted)` once the program takes the flow.
    accepted: Option<bool>,
    written_symbols: u64,
    received_told: bool,
    requests: Vec<Request>,
}

impl ObjectReceiver {
    /// A flow the peer announced.
    ///
    /// # Errors
    /// [`BadPlan`] when the announcement contradicts itself or asks for more than `limits`.
    pub fn new(announcement: &Announcement, limits: FlowLimits) -> Result<Self, BadPlan> {
        let plan = announcement.plan;
        if plan.k > limits.largest_k || announcement.symbol_size > limits.largest_symbol {
            return Err(BadPlan);
        }
        Ok(Self {
            id: announcement.flow,
            layout: Layout::new(announcement)?,
            blocks: BTreeMap::new(),
            done_below: 0,
            done_above: BTreeSet::new(),
            accepted: None,
            written_symbols: 0,
            received_told: false,
            requests: Vec::new(),
        })
    }

    /// Adds a plan.
    ///
    /// # Errors
    /// [`BadPlan`] when it does not fit the flow or is larger than `limits`.
    pub fn add_plan(&mut self, plan: Plan, limits: FlowLimits) -> Result<(), BadPlan> {
        let known = usize::from(plan.number) < self.layout.plans().len();
        // A block keeps the shape it began with: a new plan covers none that has begun.
        let begun = self.begun_below();
        if plan.k > limits.largest_k || (!known && plan.first_block < begun) {
            return Err(BadPlan);
        }
        self.layout.add(plan)
    }

    /// The number after the highest block of which anything has come.
    fn begun_below(&self) -> u32 {
        let open = self.blocks.last_key_value().map(|(number, _)| number + 1);
        let done = self.done_above.last().map(|number| number + 1);
        open.max(done).unwrap_or(0).max(self.done_below)
    }

    /// Length of the object in bytes.
    pub fn length(&self) -> u64 {
        self.layout.length()
    }

    /// Whether the announcement repeats the one this flow was made from.
    pub fn is_announced_by(&self, announcement: &Announcement) -> bool {
        self.layout.plans()[0] == announcement.plan
            && self.layout.length() == announcement.length
            && self.layout.symbol_size() == usize::from(announcement.symbol_size)
    }

    /// Bytes per symbol.
    pub fn symbol_size(&self) -> usize {
        self.layout.symbol_size()
    }

    /// The program takes the flow: blocks are digested, if wanted, and written from now on.
    pub fn accept(&mut self, digest: bool) {
        self.accepted = Some(digest);
        let held: Vec<u32> =
            self.blocks.iter().filter(|(_, s)| matches!(s, State::Held(..))).map(|(number, _)| *number).collect();
        for number in held {
            if let Some(State::Held(shape, data)) = self.blocks.remove(&number) {
                self.store(shape, data);
            }
        }
    }

    /// A symbol arrived. `credit` is asked when it opens a block.
    pub fn on_symbol(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        credit: &mut ReceiveCredit,
        pool: &mut Pool,
    ) -> Taken {
        if symbol.len() != self.layout.symbol_size() {
            return Taken::Refused;
        }
        if self.is_done(id.block) {
            return Taken::Surplus;
        }
        if !self.blocks.contains_key(&id.block) {
            if id.block - self.done_below > MOST_AHEAD {
                return Taken::Refused;
            }
            if usize::from(plan) >= self.layout.plans().len() {
                return Taken::UnknownPlan;
            }
            let Some(shape) = self.layout.shape(id.block, plan) else {
                return Taken::Refused;
            };
            if id.esi >= shape.code.symbol_limit(shape.k) || !credit.start(shape.k) {
                return Taken::Refused;
            }
            let block = Block::empty(shape.k, self.layout.symbol_size(), pool.take());
            let filling = Filling { shape, block, decoder: None, repairs: 0, wanted: shape.k };
            self.blocks.insert(id.block, State::Filling(Box::new(filling)));
        }
        let Some(State::Filling(filling)) = self.blocks.get_mut(&id.block) else {
            return Taken::Surplus;
        };
        if filling.shape.plan != plan {
            return Taken::Refused;
        }
        match filling.take(id.esi, symbol) {
            Progress::Useless => Taken::Surplus,
            Progress::Need(_) => Taken::New,
            Progress::Ready => {
                self.advance(id.block);
                Taken::New
            }
        }
    }

    /// A decoder has tried.
    pub fn on_decoded(&mut self, job: DecodeJob, progress: Progress) {
        let number = job.block;
        let Some(State::Decoding(shape)) = self.blocks.get(&number) else { return };
        let shape = *shape;
        let more = if let Progress::Need(more) = progress { more.max(1) } else { 0 };
        let DecodeJob { partial: block, decoder, repairs, .. } = job;
        let wanted = block.present() + repairs + more;
        let filling = Filling { shape, block, decoder: Some(decoder), repairs, wanted };
        let complete = filling.block.is_complete();
        self.blocks.insert(number, State::Filling(Box::new(filling)));
        if complete {
            self.advance(number);
        }
    }

    /// A digest or a write of a block is done; answers with the block's source symbols and bytes when nothing of it is
    /// pending any more.
    pub fn on_stored(&mut self, number: u32) -> Option<(u32, usize)> {
        let Some(State::Storing { k, length, replies }) = self.blocks.get_mut(&number) else {
            return None;
        };
        *replies -= 1;
        if *replies > 0 {
            return None;
        }
        let stored = (*k, *length);
        self.blocks.remove(&number);
        self.written_symbols += u64::from(stored.0);
        Some(stored)
    }

    /// Work this flow wants done.
    pub fn take_requests(&mut self) -> impl Iterator<Item = Request> {
        self.requests.drain(..)
    }

    /// True once: when every byte of an accepted flow is written.
    pub fn newly_received(&mut self) -> bool {
        let now = self.accepted.is_some() && self.is_received() && !self.received_told;
        self.received_told |= now;
        now
    }

    /// Every byte is written.
    pub fn is_received(&self) -> bool {
        self.written_symbols == self.layout.symbols()
    }

    /// Every byte is written and the program knows.
    pub fn is_received_and_told(&self) -> bool {
        self.received_told
    }

    /// Every block is done, written or not.
    pub fn is_complete(&self) -> bool {
        self.layout.block(self.done_below).is_none()
    }

    /// What feedback says of this flow.
    pub fn status(&self) -> FlowStatus {
        let mut blocks: Vec<BlockStatus> =
            self.done_above.iter().map(|block| BlockStatus { block: *block, need: 0 }).collect();
        for (number, state) in &self.blocks {
            // A block with the decoder is left out: what it needs is not known.
            if let State::Filling(filling) = state {
                blocks.push(BlockStatus { block: *number, need: filling.need() });
            }
        }
        blocks.sort_unstable_by_key(|status| status.block);
        FlowStatus { flow: self.id, done_below: self.done_below, blocks }
    }

    fn is_done(&self, number: u32) -> bool {
        number < self.done_below || self.done_above.contains(&number)
    }

    /// A block has what it needs: on to the decoder, or to storage when no symbol is missing.
    fn advance(&mut self, number: u32) {
        let Some(State::Filling(filling)) = self.blocks.remove(&number) else {
            return;
        };
        let Filling { shape, block, decoder, repairs, .. } = *filling;
        match decoder {
            Some(decoder) if !block.is_complete() => {
                self.blocks.insert(number, State::Decoding(shape));
                let job = DecodeJob { flow: self.id, block: number, partial: block, decoder, repairs };
                self.requests.push(Request::Decode(job));
            }
            _ => {
                self.mark_done(number);
                self.store(shape, Arc::new(block));
            }
        }
    }

    fn mark_done(&mut self, number: u32) {
        self.done_above.insert(number);
        while self.done_above.remove(&self.done_below) {
            self.done_below += 1;
        }
    }

    fn store(&mut self, shape: BlockShape, data: Arc<Block>) {
        let BlockShape { number, k, offset, length, .. } = shape;
        let Some(digest) = self.accepted else {
            self.blocks.insert(number, State::Held(shape, data));
            return;
        };
        if digest {
            let key = FlowKey { direction: Direction::Receiving, flow: self.id };
            self.requests.push(Request::Digest { key, block: number, offset, length, data: Arc::clone(&data) });
        }
        self.requests.push(Request::Write { flow: self.id, block: number, offset, length, data });
        self.blocks.insert(number, State::Storing { k, length, replies: 1 + u8::from(digest) });
    }
}

impl Filling {
    fn take(&mut self, esi: u32, symbol: &[u8]) -> Progress {
        if esi < self.shape.k {
            if !self.block.insert(esi, symbol) {
                return Progress::Useless;
            }
        } else {
            let decoder = match &mut self.decoder {
                Some(decoder) => decoder,
                none => match self.shape.code.decoder(self.shape.k, self.block.symbol_size()) {
                    Ok(decoder) => none.insert(decoder),
                    Err(_) => return Progress::Useless,
                },
            };
            if decoder.push(&self.block, esi, symbol) == Progress::Useless {
                return Progress::Useless;
            }
            self.repairs += 1;
        }
        match self.need() {
            0 => Progress::Ready,
            need => Progress::Need(need),
        }
    }

    /// At least so many symbols are missing; 0: decoding may be tried.
    fn need(&self) -> u32 {
        if self.block.is_complete() {
            return 0;
        }
        self.wanted.saturating_sub(self.block.present() + self.repairs)
    }
}
