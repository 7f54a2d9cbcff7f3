//! The first round of each block: its source, then a number of repair symbols fixed when its coding began. Blocks that
//! need more get more later.

use std::collections::VecDeque;
use transport::flow::ScheduleAction;
use transport::flow::SendBlock;
use transport::flow::SendBlocks;
use transport::flow::schedule::Wants;
use transport::flow::schedule::source;
use transport::wire::FlowId;

/// A first round for each block in turn, and more for blocks for which it is not enough.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    first: FirstRound,
    /// Blocks that cannot be decoded from the symbols received and in flight.
    wants: Wants,
    /// The wants are up to date.
    current: bool,
}

impl Rounds {
    /// Returns the next action: a symbol that `supply` finds for a block that wants some, otherwise part of a first
    /// round. `repair` gives the number of repair symbols for the block being sent and for the `ahead` blocks behind
    /// it, `wanted` the number of symbols for a block whose first round is all sent.
    pub(super) fn next(
        &mut self,
        flow: &SendBlocks,
        ahead: u32,
        repair: impl FnMut(&SendBlock) -> u32,
        wanted: impl Fn(&SendBlock) -> u32,
        supply: impl Fn(&SendBlocks, &SendBlock, u32) -> ScheduleAction,
    ) -> ScheduleAction {
        self.first.begin(flow, ahead, repair);
        self.wanted(flow, wanted, supply).unwrap_or_else(|| self.first_or(flow, source(flow)))
    }

    /// Like [`Rounds::next`], but no symbol of a block is sent before its repair is encoded, which begins with the
    /// sending of the block before it.
    pub(super) fn next_encoded(
        &mut self,
        flow: &SendBlocks,
        repair: impl FnMut(&SendBlock) -> u32,
        supply: impl Fn(&SendBlocks, &SendBlock, u32) -> ScheduleAction,
    ) -> ScheduleAction {
        let is_begun = flow.block(flow.source_block()).is_some_and(|block| block.source_left() < block.k());
        self.first.begin(flow, u32::from(is_begun), repair);
        let source = if self.first.is_encoded(flow) { source(flow) } else { ScheduleAction::Idle };
        self.wanted(flow, lacking, supply).unwrap_or_else(|| self.first_or(flow, source))
    }

    /// Returns the symbol that `supply` finds for a block that wants some.
    fn wanted(
        &mut self,
        flow: &SendBlocks,
        wanted: impl Fn(&SendBlock) -> u32,
        supply: impl Fn(&SendBlocks, &SendBlock, u32) -> ScheduleAction,
    ) -> Option<ScheduleAction> {
        if !self.current {
            self.current = true;
            self.wants.survey(flow, |block| if self.first.is_sent(block) { wanted(block) } else { 0 });
        }
        self.wants.serve(flow, supply)
    }

    /// Returns the next repair of a first round, or else `source`.
    fn first_or(&mut self, flow: &SendBlocks, source: ScheduleAction) -> ScheduleAction {
        let next = self.first.next(flow).unwrap_or(source);
        self.current &= !may_end_round(flow, next);
        next
    }

    /// Marks the wants as out of date.
    pub(super) const fn on_report(&mut self) {
        self.current = false;
    }
}

/// Blocks with begun coding and unsent repair.
#[derive(Debug, Default)]
struct FirstRound {
    /// The flow for which this was computed: a successor with smaller symbols starts its blocks over.
    flow: Option<FlowId>,
    /// The first block whose coding has not begun.
    next: u32,
    /// Blocks, and how many repair symbols each should have.
    repairing: VecDeque<(u32, u32)>,
}

impl FirstRound {
    /// Begins coding the block whose source is being sent, and the `ahead` blocks behind it; `repair` gives the number
    /// of repair symbols for each.
    fn begin(&mut self, flow: &SendBlocks, ahead: u32, mut repair: impl FnMut(&SendBlock) -> u32) {
        if self.flow != Some(flow.id()) {
            *self = Self { flow: Some(flow.id()), ..Self::default() };
        }
        let last = flow.source_block().saturating_add(ahead);
        self.next = self.next.max(flow.first_open());
        while self.next <= last
            && let Some(block) = flow.block(self.next)
        {
            // A done block needs none; one without its bytes is looked at again later.
            if !block.is_done() && !block.is_filled() {
                break;
            }
            let most = block.code().symbol_limit(block.k()) - block.k();
            let count = if block.is_done() { 0 } else { repair(block).min(most) };
            if count > 0 {
                self.repairing.push_back((self.next, count));
            }
            self.next += 1;
        }
    }

    /// Returns whether all repair of the block whose source is being sent is made.
    fn is_encoded(&self, flow: &SendBlocks) -> bool {
        let number = flow.source_block();
        let Some(block) = flow.block(number) else { return true };
        let made = block.repair_sent() + block.repair_ready();
        let lacks = |&(other, count): &(u32, u32)| other == number && made < count;
        number < self.next && !self.repairing.iter().any(lacks)
    }

    /// Returns the next repair symbol of a block whose source is all sent, or the work it first requires.
    fn next(&mut self, flow: &SendBlocks) -> Option<ScheduleAction> {
        let left = |number: u32, count: u32| {
            let block = flow.block(number).filter(|block| !block.is_done())?;
            Some((block, count.saturating_sub(block.repair_sent()))).filter(|(_, left)| *left > 0)
        };
        self.repairing.retain(|&(number, count)| left(number, count).is_some());
        for &(number, count) in &self.repairing {
            let Some((block, left)) = left(number, count) else { continue };
            let id = flow.id_of(block);
            if block.repair_ready() < left && block.can_prepare() {
                return Some(ScheduleAction::EncodeRepair { block: id, count: left - block.repair_ready() });
            }
            if block.source_left() == 0 && block.repair_ready() > 0 {
                return Some(ScheduleAction::Repair(id));
            }
        }
        None
    }

    /// Returns whether the block's whole first round is sent.
    fn is_sent(&self, block: &SendBlock) -> bool {
        let repair_left = |&(number, count): &(u32, u32)| number == block.number() && block.repair_sent() < count;
        block.source_left() == 0 && block.number() < self.next && !self.repairing.iter().any(repair_left)
    }
}

/// Returns the number of symbols that a block lacks for decoding: more are known lost than were added (lt-tcp §3.4). The
/// same holds if later symbols are lost in turn, or declared lost by a timeout.
pub(super) fn lacking(block: &SendBlock) -> u32 {
    block.need().saturating_sub(block.in_flight())
}

/// Returns whether `next` may end a block's first round; losses in it may be known already.
fn may_end_round(flow: &SendBlocks, next: ScheduleAction) -> bool {
    match next {
        ScheduleAction::Source => flow.block(flow.source_block()).is_some_and(|block| block.source_left() == 1),
        ScheduleAction::Repair(_) => true,
        _ => false,
    }
}
