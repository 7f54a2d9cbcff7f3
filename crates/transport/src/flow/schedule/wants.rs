//! Blocks that want symbols, and how many: computed once after each report, served one symbol at a time.

use super::ScheduleAction;
use crate::flow::SendBlock;
use crate::flow::SendBlocks;
use std::collections::VecDeque;

/// The symbols that open blocks want, oldest block first.
#[derive(Debug, Default)]
pub struct Wants(VecDeque<(u32, u32)>);

impl Wants {
    /// Recomputes the wants of the open blocks with `wanted`.
    pub fn survey(&mut self, flow: &SendBlocks, mut wanted: impl FnMut(&SendBlock) -> u32) {
        self.0.clear();
        let wants = flow.open_blocks().map(|block| (block.number(), wanted(block)));
        self.0.extend(wants.filter(|(_, symbols)| *symbols > 0));
    }

    /// Returns the next symbol available now for a wanting block. `supply` finds one for a block and the number that it
    /// wants; a block for which it finds none lets others go first.
    pub fn serve(
        &mut self,
        flow: &SendBlocks,
        supply: impl Fn(&SendBlocks, &SendBlock, u32) -> ScheduleAction,
    ) -> Option<ScheduleAction> {
        for at in 0..self.0.len() {
            let (number, wanted) = self.0[at];
            let Some(block) = flow.block(number) else {
                continue;
            };
            let next = supply(flow, block, wanted);
            match next {
                ScheduleAction::Idle => continue,
                ScheduleAction::EncodeRepair { .. } => {}
                _ if wanted == 1 => drop(self.0.remove(at)),
                _ => self.0[at].1 -= 1,
            }
            return Some(next);
        }
        None
    }
}
