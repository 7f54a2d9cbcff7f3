//! The flows that the peer sends: announced, filled, reset, and reported to the peer.

mod closed;
mod early;

use super::{ConnectionConfig, Event};
use crate::flow::{
    BadBlock, Direction, FlowAnnouncement, FlowKey, FlowKind, FlowLimits, FlowMap, PartialBlock, Pool, ReceiveCredit,
    RecvCredit, RecvFlow, SymbolOutcome, WorkReply, WorkRequest,
};
use crate::time::Time;
use crate::wire::limits::{ESI_LIMIT, MAX_COMPLETE_REPORTED, MAX_OPEN_FLOWS};
use crate::wire::{
    BlockFeedback, BlockMask, FlowId, FlowStatus, Plan, RejectReason, StreamLimits, SymbolId, SymbolRun,
};
use closed::ClosedFlows;
use early::{EarlyPlans, EarlySymbols};
use std::collections::VecDeque;
use std::time::Duration;

/// Finished flows of each kind that may wait until the sender knows.
const MAX_LINGERING: usize = 1_024;

/// Objects go before streams if both have something to report.
const KINDS: [FlowKind; 2] = [FlowKind::Object, FlowKind::Stream];

/// The peer violated the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) &'static str);

/// The reason why a connection cannot continue with the data it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecvError {
    /// The peer violated the protocol.
    Violation(Violation),
    /// A block reported done cannot be decoded: it is lost.
    Undecodable,
}

/// The flows' progress with symbols and replies, as far as the sender waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecvProgress {
    /// Blocks are written: their credit is the sender's again.
    pub(super) written: bool,
    /// A stream has every block of which anything has arrived.
    pub(super) caught_up: bool,
    /// A block is done.
    pub(super) block_done: bool,
    /// A decoding attempt has ended, and the block is done or needs more.
    pub(super) decoded: bool,
    /// A flow has every block, or a block has to be reported to the sender before anything else happens.
    pub(super) complete: bool,
}

/// Every flow that the peer sends.
#[derive(Debug)]
pub(super) struct RecvFlows {
    flows: FlowMap<RecvFlow>,
    closed: ClosedFlows,
    early: EarlySymbols,
    early_plans: EarlyPlans,
    limits: FlowLimits,
    streams: StreamLimits,
    /// How to report blocks to the sender; `None`: not at all.
    block_feedback: Option<BlockFeedback>,
    credit: RecvCredit,
    pool: Pool,
    events: VecDeque<Event>,
    progress: RecvProgress,
    /// The reason why it cannot continue, found while handling data.
    broken: Option<RecvError>,
    surplus: u64,
    bytes_written: u64,
    /// The most that one flow has buffered of incomplete blocks, in bytes.
    most_held: u64,
}

impl RecvFlows {
    pub(super) fn new(limits: &ConnectionConfig, block_feedback: Option<BlockFeedback>) -> Self {
        let ConnectionConfig { most_symbols, flows, streams, .. } = *limits;
        Self {
            flows: FlowMap::new(),
            closed: ClosedFlows::default(),
            early: EarlySymbols::new(flows.largest_symbol),
            early_plans: EarlyPlans::default(),
            limits: flows,
            streams,
            block_feedback,
            credit: RecvCredit {
                objects: ReceiveCredit::new(limits.first_credit().symbols, most_symbols),
                shared: streams.shared.into(),
            },
            pool: Pool::default(),
            events: VecDeque::new(),
            progress: RecvProgress::default(),
            broken: None,
            surplus: 0,
            bytes_written: 0,
            most_held: 0,
        }
    }

    /// Sets how to report blocks to the sender. No flow is announced before that.
    pub(super) const fn set_block_feedback(&mut self, block_feedback: Option<BlockFeedback>) {
        self.block_feedback = block_feedback;
    }

