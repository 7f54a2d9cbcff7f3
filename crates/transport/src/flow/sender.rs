//! What object and stream flows have in common where they send: blocks on their way, in the order their schedule wants.

mod again;
mod succession;
mod view;

pub use view::FlowView;

use super::layout::BlockShape;
use super::pool::Pool;
use super::request::{EncodeJob, Request};
use super::schedule::{Next, PathEstimate, Schedule};
use super::send_block::SendBlock;
use super::stream_layout::WindowShape;
use super::window_sending::WindowSender;
use crate::recovery::Report;
use crate::time::Time;
use crate::wire::{FlowId, FlowStatus, SymbolId, WINDOW_REPAIR};
use again::Again;

/// A symbol that a schedule has picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked {
    /// The symbol.
    pub id: SymbolId,
    /// Its block's plan.
    pub plan: u8,
    /// What it is.
    pub kind: SymbolKind,
}

/// What a symbol on its way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A source symbol for the first time.
    Source,
    /// A source symbol again.
    Resent,
    /// A repair symbol that goes out instead of a source symbol, of a block that is sent as repair alone.
    Coded,
    /// A repair symbol.
    Repair,
}

/// What a flow wants done after its schedule was asked.
#[derive(Debug)]
pub enum Step {
    /// A symbol to send.
    Symbol(Picked),
    /// Work first; ask again.
    Request(Request),
    /// A block cannot be completed any more.
    Failed,
    /// Nothing now.
    Idle,
}

/// The blocks of one flow on their way out.
#[derive(Debug)]
pub struct FlowSender {
    view: FlowView,
    schedule: Box<dyn Schedule>,
    symbol_size: usize,
    /// The cost of the blocks that the receiver does not have yet.
    open_symbols: u64,
    /// Repair over all of its blocks, of a stream with a window code.
    window: Option<WindowSender>,
    /// What the schedule wanted next when it did not fit the packet being filled: it opens the following one.
    held: Option<Next>,
    /// When the schedule wants to be asked again, or waiting blocks are looked at.
    wait: Option<Time>,
    again: Again,
}

impl FlowSender {
    /// A flow none of whose blocks is open, with `source_left` source symbols that are to go out.
    pub(super) fn new(id: FlowId, symbol_size: usize, source_left: u64, schedule: Box<dyn Schedule>) -> Self {
        let view = FlowView::new(id, source_left);
        let again = Again::default();
        Self { view, schedule, symbol_size, open_symbols: 0, window: None, held: None, wait: None, again }
    }

    /// Repair is made of windows of this shape from now on.
    pub(super) fn set_window(&mut self, shape: Option<WindowShape>) {
        self.window = shape.map(WindowSender::new);
    }

    /// Another schedule says what is next from now on. That of a window code stays: its repair is none that a schedule asks for.
    /// Where one sends source and the other does not, blocks on their way change to that.
    pub(crate) fn set_schedule(&mut self, schedule: Box<dyn Schedule>) {
        if self.window.is_some() {
            return;
        }
        let coded = !schedule.sends_source();
        self.schedule = schedule;
        self.held = None;
        self.wait = None;
        let view = &mut self.view;
        for block in view.blocks.iter_mut().filter(|block| !block.is_done()) {
            let before = block.source_left();
            block.set_coded(coded);
            view.source_left = view.source_left + u64::from(block.source_left()) - u64::from(before);
        }
        view.cursor = view.base;
        view.advance_cursor();
    }

    /// The flow.
    pub const fn id(&self) -> FlowId {
        self.view.id
    }

    /// The receiver is known to have the announcement.
    pub const fn on_announced(&mut self) {
        self.view.announced = true;
    }

    /// The receiver is known to have the announcement.
    pub const fn announced(&self) -> bool {
        self.view.announced
    }

    /// Source symbols not sent for the first time yet: of a block of repair alone, as many of its first symbols.
    pub const fn source_left(&self) -> u64 {
        self.view.source_left
    }

    /// Blocks begun that the receiver is not known to have.
    pub const fn unfinished(&self) -> usize {
        self.view.unfinished
    }

