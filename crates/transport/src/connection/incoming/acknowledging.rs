//! What the sender is told of what came in: packets, blocks, flows that are over.

use super::Incoming;
use crate::connection::arrivals::ReceivedEcn;
use crate::flow::{ObjectReceiver, StreamReceiver, SymbolOutcome};
use crate::time::Time;
use crate::wire::limits::MAX_COMPLETE_TOLD;
use crate::wire::{BlockFeedback, BlockMask, Feedback, FlowId, FlowStatus, SymbolId, SymbolRun};
use std::collections::{BTreeMap, BTreeSet};

/// Feedbacks remembered by the complete flows they told; the sender names what it has seen four times a round trip.
const MAX_TOLD: usize = 1_024;

/// A packet whose content was taken.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Arrived {
    pub(in super::super) number: u64,
    pub(in super::super) ecn: ReceivedEcn,
    pub(in super::super) ip_bytes: u32,
    /// It asks for feedback.
    pub(in super::super) asks: bool,
    /// The symbols it brought, if it is not a control packet.
    pub(in super::super) symbols: Option<SymbolRun>,
}

impl Incoming {
    /// A packet was taken, and is to be acknowledged.
    pub(in super::super) fn on_arrival(&mut self, now: Time, packet: Arrived) {
        let Arrived { number, ecn, ip_bytes, asks, symbols } = packet;
        self.arrivals.count(number, ecn, asks, now);
        let last = symbols.map(SymbolRun::last);
        match last.filter(|id| self.is_behind_a_gap(*id)).zip(self.withheld.as_mut()) {
            Some((id, withheld)) => withheld.keep(id, number, now),
            None => self.arrivals.name(number, now),
        }
        self.clock.on_packet(now, ip_bytes, asks, &self.arrivals);
    }

    /// Whether packets are told in order and this symbol's has to wait: something before it in its flow is missing.
    fn is_behind_a_gap(&mut self, id: SymbolId) -> bool {
        self.withheld.is_some()
            && gap_of(&mut self.flows, &mut self.streams, id.flow).is_some_and(|gap| (id.block, id.esi) >= gap)
    }

    /// A symbol brought its block forward.
    pub(super) fn on_gain(&mut self, taken: SymbolOutcome, complete: bool) {
        if complete
            || (taken == SymbolOutcome::CompletesBlock
                && matches!(self.choice.blocks, Some(BlockFeedback::Received(_))))
        {
            self.clock.hurry();
        } else if taken == SymbolOutcome::CompletesBlock {
            self.clock.on_done();
        }
    }

    /// When feedback is due.
    pub(in super::super) fn feedback_due(&self) -> Option<Time> {
        self.clock.due(|| self.is_unfinished())
    }

    /// Something of which data has come is not complete: the sender may wait to hear more of it.
    fn is_unfinished(&self) -> bool {
        let object = |flow: &ObjectReceiver| flow.has_begun() && !flow.is_complete();
        let stream = |stream: &StreamReceiver| !stream.is_over() && !stream.lacks_nothing();
        self.flows.values().any(object) || self.streams.values().any(stream)
    }

    /// The feedback that goes out now, with the sections the sender chose.
    pub(in super::super) fn feedback(&mut self, now: Time) -> Feedback {
        let waiting = self.flows.values().map(ObjectReceiver::waiting_symbols).sum();
        self.credit.follow(now, self.clock.rtt(), waiting);
        let number = self.clock.next_number();
        if let Some(withheld) = &mut self.withheld {
            let (flows, streams, arrivals) = (&mut self.flows, &mut self.streams, &mut self.arrivals);
            withheld.release(|flow| gap_of(flows, streams, flow), |number, at| arrivals.name(number, at));
        }
        let (flows, masks) = if self.choice.blocks.is_some() { self.statuses(number) } else { Default::default() };
        Feedback {
            number,
            packets: self.arrivals.tell(number, now),
            ecn: self.choice.ecn.then(|| self.arrivals.marks()),
            count: self.arrivals.tell_count(now),
            flows,
            masks,
            credit: self.granted(),
        }
    }

    /// Complete flows first: they fit, and are forgotten once the sender has seen this. The others begin with another one
    /// each time, so that none is always the one for which no room is left.
    fn statuses(&mut self, number: u32) -> (Vec<FlowStatus>, Vec<BlockMask>) {
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
        let (mut open, mut masks): (Vec<FlowStatus>, Vec<BlockMask>) = Default::default();
        for object in self.flows.values().filter(|flow| !flow.is_complete()) {
            match object.mask() {
                Some(mask) => masks.push(mask),
                None => open.push(object.status()),
            }
        }
        let streams = self.streams.values().filter(|stream| !stream.is_over());
        open.extend(streams.filter_map(StreamReceiver::status));
        rotate(&mut open, number);
        rotate(&mut masks, number);
        statuses.extend(open);
        (statuses, masks)
    }

    fn status(&self, id: FlowId) -> Option<FlowStatus> {
        let object = self.flows.get(&id).map(ObjectReceiver::status);
        object.or_else(|| self.streams.get(&id).and_then(StreamReceiver::status))
    }

    /// The sender has seen feedback `number`: flows it told complete need not be told again.
    pub(in super::super) fn on_seen(&mut self, number: u32) {
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

/// The first source symbol of a flow, by block and esi, that has not come; `None` where nothing is waited for.
fn gap_of(
    flows: &mut BTreeMap<FlowId, ObjectReceiver>,
    streams: &mut BTreeMap<FlowId, StreamReceiver>,
    flow: FlowId,
) -> Option<(u32, u32)> {
    match flows.get_mut(&flow) {
        Some(object) => Some(object.gap()),
        None => streams.get_mut(&flow).and_then(StreamReceiver::gap),
    }
}

/// Begins with another one each time.
fn rotate<T>(list: &mut [T], number: u32) {
    let first = number as usize % list.len().max(1);
    list.rotate_left(first);
}