    /// Handles a flow's announcement.
    pub(super) fn on_announcement(&mut self, announcement: FlowAnnouncement) -> Result<(), Violation> {
        let id = announcement.first();
        if self.closed.contains(id) {
            return Ok(());
        }
        if let Some(flow) = self.flows.get(id) {
            return (*flow.announcement() == announcement).then_some(()).ok_or(Violation("announced a flow twice"));
        }
        let kind = announcement.kind();
        let over = self.of_kind(kind).filter(|flow| flow.is_over()).count();
        let (most, too_many, impossible) = match kind {
            FlowKind::Object => (MAX_OPEN_FLOWS, "announced too many flows", "announced an invalid flow"),
            FlowKind::Stream => {
                (self.streams.count.into(), "announced too many streams", "announced an invalid stream")
            }
        };
        if self.of_kind(kind).count() - over >= most || over >= MAX_LINGERING {
            return Err(Violation(too_many));
        }
        let flow =
            RecvFlow::new(announcement, self.limits, self.streams.window, self.block_feedback.unwrap_or_default());
        self.flows.insert(id, flow.map_err(|_| Violation(impossible))?);
        self.events.push_back(match announcement {
            FlowAnnouncement::Object(object) => {
                self.credit.objects.expect_blocks(object.plan.k);
                Event::ObjectAnnounced { flow: id, length: object.length, tag: object.tag }
            }
            FlowAnnouncement::Stream(stream) => Event::StreamAnnounced { flow: id, tag: stream.tag },
        });
        self.replay(id)
    }

    /// Handles the succession of a flow by flow `id`, in symbols of `symbol_size` bytes.
    pub(super) fn on_successor(
        &mut self,
        id: FlowId,
        symbol_size: u16,
        announcement: FlowAnnouncement,
    ) -> Result<(), Violation> {
        let symbol_size_now = usize::from(symbol_size);
        if self.closed.contains(id) {
            return Ok(());
        }
        if let Some(known) = self.flows.get(id) {
            let same = *known.announcement() == announcement && known.symbol_size() == symbol_size_now;
            return same.then_some(()).ok_or(Violation("announced a flow twice"));
        }
        let first = announcement.first();
        if self.flows.named(first).is_none_or(|flow| flow.kind() != announcement.kind()) {
            if self.closed.contains(first) {
                // It was over before its symbol size changed: the sender of its symbols gets a report.
                return self.close(id, true);
            }
            self.on_announcement(announcement)?;
        }
        let Some(flow) = self.flows.named_mut(first) else { return Ok(()) };
        if *flow.announcement() != announcement {
            return Err(Violation(match announcement.kind() {
                FlowKind::Object => "sent a successor of another object",
                FlowKind::Stream => "sent a successor of another stream",
            }));
        }
        if flow.symbol_size() <= symbol_size_now {
            // Its own successor arrived first.
            return self.close(id, false);
        }
        if flow.has_promised() {
            // The decoder works on symbols of the old size, and the sender has dropped the block.
            self.broken.get_or_insert(RecvError::Undecodable);
        }
        flow.succeed(id, symbol_size, &mut self.pool).map_err(|_| Violation("sent an invalid successor"))?;
        if let Some(before) = self.flows.current_id(first) {
            self.closed.insert(before, false);
            self.early_plans.forget(before);
        }
        self.flows.succeed(first, id);
        self.replay(id)
    }

    /// Handles a further plan of an object. It may arrive before an earlier one that was lost; it is kept, since it may
    /// not be resent itself.
    pub(super) fn on_plan(&mut self, plan: Plan) -> Result<(), Violation> {
        let id = plan.flow;
        if self.closed.contains(id) {
            return Ok(());
        }
        let next = self.flows.get(id).and_then(RecvFlow::next_plan);
        if next.is_none_or(|next| usize::from(plan.number) > next) {
            return self.early_plans.keep(plan);
        }
        self.add_plan(plan)?;
        self.replay_plans(id)
    }

    fn add_plan(&mut self, plan: Plan) -> Result<(), Violation> {
        let Some(flow) = self.flows.get_mut(plan.flow) else { return Ok(()) };
        flow.add_plan(plan, self.limits).map_err(|_| Violation("sent an invalid plan"))?;
        self.credit.objects.expect_blocks(plan.k);
        self.replay_symbols(plan.flow);
        Ok(())
    }

    /// Handles the plans and then the symbols that waited for a flow's announcement.
    fn replay(&mut self, id: FlowId) -> Result<(), Violation> {
        self.replay_plans(id)?;
        self.replay_symbols(id);
        Ok(())
    }

    fn replay_plans(&mut self, id: FlowId) -> Result<(), Violation> {
        while let Some(number) = self.flows.get(id).and_then(RecvFlow::next_plan)
            && let Some(plan) = self.early_plans.take(id, number)
        {
            self.add_plan(plan)?;
        }
        Ok(())
    }

