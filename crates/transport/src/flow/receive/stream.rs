//! The destination of a stream's blocks: the program, which reads their bytes in order.

use super::block_receiver::{BlockReceiver, SymbolOutcome};
use super::window::largest_window;
use super::{BadBlock, RecvCredit};
use crate::flow::credit::StreamCredit;
use crate::flow::layout::{BadPlan, BlockShape, FlowLayout};
use crate::flow::pool::Pool;
use crate::flow::stream_layout::{StreamHeader, StreamLayout};
use crate::wire::{STREAM_HEADER, StreamAnnouncement, SymbolId};
use erasure::Block;
use std::collections::BTreeMap;
use std::ops::Range;

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecvStreamState {
    Open,
    /// The program stopped it; the sender's reset is awaited.
    Stopped,
    /// Every byte is read.
    Over,
}

/// The unread bytes of a stream.
#[derive(Debug)]
pub(super) struct StreamSink {
    pub(super) layout: StreamLayout,
    /// Complete blocks not read to their end, with their cost.
    complete: BTreeMap<u32, (u32, Block)>,
    credit: StreamCredit,
    /// The number of read symbols last reported to the sender.
    read_reported: u64,
    /// The block being read, and the position of the next byte in it.
    front: u32,
    at: usize,
    /// The last block of all, once its header has arrived.
    end: Option<u32>,
    phase: RecvStreamState,
    readable_reported: bool,
    received_reported: bool,
}

impl StreamSink {
    /// Creates a stream that has `own` symbols of credit of its own.
    ///
    /// # Errors
    /// [`BadPlan`] when its window code covers more than that allows.
    pub(super) fn new(announcement: StreamAnnouncement, own: u32) -> Result<Self, BadPlan> {
        let layout = StreamLayout::new(announcement);
        if layout.window().is_some() && announcement.k > largest_window(own) {
            return Err(BadPlan);
        }
        Ok(Self {
            layout,
            complete: BTreeMap::new(),
            credit: StreamCredit::new(own),
            read_reported: 0,
            front: 0,
            at: STREAM_HEADER,
            end: None,
            phase: RecvStreamState::Open,
            readable_reported: false,
            received_reported: false,
        })
    }

    /// Returns whether a block of one symbol may begin: before the end, and within the credit, given that those below
    /// `begun` have begun.
    pub(super) fn may_begin(&self, block: u32, begun: u32, shared: u64) -> bool {
        let limit = u64::from(begun) + self.credit.left(self.credit.shared() + shared);
        self.end.is_none_or(|end| block <= end) && u64::from(block) < limit
    }

    pub(super) fn begin_block(
        &mut self,
        id: SymbolId,
        plan: u8,
        shared: &mut u64,
    ) -> Result<BlockShape, SymbolOutcome> {
        let shape = self.layout.shape(id.block, plan).ok_or(SymbolOutcome::Refused)?;
        let within = self.end.is_none_or(|end| id.block <= end) && id.esi < shape.code.symbol_limit(shape.k);
        let (cost, before) = (u64::from(shape.cost), self.credit.shared());
        if !within || cost > self.credit.left(before + *shared) {
            return Err(SymbolOutcome::Refused);
        }
        self.credit.start(cost);
        *shared -= self.credit.shared() - before;
        Ok(shape)
    }

    /// Handles the arrival of a block's first symbol.
    pub(super) fn on_header(&mut self, number: u32, symbol: &[u8], blocks: &BlockReceiver) -> Result<(), BadBlock> {
        let length = blocks.partial(number).map_or(0, |(shape, _)| shape.length);
        self.check(number, symbol, length, blocks)
    }

    /// Stores a complete block until it is read.
    pub(super) fn on_block(
        &mut self,
        shape: BlockShape,
        block: Block,
        blocks: &BlockReceiver,
        credit: &mut RecvCredit,
        pool: &mut Pool,
    ) -> Result<(), BadBlock> {
        if self.phase != RecvStreamState::Open {
            return Ok(());
        }
        self.check(shape.number, block.bytes(), shape.length, blocks)?;
        self.complete.insert(shape.number, (shape.cost, block));
        self.release_read(credit, pool);
        Ok(())
    }

    /// Checks the beginning of a block of `length` bytes, by itself and against the known end.
    fn check(&mut self, number: u32, beginning: &[u8], length: usize, blocks: &BlockReceiver) -> Result<(), BadBlock> {
        let header = StreamHeader::decode(beginning, length).ok_or(BadBlock::Contradiction)?;
        let sound = if header.end {
            let last = self.end.is_none_or(|end| end == number) && blocks.begun_below() <= number + 1;
            self.end = Some(number).filter(|_| last);
            last
        } else {
            self.end.is_none_or(|end| number < end)
        };
        sound.then_some(()).ok_or(BadBlock::Contradiction)
    }

