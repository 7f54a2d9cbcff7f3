//! When reactive repair was sent before lt-tcp §3.4: by an idle counter of each block, of acknowledgements of later
//! blocks since one of its own.

use std::collections::BTreeMap;
use transport::flow::{SendBlock, SendBlocks};
use transport::recovery::{Cause, Content, Report};
use transport::wire::FlowId;

/// The idle counters of the open blocks of a flow.
#[derive(Debug)]
pub(super) struct IdleCounters {
    /// Acknowledgements without news of a block after which it gets repair.
    limit: u32,
    flow: Option<FlowId>,
    blocks: BTreeMap<u32, Idle>,
}

#[derive(Debug)]
struct Idle {
    /// The receiver's need when the block was last updated.
    need: u32,
    /// Acknowledgements since.
    acks: u32,
    /// Total number of repair symbols to send.
    wanted: u32,
}

impl IdleCounters {
    pub(super) const fn new(limit: u32) -> Self {
        Self { limit, flow: None, blocks: BTreeMap::new() }
    }

    /// Handles a report. A timeout ends the wait of all blocks: without another block in flight, no acknowledgements
    /// can be counted.
    pub(super) fn on_report(&mut self, report: &Report<'_>, flow: &SendBlocks) {
        if self.flow != Some(flow.id()) {
            *self = Self { flow: Some(flow.id()), ..Self::new(self.limit) };
        }
        let block_of = |content| match content {
            Content::Symbols(run) if run.first.flow == flow.id() => Some(run.first.block),
            _ => None,
        };
        let newest = report.delivered.iter().filter_map(|sent| block_of(sent.content)).max();
        let timeout = report.cause == Cause::Timeout;
        self.blocks.retain(|number, _| flow.block(*number).is_some_and(|block| !block.is_done()));
        for block in flow.open_blocks() {
            let need = block.need();
            let idle = self.blocks.entry(block.number()).or_insert(Idle { need, acks: 0, wanted: 0 });
            if idle.need != need {
                (idle.need, idle.acks) = (need, 0);
            } else if newest > Some(block.number()) {
                idle.acks += 1;
            }
            if idle.acks >= self.limit || timeout {
                idle.acks = 0;
                idle.wanted = block.repair_sent() + need;
            }
        }
    }

    /// Returns how many symbols a block is to get now.
    pub(super) fn wanted(&self, block: &SendBlock) -> u32 {
        let idle = self.blocks.get(&block.number());
        idle.map_or(0, |idle| idle.wanted.saturating_sub(block.repair_sent()).min(block.need()))
    }
}
