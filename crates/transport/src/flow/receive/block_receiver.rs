//! The receive state common to object and stream flows: places symbols into blocks, and tracks decoding and completion.

use crate::flow::layout::BlockShape;
use crate::flow::pool::Pool;
use crate::flow::work::DecodeJob;
use crate::wire::{
    BlockFeedback, BlockMask, BlockStatus, DoneConfig, FlowId, FlowStatus, MILLION, ReceivedConfig, SymbolId,
};
use erasure::{Block, BlockCode, Decoder, Progress};
use std::collections::{BTreeMap, BTreeSet};

/// How far blocks may be ahead of the first incomplete one: a lost symbol is retransmitted long before, and feedback
/// covers the blocks above.
pub(in crate::flow) const MOST_AHEAD: u32 = 4_096;

/// An incomplete block.
#[derive(Debug)]
pub(in crate::flow) struct IncompleteBlock {
    shape: BlockShape,
    block: Block,
    decoder: Option<Box<dyn Decoder>>,
    /// Repair symbols the decoder holds.
    repairs: u32,
    /// Symbols, source and repair, needed to attempt decoding: k or the sender's choice, more after a failed attempt.
    wanted: u32,
}

#[derive(Debug)]
enum BlockState {
    Filling(Box<IncompleteBlock>),
    /// A worker is decoding it from this many symbols; those that arrive meanwhile are surplus.
    Decoding(BlockShape, u32),
}

/// The received part of a block of an object.
#[derive(Clone, Copy, Debug)]
pub struct PartialBlock<'a> {
    /// The flow as identified in packets: the last successor of the announced one.
    pub flow: FlowId,
    /// Its number.
    pub number: u32,
    /// First byte in the object.
    pub offset: u64,
    /// Bytes of the object; the rest of the last symbol is zero.
    pub length: usize,
    /// Its received source symbols.
    pub source: &'a Block,
    /// Received repair symbols.
    pub repairs: u32,
}

/// Bytes of the symbols of incomplete blocks.
#[derive(Debug, Default)]
struct BufferedBytes {
    now: u64,
    most: u64,
}

impl BufferedBytes {
    fn add(&mut self, symbols: u32, symbol_size: usize) {
        self.now += u64::from(symbols) * symbol_size as u64;
        self.most = self.most.max(self.now);
    }

    fn remove(&mut self, symbols: u32, symbol_size: usize) {
        self.now = self.now.saturating_sub(u64::from(symbols) * symbol_size as u64);
    }
}

impl BlockState {
    /// Creates a block of which nothing has arrived.
    fn filling(shape: BlockShape, symbol_size: usize, block_feedback: BlockFeedback, pool: &mut Pool) -> Self {
        let block = Block::new_missing(shape.k, symbol_size, pool.take());
        Self::Filling(Box::new(IncompleteBlock {
            shape,
            block,
            decoder: None,
            repairs: 0,
            wanted: first_try(&shape, block_feedback),
        }))
    }
}

/// Returns how many symbols the first decoding attempt takes: (1 + epsilon) k, or all that exist; k, if any k decode.
fn first_try(shape: &BlockShape, block_feedback: BlockFeedback) -> u32 {
    let epsilon = match (block_feedback, shape.code) {
        (_, BlockCode::Uncoded | BlockCode::ReedSolomon) | (BlockFeedback::Needs | BlockFeedback::Mask, _) => 0,
        (BlockFeedback::Done(DoneConfig { epsilon }) | BlockFeedback::Received(ReceivedConfig { epsilon }), _) => {
            epsilon
        }
    };
    let more = (u64::from(shape.k) * u64::from(epsilon)).div_ceil(MILLION.into());
    let wanted = u64::from(shape.k) + more;
    u32::try_from(wanted).unwrap_or(u32::MAX).min(shape.code.symbol_limit(shape.k)).max(shape.k)
}

/// The effect of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolOutcome {
    /// It was useful to its block.
    New,
    /// It was the last that its block lacked: feedback should report the block as done.
    CompletesBlock,
    /// None: a duplicate, or not needed.
    Surplus,
    /// It cannot be placed until a plan arrives.
    UnknownPlan,
    /// It violates the flow's layout, its limits or its credit.
    Refused,
}

