//! Repetition of symbols for stalled blocks: the known state of a block may be wrong, and a schedule that relies on it
//! would wait forever.
//!
//! A sender that learns how many packets arrived, but not which, has to guess the losses. A sender that learns which
//! blocks are done, but not the needs of the others, does not know the code's overhead beyond k. So symbols are
//! repeated for a block that the receiver lacks although all of it is sent, none of it is in flight and the schedule
//! has nothing more for it: few at first, since it may be with the decoder, and more each time.

use super::{BlockSender, Pick};
use crate::flow::SendBlock;
use crate::flow::schedule::PathEstimate;
use crate::recovery::INITIAL_RTT;
use crate::time::Time;
use crate::wire::SymbolId;
use std::collections::VecDeque;
use std::time::Duration;

/// Time allowed to a receiver, beyond two round trips, to report that it has a block: it decodes, or withholds
/// feedback.
const SLACK: Duration = Duration::from_millis(25);

/// Where nothing is repeated, a block has failed when it was found waiting this often.
const GIVEN_UP_AFTER: u32 = 40;

/// Blocks that wait with nothing of them in flight.
#[derive(Debug, Default)]
pub(super) struct Stalled {
    /// When to look at the blocks next.
    look_at: Time,
    /// Blocks that get symbols again, and how many.
    waiting: VecDeque<(u32, u32)>,
}

impl BlockSender {
    /// Returns the next action when the schedule has none.
    pub(super) fn recover_stalled(&mut self, now: Time, path: &PathEstimate) -> Pick {
        if self.blocks.unfinished == 0 {
            return Pick::Idle;
        }
        let looks = self.stalled.look_at <= now;
        let quiet = !looks || self.look(now, path);
        if looks && !self.schedule.recovers_stalled() && self.blocks.open_blocks().any(|b| b.rounds() >= GIVEN_UP_AFTER)
        {
            return Pick::Failed;
        }
        while let Some((number, left)) = self.stalled.waiting.pop_front() {
            let step = self.recover(number, left);
            if let Some(step) = step {
                let left = left - u32::from(matches!(step, Pick::Symbol(_)));
                if left > 0 {
                    self.stalled.waiting.push_front((number, left));
                }
                return step;
            }
        }
        if quiet {
            self.wait = self.wait.into_iter().chain([self.stalled.look_at]).min();
        }
        Pick::Idle
    }

    /// Searches for blocks without a symbol in flight since the last check; returns whether any block has none in
    /// flight.
    fn look(&mut self, now: Time, path: &PathEstimate) -> bool {
        self.stalled.look_at = now + path.rtt.unwrap_or(INITIAL_RTT) * 2 + SLACK;
        self.stalled.waiting.clear();
        let mut quiet = false;
        for block in self.blocks.queue.iter_mut().filter(|block| block.is_quiet()) {
            quiet = true;
            if let Some(symbols) = block.wait_a_round()
                && self.schedule.recovers_stalled()
            {
                self.stalled.waiting.push_back((block.number(), symbols));
            }
        }
        quiet
    }

    /// Repeats one more symbol of a block: repair while it lasts, since it replaces any missing symbol; then source,
    /// known losses first, then round robin.
    fn recover(&mut self, number: u32, left: u32) -> Option<Pick> {
        let flow = self.blocks.id;
        let block = self.blocks.block_mut(number).filter(|block| !block.is_done())?;
        if block.repair_ready() > 0 {
            return self.take_repair(number).map(Pick::Symbol);
        }
        if block.can_prepare() {
            return block.prepare(flow, left).map(Pick::Request);
        }
        let esi = block.first_lost().or_else(|| block.next_in_turn())?;
        self.resend(SymbolId { flow, block: number, esi }).map(Pick::Symbol)
    }
}

impl SendBlock {
    /// Returns whether the receiver lacks the block although all of it is sent and none of it is in flight.
    const fn is_quiet(&self) -> bool {
        self.is_filled() && !self.is_done() && !self.is_encoding() && self.in_flight() == 0 && self.source_left() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BlockSender, Pick};
    use crate::flow::layout::BlockShape;
    use crate::flow::pool::Pool;
    use crate::flow::schedule::source;
    use crate::flow::{PathEstimate, Schedule, ScheduleAction, ScheduleConfig, SendBlocks, WorkReply};
    use crate::recovery::Report;
    use crate::time::Time;
    use crate::wire::{BlockStatus, FlowId, FlowStatus, SymbolId};
    use std::time::Duration;

    const FLOW: FlowId = FlowId(1);
    const RTT: Duration = Duration::from_millis(10);
    /// Two round trips and the receiver's slack.
    const ROUND: Duration = Duration::from_millis(45);

    /// One block of 10 symbols, all of which are sent and reported as arrived.
    fn arrived(schedule: &str, code: &str) -> BlockSender {
        arrived_of(schedule.parse::<ScheduleConfig>().expect("a schedule").build(), code)
    }

