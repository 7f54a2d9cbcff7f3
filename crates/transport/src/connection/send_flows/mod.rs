//! The flows that this side sends: announced in the order they were opened, served in turn, and removed once the peer
//! has them.

mod budget;
mod send_order;
mod service;

use super::Event;
use super::control::{ControlStream, ReliableFrame};
use super::streams::Priority;
use crate::flow::{
    BlockSender, BlockSizing, Direction, FlowKey, FlowKind, FlowMap, PickedSymbol, Pool, ScheduleConfig, SendCredit,
    SendFlow, SymbolKind, WorkReply, WorkRequest,
};
use crate::recovery::{Content, Report, SentPacket};
use crate::time::Time;
use crate::trace::Symbols;
use crate::wire::limits::MAX_OPEN_FLOWS;
use crate::wire::{FlowId, FlowStatus, Frame, StreamLimits, SymbolId, SymbolRun};
use budget::Budget;
use send_order::{SendOrder, Turn};
use std::collections::{BTreeSet, VecDeque};

/// Flows of one kind, by the ids that the program knows, in the order they were opened.
#[derive(Debug, Default)]
struct FlowQueue {
    /// Announced, and served: an earlier object is never held up by a later one, and the tail of one is filled with the
    /// source of the next.
    served: Vec<FlowId>,
    /// Not announced yet: the peer limits how many flows it accepts at once.
    waiting: VecDeque<FlowId>,
}

impl FlowQueue {
    fn all(&self) -> impl Iterator<Item = FlowId> {
        self.served.iter().chain(&self.waiting).copied()
    }
}

/// Symbols sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SymbolCounts {
    pub(super) source: u64,
    pub(super) resent: u64,
    pub(super) repair: u64,
}

/// Every flow that this side sends.
#[derive(Debug)]
pub(super) struct SendFlows {
    flows: FlowMap<SendFlow>,
    objects: FlowQueue,
    streams: FlowQueue,
    streams_allowed: StreamLimits,
    short_symbols: bool,
    budget: Budget,
    /// A stream may have more to send once the budget for repair allows it.
    waits_for_budget: bool,
    turns: SendOrder,
    /// The order in which to ask for the next symbol, kept for its memory.
    order: Vec<Turn>,
    /// Changed streams: they may have an event for the program, be over or be idle.
    touched: Vec<FlowId>,
    /// Streams of which bytes, or the end, may be in no block yet.
    unopened: BTreeSet<FlowId>,
    /// Streams that were reset before their announcement arrived, which it now has.
    announced_resets: Vec<FlowId>,
    credit: SendCredit,
    pool: Pool,
    /// A schedule has abandoned a block.
    failed: bool,
    /// A stream has no number left for its next block.
    exhausted: bool,
    /// Highest feedback number acted upon.
    last_feedback: u64,
    bytes_acknowledged: u64,
    counts: SymbolCounts,
    /// When the first unanswered symbol was sent: none has been acknowledged, and no block done, since.
    unanswered: Option<Time>,
}

impl SendFlows {
    pub(super) fn new() -> Self {
        Self {
            flows: FlowMap::new(),
            objects: FlowQueue::default(),
            streams: FlowQueue::default(),
            streams_allowed: StreamLimits::default(),
            short_symbols: false,
            budget: Budget::default(),
            waits_for_budget: false,
            turns: SendOrder::default(),
            order: Vec::new(),
            touched: Vec::new(),
            unopened: BTreeSet::new(),
            announced_resets: Vec::new(),
            credit: SendCredit::default(),
            pool: Pool::default(),
            failed: false,
            exhausted: false,
            last_feedback: 0,
            bytes_acknowledged: 0,
            counts: SymbolCounts::default(),
            unanswered: None,
        }
    }

    /// Applies the peer's limit on streams. `short`: it accepts their symbols without the zeros at the end.
    pub(super) const fn allow_streams(&mut self, allowed: StreamLimits, short: bool) {
        (self.streams_allowed, self.short_symbols) = (allowed, short);
    }