    fn replay_symbols(&mut self, id: FlowId) {
        for (first, plan, symbols) in self.early.take(id) {
            // Acknowledged on arrival: a symbol refused now is missing from the block, and its need is reported.
            let _ = self.on_symbols(first, plan, &symbols);
        }
    }

    /// Closes a flow that brings nothing any more; symbols received before that was known are surplus.
    fn close(&mut self, id: FlowId, complete: bool) -> Result<(), Violation> {
        self.closed.insert(id, complete);
        self.early_plans.forget(id);
        self.replay_symbols(id);
        Ok(())
    }

    /// Handles the sender's reset of a stream.
    pub(super) fn on_reset(&mut self, first: FlowId, code: u32) -> Result<(), Violation> {
        let (named, carried) = (self.flows.named(first), self.flows.get(first));
        if named.into_iter().chain(carried).any(|flow| flow.kind() == FlowKind::Object) {
            return Err(Violation("reset an object"));
        }
        match named {
            None if carried.is_some() => return Err(Violation("reset a successor")),
            None if self.closed.contains(first) => return Ok(()),
            // The program has had its last event of a read or stopped stream.
            Some(stream) if !stream.is_over() && !stream.is_stopped() => {
                self.events.push_back(Event::StreamReset { flow: first, code });
            }
            // Its announcement and its symbols may still arrive.
            _ => {}
        }
        self.early.forget(first);
        self.forget(first, false);
        Ok(())
    }

    /// Removes a finished flow, `complete` or reset.
    fn forget(&mut self, first: FlowId, complete: bool) {
        let id = self.flows.current_id(first).unwrap_or(first);
        if let Some(flow) = self.flows.remove(first) {
            self.credit.shared += flow.shared_credit();
        }
        self.closed.insert(id, complete);
    }

    /// Handles the symbols of one packet, of which the first is `first`. Refused ones are not acknowledged, so that the
    /// sender sends them again.
    pub(super) fn on_symbols(&mut self, first: SymbolId, plan: u8, symbols: &[u8]) -> Result<SymbolRun, RejectReason> {
        let Some(flow) = self.flows.get_mut(first.flow) else {
            if self.closed.on_symbols(first.flow) {
                self.surplus += 1;
            } else {
                self.early.keep(first, plan, symbols)?;
            }
            return Ok(first.into());
        };
        let size = flow.symbol_size();
        // Only in full packets do several symbols have their places.
        let padded = (flow.kind() == FlowKind::Stream && (1..size).contains(&symbols.len())).then(|| {
            let mut padded = symbols.to_vec();
            padded.resize(size, 0);
            padded
        });
        let symbols = padded.as_deref().unwrap_or(symbols);
        let run = run_of(first, symbols.len(), size, flow.symbols_per_packet()).ok_or(RejectReason::Unacceptable)?;
        for (id, symbol) in run.ids().zip(symbols.chunks_exact(size)) {
            let outcome = flow.on_symbol(id, plan, symbol, &mut self.credit, &mut self.pool).map_err(|bad| {
                self.broken.get_or_insert(bad.into());
                RejectReason::Unacceptable
            })?;
            match outcome {
                SymbolOutcome::New | SymbolOutcome::CompletesBlock => {
                    let done = outcome == SymbolOutcome::CompletesBlock;
                    // A block reported done before it is decoded is urgent: the sender continues with the next one.
                    let early = done && matches!(self.block_feedback, Some(BlockFeedback::Received(_)));
                    self.progress.block_done |= done;
                    self.progress.complete |= early || flow.is_complete();
                    // The sender of a stream's end waits for the feedback that all has arrived; if blocks are small and
                    // far apart, only the probe waits for feedback.
                    self.progress.caught_up |= flow.has_caught_up();
                }
                // Law 7: a sender that still sends this does not know that it is done.
                SymbolOutcome::Surplus => self.surplus += 1,
                SymbolOutcome::UnknownPlan => {
                    // All are of one block: the plan of the first applies to all.
                    self.early.keep(first, plan, symbols)?;
                    break;
                }
                SymbolOutcome::Refused => return Err(RejectReason::Unacceptable),
            }
        }
        self.most_held = self.flows.get(first.flow).map_or(0, RecvFlow::most_held).max(self.most_held);
        Ok(run)
    }

