//! Finished flows: those that the sender knows to be over, and those to report again.

use crate::wire::FlowId;
use crate::wire::limits::MAX_COMPLETE_REPORTED;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Feedbacks remembered with the flows that they reported as over; the sender acknowledges feedback four times a round
/// trip.
const MAX_REPORTED: usize = 1_024;

/// Finished flows. Their announcements and symbols may arrive again.
#[derive(Debug, Default)]
pub(super) struct ClosedFlows {
    /// Whether each was complete.
    flows: BTreeMap<FlowId, bool>,
    /// Complete flows of which the sender still sends symbols: they are reported again (law 7).
    unreported: BTreeSet<FlowId>,
    /// The flows that each of the last feedbacks reported as over. Only the feedback that the sender names as seen
    /// counts: those before it may be lost, and not every feedback has room for all flows.
    reported: VecDeque<(u64, Vec<FlowId>)>,
}

impl ClosedFlows {
    pub(super) fn insert(&mut self, flow: FlowId, complete: bool) {
        self.flows.insert(flow, complete);
    }

    pub(super) fn contains(&self, flow: FlowId) -> bool {
        self.flows.contains_key(&flow)
    }

    /// Handles symbols of a flow; returns whether it is one of these. The sender of a complete one does not know yet
    /// that it is complete.
    pub(super) fn on_symbols(&mut self, flow: FlowId) -> bool {
        let Some(complete) = self.flows.get(&flow) else { return false };
        if *complete && self.unreported.len() < MAX_COMPLETE_REPORTED {
            self.unreported.insert(flow);
        }
        true
    }

    /// Takes the flows that feedback should report as complete once more.
    pub(super) fn take_unreported(&mut self) -> BTreeSet<FlowId> {
        std::mem::take(&mut self.unreported)
    }

    /// Returns those of `over`, at most `most`, that feedback `number` reports as over. Without room for all, those not
    /// reported lately go first.
    pub(super) fn report_finished(&mut self, number: u64, mut over: Vec<FlowId>, most: usize) -> Vec<FlowId> {
        if over.len() > MAX_COMPLETE_REPORTED {
            let reported: BTreeSet<FlowId> = self.reported.iter().flat_map(|(_, reported)| reported).copied().collect();
            over.sort_by_key(|id| reported.contains(id));
        }
        over.truncate(most);
        if !over.is_empty() {
            self.reported.push_back((number, over.clone()));
            if self.reported.len() > MAX_REPORTED {
                self.reported.pop_front();
            }
        }
        over
    }

    /// Handles the sender's confirmation that it has seen feedback `number`; returns the flows that it reported as
    /// over.
    pub(super) fn on_seen(&mut self, number: u64) -> Vec<FlowId> {
        let mut seen = Vec::new();
        while let Some((feedback, flows)) = self.reported.pop_front_if(|(feedback, _)| *feedback <= number) {
            if feedback == number {
                seen = flows;
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_feedback_that_was_seen_counts() {
        let mut closed = ClosedFlows::default();
        let ids = |ids: std::ops::Range<u16>| ids.map(FlowId).collect::<Vec<_>>();
        assert_eq!(closed.report_finished(1, ids(0..2), 32), ids(0..2));
        assert_eq!(closed.report_finished(2, ids(0..3), 32), ids(0..3));
        assert_eq!(closed.report_finished(3, ids(0..4), 32), ids(0..4));
        assert_eq!(closed.on_seen(2), ids(0..3));
        assert_eq!((closed.on_seen(1), closed.on_seen(2)), (vec![], vec![]), "overtaken");
        assert_eq!(closed.on_seen(9), [], "3 may be lost");
    }

    #[test]
    fn flows_not_reported_lately_go_first() {
        let mut closed = ClosedFlows::default();
        let all: Vec<FlowId> = (0..40).map(FlowId).collect();
        assert_eq!(closed.report_finished(1, all.clone(), 32), all[..32]);
        assert_eq!(closed.report_finished(2, all.clone(), 10), [&all[32..], &all[..2]].concat());
    }

    #[test]
    fn a_continuing_sender_gets_another_report_of_a_complete_flow() {
        let mut closed = ClosedFlows::default();
        closed.insert(FlowId(1), true);
        closed.insert(FlowId(2), false);
        assert_eq!([1, 2, 3].map(|id| closed.on_symbols(FlowId(id))), [true, true, false]);
        assert_eq!(closed.take_unreported().into_iter().collect::<Vec<_>>(), [FlowId(1)]);
        assert_eq!(closed.take_unreported().len(), 0, "once");
    }
}
