//! The destination of an object's blocks: the program's storage, to which each goes as soon as it is complete.

use super::block_receiver::SymbolOutcome;
use crate::flow::credit::ReceiveCredit;
use crate::flow::layout::{BadPlan, BlockShape, ObjectLayout};
use crate::flow::work::{Direction, FlowKey, WorkRequest};
use crate::wire::{Announcement, FlowId, SymbolId};
use erasure::Block;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A complete block.
#[derive(Debug)]
enum Done {
    /// Buffered until the program accepts the object.
    Held(BlockShape, Arc<Block>),
    /// Being digested or written; `replies` are outstanding.
    Storing { cost: u32, length: usize, replies: u8 },
}

/// The storage of an object.
#[derive(Debug)]
pub(super) struct ObjectSink {
    /// The id by which the program knows the object.
    object: FlowId,
    pub(super) layout: ObjectLayout,
    /// Complete blocks not yet written.
    done: BTreeMap<u32, Done>,
    /// Whether digests are wanted; `None` until the program accepts the object.
    accepted: Option<bool>,
    written_symbols: u64,
    /// The cost of complete blocks not yet written.
    waiting_symbols: u64,
    /// The program has got the event that every byte is written.
    reported: bool,
}

impl ObjectSink {
    pub(super) fn new(announcement: &Announcement) -> Result<Self, BadPlan> {
        Ok(Self {
            object: announcement.flow,
            layout: ObjectLayout::new(announcement)?,
            done: BTreeMap::new(),
            accepted: None,
            written_symbols: 0,
            waiting_symbols: 0,
            reported: false,
        })
    }

    pub(super) fn begin_block(
        &self,
        id: SymbolId,
        plan: u8,
        credit: &mut ReceiveCredit,
    ) -> Result<BlockShape, SymbolOutcome> {
        if usize::from(plan) >= self.layout.plans().len() {
            return Err(SymbolOutcome::UnknownPlan);
        }
        let shape = self.layout.shape(id.block, plan).ok_or(SymbolOutcome::Refused)?;
        let granted = id.esi < shape.code.symbol_limit(shape.k) && credit.start(shape.cost);
        granted.then_some(shape).ok_or(SymbolOutcome::Refused)
    }

    pub(super) fn accept(&mut self, digest: bool, requests: &mut Vec<WorkRequest>) {
        self.accepted = Some(digest);
        let held = |(number, done): (&u32, &Done)| matches!(done, Done::Held(..)).then_some(*number);
        let held: Vec<u32> = self.done.iter().filter_map(held).collect();
        for number in held {
            if let Some(Done::Held(shape, data)) = self.done.remove(&number) {
                self.store(shape, data, requests);
            }
        }
    }

    pub(super) fn on_block(&mut self, shape: BlockShape, block: Block, requests: &mut Vec<WorkRequest>) {
        self.waiting_symbols += u64::from(shape.cost);
        self.store(shape, Arc::new(block), requests);
    }

    fn store(&mut self, shape: BlockShape, data: Arc<Block>, requests: &mut Vec<WorkRequest>) {
        let BlockShape { number, cost, offset, length, .. } = shape;
        let Some(digest) = self.accepted else {
            self.done.insert(number, Done::Held(shape, data));
            return;
        };
        let flow = self.object;
        if digest {
            let key = FlowKey { direction: Direction::Receiving, flow };
            requests.push(WorkRequest::Digest { key, block: number, offset, length, data: Arc::clone(&data) });
        }
        self.done.insert(number, Done::Storing { cost, length, replies: 1 + u8::from(digest) });
        requests.push(WorkRequest::Write { flow, block: number, offset, length, data });
    }

    /// Handles the digest or write of a block. Returns the block's cost and length when no other is pending.
    pub(super) fn on_stored(&mut self, number: u32) -> Option<(u32, usize)> {
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

    /// Returns true once: when every byte of an accepted object is written.
    pub(super) fn newly_received(&mut self) -> bool {
        let written = self.written_symbols == self.layout.symbols();
        let now = self.accepted.is_some() && written && !self.reported;
        self.reported |= now;
        now
    }

    /// Returns whether the program has got the event that every byte is written.
    pub(super) const fn is_reported(&self) -> bool {
        self.reported
    }

    pub(super) const fn waiting_symbols(&self) -> u64 {
        self.waiting_symbols
    }
}
