//! The blocks of a flow being sent, as its schedule sees them.

use super::block::SendBlock;
use crate::wire::{BlockId, FlowId, SymbolId};
use std::collections::{BTreeSet, VecDeque};

/// A schedule's view of its flow.
#[derive(Debug)]
pub struct SendBlocks {
    pub(in crate::flow) id: FlowId,
    /// Open blocks, by number from `base` on. Blocks done before earlier ones stay, empty, until those are done.
    pub(in crate::flow) queue: VecDeque<SendBlock>,
    pub(in crate::flow) base: u32,
    /// The block whose source is being sent.
    pub(in crate::flow) cursor: u32,
    /// Open blocks with source symbols known to be lost.
    pub(in crate::flow) with_lost: BTreeSet<u32>,
    /// Open blocks that the receiver does not have yet.
    pub(in crate::flow) unfinished: usize,
    /// Of those, the blocks of which it needs something, as far as is known.
    pub(in crate::flow) lacking: usize,
    /// Source symbols of the flow that have not been sent yet.
    pub(in crate::flow) source_left: u64,
    /// More source follows, not yet a symbol of this flow.
    pub(in crate::flow) others_waiting: bool,
    /// The receiver knows of the flow.
    pub(in crate::flow) announced: bool,
    /// The block of the packet being filled, once it has a symbol.
    pub(in crate::flow) packet: Option<u32>,
}

impl SendBlocks {
    /// Creates a flow with no open block.
    pub(in crate::flow) const fn new(id: FlowId, source_left: u64) -> Self {
        Self {
            id,
            source_left,
            queue: VecDeque::new(),
            base: 0,
            cursor: 0,
            with_lost: BTreeSet::new(),
            unfinished: 0,
            lacking: 0,
            others_waiting: false,
            announced: false,
            packet: None,
        }
    }

    /// Returns the flow's id.
    pub const fn id(&self) -> FlowId {
        self.id
    }

    /// Returns whether the receiver is known to have the announcement: how the flow is cut and coded.
    pub const fn announced(&self) -> bool {
        self.announced
    }

    /// Returns whether a source symbol can be sent for the first time now.
    pub fn source_ready(&self) -> bool {
        self.block(self.cursor).is_some_and(SendBlock::has_source_ready)
    }

    /// Returns the block whose source is being sent: the first with unsent source, or the number after the last if all
    /// is sent.
    pub const fn source_block(&self) -> u32 {
        self.cursor
    }

    /// Returns whether source is left to send for the first time, in this flow or a later one: this is not the tail
    /// yet.
    pub const fn more_to_come(&self) -> bool {
        self.source_left > 0 || self.others_waiting
    }

    /// Returns the oldest lost source symbol.
    pub fn first_lost(&self) -> Option<SymbolId> {
        self.block(*self.with_lost.first()?).and_then(|block| self.first_lost_of(block))
    }

    /// Returns the oldest lost source symbol of a block.
    pub fn first_lost_of(&self, block: &SendBlock) -> Option<SymbolId> {
        block.first_lost().map(|esi| SymbolId { flow: self.id, block: block.number(), esi })
    }

    /// Returns a source symbol of a block whose repair has all been sent: a lost or unsent one.
    pub fn last_resort_of(&self, block: &SendBlock) -> Option<SymbolId> {
        block.last_resort().map(|esi| SymbolId { flow: self.id, block: block.number(), esi })
    }

    /// Returns the block's number with its flow's.
    pub const fn id_of(&self, block: &SendBlock) -> BlockId {
        BlockId { flow: self.id, block: block.number() }
    }

    /// Returns the block whose symbols the packet being filled already has: its next symbol by esi would cost no
    /// packet. `None` when the next symbol starts a packet.
    pub const fn packet(&self) -> Option<u32> {
        self.packet
    }

    /// Returns an open block.
    pub fn block(&self, number: u32) -> Option<&SendBlock> {
        self.queue.get(number.checked_sub(self.base)? as usize)
    }

    /// Iterates over the opened blocks that the receiver lacks, oldest first.
    pub fn open_blocks(&self) -> impl Iterator<Item = &SendBlock> {
        self.queue.iter().filter(|block| !block.is_done())
    }

    /// Returns the oldest block that the receiver is not known to have.
    pub const fn first_open(&self) -> u32 {
        self.base
    }

    /// Returns the number of [`SendBlocks::open_blocks`].
    pub const fn unfinished(&self) -> usize {
        self.unfinished
    }

    pub(in crate::flow) fn block_mut(&mut self, number: u32) -> Option<&mut SendBlock> {
        self.queue.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Applies a change to a block that may affect the receiver's need.
    pub(in crate::flow) fn change<R>(&mut self, number: u32, change: impl FnOnce(&mut SendBlock) -> R) -> Option<R> {
        let block = self.block_mut(number)?;
        let before = block.is_lacking();
        let result = change(block);
        let after = block.is_lacking();
        self.lacking = self.lacking + usize::from(after) - usize::from(before);
        Some(result)
    }

    /// Updates whether source symbols of a block are known to be lost.
    pub(in crate::flow) fn note_lost(&mut self, number: u32) {
        let Some(block) = self.block_mut(number) else {
            return;
        };
        if block.prune_lost() {
            self.with_lost.insert(number);
        } else {
            self.with_lost.remove(&number);
        }
    }

    /// Advances to the first block with source to send; past the open ones it waits for the next to be opened.
    pub(in crate::flow) fn advance_cursor(&mut self) {
        while self.block(self.cursor).is_some_and(|block| block.is_done() || block.source_left() == 0) {
            self.cursor += 1;
        }
    }
}