/// The result of placing a symbol.
#[derive(Debug)]
pub(in crate::flow) enum PlaceResult {
    /// The block is not finished by it.
    Symbol(SymbolOutcome),
    /// Its block can be decoded.
    Decodable(DecodeJob),
    /// Its block is done.
    Complete(BlockShape, Block),
}

/// The outcome of a decoding attempt for a block.
#[derive(Debug)]
pub(in crate::flow) enum DecodeOutcome {
    /// It is done.
    Complete(BlockShape, Block),
    /// It needs more symbols, or is no longer wanted.
    Incomplete,
    /// It needs more symbols, although feedback has reported it as done.
    Lost,
}

/// The partly received blocks of one flow.
#[derive(Debug)]
pub(in crate::flow) struct BlockReceiver {
    flow: FlowId,
    symbol_size: usize,
    /// The form in which feedback reports blocks to the sender.
    block_feedback: BlockFeedback,
    blocks: BTreeMap<u32, BlockState>,
    held: BufferedBytes,
    /// Every block below is done.
    done_below: u32,
    /// A block, and the first of its source symbols that was missing at the last check.
    gap: (u32, u32),
    /// Done blocks above it, at most [`MOST_AHEAD`].
    done_above: BTreeSet<u32>,
}

impl BlockReceiver {
    pub(in crate::flow) fn new(flow: FlowId, symbol_size: usize, block_feedback: BlockFeedback) -> Self {
        let (blocks, done_above) = (BTreeMap::new(), BTreeSet::new());
        Self {
            flow,
            symbol_size,
            block_feedback,
            blocks,
            held: BufferedBytes::default(),
            done_below: 0,
            gap: (0, 0),
            done_above,
        }
    }

    pub(in crate::flow) const fn flow(&self) -> FlowId {
        self.flow
    }

    /// Returns the bytes per symbol.
    pub(in crate::flow) const fn symbol_size(&self) -> usize {
        self.symbol_size
    }

    /// Returns the bytes of symbols that blocks which are not done have now.
    pub(in crate::flow) const fn held(&self) -> u64 {
        self.held.now
    }

    /// Returns the most bytes of symbols that blocks which were not done have had at once.
    pub(in crate::flow) const fn most_held(&self) -> u64 {
        self.held.most
    }

    /// Returns the number below which every block is done.
    pub(in crate::flow) const fn done_below(&self) -> u32 {
        self.done_below
    }

    /// Returns the number after the highest block of which a symbol has arrived.
    pub(in crate::flow) fn begun_below(&self) -> u32 {
        let open = self.blocks.last_key_value().map(|(number, _)| number + 1);
        let done = self.done_above.last().map(|number| number + 1);
        open.max(done).unwrap_or(0).max(self.done_below)
    }

    /// Returns the received symbols of an incomplete block that is not being decoded.
    pub(in crate::flow) fn partial(&self, number: u32) -> Option<(&BlockShape, &Block)> {
        match self.blocks.get(&number) {
            Some(BlockState::Filling(filling)) => Some((&filling.shape, &filling.block)),
            _ => None,
        }
    }

