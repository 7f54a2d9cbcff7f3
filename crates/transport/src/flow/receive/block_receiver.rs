//! What object and stream flows have in common where they receive: symbols into blocks, blocks decoded, blocks done.

use crate::flow::layout::BlockShape;
use crate::flow::pool::Pool;
use crate::flow::request::DecodeJob;
use crate::wire::{
    BlockFeedback, BlockMask, BlockStatus, DoneBlocks, FlowId, FlowStatus, MILLION, ReceivedBlocks, SymbolId,
};
use erasure::{Block, BlockCode, Decoder, Progress};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks beyond the first that is not done: a lost symbol is sent again long before, and feedback names what lies above.
pub(in crate::flow) const MOST_AHEAD: u32 = 4_096;

/// A block that is not done yet.
#[derive(Debug)]
pub(in crate::flow) struct Filling {
    shape: BlockShape,
    block: Block,
    decoder: Option<Box<dyn Decoder>>,
    /// Repair symbols the decoder holds.
    repairs: u32,
    /// Symbols, source and repair, with which decoding may be tried: k or what the sender has chosen, more after a try that failed.
    wanted: u32,
}

#[derive(Debug)]
enum State {
    Filling(Box<Filling>),
    /// A worker has it; symbols that come meanwhile are surplus.
    Decoding(BlockShape),
}

impl State {
    /// A block of which nothing is here.
    fn filling(shape: BlockShape, symbol_size: usize, told: BlockFeedback, pool: &mut Pool) -> Self {
        let block = Block::empty(shape.k, symbol_size, pool.take());
        Self::Filling(Box::new(Filling { shape, block, decoder: None, repairs: 0, wanted: first_try(&shape, told) }))
    }
}

/// Symbols with which decoding a block is first tried: (1 + epsilon) k, or all there are; k, where any k decode.
fn first_try(shape: &BlockShape, told: BlockFeedback) -> u32 {
    let epsilon = match (told, shape.code) {
        (_, BlockCode::Uncoded | BlockCode::ReedSolomon) | (BlockFeedback::Needs | BlockFeedback::Mask, _) => 0,
        (BlockFeedback::Done(DoneBlocks { epsilon }) | BlockFeedback::Received(ReceivedBlocks { epsilon }), _) => {
            epsilon
        }
    };
    let more = (u64::from(shape.k) * u64::from(epsilon)).div_ceil(MILLION.into());
    let wanted = u64::from(shape.k) + more;
    u32::try_from(wanted).unwrap_or(u32::MAX).min(shape.code.symbol_limit(shape.k)).max(shape.k)
}

/// What a symbol was good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolOutcome {
    /// It brought its block forward.
    New,
    /// It was the last that its block lacked: the sender is to hear that the block is done.
    CompletesBlock,
    /// Nothing: known, or more than was needed.
    Surplus,
    /// It cannot be placed until a plan comes.
    UnknownPlan,
    /// It breaks the flow's layout, its limits or its credit.
    Refused,
}

/// What a symbol led to.
#[derive(Debug)]
pub(in crate::flow) enum Placed {
    /// Nothing, or a step.
    Symbol(SymbolOutcome),
    /// Its block can be decoded.
    Decodable(DecodeJob),
    /// Its block is done.
    Complete(BlockShape, Block),
}

/// What became of a block that a decoder has tried.
#[derive(Debug)]
pub(in crate::flow) enum DecodeOutcome {
    /// It is done.
    Complete(BlockShape, Block),
    /// It needs more symbols, or nobody waits for it any more.
    Incomplete,
    /// It needs more symbols, and the sender was told that it is done.
    Lost,
}

/// The blocks of one flow as they fill.
#[derive(Debug)]
pub(in crate::flow) struct BlockReceiver {
    flow: FlowId,
    symbol_size: usize,
    /// What the sender hears of blocks.
    told: BlockFeedback,
    blocks: BTreeMap<u32, State>,
    /// Every block below is done.
    done_below: u32,
    /// A block, and the first of its source symbols that was missing when last looked at.
    gap: (u32, u32),
    /// Blocks done from there on, at most [`MOST_AHEAD`].
    done_above: BTreeSet<u32>,
}