    fn arrived_of(schedule: Box<dyn Schedule>, code: &str) -> BlockSender {
        let code = code.parse().expect("a code");
        let mut flow = BlockSender::new(FLOW, 8, 10, schedule);
        flow.open(BlockShape { number: 0, plan: 0, k: 10, code, offset: 0, length: 80, cost: 10 });
        flow.block_mut(0).expect("it is open").fill(vec![7; 80]);
        let sent = send(&mut flow, Time::ZERO).expect("no failure");
        assert_eq!(sent[..10], (0..10).collect::<Vec<_>>());
        assert_eq!(send(&mut flow, Time::ZERO), Some(vec![]));
        flow
    }

    /// Sends the symbols due at this time; to the sender, they all arrive.
    fn send(flow: &mut BlockSender, now: Time) -> Option<Vec<u32>> {
        let path = PathEstimate { rtt: Some(RTT), loss: 0.0, burst: 1.0, window: 100 };
        let mut sent = Vec::new();
        loop {
            match flow.next(now, &path, false, true) {
                Pick::Symbol(picked) => sent.push(picked.id.esi),
                Pick::Request(request) => match request.run_pure() {
                    Ok(WorkReply::Encoded(job)) => flow.on_encoded(job),
                    other => panic!("{other:?}"),
                },
                Pick::Idle => break,
                Pick::Failed => return None,
            }
        }
        for esi in &sent {
            flow.on_delivered(SymbolId { flow: FLOW, block: 0, esi: *esi });
        }
        Some(sent)
    }

    /// Sends the due symbols at each deadline of the flow.
    fn rounds(flow: &mut BlockSender, count: usize) -> Vec<Vec<u32>> {
        let mut now = Time::ZERO;
        let mut sent = Vec::new();
        while sent.len() < count {
            now = now.max(flow.due_at().expect("it has something to do"));
            sent.extend(send(flow, now).filter(|sent| !sent.is_empty()));
        }
        sent
    }

    /// Which symbol is missing is unknown, so each is repeated in turn.
    #[test]
    fn source_goes_again_in_turn() {
        for schedule in ["arq", "windowed"] {
            let mut flow = arrived(schedule, "uncoded");
            let sent = rounds(&mut flow, 4);
            let all: Vec<u32> = (0..10).collect();
            assert_eq!(sent[..2], [vec![0], vec![1, 2, 3, 4]], "{schedule}");
            let mut third = sent[2].clone();
            third.sort_unstable();
            assert_eq!((third, sent[3].len()), (all, 10), "{schedule}");
        }
    }

    /// A full queue may drop all but the first packets of every burst.
    #[test]
    fn each_round_begins_with_another_symbol() {
        for schedule in ["arq", "windowed"] {
            let mut flow = arrived(schedule, "uncoded");
            let mut first: Vec<u32> = rounds(&mut flow, 13)[3..].iter().map(|sent| sent[0]).collect();
            first.sort_unstable();
            assert_eq!(first, (0..10).collect::<Vec<_>>(), "{schedule}");
        }
    }

    /// A block may be with the decoder: nothing is sent before the receiver could have reported that it has it.
    #[test]
    fn a_receiver_has_time_to_answer() {
        let mut flow = arrived("arq", "uncoded");
        let due = flow.due_at().expect("a look");
        assert_eq!(due, Time::ZERO + ROUND);
        assert_eq!(send(&mut flow, due - Duration::from_millis(1)), Some(vec![]));
        assert_eq!(send(&mut flow, due), Some(vec![]), "the time when it was first seen waiting");
        assert_eq!(flow.due_at(), Some(due + ROUND));
        let status = FlowStatus { flow: FLOW, done_below: 1, blocks: vec![] };
        flow.on_status(&status, &mut Pool::default(), &mut |_| {});
        assert_eq!((send(&mut flow, due + ROUND), flow.due_at()), (Some(vec![]), None));
    }

    /// Repair helps whatever is missing, and the receiver's reported need counts.
    #[test]
    fn repair_is_sent_while_available() {
        let mut flow = arrived("windowed", "raptorq");
        assert_eq!(rounds(&mut flow, 2), [vec![10], vec![11, 12, 13, 14]]);
        let mut flow = arrived("arq", "raptorq");
        let status = FlowStatus { flow: FLOW, done_below: 0, blocks: vec![BlockStatus { block: 0, need: 3 }] };
        flow.on_status(&status, &mut Pool::default(), &mut |_| {});
        assert_eq!(rounds(&mut flow, 1), [vec![10, 11, 12]]);
    }

    /// Source once, and nothing for what is missing.
    #[derive(Debug)]
    struct Once;

    impl Schedule for Once {
        fn next(&mut self, _now: Time, flow: &SendBlocks, _path: &PathEstimate) -> ScheduleAction {
            source(flow)
        }

        fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}

        fn resends(&self) -> bool {
            false
        }

        fn recovers_stalled(&self) -> bool {
            false
        }
    }

    /// ttp §I: a chunk that cannot be completed fails the transfer rather than leaving it to wait forever.
    #[test]
    fn without_mending_a_block_fails() {
        let mut flow = arrived_of(Box::new(Once), "uncoded");
        let mut now = Time::ZERO;
        let mut looks = 0;
        while send(&mut flow, now).is_some_and(|sent| sent.is_empty()) {
            now = now.max(flow.due_at().expect("a look"));
            looks += 1;
        }
        assert_eq!((looks, flow.due_at()), (41, None));
    }
}