    /// Bounds the repair of streams ahead of losses, as a share of the written bytes; `None`: not at all.
    pub(super) const fn bound_repair(&mut self, share: Option<f64>) {
        self.budget.set_share(share);
    }

    /// Raises the peer's absolute credit for objects, in symbols.
    pub(super) fn grant(&mut self, symbols: u64) {
        self.credit.grant(symbols);
    }

    /// Adds a stream; it is announced as soon as the peer accepts it.
    pub(super) fn open_stream(&mut self, stream: SendFlow, class: Priority, control: &mut ControlStream) {
        self.turns.add(stream.first(), class);
        self.add(stream, control);
    }

    /// Adds an object; it is announced as soon as the peer accepts it.
    pub(super) fn open_object(&mut self, object: SendFlow, control: &mut ControlStream) {
        self.add(object, control);
    }

    fn add(&mut self, flow: SendFlow, control: &mut ControlStream) {
        let first = flow.first();
        self.line(flow.kind()).waiting.push_back(first);
        self.flows.insert(first, flow);
        self.announce_waiting(control);
    }

    fn line(&mut self, kind: FlowKind) -> &mut FlowQueue {
        match kind {
            FlowKind::Object => &mut self.objects,
            FlowKind::Stream => &mut self.streams,
        }
    }

    fn announce_waiting(&mut self, control: &mut ControlStream) {
        let streams = usize::from(self.streams_allowed.count);
        for (kind, most) in [(FlowKind::Object, MAX_OPEN_FLOWS), (FlowKind::Stream, streams)] {
            let line = self.line(kind);
            let before = line.served.len();
            let room = most.saturating_sub(before).min(line.waiting.len());
            line.served.extend(line.waiting.drain(..room));
            for at in before..before + room {
                let first = self.line(kind).served[at];
                self.turns.announce(first);
                self.touched.push(first);
                self.unopened.insert(first);
                self.announce(first, control);
            }
        }
    }

    fn announce(&self, first: FlowId, control: &mut ControlStream) {
        let Some(flow) = self.flows.named(first) else { return };
        control.push_thrice(ReliableFrame::Announce(flow.id()));
        for plan in flow.further_plans() {
            control.push_thrice(ReliableFrame::Plan(flow.id(), plan));
        }
    }

    /// Iterates over the announced flows that may have something to send: the objects, in the order they were opened, then
    /// the streams by their turns.
    fn served(&self) -> impl Iterator<Item = &SendFlow> {
        self.served_ids().filter_map(|first| self.flows.named(first))
    }

    fn served_ids(&self) -> impl Iterator<Item = FlowId> {
        self.objects.served.iter().copied().chain(self.turns.awake())
    }

    /// Returns whether the peer lacks something: of objects any of it, of streams the written part.
    pub(super) fn has_unfinished(&self) -> bool {
        let waits = !self.objects.waiting.is_empty() || !self.streams.waiting.is_empty();
        waits || self.served().any(SendFlow::is_unfinished)
    }

    /// Replaces the schedule of every flow.
    pub(super) fn reschedule(&mut self, schedule: &ScheduleConfig) {
        self.flows.values_mut().for_each(|flow| flow.blocks_mut().set_schedule(schedule.build()));
    }

    /// Resizes the unopened blocks of every flow.
    pub(super) fn resize_blocks(&mut self, blocks: &BlockSizing, symbol_size: u16, largest_k: u32) {
        self.flows.values_mut().for_each(|flow| flow.resize_blocks(blocks, symbol_size, largest_k));
    }

    /// Returns the flow that the program knows by this id, announced or not.
    pub(super) fn named_mut(&mut self, first: FlowId) -> Option<&mut SendFlow> {
        self.flows.named_mut(first)
    }