impl BlockReceiver {
    pub(in crate::flow) fn new(flow: FlowId, symbol_size: usize, told: BlockFeedback) -> Self {
        let (blocks, done_above) = (BTreeMap::new(), BTreeSet::new());
        Self { flow, symbol_size, told, blocks, done_below: 0, gap: (0, 0), done_above }
    }

    pub(in crate::flow) const fn flow(&self) -> FlowId {
        self.flow
    }

    /// Bytes per symbol.
    pub(in crate::flow) const fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Every block below is done.
    pub(in crate::flow) const fn done_below(&self) -> u32 {
        self.done_below
    }

    /// The number after the highest block of which anything has come.
    pub(in crate::flow) fn begun_below(&self) -> u32 {
        let open = self.blocks.last_key_value().map(|(number, _)| number + 1);
        let done = self.done_above.last().map(|number| number + 1);
        open.max(done).unwrap_or(0).max(self.done_below)
    }

    /// What has come of a block that is not done and not with a decoder.
    pub(in crate::flow) fn partial(&self, number: u32) -> Option<(&BlockShape, &Block)> {
        match self.blocks.get(&number) {
            Some(State::Filling(filling)) => Some((&filling.shape, &filling.block)),
            _ => None,
        }
    }

    /// A symbol arrived. `open` is asked for the shape of a block of which nothing has come, or why it cannot be.
    pub(in crate::flow) fn on_symbol(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        pool: &mut Pool,
        open: impl FnOnce() -> Result<BlockShape, SymbolOutcome>,
    ) -> Placed {
        if symbol.len() != self.symbol_size {
            return Placed::Symbol(SymbolOutcome::Refused);
        }
        if self.is_done(id.block) {
            return Placed::Symbol(SymbolOutcome::Surplus);
        }
        if !self.blocks.contains_key(&id.block) {
            if !self.is_near(id.block) {
                return Placed::Symbol(SymbolOutcome::Refused);
            }
            let shape = match open() {
                Ok(shape) => shape,
                Err(taken) => return Placed::Symbol(taken),
            };
            self.blocks.insert(id.block, State::filling(shape, self.symbol_size, self.told, pool));
        }
        let Some(State::Filling(filling)) = self.blocks.get_mut(&id.block) else {
            return Placed::Symbol(SymbolOutcome::Surplus);
        };
        if filling.shape.plan != plan {
            return Placed::Symbol(SymbolOutcome::Refused);
        }
        match filling.take(id.esi, symbol) {
            Progress::Useless => Placed::Symbol(SymbolOutcome::Surplus),
            Progress::Need(_) => Placed::Symbol(SymbolOutcome::New),
            Progress::Ready => self.advance(id.block),
        }
    }

    /// A decoder has tried.
    pub(in crate::flow) fn on_decoded(&mut self, job: DecodeJob, progress: Progress) -> DecodeOutcome {
        let number = job.block;
        let Some(State::Decoding(shape)) = self.blocks.get(&number) else { return DecodeOutcome::Incomplete };
        let shape = *shape;
        let more = if let Progress::Need(more) = progress { more.max(1) } else { 0 };
        let DecodeJob { partial: block, decoder, repairs, .. } = job;
        let wanted = block.present() + repairs + more;
        if block.is_complete() {
            self.blocks.remove(&number);
            self.mark_done(number);
            return DecodeOutcome::Complete(shape, block);
        }
        if self.is_early() {
            return DecodeOutcome::Lost;
        }
        let filling = Filling { shape, block, decoder: Some(decoder), repairs, wanted };
        self.blocks.insert(number, State::Filling(Box::new(filling)));
        DecodeOutcome::Incomplete
    }

    /// Blocks are called done before they are decoded.
    pub(in crate::flow) const fn is_early(&self) -> bool {
        matches!(self.told, BlockFeedback::Received(_))
    }

    /// A block was called done and is with a decoder.
    pub(in crate::flow) fn has_promised(&self) -> bool {
        self.is_early() && self.blocks.values().any(|state| matches!(state, State::Decoding(_)))
    }

