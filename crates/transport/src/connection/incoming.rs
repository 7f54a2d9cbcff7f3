//! The receiver half of a connection: flows of the peer, its control stream, and what feedback says of them.

mod acknowledging;
mod plans;
mod streams;

pub(super) use acknowledging::Arrived;
use plans::EarlyPlans;

use super::Event;
use super::arrivals::{Arrivals, FeedbackClock, Withheld};
use super::options::Limits;
use super::outbox::Piece;
use crate::flow::{
    ControlReceiver, Direction, FlowKey, FlowLimits, ObjectReceiver, Pool, ReceiveCredit, Reply, Request,
    StreamReceiver, SymbolOutcome,
};
use crate::wire::limits::{ESI_LIMIT, MAX_COMPLETE_TOLD, MAX_OPEN_FLOWS};
use crate::wire::{
    Announcement, BlockFeedback, Credit, FeedbackConfig, FlowId, PacketFeedback, Refused, StreamsAllowed, Successor,
    SymbolId, SymbolRun,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Complete flows that may wait for the sender to hear of it.
const MAX_LINGERING: usize = 1_024;

/// Symbol packets kept until the announcement or plan they wait for comes: what arrives in the first milliseconds of a flow whose
/// first announcement was lost. Their symbols are no more bytes than so many of the largest have.
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
    early_plans: EarlyPlans,
    streams: BTreeMap<FlowId, StreamReceiver>,
    streams_allowed: StreamsAllowed,
    /// Symbols that streams may still start beyond their own, all together.
    stream_store: u64,
    /// What streams led to, for the program and for the peer.
    stream_events: Vec<Event>,
    stream_pieces: Vec<Piece>,
    /// Why it cannot go on, found in the midst of data.
    broken: Option<Broken>,
    limits: FlowLimits,
    credit: ReceiveCredit,
    pub(super) control: ControlReceiver,
    /// The feedback that the sender wants.
    choice: FeedbackConfig,
    arrivals: Arrivals,
    /// Packets that are not named yet, where the sender wants them in order.
    withheld: Option<Withheld>,
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

/// Why a connection cannot go on with what it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// The peer broke the protocol.
    Violation(Violation),
    /// A block that the peer was told is done cannot be decoded: it is lost.
    Undecodable,
}

impl Incoming {
    pub(super) fn new(limits: &Limits, choice: FeedbackConfig) -> Self {
        Self {
            flows: BTreeMap::new(),
            closed: BTreeMap::new(),
            unheard: BTreeSet::new(),
            told_complete: VecDeque::new(),
            early: Vec::new(),
            early_plans: EarlyPlans::default(),
            streams: BTreeMap::new(),
            streams_allowed: limits.streams,
            stream_store: limits.streams.shared.into(),
            stream_events: Vec::new(),
            stream_pieces: Vec::new(),
            broken: None,
            limits: limits.flows,
            credit: ReceiveCredit::new(limits.credit.symbols),
            control: ControlReceiver::new(limits.credit.control),
            choice,
            arrivals: Arrivals::new(&choice),
            withheld: None,
            clock: FeedbackClock::new(choice.timing),
            pool: Pool::default(),
            surplus: 0,
            bytes_written: 0,
        }
    }

    /// The peer's choice is known. Nothing has come before that.
    pub(super) fn set_choice(&mut self, choice: FeedbackConfig) {
        self.choice = choice;
        self.arrivals = Arrivals::new(&choice);
        self.withheld = (choice.packets == PacketFeedback::InOrder).then(Withheld::default);
        self.clock = FeedbackClock::new(choice.timing);
    }

    /// What the sender wants to hear of the blocks of a flow.
    fn blocks_told(&self) -> BlockFeedback {
        self.choice.blocks.unwrap_or_default()
    }

    /// Takes the symbols of one packet, of which the first is `first`. What is refused is not acknowledged, so that the sender sends it
    /// again.
    pub(super) fn on_symbols(&mut self, first: SymbolId, plan: u8, symbols: &[u8]) -> Result<SymbolRun, Refused> {
        let object = self.flows.get(&first.flow).map(|flow| (flow.symbol_size(), flow.per_packet()));
        let stream = || self.streams.get(&first.flow).map(|stream| (stream.symbol_size(), 1));
        let Some((size, most)) = object.or_else(stream) else {
            self.on_unplaced(first, plan, symbols)?;
            return Ok(first.into());
        };
        let run = run_of(first, symbols.len(), size, most).ok_or(Refused::Unacceptable)?;
        for (id, symbol) in run.ids().zip(symbols.chunks_exact(size)) {
            // They are of one block: what waits for its plan, or is refused, is so from the first on.
            if self.on_symbol(id, plan, symbol)? == SymbolOutcome::UnknownPlan {
                self.keep_early(first, plan, symbols)?;
                break;
            }
        }
        Ok(run)
    }