    /// Returns whether this is an object that the peer does not have completely.
    pub(super) fn is_object(&self, id: FlowId) -> bool {
        self.flows.get(id).into_iter().chain(self.flows.named(id)).any(|flow| flow.kind() == FlowKind::Object)
    }

    /// Returns the flow that the program knows by this id, announced or not, which may have something to send from now on.
    pub(super) fn wake(&mut self, first: FlowId) -> Option<&mut SendFlow> {
        let flow = self.flows.named_mut(first)?;
        if flow.kind() == FlowKind::Stream {
            self.turns.wake(first);
            self.touched.push(first);
            if self.turns.is_awake(first) {
                self.unopened.insert(first);
            }
        }
        Some(flow)
    }

    /// Resets a flow; returns false when it is unknown, an object or already reset.
    pub(super) fn reset(&mut self, first: FlowId, code: u32, control: &mut ControlStream) -> bool {
        let Some(flow) = self.wake(first) else { return false };
        let (kind, waits) = (flow.kind(), flow.is_announced_first());
        if !flow.reset(code) {
            return false;
        }
        if waits {
            return true;
        }
        let waiting = &mut self.line(kind).waiting;
        if let Some(at) = waiting.iter().position(|id| *id == first) {
            // The peer does not know it.
            waiting.remove(at);
            self.turns.remove(first);
            self.flows.remove(first);
            return true;
        }
        // Its symbols are no longer needed.
        self.unanswered = None;
        control.push(ReliableFrame::Reset(first));
        true
    }

    /// Returns whether every flow can continue with symbols of this size.
    pub(super) fn can_shrink(&self, symbol_size: u16) -> bool {
        self.flows.values().filter(|flow| flow.may_send()).all(|flow| flow.can_shrink(symbol_size))
    }

    /// Returns whether enough flow numbers are left, from `next` on, to continue every sending flow under a new number.
    pub(super) fn can_be_numbered(&self, next: u16) -> bool {
        let sending = self.flows.values().filter(|flow| flow.may_send()).count();
        usize::from(next) + sending <= usize::from(u16::MAX)
    }

    /// Continues every flow that may still send in smaller symbols, as flows numbered from `next` on. Returns the
    /// number after the last.
    pub(super) fn shrink(&mut self, symbol_size: u16, mut next: u16, control: &mut ControlStream) -> u16 {
        // The unanswered symbols were too large.
        self.unanswered = None;
        let all: Vec<FlowId> = self.objects.all().chain(self.streams.all()).collect();
        for first in all {
            let Some(flow) = self.flows.named_mut(first).filter(|flow| flow.may_send()) else { continue };
            if flow.succeed(FlowId(next), symbol_size).is_ok() {
                self.flows.succeed(first, FlowId(next));
                next += 1;
            }
        }
        for first in self.objects.served.iter().chain(&self.streams.served) {
            if self.flows.named(*first).is_some_and(SendFlow::may_send) {
                self.announce(*first, control);
            }
        }
        next
    }

    /// Handles a reply to a request of a sent flow; returns the request that follows from it.
    pub(super) fn on_reply(&mut self, reply: WorkReply) -> Option<WorkRequest> {
        match reply {
            WorkReply::Read { flow, block, buffer } => self.flows.named_mut(flow)?.on_read(block, buffer),
            WorkReply::Encoded(job) => {
                self.flows.get_mut(job.flow)?.blocks_mut().on_encoded(job);
                None
            }
            WorkReply::Digested { key: FlowKey { direction: Direction::Sending, flow }, block } => {
                self.flows.named_mut(flow)?.on_digest(block);
                None
            }
            _ => None,
        }
    }

