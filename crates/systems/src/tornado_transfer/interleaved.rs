//! Source in order, interleaved with repair of earlier blocks; then repair of unacknowledged blocks, round robin
//! (tornado-transfer §2.1).

use std::collections::VecDeque;
use transport::flow::Outstanding;
use transport::flow::SendBlock;
use transport::flow::SendBlocks;
use transport::flow::schedule::ScheduleFactory;
use transport::flow::{PathEstimate, Schedule, ScheduleAction};
use transport::recovery::Report;
use transport::settings::{IntegerRange, Or, Setting, Settings, Share, field};
use transport::time::Time;

/// Parameters of the interleaved schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct InterleavedConfig {
    /// X: after this many source symbols, one repair symbol of each earlier unacknowledged block is sent. `None`:
    /// chosen so that a block can be decoded when the next one ends.
    pub repair_every: Option<u32>,
    /// Accepted probability that it cannot be, when X is chosen automatically.
    pub failure: f64,
}

impl Default for InterleavedConfig {
    fn default() -> Self {
        // tornado-transfer §2.1 gives the aim of X, but not how reliable it should be.
        Self { repair_every: None, failure: 0.01 }
    }
}

impl Settings for InterleavedConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("repair-every", repair_every, Or("auto", IntegerRange(1, 1_000_000))),
        field!("failure", failure, Share(1e-9, 0.5)),
    ];
}

impl ScheduleFactory for InterleavedConfig {
    const NAME: &'static str = "interleaved";

    fn build(&self) -> Box<dyn Schedule> {
        Box::new(Interleaved::new(self.clone()))
    }
}

/// Fewest repair symbols made at once: a request has a cost of its own.
const LEAST_MADE: u32 = 8;

#[derive(Debug)]
pub(super) struct Interleaved {
    config: InterleavedConfig,
    /// The block whose source is being sent, and the X computed for it, if repair is expected to be needed at all.
    block: Option<u32>,
    every: Option<u32>,
    /// Source symbols since the last round of repair.
    since: u32,
    /// Blocks that have yet to get a symbol in this round.
    round: VecDeque<u32>,
    /// The block that had the last symbol after the source ran out.
    turn: Option<u32>,
}

impl Interleaved {
    pub(super) const fn new(config: InterleavedConfig) -> Self {
        Self { config, block: None, every: None, since: 0, round: VecDeque::new(), turn: None }
    }

    /// Returns X for the source of this block: while it is sent, the previous block, assumed to be as long, gets as
    /// many repair symbols as it takes to decode it (tornado-transfer §2.1).
    fn interval(&self, block: &SendBlock, path: &PathEstimate) -> Option<u32> {
        self.config.repair_every.or_else(|| {
            let (k, code) = (block.k(), block.code());
            let repairs = Outstanding::whole(k, code).extra(path.odds(self.config.failure));
            k.checked_div(repairs).map(|every| every.max(1))
        })
    }

    /// Returns how many repair symbols of a block are made at once.
    fn batch(&self, k: u32) -> u32 {
        k.checked_div(self.every.unwrap_or(k)).unwrap_or(0).clamp(LEAST_MADE, k.max(LEAST_MADE))
    }

    /// Returns one repair symbol of the block, or an order for some. `None` while they are being made; a code that has
    /// no more resends lost source.
    fn repair(&self, flow: &SendBlocks, block: &SendBlock) -> Option<ScheduleAction> {
        let id = flow.id_of(block);
        if block.repair_ready() > 0 {
            return Some(ScheduleAction::Repair(id));
        }
        if block.can_prepare() {
            return Some(ScheduleAction::EncodeRepair { block: id, count: self.batch(block.k()) });
        }
        flow.last_resort_of(block).map(ScheduleAction::Retransmit)
    }

    /// Returns the next action while source remains.
    fn with_source(&mut self, flow: &SendBlocks, path: &PathEstimate, block: &SendBlock) -> ScheduleAction {
        let number = block.number();
        if self.block != Some(number) {
            self.block = Some(number);
            self.every = self.interval(block, path);
        }
        if self.every.is_some_and(|every| self.since >= every) {
            self.since = 0;
            self.round.extend(flow.open_blocks().map(SendBlock::number).take_while(|earlier| *earlier < number));
        }
        while let Some(earlier) = self.round.front() {
            let open = flow.block(*earlier).filter(|block| !block.is_done());
            let next = open.and_then(|block| self.repair(flow, block));
            if !matches!(next, Some(ScheduleAction::EncodeRepair { .. })) {
                self.round.pop_front();
            }
            if let Some(next) = next {
                return next;
            }
        }
        // §2.1.1: costly work is done in advance while symbols are sent; the block's repair is needed when its source
        // has been sent.
        if self.every.is_some() && block.repair_ready() == 0 && block.can_prepare() {
            return ScheduleAction::EncodeRepair { block: flow.id_of(block), count: self.batch(block.k()) };
        }
        self.since += 1;
        ScheduleAction::Source
    }