    /// Iterates over the incomplete blocks that are not being decoded, in order.
    pub(in crate::flow) fn partial_blocks(&self) -> impl Iterator<Item = PartialBlock<'_>> {
        self.blocks.iter().filter_map(|(number, state)| {
            let BlockState::Filling(filling) = state else { return None };
            let (shape, source, repairs) = (&filling.shape, &filling.block, filling.repairs);
            let (offset, length) = (shape.offset, shape.length);
            Some(PartialBlock { flow: self.flow, number: *number, offset, length, source, repairs })
        })
    }

    /// Places an arrived symbol. For a block of which nothing has arrived, `open` returns the shape, or the reason to
    /// refuse it.
    pub(in crate::flow) fn on_symbol(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        pool: &mut Pool,
        open: impl FnOnce() -> Result<BlockShape, SymbolOutcome>,
    ) -> PlaceResult {
        if symbol.len() != self.symbol_size {
            return PlaceResult::Symbol(SymbolOutcome::Refused);
        }
        if self.is_done(id.block) {
            return PlaceResult::Symbol(SymbolOutcome::Surplus);
        }
        if !self.blocks.contains_key(&id.block) {
            if !self.is_near(id.block) {
                return PlaceResult::Symbol(SymbolOutcome::Refused);
            }
            let shape = match open() {
                Ok(shape) => shape,
                Err(taken) => return PlaceResult::Symbol(taken),
            };
            self.blocks.insert(id.block, BlockState::filling(shape, self.symbol_size, self.block_feedback, pool));
        }
        let Some(BlockState::Filling(filling)) = self.blocks.get_mut(&id.block) else {
            return PlaceResult::Symbol(SymbolOutcome::Surplus);
        };
        if filling.shape.plan != plan {
            return PlaceResult::Symbol(SymbolOutcome::Refused);
        }
        let progress = filling.take(id.esi, symbol);
        if progress != Progress::Redundant {
            self.held.add(1, self.symbol_size);
        }
        match progress {
            Progress::Redundant => PlaceResult::Symbol(SymbolOutcome::Surplus),
            Progress::Need(_) => PlaceResult::Symbol(SymbolOutcome::New),
            Progress::Ready => self.advance(id.block),
        }
    }

    /// Handles the end of a decoding attempt.
    pub(in crate::flow) fn on_decoded(&mut self, job: DecodeJob, progress: Progress) -> DecodeOutcome {
        let number = job.block;
        let Some(&BlockState::Decoding(shape, held)) = self.blocks.get(&number) else {
            return DecodeOutcome::Incomplete;
        };
        let more = if let Progress::Need(more) = progress { more.max(1) } else { 0 };
        let DecodeJob { partial: block, decoder, repairs, .. } = job;
        let wanted = block.present_count() + repairs + more;
        if block.is_complete() {
            self.blocks.remove(&number);
            self.held.remove(held, self.symbol_size);
            self.mark_done(number);
            return DecodeOutcome::Complete(shape, block);
        }
        if self.is_early() {
            return DecodeOutcome::Lost;
        }
        // Some of the source may have been recovered.
        self.held.add((block.present_count() + repairs).saturating_sub(held), self.symbol_size);
        let filling = IncompleteBlock { shape, block, decoder: Some(decoder), repairs, wanted };
        self.blocks.insert(number, BlockState::Filling(Box::new(filling)));
        DecodeOutcome::Incomplete
    }

    /// Returns whether blocks are reported done before they are decoded.
    pub(in crate::flow) const fn is_early(&self) -> bool {
        matches!(self.block_feedback, BlockFeedback::Received(_))
    }

    /// Returns whether a block reported done is still being decoded.
    pub(in crate::flow) fn has_promised(&self) -> bool {
        self.is_early() && self.blocks.values().any(|state| matches!(state, BlockState::Decoding(..)))
    }

    /// Continues as another flow. Done blocks keep their numbers. The others start over with `k` symbols, since those
    /// of another size would not fit, and keep their cost, so that no credit moves.
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
                BlockState::Filling(filling) => filling.shape,
                BlockState::Decoding(shape, _) => *shape,
            };
            *state = BlockState::filling(BlockShape { k: k(&shape), ..shape }, symbol_size, self.block_feedback, pool);
        }
        (self.gap, self.held.now) = ((0, 0), 0);
    }

    /// Drops the incomplete blocks.
    pub(in crate::flow) fn clear(&mut self) {
        self.held.now = 0;
        self.blocks.clear();
    }

    /// Returns the flow's status for feedback.
    pub(in crate::flow) fn status(&self) -> FlowStatus {
        let mut blocks: Vec<BlockStatus> =
            self.done_above.iter().map(|block| BlockStatus { block: *block, need: 0 }).collect();
        for (number, state) in &self.blocks {
            match state {
                BlockState::Filling(filling) if self.block_feedback == BlockFeedback::Needs => {
                    blocks.push(BlockStatus { block: *number, need: filling.need() });
                }
                BlockState::Decoding(..) if self.is_early() => blocks.push(BlockStatus { block: *number, need: 0 }),
                // How many symbols a block being decoded lacks is unknown.
                BlockState::Filling(_) | BlockState::Decoding(..) => {}
            }
        }
        blocks.sort_unstable_by_key(|status| status.block);
        FlowStatus { flow: self.flow, done_below: self.done_below, blocks }
    }

    /// Returns the same for a flow with at most 256 blocks, if the sender requested that form.
    pub(in crate::flow) fn mask(&self) -> Option<BlockMask> {
        if self.block_feedback != BlockFeedback::Mask {
            return None;
        }
        let mut done = [0; 32];
        for block in (0..self.done_below).chain(self.done_above.iter().copied()).take_while(|block| *block < 256) {
            done[block as usize / 8] |= 0x80 >> (block % 8);
        }
        Some(BlockMask { flow: self.flow, done })
    }

    /// Returns the first source symbol of the flow, by block and esi, that has not arrived. Looks at each symbol once.
    pub(in crate::flow) fn gap(&mut self) -> (u32, u32) {
        if self.gap.0 != self.done_below {
            self.gap = (self.done_below, 0);
        }
        if let Some(BlockState::Filling(filling)) = self.blocks.get(&self.done_below) {
            while filling.block.is_present(self.gap.1) {
                self.gap.1 += 1;
            }
        }
        self.gap
    }

    /// Returns whether the block is close enough to the first incomplete one.
    pub(in crate::flow) const fn is_near(&self, number: u32) -> bool {
        number < u32::MAX && number.saturating_sub(self.done_below) <= MOST_AHEAD
    }

    fn is_done(&self, number: u32) -> bool {
        number < self.done_below || self.done_above.contains(&number)
    }

    /// Advances a block that has the symbols it needs: to the decoder, or to done when no symbol is missing.
    fn advance(&mut self, number: u32) -> PlaceResult {
        let Some(BlockState::Filling(filling)) = self.blocks.remove(&number) else {
            return PlaceResult::Symbol(SymbolOutcome::Surplus);
        };
        let IncompleteBlock { shape, block, decoder, repairs, .. } = *filling;
        let held = block.present_count() + repairs;
        match decoder {
            Some(decoder) if !block.is_complete() => {
                self.blocks.insert(number, BlockState::Decoding(shape, held));
                PlaceResult::Decodable(DecodeJob { flow: self.flow, block: number, partial: block, decoder, repairs })
            }
            _ => {
                self.held.remove(held, self.symbol_size);
                self.mark_done(number);
                PlaceResult::Complete(shape, block)
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

impl IncompleteBlock {
    fn take(&mut self, esi: u32, symbol: &[u8]) -> Progress {
        if esi < self.shape.k {
            if !self.block.insert(esi, symbol) {
                return Progress::Redundant;
            }
        } else {
            let decoder = match &mut self.decoder {
                Some(decoder) => decoder,
                none => match self.shape.code.decoder(self.shape.k, self.block.symbol_size()) {
                    Ok(mut decoder) => {
                        decoder.wait_for(self.wanted);
                        none.insert(decoder)
                    }
                    Err(_) => return Progress::Redundant,
                },
            };
            if decoder.push(&self.block, esi, symbol) == Progress::Redundant {
                return Progress::Redundant;
            }
            self.repairs += 1;
        }
        match self.need() {
            0 => Progress::Ready,
            need => Progress::Need(need),
        }
    }

    /// Returns the least number of missing symbols; 0 when decoding can be attempted.
    fn need(&self) -> u32 {
        if self.block.is_complete() {
            return 0;
        }
        self.wanted.saturating_sub(self.block.present_count() + self.repairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use erasure::BlockCode;

    /// Every accepted number has a successor, and the number that means "all blocks" is not accepted.
    #[test]
    fn the_largest_block_number_is_no_block() {
        let mut blocks = BlockReceiver::new(FlowId(1), 8, BlockFeedback::Needs);
        blocks.done_below = u32::MAX - 2;
        let mut take = |number| {
            let shape = BlockShape { number, plan: 0, k: 1, code: BlockCode::Uncoded, offset: 0, length: 8, cost: 1 };
            let id = SymbolId { flow: FlowId(1), block: number, esi: 0 };
            blocks.on_symbol(id, 0, &[7; 8], &mut Pool::default(), || Ok(shape))
        };
        assert!(matches!(take(u32::MAX), PlaceResult::Symbol(SymbolOutcome::Refused)));
        assert!(matches!(take(u32::MAX - 1), PlaceResult::Complete(..)));
        assert!(matches!(take(u32::MAX - 2), PlaceResult::Complete(..)));
        assert_eq!((blocks.done_below(), blocks.begun_below()), (u32::MAX, u32::MAX));
    }
}