    /// The cost of the blocks that the receiver does not have yet: source symbols at the size that the flow began with.
    pub const fn open_symbols(&self) -> u64 {
        self.open_symbols
    }

    /// The number of the next block to be opened.
    pub(super) fn next_number(&self) -> u32 {
        self.view.base + self.view.blocks.len() as u32
    }

    /// Blocks kept, with those that are done before their elders.
    pub(super) fn span(&self) -> usize {
        self.view.blocks.len()
    }

    pub(super) fn block(&self, number: u32) -> Option<&SendBlock> {
        self.view.block(number)
    }

    pub(super) fn block_mut(&mut self, number: u32) -> Option<&mut SendBlock> {
        self.view.block_mut(number)
    }

    /// Source symbols of open blocks that have not gone out yet. Counted from the back: at most those blocks are looked at.
    pub(super) fn unsent(&self) -> u64 {
        let unsent = |block: &&SendBlock| block.source_left() > 0;
        self.view.blocks.iter().rev().take_while(unsent).map(|block| u64::from(block.source_left())).sum()
    }

    /// Opens the block after the last one.
    pub(super) fn open(&mut self, shape: BlockShape) {
        let coded = !self.schedule.sends_source();
        self.view.blocks.push_back(SendBlock::new(shape, self.symbol_size, coded));
        self.view.unfinished += 1;
        self.view.lacking += 1;
        self.open_symbols += u64::from(shape.cost);
    }

    /// What is not open yet is cut anew, into so many source symbols instead of so many.
    pub(super) const fn recut(&mut self, before: u64, after: u64) {
        self.view.source_left = self.view.source_left + after - before;
    }

    /// More source symbols are to go out.
    pub(super) const fn add_source(&mut self, symbols: u32) {
        self.view.source_left += symbols as u64;
    }

    /// Nothing of the flow is to be sent any more.
    pub(super) fn give_up(&mut self) {
        let view = &mut self.view;
        view.base += view.blocks.len() as u32;
        view.cursor = view.base;
        view.blocks.clear();
        view.with_lost.clear();
        self.window = None;
        self.held = None;
        (view.unfinished, view.lacking, view.source_left, self.open_symbols) = (0, 0, 0, 0);
    }

    /// Repair symbols have been made.
    pub fn on_encoded(&mut self, job: EncodeJob) {
        if let Some(block) = self.view.block_mut(job.block).filter(|block| !block.is_done()) {
            block.prepared(job);
        }
    }

    /// What is next: repair of a window that is due, what the schedule says, what an idle window wants, or what is given again.
    pub fn next(&mut self, now: Time, path: &PathEstimate, others_waiting: bool) -> Step {
        let (flow, base) = (self.view.id, self.view.base);
        if let Some(id) = self.window.as_mut().and_then(|window| window.due(flow, base)) {
            return Step::Symbol(Picked { id, plan: 0, kind: SymbolKind::Repair });
        }
        let step = self.ask(now, path, others_waiting);
        match self.with_window(now, path, step) {
            Step::Idle => self.give_again(now, path),
            step => step,
        }
    }

    /// What the window code adds to what the schedule says.
    fn with_window(&mut self, now: Time, path: &PathEstimate, step: Step) -> Step {
        let (flow, base) = (self.view.id, self.view.base);
        let Some(window) = &mut self.window else { return step };
        match step {
            Step::Symbol(Picked { id, kind: SymbolKind::Source, .. }) => {
                let symbol = self.view.block(id.block).map_or(&[][..], |block| block.symbol(id.esi));
                window.on_source(now, id, symbol, path);
                step
            }
            Step::Idle => match window.idle(now, flow, base, self.view.lacking, path) {
                Some(id) => Step::Symbol(Picked { id, plan: 0, kind: SymbolKind::Repair }),
                None => step,
            },
            _ => step,
        }
    }

    /// The symbol after `last` for the packet that ends with it, if that is what the schedule wants next. What else it wants begins the
    /// next packet.
    pub fn next_in_packet(&mut self, now: Time, path: &PathEstimate, others_waiting: bool, last: SymbolId) -> Step {
        self.view.packet = Some(last.block);
        let next = self.decide(now, path, others_waiting);
        self.view.packet = None;
        let follower = (last.block, last.esi + 1);
        match self.names(next) {
            Some(named) if named != follower => {
                self.held = Some(next);
                Step::Idle
            }
            _ => self.obey(now, next),
        }
    }