    /// Returns the next action without source: all is sent, or waits for the receiver to complete blocks.
    fn without_source(&mut self, flow: &SendBlocks) -> ScheduleAction {
        let sent = |block: &&SendBlock| block.source_left() == 0 || block.is_repair_only();
        let after = |block: &&SendBlock| self.turn.is_none_or(|turn| block.number() > turn);
        let others = flow.open_blocks().filter(sent).take_while(|block| !after(block));
        let next = flow.open_blocks().filter(sent).filter(after).chain(others).find_map(|block| {
            let next = self.repair(flow, block)?;
            Some((block.number(), next))
        });
        match next {
            Some((_, prepare @ ScheduleAction::EncodeRepair { .. })) => prepare,
            Some((number, next)) => {
                self.turn = Some(number);
                next
            }
            None => ScheduleAction::Idle,
        }
    }
}

impl Schedule for Interleaved {
    fn next(&mut self, _now: Time, flow: &SendBlocks, path: &PathEstimate) -> ScheduleAction {
        match flow.block(flow.source_block()).filter(|_| flow.source_ready()) {
            Some(block) => self.with_source(flow, path, block),
            None => self.without_source(flow),
        }
    }

    fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}

    // tornado-transfer §2.1: retransmission is not needed.
    fn resends(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::flow;
    use transport::flow::schedule::TestFlow;

    fn line(text: &str, blocks: u32, k: u32) -> TestFlow {
        flow(&format!("interleaved:{text}"), "raptorq", &vec![k; blocks as usize])
    }

    const fn s(block: u32, esi: u32) -> (u32, u32) {
        (block, esi)
    }

    /// tornado-transfer §2.1: after every X source symbols, one repair symbol of each earlier block.
    #[test]
    fn repair_of_each_earlier_block_after_every_x_source_symbols() {
        let mut line = line("repair-every=5", 3, 10);
        let first: Vec<_> = (0..10).map(|esi| s(0, esi)).collect();
        assert_eq!(line.send(10), first, "no block is earlier than the first");
        // The tenth source symbol was the fifth since the last round.
        let second = [s(0, 10), s(1, 0), s(1, 1), s(1, 2), s(1, 3), s(1, 4), s(0, 11), s(1, 5), s(1, 6), s(1, 7)];
        assert_eq!(line.send(10), second);
        assert_eq!(line.send(2), [s(1, 8), s(1, 9)]);
        assert_eq!(line.send(7), [s(0, 12), s(1, 10), s(2, 0), s(2, 1), s(2, 2), s(2, 3), s(2, 4)]);
        line.acknowledge(0);
        assert_eq!(line.send(3), [s(1, 11), s(2, 5), s(2, 6)], "not of acknowledged ones");
    }

    /// §2.1: then repair of each unacknowledged block, in turn.
    #[test]
    fn round_robin_once_all_source_has_gone_out() {
        let mut line = line("repair-every=1000", 3, 10);
        assert_eq!(line.send(30), (0..30).map(|nth| s(nth / 10, nth % 10)).collect::<Vec<_>>());
        assert_eq!(line.send(7), [s(0, 10), s(1, 10), s(2, 10), s(0, 11), s(1, 11), s(2, 11), s(0, 12)]);
        line.acknowledge(1);
        assert_eq!(line.send(3), [s(2, 12), s(0, 13), s(2, 13)]);
    }

    /// §2.1: "after all source symbols of block n has been sent, the receiver has received enough symbols for block
    /// n-1".
    #[test]
    fn x_follows_the_loss() {
        for (loss, fewest, most) in [(0.01, 4, 15), (0.1, 35, 60), (0.2, 75, 115)] {
            let mut line = line("", 3, 280);
            line.path.loss = loss;
            line.send(280);
            let before_second_ends = line.send_until((1, 279));
            let repairs = before_second_ends.iter().filter(|(block, esi)| (*block, *esi >= 280) == (0, true)).count();
            assert!((fewest..=most).contains(&repairs), "{repairs} at {loss}");
            // The average number of arrivals is enough: of 280 and the repairs.
            assert!((280.0 + repairs as f64) * (1.0 - loss) >= 281.0, "{repairs} at {loss}");
        }
    }

    #[test]
    fn a_path_without_loss_has_no_repair_before_the_end() {
        let mut line = line("", 3, 100);
        line.path.loss = 0.0;
        assert_eq!(line.send(300), (0..300).map(|nth| s(nth / 100, nth % 100)).collect::<Vec<_>>());
        assert_eq!(line.encodes, []);
    }

    /// A block is encoded while its source is sent: at its end the repair is ready.
    #[test]
    fn repair_is_made_in_time() {
        let mut line = line("repair-every=5", 2, 40);
        line.send(1);
        assert_eq!(line.encodes, [(0, 8)]);
        line.send_until((1, 0));
        assert_eq!(line.encodes, [(0, 8), (1, 8)]);
    }

    /// Blocks held back without credit do not delay the repair of lost ones.
    #[test]
    fn repair_continues_without_source() {
        let mut line = line("repair-every=1000", 1, 4);
        line.add_source(100);
        assert_eq!(line.send(6), [s(0, 0), s(0, 1), s(0, 2), s(0, 3), s(0, 4), s(0, 5)]);
    }

    #[test]
    fn a_code_without_repair_sends_lost_source_again() {
        let mut line = flow("interleaved", "uncoded", &[4; 2]);
        assert_eq!(line.send(99).len(), 8);
        line.lose(0, 3);
        line.lose(1, 1);
        assert_eq!(line.send(99), [s(0, 3), s(1, 1)]);
    }
}
