//! A flow under a schedule, for tests of the order in which its symbols go out.

use super::{PathEstimate, ScheduleConfig};
use crate::flow::layout::BlockShape;
use crate::flow::pool::Pool;
use crate::flow::request::{EncodeJob, Reply, Request};
use crate::flow::sender::{FlowSender, Step};
use crate::time::Time;
use crate::wire::{BlockStatus, FlowId, FlowStatus, SymbolId};
use std::time::Duration;

const FLOW: FlowId = FlowId(1);
const SYMBOL: usize = 8;

/// A flow whose blocks are all open and filled.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) flow: FlowSender,
    pub(super) path: PathEstimate,
    pub(super) now: Time,
    /// What was ordered of the encoder: block and number of symbols.
    pub(super) encodes: Vec<(u32, u32)>,
    /// Encoders do not answer before [`Line::reply`].
    pub(super) holds_replies: bool,
    held: Vec<EncodeJob>,
}

impl Line {
    /// A schedule by its text, and blocks of `k` symbols each.
    pub(super) fn new(schedule: &str, code: &str, blocks: u32, k: u32) -> Self {
        let schedule: ScheduleConfig = schedule.parse().expect("a schedule");
        let code = code.parse().expect("a code");
        let mut flow = FlowSender::new(FLOW, SYMBOL, u64::from(blocks * k), schedule.build());
        let length = k as usize * SYMBOL;
        for number in 0..blocks {
            let offset = u64::from(number) * length as u64;
            flow.open(BlockShape { number, plan: 0, k, code, offset, length, cost: k });
            flow.block_mut(number).expect("it is open").fill(vec![number as u8; length]);
        }
        let path = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };
        Self { flow, path, now: Time::ZERO, encodes: Vec::new(), holds_replies: false, held: Vec::new() }
    }

    pub(super) fn announced(mut self) -> Self {
        self.flow.on_announced();
        self
    }

    pub(super) fn after(&mut self, time: Duration) {
        self.now += time;
    }

    /// At most so many symbols that go out now: block and esi.
    pub(super) fn send(&mut self, most: usize) -> Vec<(u32, u32)> {
        (0..most).map_while(|_| self.next()).collect()
    }

    /// Symbols that go out up to and with this one.
    pub(super) fn send_until(&mut self, last: (u32, u32)) -> Vec<(u32, u32)> {
        let mut sent = Vec::new();
        while sent.last() != Some(&last) {
            sent.push(self.next().expect("it comes"));
        }
        sent
    }

    fn next(&mut self) -> Option<(u32, u32)> {
        loop {
            match self.flow.next(self.now, &self.path, false) {
                Step::Symbol(picked) => {
                    assert_eq!(self.flow.symbol(picked.id).len(), SYMBOL);
                    return Some((picked.id.block, picked.id.esi));
                }
                Step::Request(Request::Encode(job)) => {
                    self.encodes.push((job.block, job.count));
                    self.held.push(job);
                    if !self.holds_replies {
                        self.reply();
                    }
                }
                Step::Request(other) => panic!("{other:?}"),
                Step::Failed => panic!("nobody gives up"),
                Step::Idle => return None,
            }
        }
    }

    /// The encoders answer.
    pub(super) fn reply(&mut self) {
        for job in std::mem::take(&mut self.held) {
            match Request::Encode(job).run_pure() {
                Ok(Reply::Encoded(job)) => self.flow.on_encoded(job),
                other => panic!("{other:?}"),
            }
        }
    }

    /// The receiver has a block.
    pub(super) fn acknowledge(&mut self, block: u32) {
        let status = FlowStatus { flow: FLOW, done_below: 0, blocks: vec![BlockStatus { block, need: 0 }] };
        self.flow.on_status(&status, &mut Pool::default(), &mut |_| {});
    }

    pub(super) fn lose(&mut self, block: u32, esi: u32) {
        self.flow.on_lost(SymbolId { flow: FLOW, block, esi });
    }
}