    /// Passes the outcomes of packets first to the blocks of their symbols, then to the schedules.
    pub(super) fn on_report(&mut self, report: &Report<'_>) {
        for sent in report.delivered {
            if let Content::Symbols(run) = sent.content {
                self.unanswered = None;
                self.each_symbol(run, BlockSender::on_delivered);
            }
        }
        for sent in report.lost {
            if let Content::Symbols(run) = sent.content {
                self.each_symbol(run, BlockSender::on_lost);
            }
        }
        for sent in report.spurious.iter().chain(report.outlived) {
            if let Content::Symbols(run) = sent.content {
                // It arrived late, but the peer has it.
                self.unanswered = None;
                self.each_symbol(run, BlockSender::on_spurious);
            }
        }
        if report.withheld > 0 {
            self.unanswered = None;
        }
        self.flows.values_mut().for_each(|flow| flow.blocks_mut().on_report(report));
    }

    /// Returns whether a packet carried symbols of a block that the receiver is known to have.
    pub(super) fn is_retired(&self, sent: &SentPacket) -> bool {
        let Content::Symbols(run) = sent.content else { return false };
        self.flows.get(run.first.flow).is_none_or(|flow| !flow.blocks().is_open(run.first.block))
    }

    fn each_symbol(&mut self, run: SymbolRun, act: impl Fn(&mut BlockSender, SymbolId)) {
        if let Some(flow) = self.flows.get_mut(run.first.flow) {
            run.ids().for_each(|id| act(flow.blocks_mut(), id));
        }
    }

    /// Handles the arrival of a frame about a flow.
    pub(super) fn on_frame_delivered(&mut self, frame: &ReliableFrame) {
        match frame {
            ReliableFrame::Announce(id) => {
                if let Some(flow) = self.flows.get_mut(*id) {
                    let waits = flow.is_announced_first() && flow.reset_code().is_some();
                    flow.on_announced();
                    self.touched.push(flow.first());
                    if waits {
                        self.announced_resets.push(flow.first());
                    }
                }
            }
            ReliableFrame::Reset(first) => {
                if let Some(flow) = self.flows.named_mut(*first) {
                    flow.on_reset_delivered();
                    self.touched.push(*first);
                }
            }
            _ => {}
        }
    }