    /// Goes on as another flow. What is done stays, under the same numbers. What is not begins anew, with `k` symbols: those of
    /// another size would not fit it. It keeps its cost, so that no credit moves.
    pub(in crate::flow) fn succeed(
        &mut self,
        flow: FlowId,
        symbol_size: usize,
        pool: &mut Pool,
        k: impl Fn(&BlockShape) -> u32,
    ) {
        (self.flow, self.symbol_size) = (flow, symbol_size);
        for state in self.blocks.values_mut() {
            let shape = match state {
                State::Filling(filling) => filling.shape,
                State::Decoding(shape) => *shape,
            };
            *state = State::filling(BlockShape { k: k(&shape), ..shape }, symbol_size, self.told, pool);
        }
        self.gap = (0, 0);
    }

    /// Forgets the blocks that are not done.
    pub(in crate::flow) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// What feedback says of this flow.
    pub(in crate::flow) fn status(&self) -> FlowStatus {
        let mut blocks: Vec<BlockStatus> =
            self.done_above.iter().map(|block| BlockStatus { block: *block, need: 0 }).collect();
        for (number, state) in &self.blocks {
            match state {
                State::Filling(filling) if self.told == BlockFeedback::Needs => {
                    blocks.push(BlockStatus { block: *number, need: filling.need() });
                }
                State::Decoding(_) if self.is_early() => blocks.push(BlockStatus { block: *number, need: 0 }),
                // What a block with the decoder needs is not known.
                State::Filling(_) | State::Decoding(_) => {}
            }
        }
        blocks.sort_unstable_by_key(|status| status.block);
        FlowStatus { flow: self.flow, done_below: self.done_below, blocks }
    }

    /// The same of a flow with at most 256 blocks, if that is how the sender wants to be told.
    pub(in crate::flow) fn mask(&self) -> Option<BlockMask> {
        if self.told != BlockFeedback::Mask {
            return None;
        }
        let mut done = [0; 32];
        for block in (0..self.done_below).chain(self.done_above.iter().copied()).take_while(|block| *block < 256) {
            done[block as usize / 8] |= 0x80 >> (block % 8);
        }
        Some(BlockMask { flow: self.flow, done })
    }

    /// The first source symbol of the flow, by block and esi, that has not come: all before it is there. Each is looked at once.
    pub(in crate::flow) fn gap(&mut self) -> (u32, u32) {
        if self.gap.0 != self.done_below {
            self.gap = (self.done_below, 0);
        }
        if let Some(State::Filling(filling)) = self.blocks.get(&self.done_below) {
            while filling.block.is_present(self.gap.1) {
                self.gap.1 += 1;
            }
        }
        self.gap
    }

    /// Whether the block is not too far ahead of the first that is not done.
    pub(in crate::flow) const fn is_near(&self, number: u32) -> bool {
        number.saturating_sub(self.done_below) <= MOST_AHEAD
    }

    fn is_done(&self, number: u32) -> bool {
        number < self.done_below || self.done_above.contains(&number)
    }

    /// A block has what it needs: on to the decoder, or done when no symbol is missing.
    fn advance(&mut self, number: u32) -> Placed {
        let Some(State::Filling(filling)) = self.blocks.remove(&number) else {
            return Placed::Symbol(SymbolOutcome::Surplus);
        };
        let Filling { shape, block, decoder, repairs, .. } = *filling;
        match decoder {
            Some(decoder) if !block.is_complete() => {
                self.blocks.insert(number, State::Decoding(shape));
                Placed::Decodable(DecodeJob { flow: self.flow, block: number, partial: block, decoder, repairs })
            }
            _ => {
                self.mark_done(number);
                Placed::Complete(shape, block)
            }
        }
    }

    fn mark_done(&mut self, number: u32) {
        self.done_above.insert(number);
        while self.done_above.remove(&self.done_below) {
            self.done_below += 1;
        }
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
                    Ok(mut decoder) => {
                        decoder.wait_for(self.wanted);
                        none.insert(decoder)
                    }
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
