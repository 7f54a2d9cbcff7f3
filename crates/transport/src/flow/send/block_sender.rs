//! The send state common to object and stream flows: blocks in flight, in the order that their schedule wants.

mod stalled;

use super::block::SendBlock;
use super::blocks::SendBlocks;
use super::window::WindowSender;
use crate::flow::layout::BlockShape;
use crate::flow::pool::Pool;
use crate::flow::schedule::{PathEstimate, Schedule, ScheduleAction};
use crate::flow::stream_layout::WindowShape;
use crate::flow::work::{EncodeJob, WorkRequest};
use crate::recovery::Report;
use crate::time::Time;
use crate::wire::{FlowId, FlowStatus, SymbolId, WINDOW_REPAIR};
use stalled::Stalled;
use std::sync::Arc;

/// A symbol picked by a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PickedSymbol {
    /// The symbol.
    pub(crate) id: SymbolId,
    /// Its block's plan.
    pub(crate) plan: u8,
    /// Its kind.
    pub(crate) kind: SymbolKind,
}

/// The kind of a symbol sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolKind {
    /// A source symbol for the first time.
    Source,
    /// A source symbol sent before.
    Resent,
    /// A repair symbol sent in place of a source symbol, of a block sent as repair alone.
    Coded,
    /// A repair symbol.
    Repair,
}

impl SymbolKind {
    /// Returns its name in traces.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Resent => "resent",
            Self::Coded => "coded",
            Self::Repair => "repair",
        }
    }
}

/// The action that a flow wants after asking its schedule.
#[derive(Debug)]
pub(crate) enum Pick {
    /// A symbol to send.
    Symbol(PickedSymbol),
    /// Work to do first; ask again.
    Request(WorkRequest),
    /// A block cannot be completed any more.
    Failed,
    /// Nothing for now.
    Idle,
}

/// The open blocks of a flow being sent.
#[derive(Debug)]
pub(crate) struct BlockSender {
    blocks: SendBlocks,
    schedule: Box<dyn Schedule>,
    symbol_size: usize,
    /// The cost of the blocks that the receiver does not have yet.
    open_symbols: u64,
    /// Repair over all blocks, for a stream with a window code.
    window: Option<WindowSender>,
    /// The schedule's choice that did not fit the packet being filled: it starts the next one.
    held: Option<ScheduleAction>,
    /// When to ask the schedule again, or to look at waiting blocks.
    wait: Option<Time>,
    stalled: Stalled,
}

impl BlockSender {
    /// Creates a flow with no open block and `source_left` source symbols to send.
    pub(in crate::flow) fn new(id: FlowId, symbol_size: usize, source_left: u64, schedule: Box<dyn Schedule>) -> Self {
        let blocks = SendBlocks::new(id, source_left);
        let stalled = Stalled::default();
        Self { blocks, schedule, symbol_size, open_symbols: 0, window: None, held: None, wait: None, stalled }
    }

    /// Makes repair over windows of this shape from now on.
    pub(in crate::flow) fn set_window(&mut self, shape: Option<WindowShape>) {
        self.window = shape.map(WindowSender::new);
    }

