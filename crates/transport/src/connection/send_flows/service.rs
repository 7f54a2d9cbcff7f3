//! The order of service: the flow that opens the next block, and the flow that sends the next symbol.

use super::SendFlows;
use super::budget::LARGEST_REPAIR;
use super::send_order::Turn;
use crate::flow::{PathEstimate, Pick, PickedSymbol, SendFlow, WorkRequest};
use crate::time::Time;
use crate::wire::{FlowId, SymbolId};

use super::super::control::{ControlStream, ReliableFrame};

/// How far ahead of sending the blocks of objects are read: in source symbols, about 4 MB.
const READ_AHEAD: u64 = 3_000;

/// Most requests from one call for data before the caller gets to run them.
const REQUESTS_PER_ASK: usize = 16;

/// A stream may always use this share of the limit for all streams: one that waits for lost symbols does not keep
/// another from its first.
const LEAST_SHARE: u64 = 64;

impl SendFlows {
    /// Opens blocks as far as credit, the read-ahead and `most` open source symbols of each kind allow.
    pub(in super::super) fn open_blocks(
        &mut self,
        now: Time,
        path: &PathEstimate,
        most: u64,
        control: &mut ControlStream,
        requests: &mut impl Extend<WorkRequest>,
    ) {
        self.open_object_blocks(path, most, control, requests);
        self.open_stream_blocks(now, path, most);
    }

    /// Opens blocks of objects in order: a later object only once all blocks of the earlier ones are opened.
    fn open_object_blocks(
        &mut self,
        path: &PathEstimate,
        most: u64,
        control: &mut ControlStream,
        requests: &mut impl Extend<WorkRequest>,
    ) {
        let Self { flows, objects, credit, pool, .. } = self;
        let held = |first: &FlowId| flows.named(*first).map_or(0, SendFlow::held_symbols);
        let mut open: u64 = objects.served.iter().map(held).sum();
        for first in &objects.served {
            let Some(flow) = flows.named_mut(*first) else { continue };
            let open_before = open - flow.held_symbols();
            let planned = flow.further_plans().end;
            while open < most
                && let Some(request) = flow.open_object_block(credit, READ_AHEAD, path, pool)
            {
                requests.extend([request]);
                open = open_before + flow.held_symbols();
            }
            for plan in planned..flow.further_plans().end {
                control.push_thrice(ReliableFrame::Plan(flow.id(), plan));
            }
            if flow.next_cost().is_some() {
                break;
            }
        }
    }

    /// Opens blocks of streams, which use their own credit and share the rest.
    fn open_stream_blocks(&mut self, now: Time, path: &PathEstimate, most: u64) {
        if self.unopened.is_empty() {
            return;
        }
        let Self { flows, turns, pool, exhausted, touched, unopened, .. } = self;
        // Sleeping streams have no open block and use no credit.
        let all = || turns.awake().filter_map(|first| flows.named(first));
        let mut open: u64 = all().map(|stream| stream.blocks().open_symbols()).sum();
        let mut borrowed: u64 = all().map(SendFlow::shared_credit).sum();
        let store = u64::from(self.streams_allowed.shared);
        unopened.retain(|first| {
            let Some(stream) = flows.named_mut(*first) else { return false };
            loop {
                let own = stream.blocks().open_symbols();
                let room = most.saturating_sub(open).max((most / LEAST_SHARE).saturating_sub(own));
                // As much as stays in the pool (Choudhury 1998): one stream takes half of it, two a third each, and
                // some is left for the next.
                let before = stream.shared_credit();
                let shared = store.saturating_sub(borrowed - before) / 2;
                if !stream.open_stream_block(now, path, room, shared, pool) {
                    *exhausted |= stream.is_exhausted();
                    return stream.has_unopened();
                }
                touched.push(*first);
                open += stream.blocks().open_symbols() - own;
                borrowed += stream.shared_credit() - before;
            }
        });
    }

    /// Returns whether a block waits for the receiver's credit.
    pub(in super::super) fn is_credit_limited(&self) -> bool {
        let next = self.served().find_map(SendFlow::next_cost);
        next.is_some_and(|cost| !self.credit.covers(cost)) || self.served().any(SendFlow::is_held_back)
    }

    /// Returns whether `most` source symbols of objects are open, and only the receiver can change that: another block
    /// is due, and none of the open ones is being read, digested or encoded.
    pub(in super::super) fn is_full(&self, most: u64) -> bool {
        let waits = self.served_objects().any(|flow| flow.next_cost().is_some());
        let open = || self.served_objects().map(SendFlow::held_symbols).sum::<u64>();
        waits && open() >= most && !self.served_objects().any(SendFlow::is_prepared_here)
    }

    /// Returns the number of blocks of objects whose bytes are requested and not read yet.
    pub(in super::super) fn reading(&self) -> usize {
        self.served_objects().map(SendFlow::reading).sum()
    }

    fn served_objects(&self) -> impl Iterator<Item = &SendFlow> {
        self.objects.served.iter().filter_map(|first| self.flows.named(*first))
    }

    /// Returns whether unsent source symbols are left.
    pub(in super::super) fn has_source(&self) -> bool {
        let unsent = |first: &FlowId| self.has_source_of(*first);
        self.served().any(|flow| flow.blocks().source_left() > 0) || self.objects.waiting.iter().any(unsent)
    }