    /// Returns the frame about a flow, in its present state; `None` when it is obsolete.
    pub(super) fn frame(&self, frame: &ReliableFrame) -> Option<Frame<'static>> {
        match frame {
            ReliableFrame::Announce(id) => self.flows.get(*id)?.announcement_frame(),
            ReliableFrame::Plan(id, number) => self.flows.get(*id)?.plan(*number).map(Frame::Plan),
            ReliableFrame::Reset(first) => {
                let code = self.flows.named(*first)?.reset_code()?;
                Some(Frame::Reset { flow: *first, code })
            }
            _ => None,
        }
    }

    /// Handles the block sections of feedback `number`, and passes each newly done block to `finished`. Feedback
    /// overtaken by newer feedback has no news.
    pub(super) fn on_statuses(&mut self, number: u64, statuses: &[FlowStatus], mut finished: impl FnMut(FlowId, u32)) {
        if number <= self.last_feedback {
            return;
        }
        self.last_feedback = number;
        let Self { flows, pool, turns, touched, .. } = self;
        for status in statuses {
            let Some(flow) = flows.get_mut(status.flow) else { continue };
            turns.wake(flow.first());
            touched.push(flow.first());
            let open = flow.blocks().open_symbols();
            self.bytes_acknowledged += flow.on_status(status, pool, |block| finished(status.flow, block));
            // The last symbols of a block may be lost, and no longer needed.
            if flow.blocks().open_symbols() < open {
                self.unanswered = None;
            }
        }
    }

    /// Handles the report that the receiver's program has read blocks of `symbols` symbols of a stream in all.
    pub(super) fn on_peer_read(&mut self, first: FlowId, symbols: u64) {
        if let Some(flow) = self.flows.named_mut(first) {
            flow.on_peer_read(symbols);
            self.touched.push(first);
        }
    }

    /// Returns events for the program. Removes finished flows, and announces others in their place.
    pub(super) fn take_events(&mut self, control: &mut ControlStream) -> Vec<Event> {
        for first in self.announced_resets.drain(..) {
            control.push(ReliableFrame::Reset(first));
        }
        let mut events = Vec::new();
        let mut touched = std::mem::take(&mut self.touched);
        touched.extend(&self.objects.served);
        touched.sort_unstable();
        touched.dedup();
        for first in touched.drain(..) {
            let Some(flow) = self.flows.named_mut(first) else { continue };
            if flow.newly_writable() {
                events.push(Event::StreamWritable { flow: first });
            }
            if flow.newly_sent() {
                events.push(match flow.kind() {
                    FlowKind::Object => Event::ObjectDelivered { flow: first },
                    FlowKind::Stream => Event::StreamDelivered { flow: first },
                });
            }
            if flow.is_over() {
                let kind = flow.kind();
                self.flows.remove(first);
                self.turns.remove(first);
                self.line(kind).served.retain(|other| *other != first);
            } else if flow.is_idle() {
                self.turns.sleep(first);
            }
        }
        self.touched = touched;
        self.announce_waiting(control);
        events
    }

    /// Returns the bytes of a symbol picked just now, which is being sent: of a stream, without the padding at its end.
    pub(super) fn take_symbol(&mut self, now: Time, picked: &PickedSymbol) -> &[u8] {
        self.unanswered.get_or_insert(now);
        match picked.kind {
            SymbolKind::Source | SymbolKind::Coded => self.counts.source += 1,
            SymbolKind::Resent => self.counts.resent += 1,
            SymbolKind::Repair => self.counts.repair += 1,
        }
        let id = picked.id;
        let Some(flow) = self.flows.get(id.flow) else { return &[] };
        let symbol = flow.blocks().symbol(id);
        if flow.kind() == FlowKind::Object {
            return symbol;
        }
        let length = if self.short_symbols { flow.blocks().unpadded(id).max(1) } else { symbol.len() };
        let symbol = &symbol[..length.min(symbol.len())];
        match picked.kind {
            SymbolKind::Source | SymbolKind::Coded => {
                self.budget.on_source(now, symbol.len());
                self.turns.on_source(now, flow.first(), symbol.len(), flow.has_source());
            }
            SymbolKind::Resent => {}
            SymbolKind::Repair => self.budget.on_repair(now, symbol.len()),
        }
        symbol
    }

    /// Returns the symbols sent so far.
    pub(super) fn symbols(&self) -> Symbols {
        let SymbolCounts { source, resent, repair } = self.counts;
        let open_blocks = self.served().map(|flow| flow.blocks().unfinished()).sum();
        Symbols { source, beyond: resent + repair, open_blocks }
    }

    /// Returns the symbols sent so far, by kind.
    pub(super) const fn counts(&self) -> SymbolCounts {
        self.counts
    }

    /// Returns the bytes of flows that the peer is known to have.
    pub(super) const fn bytes_acknowledged(&self) -> u64 {
        self.bytes_acknowledged
    }

    /// Returns the bytes of symbols that the peer is known to have of blocks of objects that it does not have yet.
    pub(super) fn bytes_delivered(&self) -> u64 {
        self.served().filter(|flow| flow.kind() == FlowKind::Object).map(|flow| flow.blocks().bytes_delivered()).sum()
    }

    /// Returns when the first unanswered symbol was sent: none has been acknowledged, and no block done, since.
    pub(super) const fn unanswered(&self) -> Option<Time> {
        self.unanswered
    }

    /// Forgets that symbols are unanswered: they were too large for the path, so the silence is no evidence about the
    /// peer.
    pub(super) const fn forget_unanswered(&mut self) {
        self.unanswered = None;
    }

    /// Returns whether a schedule has abandoned a block: the transfer cannot be completed.
    pub(super) const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns whether a stream has no number left for its next block.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.exhausted
    }
}

#[cfg(test)]
mod tests;