    /// Symbols of a flow that is over, or not announced yet.
    fn on_unplaced(&mut self, first: SymbolId, plan: u8, symbols: &[u8]) -> Result<(), Refused> {
        let Some(complete) = self.closed.get(&first.flow) else { return self.keep_early(first, plan, symbols) };
        self.surplus += 1;
        if *complete && self.unheard.len() < MAX_COMPLETE_TOLD {
            self.unheard.insert(first.flow);
        }
        Ok(())
    }

    fn on_symbol(&mut self, id: SymbolId, plan: u8, symbol: &[u8]) -> Result<SymbolOutcome, Refused> {
        let Some(flow) = self.flows.get_mut(&id.flow) else { return self.on_stream_symbol(id, plan, symbol) };
        let taken = flow.on_symbol(id, plan, symbol, &mut self.credit, &mut self.pool);
        match taken {
            SymbolOutcome::New | SymbolOutcome::CompletesBlock => {
                let complete = flow.is_complete();
                self.on_gain(taken, complete);
            }
            // Law 7: who still sends this has not heard that it is done.
            SymbolOutcome::Surplus => self.surplus += 1,
            SymbolOutcome::UnknownPlan => {}
            SymbolOutcome::Refused => return Err(Refused::Unacceptable),
        }
        Ok(taken)
    }

    fn keep_early(&mut self, first: SymbolId, plan: u8, symbols: &[u8]) -> Result<(), Refused> {
        let kept: usize = self.early.iter().map(|(.., symbols)| symbols.len()).sum();
        let room = MAX_EARLY * usize::from(self.limits.largest_symbol);
        if symbols.is_empty() || self.early.len() >= MAX_EARLY || kept + symbols.len() > room {
            return Err(Refused::Unacceptable);
        }
        self.early.push((first, plan, symbols.to_vec()));
        Ok(())
    }

    /// Packets of a flow that waited can be placed now, or never.
    fn replay_early(&mut self, flow: FlowId) {
        let (now, later) = std::mem::take(&mut self.early).into_iter().partition(|(id, _, _)| id.flow == flow);
        self.early = later;
        let now: Vec<(SymbolId, u8, Vec<u8>)> = now;
        for (first, plan, symbols) in now {
            // Acknowledged on arrival: whoever is refused now is missing from the block's needs, and is made up for.
            let _ = self.on_symbols(first, plan, &symbols);
        }
    }

    pub(super) fn on_announcement(&mut self, announcement: &Announcement) -> Result<Option<Change>, Violation> {
        let id = announcement.flow;
        if id.0 == 0 {
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
        let flow = ObjectReceiver::new(announcement, self.limits, self.blocks_told());
        let flow = flow.map_err(|_| Violation("impossible flow announced"))?;
        self.flows.insert(id, flow);
        self.credit.expect_blocks(announcement.plan.k);
        self.replay_plans(id)?;
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
        if flow.has_promised() {
            // What the decoder has is of symbols that are no more, and the sender has forgotten the block.
            self.broken = Some(Broken::Undecodable);
        }
        flow.succeed(id, symbol_size, &mut self.pool).map_err(|_| Violation("impossible successor"))?;
        self.closed.insert(carrier, false);
        if let Some(flow) = self.flows.remove(&carrier) {
            self.flows.insert(id, flow);
        }
        self.forget_plans(carrier);
        self.replay_plans(id)?;
        self.replay_early(id);
        Ok(())
    }

    /// A flow that brings nothing any more; what came of it before that was known is surplus.
    fn close_flow(&mut self, id: FlowId, complete: bool) {
        self.closed.insert(id, complete);
        self.forget_plans(id);
        self.replay_early(id);
    }

    /// The object that the program knows by this flow.
    fn object(&mut self, name: FlowId) -> Option<&mut ObjectReceiver> {
        self.flows.values_mut().find(|flow| flow.object() == name)
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
                    return self.clock.on_tried();
                }
                let Some(flow) = self.flows.get_mut(&job.flow) else {
                    return;
                };
                let lost = flow.on_decoded(job, progress).is_err();
                if flow.is_complete() {
                    self.clock.hurry();
                }
                self.broken = self.broken.or(lost.then_some(Broken::Undecodable));
                // Whether done or in need of more, the sender waits to hear it.
                return self.clock.on_tried();
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
}

/// The symbols in a packet with so many bytes of them, of which each has `size`; `None` if it cannot be cut so, or has none or more than
/// `most`.
fn run_of(first: SymbolId, bytes: usize, size: usize, most: u8) -> Option<SymbolRun> {
    let count = bytes.checked_div(size).filter(|count| count * size == bytes)?;
    let count = u8::try_from(count).ok().filter(|count| (1..=most).contains(count))?;
    let run = SymbolRun { first, count };
    (run.last().esi < ESI_LIMIT).then_some(run)
}
