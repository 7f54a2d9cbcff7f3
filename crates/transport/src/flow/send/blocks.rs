//! The blocks of a flow on their way out, as its schedule sees them.

use super::block::SendBlock;
use crate::wire::{BlockId, FlowId, SymbolId};
use std::collections::{BTreeSet, VecDeque};

/// What a schedule sees of its flow.
#[derive(Debug)]
pub struct SendBlocks {
    pub(in crate::flow) id: FlowId,
    /// Open blocks, by number from `base` on. Blocks done before their elders stay, empty, until those are done.
    pub(in crate::flow) queue: VecDeque<SendBlock>,
    pub(in crate::flow) base: u32,
    /// The block whose source goes out now.
    pub(in crate::flow) cursor: u32,
    /// Open blocks with source symbols that are known lost.
    pub(in crate::flow) with_lost: BTreeSet<u32>,
    /// Open blocks that the receiver does not have yet.
    pub(in crate::flow) unfinished: usize,
    /// Those of them that it needs something of, as far as is known.
    pub(in crate::flow) lacking: usize,
    /// Source symbols of the flow that have not gone out yet.
    pub(in crate::flow) source_left: u64,
    /// More is to come that is no symbol of this flow yet.
    pub(in crate::flow) others_waiting: bool,
    /// The receiver knows of the flow.
    pub(in crate::flow) announced: bool,
    /// The block of the packet that is being filled, once it has a symbol.
    pub(in crate::flow) packet: Option<u32>,
}

impl SendBlocks {
    /// A flow none of whose blocks is open.
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

    /// The flow.
    pub const fn id(&self) -> FlowId {
        self.id
    }

    /// The receiver is known to have the announcement: how the flow is cut and coded.
    pub const fn announced(&self) -> bool {
        self.announced
    }

    /// A source symbol can go out for the first time now.
    pub fn source_ready(&self) -> bool {
        self.block(self.cursor).is_some_and(SendBlock::source_ready)
    }

    /// The block whose source goes out: the first of which some has not; one behind the last where all is out.
    pub const fn source_block(&self) -> u32 {
        self.cursor
    }

    /// Source is left to go out for the first time, here or in a flow behind this one: it is not the tail yet.
    pub const fn more_to_come(&self) -> bool {
        self.source_left > 0 || self.others_waiting
    }

    /// The oldest lost source symbol.
    pub fn first_lost(&self) -> Option<SymbolId> {
        self.block(*self.with_lost.first()?).and_then(|block| self.first_lost_of(block))
    }

    /// The oldest lost source symbol of a block.
    pub fn first_lost_of(&self, block: &SendBlock) -> Option<SymbolId> {
        block.first_lost().map(|esi| SymbolId { flow: self.id, block: block.number(), esi })
    }

    /// A source symbol of a block of which all repair that there is has gone out: one that is lost, or was never sent.
    pub fn last_resort_of(&self, block: &SendBlock) -> Option<SymbolId> {
        block.last_resort().map(|esi| SymbolId { flow: self.id, block: block.number(), esi })
    }

    /// A block by its number and its flow's.
    pub const fn id_of(&self, block: &SendBlock) -> BlockId {
        BlockId { flow: self.id, block: block.number() }
    }

    /// The block of which the packet being filled has symbols already: one more of it, if it is the next by esi, costs no packet. `None`
    /// where what comes next begins a packet.
    pub const fn packet(&self) -> Option<u32> {
        self.packet
    }

    /// An open block.
    pub fn block(&self, number: u32) -> Option<&SendBlock> {
        self.queue.get(number.checked_sub(self.base)? as usize)
    }

    /// Blocks that were opened and that the receiver does not have yet, oldest first.
    pub fn open_blocks(&self) -> impl Iterator<Item = &SendBlock> {
        self.queue.iter().filter(|block| !block.is_done())
    }

    /// The oldest block that the receiver is not known to have.
    pub(in crate::flow) const fn first_open(&self) -> u32 {
        self.base
    }

    /// How many [`SendBlocks::open_blocks`] there are.
    pub const fn unfinished(&self) -> usize {
        self.unfinished
    }

    pub(in crate::flow) fn block_mut(&mut self, number: u32) -> Option<&mut SendBlock> {
        self.queue.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Does to a block what may change what the receiver needs of it.
    pub(in crate::flow) fn change<R>(&mut self, number: u32, change: impl FnOnce(&mut SendBlock) -> R) -> Option<R> {
        let block = self.block_mut(number)?;
        let before = block.is_lacking();
        let result = change(block);
        let after = block.is_lacking();
        self.lacking = self.lacking + usize::from(after) - usize::from(before);
        Some(result)
    }

    /// Whether source symbols of a block are known lost may have changed.
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

    /// To the first block with source to send; past the open ones it waits for the next to be opened.
    pub(in crate::flow) fn advance_cursor(&mut self) {
        while self.block(self.cursor).is_some_and(|block| block.is_done() || block.source_left() == 0) {
            self.cursor += 1;
        }
    }
}