    /// Asks the schedule what is next and does it.
    fn ask(&mut self, now: Time, path: &PathEstimate, others_waiting: bool) -> Step {
        // What it was then may have been overtaken: the receiver has the block, say.
        if let Some(picked) = self.held.take().and_then(|held| self.take(held)) {
            return Step::Symbol(picked);
        }
        let next = self.decide(now, path, others_waiting);
        self.obey(now, next)
    }

    fn decide(&mut self, now: Time, path: &PathEstimate, others_waiting: bool) -> Next {
        self.view.others_waiting = others_waiting;
        self.wait = None;
        self.schedule.next(now, &self.view, path)
    }

    /// The symbol that [`FlowSender::take`] would take, by block and esi.
    fn names(&self, next: Next) -> Option<(u32, u32)> {
        match next {
            Next::Source => {
                let block = self.view.block(self.view.cursor)?;
                Some((block.number(), block.source_sent()))
            }
            Next::Resend(id) => Some((id.block, id.esi)),
            Next::Repair(id) => Some((id.block, self.view.block(id.block).map(|b| b.k() + b.repair_sent())?)),
            Next::Prepare { .. } | Next::Wait(_) | Next::GiveUp(_) | Next::Idle => None,
        }
    }

    /// Takes the symbol that the schedule wants, if it wants one and there is one.
    fn take(&mut self, next: Next) -> Option<Picked> {
        match next {
            Next::Source => self.take_source(),
            Next::Resend(id) => self.resend(id),
            Next::Repair(id) => self.take_repair(id.block),
            Next::Prepare { .. } | Next::Wait(_) | Next::GiveUp(_) | Next::Idle => None,
        }
    }

    fn obey(&mut self, now: Time, next: Next) -> Step {
        match next {
            Next::Source | Next::Resend(_) | Next::Repair(_) => self.take(next).map_or(Step::Idle, Step::Symbol),
            Next::Prepare { block, count } => {
                let flow = self.view.id;
                let request = self.view.block_mut(block.block).and_then(|block| block.prepare(flow, count));
                request.map_or(Step::Idle, Step::Request)
            }
            Next::Wait(at) => {
                self.wait = Some(at).filter(|at| *at > now);
                Step::Idle
            }
            Next::GiveUp(_) => Step::Failed,
            Next::Idle => Step::Idle,
        }
    }

    /// What a probe carries: the oldest source symbol that may be missing, or repair of the oldest block where no source goes out.
    pub fn probe(&mut self) -> Option<Picked> {
        let block = self.view.open_blocks().next()?;
        if block.repair_ready() > 0 && !self.schedule.resends() {
            return self.take_repair(block.number());
        }
        let id = SymbolId { flow: self.view.id, block: block.number(), esi: block.oldest_unacknowledged()? };
        self.resend(id)
    }

    /// The bytes of a symbol that [`FlowSender::next`] or [`FlowSender::probe`] named just now.
    pub fn symbol(&self, id: SymbolId) -> &[u8] {
        if let Some(window) = self.window.as_ref().filter(|_| id.esi >= WINDOW_REPAIR) {
            return window.symbol();
        }
        self.view.block(id.block).map_or(&[], |block| block.symbol(id.esi))
    }

    /// A packet with this symbol arrived.
    pub fn on_delivered(&mut self, id: SymbolId) {
        if let Some(window) = self.window_of(id) {
            window.on_settled();
        } else {
            self.view.change(id.block, |block| block.on_delivered(id.esi));
        }
    }

    /// A packet with this symbol is called lost.
    pub fn on_lost(&mut self, id: SymbolId) {
        if let Some(window) = self.window_of(id) {
            window.on_settled();
        } else if let Some(block) = self.view.block_mut(id.block) {
            block.on_lost(id.esi);
            self.view.note_lost(id.block);
        }
    }

