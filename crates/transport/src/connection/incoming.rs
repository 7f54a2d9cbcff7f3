//! The receiver half of a connection: flows of the peer, its control stream, and what feedback says of them.

use super::arrivals::{Arrivals, FeedbackClock};
use crate::flow::{
    ControlReceiver, Direction, FlowKey, FlowLimits, ObjectReceiver, Pool, ReceiveCredit, Reply, Request, Taken,
};
use crate::time::Time;
use crate::wire::{Announcement, Credit, Feedback, FeedbackTiming, FlowId, Plan, Refused, SymbolId};
use std::collections::{BTreeMap, BTreeSet};

/// Flows of the peer that may be open at once.
const MAX_FLOWS: usize = 64;

/// Symbols kept until the announcement or plan they wait for comes: what arrives in the first milliseconds of a flow whose
/// first announcement was lost.
const MAX_EARLY: usize = 512;

/// Everything this side receives.
#[derive(Debug)]
pub(super) struct Incoming {
    flows: BTreeMap<FlowId, ObjectReceiver>,
    /// Flows that were done or stopped: their announcements may come again.
    closed: BTreeSet<FlowId>,
    /// The first feedback that told a complete flow complete, by flow.
    told_complete: BTreeMap<FlowId, u32>,
    early: Vec<(SymbolId, u8, Vec<u8>)>,
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
    pub(super) fn new(limits: FlowLimits, credit: Credit, timing: FeedbackTiming) -> Self {
        Self {
            flows: BTreeMap::new(),
            closed: BTreeSet::new(),
            told_complete: BTreeMap::new(),
            early: Vec::new(),
            limits,
            credit: ReceiveCredit::new(credit.symbols),
            control: ControlReceiver::new(credit.control),
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
            if self.closed.contains(&id.flow) {
                self.surplus += 1;
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
        if self.closed.contains(&id) {
            return Ok(None);
        }
        if let Some(flow) = self.flows.get(&id) {
            return flow.is_announced_by(announcement).then_some(None).ok_or(Violation("flow announced twice"));
        }
        if self.flows.len() >= MAX_FLOWS {
            return Err(Violation("too many flows announced"));
        }
        let flow =
            ObjectReceiver::new(announcement, self.limits).map_err(|_| Violation("impossible flow announced"))?;
        self.flows.insert(id, flow);
        self.replay_early(id);
        Ok(Some(Change::Announced { flow: id, length: announcement.length, tag: announcement.tag }))
    }

    pub(super) fn on_plan(&mut self, plan: Plan) -> Result<(), Violation> {
        // A plan that overtakes its flow's announcement comes again: it is sent three times.
        let Some(flow) = self.flows.get_mut(&plan.flow) else {
            return Ok(());
        };
        flow.add_plan(plan, self.limits).map_err(|_| Violation("impossible plan"))?;
        self.replay_early(plan.flow);
        Ok(())
    }

    pub(super) fn accept(&mut self, flow: FlowId, digest: bool) {
        if let Some(flow) = self.flows.get_mut(&flow) {
            flow.accept(digest);
        }
    }

    /// Drops a flow: its blocks' credit is free again. True when it was open.
    pub(super) fn drop_flow(&mut self, id: FlowId) -> bool {
        self.closed.insert(id);
        self.told_complete.remove(&id);
        let Some(flow) = self.flows.remove(&id) else {
            return false;
        };
        self.credit.give_back_symbols(flow.held_symbols());
        self.clock.note();
        true
    }

    /// A reply to a request of a flow that is received.
    pub(super) fn on_reply(&mut self, reply: Reply) {
        let (id, block) = match reply {
            Reply::Decoded(job, progress) => {
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
        if let Some((k, bytes)) = self.flows.get_mut(&id).and_then(|flow| flow.on_stored(block)) {
            self.credit.give_back_symbols(k.into());
            self.bytes_written += bytes as u64;
            self.clock.note();
        }
    }

    /// Moves the flows' requests out and says which flows are wholly received.
    pub(super) fn collect(&mut self, requests: &mut impl Extend<Request>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (id, flow) in &mut self.flows {
            requests.extend(flow.take_requests());
            if flow.newly_received() {
                changes.push(Change::Received(*id));
            }
        }
        changes
    }

    pub(super) fn granted(&self) -> Credit {
        Credit { symbols: self.credit.granted(), control: self.control.granted() }
    }

    /// The feedback that goes out now.
    pub(super) fn feedback(&mut self, now: Time, ecn: bool) -> Feedback {
        let number = self.clock.next_number();
        for (id, flow) in &self.flows {
            if flow.is_complete() {
                self.told_complete.entry(*id).or_insert(number);
            }
        }
        Feedback {
            number,
            packets: self.arrivals.tell(number, now),
            ecn: ecn.then(|| self.arrivals.marks()),
            flows: self.flows.values().map(ObjectReceiver::status).collect(),
            credit: self.granted(),
        }
    }

    /// The sender has seen feedback `number`: flows it told complete need not be told again.
    pub(super) fn on_seen(&mut self, number: u32) {
        self.arrivals.on_seen(number);
        let Self { flows, told_complete, closed, .. } = self;
        told_complete.retain(|id, told| {
            let over = *told <= number && flows.get(id).is_some_and(ObjectReceiver::is_received_and_told);
            if over {
                flows.remove(id);
                closed.insert(*id);
            }
            !over
        });
    }
}