    /// Handles a reply to a request of a received flow.
    pub(super) fn on_reply(&mut self, reply: WorkReply) {
        let (first, block) = match reply {
            WorkReply::Decoded(job, progress) => {
                let Some(flow) = self.flows.get_mut(job.flow) else { return };
                match flow.on_decoded(job, progress, &mut self.credit, &mut self.pool) {
                    Ok(()) => self.progress.complete |= flow.is_complete(),
                    Err(bad) => {
                        self.broken.get_or_insert(bad.into());
                    }
                }
                self.progress.decoded = true;
                return;
            }
            WorkReply::Written { flow, block } => (flow, block),
            WorkReply::Digested { key: FlowKey { direction: Direction::Receiving, flow }, block } => (flow, block),
            _ => return,
        };
        if let Some((cost, bytes)) = self.flows.named_mut(first).and_then(|flow| flow.on_stored(block)) {
            self.credit.objects.give_back_symbols(cost.into());
            self.bytes_written += bytes as u64;
            self.progress.written = true;
        }
    }

    /// Iterates over the unfinished blocks of an object.
    pub(super) fn partial_blocks(&self, first: FlowId) -> impl Iterator<Item = PartialBlock<'_>> {
        self.flows.named(first).into_iter().flat_map(RecvFlow::partial_blocks)
    }

    /// Accepts an object for the program.
    pub(super) fn accept(&mut self, first: FlowId, digest: bool) {
        if let Some(flow) = self.flows.named_mut(first) {
            flow.accept(digest);
        }
    }

    /// Appends at most `max` bytes of a stream to `out`.
    pub(super) fn read(&mut self, first: FlowId, out: &mut Vec<u8>, max: usize) -> usize {
        let Some(flow) = self.flows.named_mut(first) else { return 0 };
        let read = flow.read(out, max, &mut self.credit, &mut self.pool);
        self.progress.complete |= flow.is_finished();
        read
    }

    /// Returns whether every byte of a stream has been read.
    pub(super) fn is_read(&self, first: FlowId) -> bool {
        self.flows.named(first).is_some_and(RecvFlow::is_over)
    }

    /// Stops a stream that the program no longer wants; returns false when it has ended.
    pub(super) fn stop(&mut self, first: FlowId) -> bool {
        self.flows.named_mut(first).is_some_and(RecvFlow::stop)
    }

    /// Moves out the flows' requests, and the reports to the peer of read streams. Queues events for the program.
    pub(super) fn collect(&mut self, requests: &mut impl Extend<WorkRequest>, mut on_read: impl FnMut(FlowId, u64)) {
        for kind in KINDS {
            for recv in self.flows.values_mut().filter(|flow| flow.kind() == kind) {
                let flow = recv.first();
                requests.extend(recv.take_requests());
                if recv.newly_readable() {
                    self.events.push_back(Event::StreamReadable { flow });
                }
                if recv.newly_received() {
                    self.events.push_back(match kind {
                        FlowKind::Object => Event::ObjectReceived { flow },
                        FlowKind::Stream => Event::StreamFinished { flow },
                    });
                }
                if let Some(symbols) = recv.newly_read() {
                    on_read(flow, symbols);
                }
            }
        }
    }

    /// Returns the next event for the program.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes the progress since the last call.
    pub(super) fn take_progress(&mut self) -> RecvProgress {
        std::mem::take(&mut self.progress)
    }

    /// Takes the reason why receiving cannot continue.
    pub(super) const fn take_broken(&mut self) -> Option<RecvError> {
        self.broken.take()
    }

    /// Returns whether something is known to be missing: of an object any of it, of a stream the rest of a block.
    pub(super) fn has_unfinished(&self) -> bool {
        self.flows.values().any(RecvFlow::lacks_something)
    }

    /// Returns whether a flow with received data is incomplete: the sender may wait for feedback on it.
    pub(super) fn awaits_more(&self) -> bool {
        self.flows.values().any(|flow| flow.has_begun() && flow.lacks_something())
    }

    /// Returns whether something before this symbol in its flow is missing.
    pub(super) fn is_behind_gap(&mut self, id: SymbolId) -> bool {
        self.gap(id.flow).is_some_and(|gap| (id.block, id.esi) >= gap)
    }

    /// Returns the first missing source symbol of a flow, by block and esi; `None` where nothing is awaited.
    pub(super) fn gap(&mut self, id: FlowId) -> Option<(u32, u32)> {
        self.flows.get_mut(id)?.gap()
    }

    /// Adapts the credit of objects to the need of the path, once a round trip.
    pub(super) fn follow(&mut self, now: Time, rtt: Duration) {
        let waiting = self.flows.values().map(RecvFlow::waiting_symbols).sum();
        self.credit.objects.follow(now, rtt, waiting);
    }

    /// Sets how many symbols of objects are buffered at most.
    pub(super) fn set_most_symbols(&mut self, most: u64) {
        self.credit.objects.set_limit(most);
    }

    /// Returns whether that bound keeps the sender from getting as much credit as the path needs.
    pub(super) const fn is_capped(&self) -> bool {
        self.credit.objects.is_capped()
    }

    /// Returns the absolute credit of objects, in symbols.
    pub(super) const fn granted(&self) -> u64 {
        self.credit.objects.granted()
    }

    /// Returns the number of surplus symbols.
    pub(super) const fn surplus(&self) -> u64 {
        self.surplus
    }

    /// Returns the written bytes of objects.
    pub(super) const fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Returns the received bytes of unwritten blocks of objects.
    pub(super) fn bytes_arriving(&self) -> u64 {
        self.flows.iter().map(|(_, flow)| flow.bytes_arriving()).sum()
    }

    /// Returns the most bytes of symbols that one flow has buffered for incomplete blocks.
    pub(super) const fn most_held(&self) -> u64 {
        self.most_held
    }

    /// Returns the block sections of feedback `number`. Finished flows go first: they fit, and are removed once the
    /// sender has seen this. The order of the others rotates, so that the lack of room does not always omit the same
    /// ones.
    pub(super) fn statuses(&mut self, number: u64) -> (Vec<FlowStatus>, Vec<BlockMask>) {
        if self.block_feedback.is_none() {
            return Default::default();
        }
        let over = |flow| FlowStatus { flow, done_below: u32::MAX, blocks: Vec::new() };
        let mut statuses: Vec<FlowStatus> = self.closed.take_unreported().into_iter().map(over).collect();
        let of_kind = |kind| self.flows.iter().filter(move |(_, flow)| flow.kind() == kind);
        let ids = KINDS.into_iter().flat_map(of_kind).filter(|(_, flow)| flow.is_over()).map(|(id, _)| id).collect();
        let reported = self.closed.report_finished(number, ids, MAX_COMPLETE_REPORTED - statuses.len());
        statuses.extend(reported.iter().filter_map(|id| self.flows.get(*id)?.status()));
        let (mut open, mut masks): (Vec<FlowStatus>, Vec<BlockMask>) = Default::default();
        for flow in KINDS.into_iter().flat_map(|kind| self.of_kind(kind)).filter(|flow| !flow.is_over()) {
            match flow.mask() {
                Some(mask) => masks.push(mask),
                None => open.extend(flow.status()),
            }
        }
        rotate(&mut open, number);
        rotate(&mut masks, number);
        statuses.extend(open);
        (statuses, masks)
    }

    /// Handles the sender's confirmation that it has seen feedback `number`: flows reported as over need not be
    /// reported again.
    pub(super) fn on_seen(&mut self, number: u64) {
        for id in self.closed.on_seen(number) {
            if let Some(flow) = self.flows.get(id).filter(|flow| flow.is_finished()) {
                self.forget(flow.first(), true);
            }
        }
    }

    fn of_kind(&self, kind: FlowKind) -> impl Iterator<Item = &RecvFlow> {
        self.flows.values().filter(move |flow| flow.kind() == kind)
    }
}

impl From<BadBlock> for RecvError {
    fn from(bad: BadBlock) -> Self {
        match bad {
            BadBlock::Contradiction => Self::Violation(Violation("sent an invalid block of a stream")),
            BadBlock::Undecodable => Self::Undecodable,
        }
    }
}

/// Returns the symbols of `size` bytes in a packet with `bytes` bytes of them; `None` if it is no whole number of them,
/// or has none or more than `most`.
fn run_of(first: SymbolId, bytes: usize, size: usize, most: u8) -> Option<SymbolRun> {
    let count = bytes.checked_div(size).filter(|count| count * size == bytes)?;
    let count = u8::try_from(count).ok().filter(|count| (1..=most).contains(count))?;
    let run = SymbolRun { first, count };
    (run.last().esi < ESI_LIMIT).then_some(run)
}

/// Rotates the list so that each call begins with another element.
fn rotate<T>(list: &mut [T], number: u64) {
    let first = number as usize % list.len().max(1);
    list.rotate_left(first);
}

#[cfg(test)]
mod tests;