    /// Replaces the schedule. A window code's repair continues, since no schedule asks for it. If one of the schedules
    /// sends source and the other does not, blocks in flight change over.
    pub(crate) fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        if self.window.is_some() {
            return;
        }
        let coded = !schedule.sends_source();
        self.schedule = schedule;
        self.held = None;
        self.wait = None;
        let blocks = &mut self.blocks;
        for block in blocks.queue.iter_mut().filter(|block| !block.is_done()) {
            let before = block.source_left();
            block.set_coded(coded);
            blocks.source_left = blocks.source_left + u64::from(block.source_left()) - u64::from(before);
        }
        blocks.cursor = blocks.base;
        blocks.advance_cursor();
    }

    /// Returns the flow's id.
    pub(crate) const fn id(&self) -> FlowId {
        self.blocks.id
    }

    /// Returns its blocks.
    pub(in crate::flow) const fn blocks(&self) -> &SendBlocks {
        &self.blocks
    }

    /// Returns whether this block was opened, and the receiver is not known to have it.
    pub(crate) fn is_open(&self, block: u32) -> bool {
        self.blocks.block(block).is_some_and(|block| !block.is_done())
    }

    /// Notes that the receiver has the announcement.
    pub(crate) const fn on_announced(&mut self) {
        self.blocks.announced = true;
    }

    /// Returns whether the receiver is known to have the announcement.
    pub(crate) const fn announced(&self) -> bool {
        self.blocks.announced
    }

    /// Returns the source symbols not yet sent for the first time; for blocks of repair alone, of their first k
    /// symbols.
    pub(crate) const fn source_left(&self) -> u64 {
        self.blocks.source_left
    }

    /// Returns the number of blocks begun that the receiver is not known to have.
    pub(crate) const fn unfinished(&self) -> usize {
        self.blocks.unfinished
    }

    /// Returns the cost of the blocks that the receiver does not have yet: source symbols at the flow's first symbol
    /// size.
    pub(crate) const fn open_symbols(&self) -> u64 {
        self.open_symbols
    }

    /// Returns the bytes of symbols that the receiver is known to have of blocks that it does not have yet.
    pub(crate) fn bytes_delivered(&self) -> u64 {
        self.blocks.open_blocks().map(SendBlock::bytes_delivered).sum()
    }

    /// Numbers blocks from `number` on.
    #[cfg(test)]
    pub(crate) const fn begin_at(&mut self, number: u32) {
        (self.blocks.base, self.blocks.cursor) = (number, number);
    }

    /// Returns the number of the next block to open.
    pub(in crate::flow) fn next_number(&self) -> u32 {
        self.blocks.base + self.blocks.queue.len() as u32
    }

    /// Returns the number of blocks kept, including those done before earlier ones.
    pub(in crate::flow) fn span(&self) -> usize {
        self.blocks.queue.len()
    }

    pub(in crate::flow) fn block(&self, number: u32) -> Option<&SendBlock> {
        self.blocks.block(number)
    }

    pub(in crate::flow) fn block_mut(&mut self, number: u32) -> Option<&mut SendBlock> {
        self.blocks.block_mut(number)
    }

    /// Returns the number of unsent source symbols of open blocks. Counts from the back, and looks at no blocks but
    /// those.
    pub(in crate::flow) fn unsent(&self) -> u64 {
        let unsent = |block: &&SendBlock| block.source_left() > 0;
        self.blocks.queue.iter().rev().take_while(unsent).map(|block| u64::from(block.source_left())).sum()
    }

    /// Opens the block after the last one.
    pub(in crate::flow) fn open(&mut self, shape: BlockShape) {
        let coded = !self.schedule.sends_source();
        self.blocks.queue.push_back(SendBlock::new(shape, self.symbol_size, coded));
        self.blocks.unfinished += 1;
        self.blocks.lacking += 1;
        self.open_symbols += u64::from(shape.cost);
    }

    /// Replaces the count `before` of source symbols of unopened blocks with `after`, once they are recut.
    pub(in crate::flow) const fn recut(&mut self, before: u64, after: u64) {
        self.blocks.source_left = self.blocks.source_left + after - before;
    }

    /// Adds source symbols to be sent.
    pub(in crate::flow) const fn add_source(&mut self, symbols: u32) {
        self.blocks.source_left += symbols as u64;
    }

    /// Abandons the flow: nothing more of it is sent.
    pub(in crate::flow) fn abandon(&mut self) {
        let blocks = &mut self.blocks;
        blocks.base += blocks.queue.len() as u32;
        blocks.cursor = blocks.base;
        blocks.queue.clear();
        blocks.with_lost.clear();
        self.window = None;
        self.held = None;
        (blocks.unfinished, blocks.lacking, blocks.source_left, self.open_symbols) = (0, 0, 0, 0);
    }

    /// Handles newly made repair symbols.
    pub(crate) fn on_encoded(&mut self, job: EncodeJob) {
        if let Some(block) = self.blocks.block_mut(job.block).filter(|block| !block.is_done()) {
            block.prepared(job);
        }
    }

    /// Notes whether the program writes faster than the path takes.
    pub(in crate::flow) fn set_backlogged(&mut self, backlogged: bool) {
        if let Some(window) = &mut self.window {
            window.set_backlogged(backlogged);
        }
    }

    /// Returns the next action: due repair of a window, the schedule's choice, repair for an idle window, or a repeated
    /// symbol. `ahead`: repair may be sent before a known loss.
    pub(crate) fn next(&mut self, now: Time, path: &PathEstimate, others_waiting: bool, ahead: bool) -> Pick {
        let (flow, base) = (self.blocks.id, self.blocks.base);
        if let Some(window) = &mut self.window {
            if !ahead {
                window.put_off();
            } else if let Some(id) = window.due(flow, base) {
                return Pick::Symbol(PickedSymbol { id, plan: 0, kind: SymbolKind::Repair });
            }
        }
        // Without expected loss, only known losses are repaired.
        let expected = if ahead { *path } else { PathEstimate { loss: 0.0, ..*path } };
        let step = self.ask(now, &expected, others_waiting);
        match self.with_window(now, path, step, ahead) {
            Pick::Idle => self.recover_stalled(now, path),
            step => step,
        }
    }

    /// Adds the window code's repair to the schedule's choice.
    fn with_window(&mut self, now: Time, path: &PathEstimate, step: Pick, ahead: bool) -> Pick {
        let (flow, base) = (self.blocks.id, self.blocks.base);
        let Some(window) = &mut self.window else { return step };
        match step {
            Pick::Symbol(PickedSymbol { id, kind: SymbolKind::Source, .. }) => {
                if let Some(block) = self.blocks.block(id.block) {
                    window.on_source(now, id, (block.symbol(id.esi), block.unpadded(id.esi)), path);
                }
                step
            }
            Pick::Idle if ahead => match window.idle(now, flow, base, self.blocks.lacking, path) {
                Some(id) => Pick::Symbol(PickedSymbol { id, plan: 0, kind: SymbolKind::Repair }),
                None => step,
            },
            _ => step,
        }
    }

    /// Returns the symbol after `last` for the packet that ends with it, if the schedule wants that one next. Anything
    /// else it wants starts the next packet.
    pub(crate) fn next_in_packet(
        &mut self,
        now: Time,
        path: &PathEstimate,
        others_waiting: bool,
        last: SymbolId,
    ) -> Pick {
        self.blocks.packet = Some(last.block);
        let next = self.decide(now, path, others_waiting);
        self.blocks.packet = None;
        let follower = (last.block, last.esi + 1);
        match self.names(next) {
            Some(named) if named != follower => {
                self.held = Some(next);
                Pick::Idle
            }
            _ => self.obey(now, next),
        }
    }

    /// Asks the schedule for its next action, and does it.
    fn ask(&mut self, now: Time, path: &PathEstimate, others_waiting: bool) -> Pick {
        // The held choice may be obsolete, for example if the receiver has the block.
        if let Some(picked) = self.held.take().and_then(|held| self.take(held)) {
            return Pick::Symbol(picked);
        }
        let next = self.decide(now, path, others_waiting);
        self.obey(now, next)
    }

    fn decide(&mut self, now: Time, path: &PathEstimate, others_waiting: bool) -> ScheduleAction {
        self.blocks.others_waiting = others_waiting;
        self.wait = None;
        self.schedule.next(now, &self.blocks, path)
    }

    /// Returns the symbol that [`BlockSender::take`] would take, by block and esi.
    fn names(&self, next: ScheduleAction) -> Option<(u32, u32)> {
        match next {
            ScheduleAction::Source => {
                let block = self.blocks.block(self.blocks.cursor)?;
                Some((block.number(), block.source_sent()))
            }
            ScheduleAction::Retransmit(id) => Some((id.block, id.esi)),
            ScheduleAction::Repair(id) => {
                Some((id.block, self.blocks.block(id.block).map(|b| b.k() + b.repair_sent())?))
            }
            ScheduleAction::EncodeRepair { .. }
            | ScheduleAction::Wait(_)
            | ScheduleAction::GiveUp(_)
            | ScheduleAction::Idle => None,
        }
    }

    /// Takes the symbol that the schedule wants, if it exists.
    fn take(&mut self, next: ScheduleAction) -> Option<PickedSymbol> {
        match next {
            ScheduleAction::Source => self.take_source(),
            ScheduleAction::Retransmit(id) => self.resend(id),
            ScheduleAction::Repair(id) => self.take_repair(id.block),
            ScheduleAction::EncodeRepair { .. }
            | ScheduleAction::Wait(_)
            | ScheduleAction::GiveUp(_)
            | ScheduleAction::Idle => None,
        }
    }

    fn obey(&mut self, now: Time, next: ScheduleAction) -> Pick {
        match next {
            ScheduleAction::Source | ScheduleAction::Retransmit(_) | ScheduleAction::Repair(_) => {
                self.take(next).map_or(Pick::Idle, Pick::Symbol)
            }
            ScheduleAction::EncodeRepair { block, count } => {
                let flow = self.blocks.id;
                let request = self.blocks.block_mut(block.block).and_then(|block| block.prepare(flow, count));
                request.map_or(Pick::Idle, Pick::Request)
            }
            ScheduleAction::Wait(at) => {
                self.wait = Some(at).filter(|at| *at > now);
                Pick::Idle
            }
            ScheduleAction::GiveUp(_) => Pick::Failed,
            ScheduleAction::Idle => Pick::Idle,
        }
    }

    /// Returns a symbol for a probe: the oldest source symbol that may be missing, or repair of the oldest block if no
    /// source is sent.
    pub(crate) fn probe(&mut self) -> Option<PickedSymbol> {
        let block = self.blocks.open_blocks().next()?;
        if block.repair_ready() > 0 && !self.schedule.resends() {
            return self.take_repair(block.number());
        }
        let id = SymbolId { flow: self.blocks.id, block: block.number(), esi: block.oldest_unacknowledged()? };
        self.resend(id)
    }

    /// Returns the bytes of a symbol that [`BlockSender::next`] or [`BlockSender::probe`] has just named.
    pub(crate) fn symbol(&self, id: SymbolId) -> &[u8] {
        if let Some(window) = self.window.as_ref().filter(|_| id.esi >= WINDOW_REPAIR) {
            return window.symbol();
        }
        self.blocks.block(id.block).map_or(&[], |block| block.symbol(id.esi))
    }

    /// Returns how many bytes of that symbol are not padding: those behind them are zero.
    pub(crate) fn unpadded(&self, id: SymbolId) -> usize {
        if let Some(window) = self.window.as_ref().filter(|_| id.esi >= WINDOW_REPAIR) {
            return window.unpadded();
        }
        self.blocks.block(id.block).map_or(0, |block| block.unpadded(id.esi))
    }

    /// Handles the arrival of a packet with this symbol.
    pub(crate) fn on_delivered(&mut self, id: SymbolId) {
        if let Some(window) = self.window_of(id) {
            window.on_settled();
        } else {
            self.blocks.change(id.block, |block| block.on_delivered(id.esi));
        }
    }

    /// Handles the loss of a packet with this symbol.
    pub(crate) fn on_lost(&mut self, id: SymbolId) {
        if let Some(window) = self.window_of(id) {
            window.on_settled();
        } else if let Some(block) = self.blocks.block_mut(id.block) {
            block.on_lost(id.esi);
            self.blocks.note_lost(id.block);
        }
    }

    /// Handles the arrival of a packet with this symbol after it was declared lost.
    pub(crate) fn on_spurious(&mut self, id: SymbolId) {
        if self.window_of(id).is_some() {
            return;
        }
        if self.blocks.change(id.block, |block| block.on_spurious(id.esi)).is_some() {
            self.blocks.note_lost(id.block);
        }
    }

    /// Reports the outcome of packets to the schedule, once all flows know it.
    pub(crate) fn on_report(&mut self, report: &Report<'_>) {
        self.schedule.on_report(report, &self.blocks);
        if let Some(window) = &mut self.window {
            window.on_report();
        }
    }

    /// Returns when to ask the flow again if nothing is received or written.
    pub(crate) fn due_at(&self) -> Option<Time> {
        self.window.as_ref().and_then(WindowSender::idle_at).into_iter().chain(self.wait).min()
    }

    /// Returns the window code's sender, if this symbol is its repair.
    fn window_of(&mut self, id: SymbolId) -> Option<&mut WindowSender> {
        self.window.as_mut().filter(|_| id.esi >= WINDOW_REPAIR)
    }

    /// Applies the receiver's view of the blocks. Passes each newly done block to `finished`, and its memory to `pool`.
    pub(in crate::flow) fn on_status(
        &mut self,
        status: &FlowStatus,
        pool: &mut Pool,
        finished: &mut impl FnMut(&BlockShape),
    ) {
        let end = self.next_number();
        for number in self.blocks.base..status.done_below.min(end) {
            self.finish_block(number, pool, finished);
        }
        for entry in &status.blocks {
            if entry.need == 0 {
                self.finish_block(entry.block, pool, finished);
            } else {
                self.blocks.change(entry.block, |block| block.on_need(entry.need));
            }
        }
        while self.blocks.queue.front().is_some_and(SendBlock::is_done) {
            self.blocks.queue.pop_front();
            self.blocks.base += 1;
        }
        self.blocks.cursor = self.blocks.cursor.max(self.blocks.base);
    }

    /// Continues as another flow. Blocks keep their numbers, bytes and cost, and now have `k` symbols; those that the
    /// receiver lacks start over. Symbols sent before are disregarded. `unopened`: source symbols of unopened blocks.
    pub(in crate::flow) fn succeed(
        &mut self,
        flow: FlowId,
        symbol_size: usize,
        unopened: u64,
        k: impl Fn(&BlockShape) -> u32,
    ) {
        self.symbol_size = symbol_size;
        self.held = None;
        let coded = !self.schedule.sends_source();
        let blocks = &mut self.blocks;
        blocks.id = flow;
        blocks.announced = false;
        blocks.with_lost.clear();
        blocks.source_left = unopened;
        blocks.lacking = blocks.unfinished;
        for block in blocks.queue.iter_mut().filter(|block| !block.is_done()) {
            let shape = BlockShape { k: k(block.shape()), ..*block.shape() };
            let before = std::mem::replace(block, SendBlock::new(shape, symbol_size, coded));
            if let Some(data) = before.into_data() {
                let bytes =
                    Arc::try_unwrap(data).map_or_else(|shared| shared.bytes().to_vec(), erasure::Block::into_buffer);
                block.fill(bytes);
            }
            blocks.source_left += u64::from(shape.k);
        }
        blocks.cursor = blocks.base;
        blocks.advance_cursor();
    }

    fn finish_block(&mut self, number: u32, pool: &mut Pool, finished: &mut impl FnMut(&BlockShape)) {
        let Some(block) = self.blocks.block(number).filter(|block| !block.is_done()) else {
            return;
        };
        // A receiver that claims unsent symbols gains nothing: the rest of the block is not sent.
        let left = u64::from(block.source_left());
        let shape = *block.shape();
        if let Some(data) = self.blocks.change(number, SendBlock::finish).flatten() {
            pool.put_shared(data);
        }
        self.blocks.source_left -= left;
        self.blocks.unfinished -= 1;
        self.open_symbols -= u64::from(shape.cost);
        self.blocks.with_lost.remove(&number);
        self.blocks.advance_cursor();
        finished(&shape);
    }

    fn take_source(&mut self) -> Option<PickedSymbol> {
        let number = self.blocks.cursor;
        let flow = self.blocks.id;
        let block = self.blocks.block_mut(number).filter(|block| block.has_source_ready())?;
        let (esi, plan) = (block.take_source(), block.shape().plan);
        self.blocks.source_left -= 1;
        self.blocks.advance_cursor();
        Some(PickedSymbol { id: SymbolId { flow, block: number, esi }, plan, kind: SymbolKind::Source })
    }

    fn take_repair(&mut self, number: u32) -> Option<PickedSymbol> {
        let flow = self.blocks.id;
        let block = self.blocks.block_mut(number).filter(|block| block.repair_ready() > 0)?;
        let left = block.source_left();
        let (esi, plan) = (block.take_repair(), block.shape().plan);
        let instead = left - block.source_left();
        let kind = if instead > 0 { SymbolKind::Coded } else { SymbolKind::Repair };
        self.blocks.source_left -= u64::from(instead);
        self.blocks.advance_cursor();
        Some(PickedSymbol { id: SymbolId { flow, block: number, esi }, plan, kind })
    }

    fn resend(&mut self, id: SymbolId) -> Option<PickedSymbol> {
        // A custom schedule may return a symbol that does not exist.
        let block = self.blocks.block_mut(id.block).filter(|block| block.is_filled() && id.esi < block.k())?;
        block.take_resend(id.esi);
        let plan = block.shape().plan;
        self.blocks.note_lost(id.block);
        Some(PickedSymbol { id, plan, kind: SymbolKind::Resent })
    }
}

#[cfg(test)]
mod tests;