    pub(super) fn read(
        &mut self,
        out: &mut Vec<u8>,
        max: usize,
        blocks: &BlockReceiver,
        credit: &mut RecvCredit,
        pool: &mut Pool,
    ) -> usize {
        let mut read = 0;
        while let Some((block, ready)) = self.ready(max - read, blocks).filter(|(_, ready)| !ready.is_empty()) {
            out.extend_from_slice(&block.bytes()[ready.clone()]);
            read += ready.len();
            self.at = ready.end;
            self.release_read(credit, pool);
        }
        self.readable_reported &= self.is_readable(blocks);
        read
    }

    /// Returns the bytes of the front block that can be read now, up to `max`: those of symbols received without a gap.
    fn ready<'a>(&'a self, max: usize, blocks: &'a BlockReceiver) -> Option<(&'a Block, Range<usize>)> {
        if self.phase != RecvStreamState::Open {
            return None;
        }
        let complete = self.complete.get(&self.front).map(|(_, block)| block);
        let block = complete.or_else(|| blocks.partial(self.front).map(|(_, block)| block))?;
        let header = StreamHeader::decode(block.symbol(0)?, block.bytes().len())?;
        let end = STREAM_HEADER + header.length as usize;
        let limit = end.min(self.at.saturating_add(max));
        // Blocks done before the stream continued in smaller symbols have larger ones.
        let size = block.symbol_size();
        let mut until = self.at;
        while until < limit && block.is_present((until / size) as u32) {
            until = ((until / size + 1) * size).min(limit);
        }
        Some((block, self.at..until))
    }

    fn is_readable(&self, blocks: &BlockReceiver) -> bool {
        self.ready(1, blocks).is_some_and(|(_, ready)| !ready.is_empty())
    }

    /// Releases the memory and credit of complete blocks read to their end.
    fn release_read(&mut self, credit: &mut RecvCredit, pool: &mut Pool) {
        while let Some((_, block)) = self.complete.get(&self.front) {
            let header = StreamHeader::decode(block.bytes(), block.bytes().len());
            if header.is_some_and(|header| self.at < STREAM_HEADER + header.length as usize) {
                return;
            }
            if let Some((cost, block)) = self.complete.remove(&self.front) {
                let before = self.credit.shared();
                self.credit.note_read(self.credit.read() + u64::from(cost));
                credit.shared += before - self.credit.shared();
                pool.put(block.into_buffer());
            }
            if self.end == Some(self.front) {
                self.phase = RecvStreamState::Over;
                self.complete.clear();
                return;
            }
            self.front += 1;
            self.at = STREAM_HEADER;
        }
    }

    /// Stops the stream for the program; returns false when it has already ended.
    pub(super) fn stop(&mut self) -> bool {
        let open = self.is_open();
        if open {
            self.phase = RecvStreamState::Stopped;
            self.complete.clear();
        }
        open
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, RecvStreamState::Open)
    }

    pub(super) const fn is_stopped(&self) -> bool {
        matches!(self.phase, RecvStreamState::Stopped)
    }

    /// Returns whether every byte is read.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.phase, RecvStreamState::Over)
    }

    /// Returns whether every block is done, read or not.
    pub(super) fn is_complete(&self, done_below: u32) -> bool {
        self.is_over() || self.end.is_some_and(|end| done_below > end)
    }

    pub(super) const fn shared_credit(&self) -> u64 {
        self.credit.shared()
    }

    pub(super) fn newly_readable(&mut self, blocks: &BlockReceiver) -> bool {
        let now = !self.readable_reported && self.is_readable(blocks);
        self.readable_reported |= now;
        now
    }

    /// Returns true once: when every byte is read.
    pub(super) fn newly_received(&mut self) -> bool {
        let now = self.is_over() && !self.received_reported;
        self.received_reported |= now;
        now
    }

    pub(super) fn newly_read(&mut self) -> Option<u64> {
        let (read, taken_for_unread) = (self.credit.read(), self.credit.started() - self.read_reported);
        let worth_it = (read - self.read_reported) * 4 >= taken_for_unread.max(self.credit.own() / 2).max(1);
        if !self.is_open() || !worth_it {
            return None;
        }
        self.read_reported = read;
        Some(read)
    }
}
