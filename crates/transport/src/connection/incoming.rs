//! The receiver half of a connection: flows of the peer, its control stream, and what feedback says of them.

mod streams;

use super::Event;
use super::arrivals::{Arrivals, FeedbackClock};
use super::options::Limits;
use super::outbox::Piece;
use crate::flow::{
    ControlReceiver, Direction, FlowKey, FlowLimits, ObjectReceiver, Pool, ReceiveCredit, Reply, Request,
    StreamReceiver, Taken,
};
use crate::time::Time;
use crate::wire::limits::MAX_OPEN_FLOWS;
use crate::wire::{
    Announcement, Credit, Feedback, FeedbackChoice, FeedbackTiming, FlowId, FlowStatus, Plan, Refused, StreamsAllowed,
    Successor, SymbolId,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Complete flows that may wait for the sender to hear of it.
const MAX_LINGERING: usize = 1_024;

/// Complete flows told in one feedback: with them first, all of it fits.
const MAX_COMPLETE_TOLD: usize = 32;

/// Feedbacks remembered by the complete flows they told; the sender names what it has seen four times a round trip.
const MAX_TOLD: usize = 1_024;

/// Symbols kept until the announcement or plan they wait for comes: what arrives in the first milliseconds of a flow whose
/// first announcement was lost.
const MAX_EARLY: usize = 512;

/// Everything this side receives.
#[derive(Debug)]
pub(super) struct Incoming {
    flows: BTreeMap<FlowId, ObjectReceiver>,
    /// Flows that are over, and whether they were complete: their announcements and symbols may come again.
    closed: BTreeMap<FlowId, bool>,
    /// Of these, complete ones of which the sender still sends symbols: it is told again (law 7).
    unheard: BTreeSet<FlowId>,
    /// Which flows each of the last feedbacks told complete. Only the one that the sender names as seen counts: those before
    /// it may be lost, and not every feedback has room for all of them.
    told_complete: VecDeque<(u32, Vec<FlowId>)>,
    early: Vec<(SymbolId, u8, Vec<u8>)>,
    streams: BTreeMap<FlowId, StreamReceiver>,
    streams_allowed: StreamsAllowed,
    /// Symbols that streams may still start beyond their own, all together.
    stream_store: u64,
    /// What streams led to, for the program and for the peer.
    stream_events: Vec<Event>,
    stream_pieces: Vec<Piece>,
    /// The peer broke the protocol in data, found in the midst of it.
    broken: Option<Violation>,
    limits: FlowLimits,
    credit: ReceiveCredit,
    pub(super) control: ControlReceiver,
    pub(super) arrivals: Arrivals,
    pub(super) clock: FeedbackClock,
    pool: Pool,
    pub(super) surplus: u64,
    pub(super) bytes_written: u64,
}

/// What a flow of the peer leads to.
#[derive(Debug)]
pub(super) enum Change {
    Announced { flow: FlowId, length: u64, tag: u64 },
    Received(FlowId),
}

/// The peer broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Violation(pub(super) &'static str);

impl Incoming {
    pub(super) fn new(limits: &Limits, timing: FeedbackTiming) -> Self {
        Self {
            flows: BTreeMap::new(),
            closed: BTreeMap::new(),
            unheard: BTreeSet::new(),
            told_complete: VecDeque::new(),
            early: Vec::new(),
            streams: BTreeMap::new(),
            streams_allowed: limits.streams,
            stream_store: limits.streams.shared.into(),
            stream_events: Vec::new(),
            stream_pieces: Vec::new(),
            broken: None,
            limits: limits.flows,
            credit: ReceiveCredit::new(limits.credit.symbols),
            control: ControlReceiver::new(limits.credit.control),
            arrivals: Arrivals::default(),
            clock: FeedbackClock::new(timing),
            pool: Pool::default(),
            surplus: 0,
            bytes_written: 0,
        }
    }

    pub(super) fn set_timing(&mut self, timing: FeedbackTiming) {
        self.clock = FeedbackClock::new(timing);
    }

    /// Takes one symbol. Refused ones are not acknowledged, so that the sender sends them again.
    pub(super) fn on_symbol(&mut self, id: SymbolId, plan: u8, symbol: &[u8]) -> Result<(), Refused> {
        let Some(flow) = self.flows.get_mut(&id.flow) else {
            if self.streams.contains_key(&id.flow) {
                return self.on_stream_symbol(id, plan, symbol);
            }
            if let Some(complete) = self.closed.get(&id.flow) {
                self.surplus += 1;
                if *complete && self.unheard.len() < MAX_COMPLETE_TOLD {
                    self.unheard.insert(id.flow);
                }
                return Ok(());
            }
            return self.keep_early(id, plan, symbol);
        };
        match flow.on_symbol(id, plan, symbol, &mut self.credit, &mut self.pool) {
            Taken::New => {
                if flow.is_complete() {
                    self.clock.hurry();
                }
                Ok(())
            }
            Taken::Surplus => {
                // Law 7: who still sends this has not heard that it is done.
                self.surplus += 1;
                Ok(())
            }
            Taken::UnknownPlan => self.keep_early(id, plan, symbol),
            Taken::Refused => Err(Refused::Unacceptable),
        }
    }

    fn keep_early(&mut self, id: SymbolId, plan: u8, symbol: &[u8]) -> Result<(), Refused> {
        if self.early.len() >= MAX_EARLY || symbol.len() > usize::from(self.limits.largest_symbol) {
            return Err(Refused::Unacceptable);
        }
        self.early.push((id, plan, symbol.to_vec()));
        Ok(())
    }

    /// Symbols of a flow that waited can be placed now, or never.
    fn replay_early(&mut self, flow: FlowId) {
        let (now, later) = std::mem::take(&mut self.early).into_iter().partition(|(id, _, _)| id.flow == flow);
        self.early = later;
        let now: Vec<(SymbolId, u8, Vec<u8>)> = now;
        for (id, plan, symbol) in now {
            // Acknowledged on arrival: whoever is refused now is missing from the block's needs, and is made up for.
            let _ = self.on_symbol(id, plan, &symbol);
        }
    }

    pub(super) fn on_announcement(&mut self, announcement: &Announcement) -> Result<Option<Change>, Violation> {
        let id = announcement.flow;
        if id.0 == 0 || announcement.symbols_per_packet != 1 {
            return Err(Violation("impossible flow announced"));
        }
        if self.closed.contains_key(&id) {
            return Ok(None);
        }
        if self.streams.contains_key(&id) {
            return Err(Violation("flow announced twice"));
        }
        if let Some(flow) = self.flows.get(&id) {
            return flow.is_announced_by(announcement).then_some(None).ok_or(Violation("flow announced twice"));
        }
        let complete = self.flows.values().filter(|flow| flow.is_complete()).count();
        if self.flows.len() - complete >= MAX_OPEN_FLOWS || complete >= MAX_LINGERING {
            return Err(Violation("too many flows announced"));
        }
        let flow =
            ObjectReceiver::new(announcement, self.limits).map_err(|_| Violation("impossible flow announced"))?;
        self.flows.insert(id, flow);
        self.credit.expect_blocks(announcement.plan.k);
        self.replay_early(id);
        Ok(Some(Change::Announced { flow: id, length: announcement.length, tag: announcement.tag }))
    }

    /// An object goes on in another flow.
    pub(super) fn on_successor(&mut self, successor: &Successor) -> Result<Option<Change>, Violation> {
        let Successor { flow: id, symbol_size, object } = *successor;
        if self.closed.contains_key(&id) {
            return Ok(None);
        }
        if self.streams.contains_key(&id) {
            return Err(Violation("flow announced twice"));
        }
        if let Some(known) = self.flows.get(&id) {
            let same = known.is_announced_by(&object) && known.symbol_size() == usize::from(symbol_size);
            return same.then_some(None).ok_or(Violation("flow announced twice"));
        }
        let carrier = self.flows.iter().find(|(_, flow)| flow.object() == object.flow).map(|(id, _)| *id);
        let mut change = None;
        let carrier = match carrier {
            Some(carrier) => carrier,
            None if self.closed.contains_key(&object.flow) => {
                // All of the object came before it was cut anew: who sends symbols of it is told so.
                self.close_flow(id, true);
                return Ok(None);
            }
            None => {
                change = self.on_announcement(&object)?;
                object.flow
            }
        };
        self.succeed(carrier, successor)?;
        Ok(change)
    }

    fn succeed(&mut self, carrier: FlowId, successor: &Successor) -> Result<(), Violation> {
        let Successor { flow: id, symbol_size, object } = *successor;
        let Some(flow) = self.flows.get_mut(&carrier) else { return Ok(()) };
        if !flow.is_announced_by(&object) {
            return Err(Violation("successor of another object"));
        }
        if flow.symbol_size() <= usize::from(symbol_size) {
            // It was overtaken by its own successor.
            self.close_flow(id, false);
            return Ok(());
        }
        flow.succeed(id, symbol_size, &mut self.pool).map_err(|_| Violation("impossible successor"))?;
        self.closed.insert(carrier, false);
        if let Some(flow) = self.flows.remove(&carrier) {
            self.flows.insert(id, flow);
        }
        self.replay_early(id);
        Ok(())
    }

    /// A flow that brings nothing any more; what came of it before that was known is surplus.
    fn close_flow(&mut self, id: FlowId, complete: bool) {
        self.closed.insert(id, complete);
        self.replay_early(id);
    }

    /// The object that the program knows by this flow.
    fn object(&mut self, name: FlowId) -> Option<&mut ObjectReceiver> {
        self.flows.values_mut().find(|flow| flow.object() == name)
    }

    pub(super) fn on_plan(&mut self, plan: Plan) -> Result<(), Violation> {
        // A plan that overtakes its flow's announcement comes again: it is sent three times.
        let Some(flow) = self.flows.get_mut(&plan.flow) else {
            return Ok(());
        };
        flow.add_plan(plan, self.limits).map_err(|_| Violation("impossible plan"))?;
        self.credit.expect_blocks(plan.k);
        self.replay_early(plan.flow);
        Ok(())
    }

    pub(super) fn accept(&mut self, flow: FlowId, digest: bool) {
        if let Some(flow) = self.object(flow) {
            flow.accept(digest);
        }
    }

    /// A reply to a request of a flow that is received.
    pub(super) fn on_reply(&mut self, reply: Reply) {
        let (id, block) = match reply {
            Reply::Decoded(job, progress) => {
                if self.streams.contains_key(&job.flow) {
                    self.on_stream_decoded(job, progress);
                    return self.clock.hurry();
                }
                let Some(flow) = self.flows.get_mut(&job.flow) else {
                    return;
                };
                flow.on_decoded(job, progress);
                // Whether done or in need of more, the sender waits to hear it.
                return self.clock.hurry();
            }
            Reply::Written { flow, block } => (flow, block),
            Reply::Digest { key: FlowKey { direction: Direction::Receiving, flow }, block, .. } => (flow, block),
            _ => return,
        };
        if let Some((k, bytes)) = self.object(id).and_then(|flow| flow.on_stored(block)) {
            self.credit.give_back_symbols(k.into());
            self.bytes_written += bytes as u64;
            self.clock.note();
        }
    }

    /// Something is known not to have come: of an object any of it, of a stream the rest of a block.
    pub(super) fn has_unfinished(&self) -> bool {
        let lacks = self.streams.values().any(|stream| !stream.is_over() && !stream.lacks_nothing());
        lacks || self.flows.values().any(|flow| !flow.is_complete())
    }

    /// Moves the flows' requests out and says which flows are wholly received.
    pub(super) fn collect(&mut self, requests: &mut impl Extend<Request>) -> Vec<Change> {
        let mut changes = Vec::new();
        for flow in self.flows.values_mut() {
            requests.extend(flow.take_requests());
            if flow.newly_received() {
                changes.push(Change::Received(flow.object()));
            }
        }
        self.collect_streams(requests);
        changes
    }

    pub(super) fn granted(&self) -> Credit {
        Credit { symbols: self.credit.granted(), control: self.control.granted() }
    }

    /// The feedback that goes out now, with the sections the sender chose.
    pub(super) fn feedback(&mut self, now: Time, choice: FeedbackChoice) -> Feedback {
        let waiting = self.flows.values().map(ObjectReceiver::waiting_symbols).sum();
        self.credit.follow(now, self.clock.rtt(), waiting);
        let number = self.clock.next_number();
        Feedback {
            number,
            packets: self.arrivals.tell(number, now),
            ecn: choice.ecn.then(|| self.arrivals.marks()),
            count: None,
            flows: if choice.blocks.is_some() { self.statuses(number) } else { Vec::new() },
            masks: Vec::new(),
            credit: self.granted(),
        }
    }

    /// Complete flows first: they fit, and are forgotten once the sender has seen this. The others begin with another one
    /// each time, so that none is always the one for which no room is left.
    fn statuses(&mut self, number: u32) -> Vec<FlowStatus> {
        let over = |flow| FlowStatus { flow, done_below: u32::MAX, blocks: Vec::new() };
        let mut statuses: Vec<FlowStatus> = std::mem::take(&mut self.unheard).into_iter().map(over).collect();
        let objects = self.flows.iter().filter(|(_, flow)| flow.is_complete()).map(|(id, _)| *id);
        let streams = self.streams.iter().filter(|(_, stream)| stream.is_over()).map(|(id, _)| *id);
        let mut complete: Vec<FlowId> = objects.chain(streams).collect();
        // Those not told lately go first.
        if complete.len() > MAX_COMPLETE_TOLD {
            let told: BTreeSet<FlowId> = self.told_complete.iter().flat_map(|(_, told)| told).copied().collect();
            complete.sort_by_key(|id| told.contains(id));
        }
        complete.truncate(MAX_COMPLETE_TOLD - statuses.len());
        statuses.extend(complete.iter().filter_map(|id| self.status(*id)));
        if !complete.is_empty() {
            self.told_complete.push_back((number, complete));
            if self.told_complete.len() > MAX_TOLD {
                self.told_complete.pop_front();
            }
        }
        let objects = self.flows.values().filter(|flow| !flow.is_complete()).map(ObjectReceiver::status);
        let streams = self.streams.values().filter(|stream| !stream.is_over()).filter_map(StreamReceiver::status);
        let mut open: Vec<FlowStatus> = objects.chain(streams).collect();
        let first = number as usize % open.len().max(1);
        open.rotate_left(first);
        statuses.extend(open);
        statuses
    }

    fn status(&self, id: FlowId) -> Option<FlowStatus> {
        let object = self.flows.get(&id).map(ObjectReceiver::status);
        object.or_else(|| self.streams.get(&id).and_then(StreamReceiver::status))
    }

    /// The sender has seen feedback `number`: flows it told complete need not be told again.
    pub(super) fn on_seen(&mut self, number: u32) {
        self.arrivals.on_seen(number);
        while let Some((told, flows)) = self.told_complete.pop_front_if(|(told, _)| *told <= number) {
            for id in flows.into_iter().filter(|_| told == number) {
                if self.flows.get(&id).is_some_and(ObjectReceiver::is_received_and_told) {
                    self.flows.remove(&id);
                    self.closed.insert(id, true);
                } else if self.streams.get(&id).is_some_and(StreamReceiver::is_over) {
                    self.forget_stream(id, true);
                }
            }
        }
    }
}
