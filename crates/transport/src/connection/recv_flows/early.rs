//! Symbols and plans that arrived before the announcement or the plan that they need.

use super::Violation;
use crate::wire::{FlowId, Plan, RejectReason, SymbolId};
use std::collections::BTreeMap;

/// Most symbol packets kept: those of the first milliseconds of a flow whose first announcement was lost. Their symbols
/// take at most the bytes of this many symbols of the largest size.
const MAX_PACKETS: usize = 512;

/// Most plans kept: those that a sender makes within a few round trips.
const MAX_PLANS: usize = 256;

/// The symbols of a packet: the first, its block's plan, and their bytes.
type Packet = (SymbolId, u8, Vec<u8>);

/// Symbols that cannot be placed yet.
#[derive(Debug)]
pub(super) struct EarlySymbols {
    packets: Vec<Packet>,
    /// Most bytes kept.
    room: usize,
}

impl EarlySymbols {
    pub(super) fn new(largest_symbol: u16) -> Self {
        Self { packets: Vec::new(), room: MAX_PACKETS * usize::from(largest_symbol) }
    }

    pub(super) fn keep(&mut self, first: SymbolId, plan: u8, symbols: &[u8]) -> Result<(), RejectReason> {
        let kept: usize = self.packets.iter().map(|(.., symbols)| symbols.len()).sum();
        if symbols.is_empty() || self.packets.len() >= MAX_PACKETS || kept + symbols.len() > self.room {
            return Err(RejectReason::Unacceptable);
        }
        self.packets.push((first, plan, symbols.to_vec()));
        Ok(())
    }

    /// Takes those of a flow that can be placed now, or never.
    pub(super) fn take(&mut self, flow: FlowId) -> Vec<Packet> {
        self.packets.extract_if(.., |(id, ..)| id.flow == flow).collect()
    }

    pub(super) fn forget(&mut self, flow: FlowId) {
        self.packets.retain(|(id, ..)| id.flow != flow);
    }
}

/// Early plans, by flow and number.
#[derive(Debug, Default)]
pub(super) struct EarlyPlans(BTreeMap<(FlowId, u8), Plan>);

impl EarlyPlans {
    /// Keeps a plan. Without room for it the sender has broken the protocol: no sender plans that far ahead.
    pub(super) fn keep(&mut self, plan: Plan) -> Result<(), Violation> {
        let room = self.0.len() < MAX_PLANS;
        let known = self.0.insert((plan.flow, plan.number), plan);
        known.map_or(room, |known| known == plan).then_some(()).ok_or(Violation("sent an invalid plan"))
    }

    /// Takes the plan of a flow with this number.
    pub(super) fn take(&mut self, flow: FlowId, number: usize) -> Option<Plan> {
        self.0.remove(&(flow, u8::try_from(number).ok()?))
    }

    /// Drops the plans of a finished flow.
    pub(super) fn forget(&mut self, flow: FlowId) {
        self.0.retain(|(of, _), _| *of != flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use erasure::BlockCode;

    fn id(flow: u16) -> SymbolId {
        SymbolId { flow: FlowId(flow), block: 0, esi: 0 }
    }

    #[test]
    fn symbols_wait_within_bounds_of_number_and_bytes() {
        let mut early = EarlySymbols::new(100);
        assert_eq!(early.keep(id(1), 0, &[]), Err(RejectReason::Unacceptable), "nothing in it");
        (0..MAX_PACKETS).for_each(|nth| early.keep(id(1 + nth as u16 % 2), 0, &[7; 50]).expect("there is room"));
        assert_eq!(early.keep(id(1), 0, &[7]), Err(RejectReason::Unacceptable), "too many");
        assert_eq!((early.take(FlowId(1)).len(), early.take(FlowId(1)).len()), (256, 0));
        early.keep(id(1), 0, &[7; 38_400]).expect("there is room");
        assert_eq!(early.keep(id(1), 0, &[7]), Err(RejectReason::Unacceptable), "too many bytes");
        early.forget(FlowId(1));
        assert_eq!(early.packets.len(), 256);
    }

    #[test]
    fn plans_wait_by_number_and_do_not_change() {
        let plan = |flow, number, k| Plan {
            flow: FlowId(flow),
            number,
            first_block: 1,
            first_symbol: 10,
            k,
            code: BlockCode::Uncoded,
        };
        let mut early = EarlyPlans::default();
        assert_eq!([plan(1, 2, 5), plan(1, 2, 5), plan(2, 1, 5)].map(|plan| early.keep(plan)), [Ok(()); 3]);
        assert_eq!(early.keep(plan(1, 2, 6)), Err(Violation("sent an invalid plan")), "another one of that number");
        assert_eq!((early.take(FlowId(1), 1), early.take(FlowId(2), 1)), (None, Some(plan(2, 1, 5))));
        early.forget(FlowId(1));
        assert_eq!(early.take(FlowId(1), 2), None);
        (0..=255).for_each(|number| early.keep(plan(3, number, 5)).expect("there is room"));
        assert_eq!(early.keep(plan(3, 255, 5)), Ok(()), "a copy takes none");
        assert_eq!(early.keep(plan(4, 1, 5)), Err(Violation("sent an invalid plan")));
    }
}