    fn has_source_of(&self, first: FlowId) -> bool {
        self.flows.named(first).is_some_and(|flow| flow.blocks().source_left() > 0)
    }

    /// Returns the last object with unsent source, by its position among those being served; a waiting one counts as
    /// after all.
    fn last_with_source(&self) -> Option<usize> {
        if self.objects.waiting.iter().any(|first| self.has_source_of(*first)) {
            return Some(usize::MAX);
        }
        self.objects.served.iter().rposition(|first| self.has_source_of(*first))
    }

    /// Returns the next symbol by the flows' schedules, in the order that [`SendOrder`](super::send_order::SendOrder) gives. Work to be
    /// done first goes to `requests`.
    pub(in super::super) fn next_symbol(
        &mut self,
        now: Time,
        path: &PathEstimate,
        requests: &mut impl Extend<WorkRequest>,
    ) -> Option<PickedSymbol> {
        let may_repair = self.streams.served.is_empty() || self.budget.allows(now, LARGEST_REPAIR);
        self.waits_for_budget = false;
        let mut order = std::mem::take(&mut self.order);
        self.turns.order(now, &mut order);
        let picked = order.iter().find_map(|turn| {
            let picked = match *turn {
                Turn::Objects => self.next_of_objects(now, path, requests),
                Turn::Stream(first) => self.ask(first, requests, |flow| flow.next(now, path, false, may_repair)),
            };
            Some((*turn, picked?))
        });
        self.order = order;
        if let Some((turn, picked)) = picked {
            self.turns.taken(turn);
            return Some(picked);
        }
        self.waits_for_budget = !may_repair;
        None
    }

    /// Returns the next symbol of the first object that has one.
    fn next_of_objects(
        &mut self,
        now: Time,
        path: &PathEstimate,
        requests: &mut impl Extend<WorkRequest>,
    ) -> Option<PickedSymbol> {
        for _ in 0..REQUESTS_PER_ASK {
            let last_with_source = self.last_with_source();
            let mut asked = false;
            let Self { flows, objects, failed, .. } = self;
            for (at, first) in objects.served.iter().enumerate() {
                let Some(flow) = flows.named_mut(*first) else { continue };
                match flow.next(now, path, last_with_source > Some(at), true) {
                    Pick::Symbol(picked) => return Some(picked),
                    Pick::Request(request) => {
                        requests.extend([request]);
                        asked = true;
                        break;
                    }
                    Pick::Failed => *failed = true,
                    Pick::Idle => {}
                }
            }
            if !asked {
                break;
            }
        }
        None
    }

    /// Returns the symbol after `last`, with which a packet ends so far, if the flow's schedule wants that next.
    pub(in super::super) fn next_in_packet(
        &mut self,
        now: Time,
        path: &PathEstimate,
        last: SymbolId,
        requests: &mut impl Extend<WorkRequest>,
    ) -> Option<PickedSymbol> {
        let first = self.flows.get(last.flow)?.first();
        let at = self.objects.served.iter().position(|id| *id == first)?;
        let behind = self.last_with_source() > Some(at);
        self.ask(first, requests, |flow| flow.next_in_packet(now, path, behind, last))
    }

    /// Asks a flow for a symbol, again after each request that it makes.
    fn ask(
        &mut self,
        first: FlowId,
        requests: &mut impl Extend<WorkRequest>,
        mut next: impl FnMut(&mut SendFlow) -> Pick,
    ) -> Option<PickedSymbol> {
        let flow = self.flows.named_mut(first)?;
        for _ in 0..REQUESTS_PER_ASK {
            match next(flow) {
                Pick::Symbol(picked) => return Some(picked),
                Pick::Request(request) => requests.extend([request]),
                Pick::Failed => {
                    self.failed = true;
                    return None;
                }
                Pick::Idle => return None,
            }
        }
        None
    }

    /// Returns the largest number of symbols in a packet of this flow.
    pub(in super::super) fn symbols_per_packet(&self, id: FlowId) -> u8 {
        self.flows.get(id).map_or(1, SendFlow::symbols_per_packet)
    }

    /// Returns whether objects are being sent: their packets may have several symbols, those of streams have one.
    pub(in super::super) const fn has_objects(&self) -> bool {
        !self.objects.served.is_empty()
    }

    /// Returns when a flow has something to do if nothing is received.
    pub(in super::super) fn deadline(&self) -> Option<Time> {
        let waits = self.waits_for_budget && self.turns.awake().any(|first| self.is_unfinished(first));
        let budget = waits.then(|| self.budget.allows_at(LARGEST_REPAIR));
        self.served().filter_map(SendFlow::deadline).chain(budget).min()
    }

    fn is_unfinished(&self, first: FlowId) -> bool {
        self.flows.named(first).is_some_and(SendFlow::is_unfinished)
    }

    /// Returns a symbol worth sending when nothing is received.
    pub(in super::super) fn probe(&mut self) -> Option<PickedSymbol> {
        let Self { flows, objects, turns, .. } = self;
        let mut served = objects.served.iter().copied().chain(turns.awake());
        served.find_map(|first| flows.named_mut(first)?.blocks_mut().probe())
    }
}
