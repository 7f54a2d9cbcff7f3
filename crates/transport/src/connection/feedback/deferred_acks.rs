//! Packets that arrived and are not acknowledged yet, because their symbols are behind a gap of their flows (arq 2.1).

use crate::time::Time;
use crate::wire::{FlowId, SymbolId};
use std::collections::BTreeMap;

/// Most packets withheld. Further ones are never acknowledged: their sender declares them lost, and sends them again.
const MAX_WITHHELD: usize = 65_536;

/// Packets by the symbols they brought: block, esi, packet number; with their arrival time.
#[derive(Debug, Default)]
pub(super) struct DeferredAcks {
    flows: BTreeMap<FlowId, BTreeMap<(u32, u32, u64), Time>>,
    packets: usize,
}

impl DeferredAcks {
    /// Keeps a packet until the gap before its symbol is closed.
    pub(super) fn keep(&mut self, id: SymbolId, number: u64, now: Time) {
        if self.packets < MAX_WITHHELD {
            self.flows.entry(id.flow).or_default().insert((id.block, id.esi, number), now);
            self.packets += 1;
        }
    }

    /// Releases the packets before the first gap of each flow, by symbol; all of them for a flow that has no gap any
    /// more.
    pub(super) fn release(
        &mut self,
        mut gap: impl FnMut(FlowId) -> Option<(u32, u32)>,
        mut out: impl FnMut(u64, Time),
    ) {
        for (flow, packets) in &mut self.flows {
            let gap = gap(*flow);
            while let Some(first) = packets.first_entry() {
                let (block, esi, number) = *first.key();
                if gap.is_some_and(|gap| (block, esi) >= gap) {
                    break;
                }
                out(number, first.remove());
                self.packets -= 1;
            }
        }
        self.flows.retain(|_, packets| !packets.is_empty());
    }
}