    /// A packet with this symbol arrived after it was called lost.
    pub fn on_spurious(&mut self, id: SymbolId) {
        if self.window_of(id).is_some() {
            return;
        }
        if self.view.change(id.block, |block| block.on_spurious(id.esi)).is_some() {
            self.view.note_lost(id.block);
        }
    }

    /// The fate of packets, told to the schedule once all flows know it.
    pub fn on_report(&mut self, report: &Report<'_>) {
        self.schedule.on_report(report, &self.view);
        if let Some(window) = &mut self.window {
            window.on_report();
        }
    }

    /// When the flow is to be asked again although nothing was heard or written.
    pub fn due_at(&self) -> Option<Time> {
        self.window.as_ref().and_then(WindowSender::idle_at).into_iter().chain(self.wait).min()
    }

    /// What makes the repair over all blocks, if this symbol is of that.
    fn window_of(&mut self, id: SymbolId) -> Option<&mut WindowSender> {
        self.window.as_mut().filter(|_| id.esi >= WINDOW_REPAIR)
    }

    /// The receiver's view of the blocks. Each block that is newly done is shown to `finished`, and its memory goes to `pool`.
    pub(super) fn on_status(&mut self, status: &FlowStatus, pool: &mut Pool, finished: &mut impl FnMut(&BlockShape)) {
        let end = self.next_number();
        for number in self.view.base..status.done_below.min(end) {
            self.finish_block(number, pool, finished);
        }
        for entry in &status.blocks {
            if entry.need == 0 {
                self.finish_block(entry.block, pool, finished);
            } else {
                self.view.change(entry.block, |block| block.on_need(entry.need));
            }
        }
        while self.view.blocks.front().is_some_and(SendBlock::is_done) {
            self.view.blocks.pop_front();
            self.view.base += 1;
        }
        self.view.cursor = self.view.cursor.max(self.view.base);
    }

    fn finish_block(&mut self, number: u32, pool: &mut Pool, finished: &mut impl FnMut(&BlockShape)) {
        let Some(block) = self.view.block(number).filter(|block| !block.is_done()) else {
            return;
        };
        // A receiver that claims what was never sent gains nothing: what is left of the block is not sent.
        let left = u64::from(block.source_left());
        let shape = *block.shape();
        if let Some(data) = self.view.change(number, SendBlock::finish).flatten() {
            pool.put_shared(data);
        }
        self.view.source_left -= left;
        self.view.unfinished -= 1;
        self.open_symbols -= u64::from(shape.cost);
        self.view.with_lost.remove(&number);
        self.view.advance_cursor();
        finished(&shape);
    }

    fn take_source(&mut self) -> Option<Picked> {
        let number = self.view.cursor;
        let flow = self.view.id;
        let block = self.view.block_mut(number).filter(|block| block.source_ready())?;
        let (esi, plan) = (block.take_source(), block.shape().plan);
        self.view.source_left -= 1;
        self.view.advance_cursor();
        Some(Picked { id: SymbolId { flow, block: number, esi }, plan, kind: SymbolKind::Source })
    }

    fn take_repair(&mut self, number: u32) -> Option<Picked> {
        let flow = self.view.id;
        let block = self.view.block_mut(number).filter(|block| block.repair_ready() > 0)?;
        let left = block.source_left();
        let (esi, plan) = (block.take_repair(), block.shape().plan);
        let instead = left - block.source_left();
        let kind = if instead > 0 { SymbolKind::Coded } else { SymbolKind::Repair };
        self.view.source_left -= u64::from(instead);
        self.view.advance_cursor();
        Some(Picked { id: SymbolId { flow, block: number, esi }, plan, kind })
    }

    fn resend(&mut self, id: SymbolId) -> Option<Picked> {
        // A schedule from elsewhere may name what there is not.
        let block = self.view.block_mut(id.block).filter(|block| block.is_filled() && id.esi < block.k())?;
        block.take_resend(id.esi);
        let plan = block.shape().plan;
        self.view.note_lost(id.block);
        Some(Picked { id, plan, kind: SymbolKind::Resent })
    }
}

#[cfg(test)]
mod tests;
