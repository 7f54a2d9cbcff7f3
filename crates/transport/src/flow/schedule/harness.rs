//! A flow under a schedule, for tests of the order in which its symbols are sent.

use super::{PathEstimate, ScheduleConfig};
use crate::flow::layout::BlockShape;
use crate::flow::pool::Pool;
use crate::flow::work::{EncodeJob, WorkReply, WorkRequest};
use crate::flow::{BlockSender, Pick, PickedSymbol, SendBlocks, SymbolKind};
use crate::recovery::{Cause, Content, Report, SentPacket};
use crate::time::Time;
use crate::wire::{BlockStatus, FlowId, FlowStatus, SymbolId};
use std::fmt;
use std::time::Duration;

const FLOW: FlowId = FlowId(1);
const SYMBOL: usize = 8;

/// A flow whose blocks are all open and filled.
#[derive(Debug)]
pub struct TestFlow {
    pub(crate) flow: BlockSender,
    /// The path that the schedule sees.
    pub path: PathEstimate,
    /// The time.
    pub now: Time,
    /// Encoding orders: block and number of symbols.
    pub encodes: Vec<(u32, u32)>,
    /// Encoders do not reply before [`Line::reply`].
    pub holds_replies: bool,
    held: Vec<EncodeJob>,
}

/// A flow's action when polled.
enum Done {
    Sent(PickedSymbol),
    /// An order for a number of repair symbols of a block.
    Ordered(u32, u32),
    GaveUp,
}

/// Prints a symbol as `block:esi`, with `+` for repair and `again` for a retransmission, and an order as `block?count`.
impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sent(PickedSymbol { id: SymbolId { block, esi, .. }, kind, .. }) => match kind {
                SymbolKind::Source => write!(f, "{block}:{esi}"),
                SymbolKind::Repair | SymbolKind::Coded => write!(f, "{block}:+{esi}"),
                SymbolKind::Resent => write!(f, "{block}:{esi} again"),
            },
            Self::Ordered(block, count) => write!(f, "{block}?{count}"),
            Self::GaveUp => f.write_str("gives up"),
        }
    }
}

impl TestFlow {
    /// Creates a line with the schedule named by its text, and blocks of `k` symbols each.
    pub fn new(schedule: &str, code: &str, blocks: u32, k: u32) -> Self {
        Self::of(schedule, code, &vec![k; blocks as usize])
    }

    /// Creates a line with the schedule named by its text, and blocks of the given sizes.
    pub fn of(schedule: &str, code: &str, blocks: &[u32]) -> Self {
        Self::with(&schedule.parse().expect("a schedule"), code, blocks)
    }

    /// Creates a flow with this schedule, and blocks of the given sizes and code.
    pub fn with(schedule: &ScheduleConfig, code: &str, blocks: &[u32]) -> Self {
        let code = code.parse().expect("a code");
        let mut flow = BlockSender::new(FLOW, SYMBOL, blocks.iter().copied().map(u64::from).sum(), schedule.build());
        let mut offset = 0;
        for (number, k) in (0..).zip(blocks) {
            let length = *k as usize * SYMBOL;
            flow.open(BlockShape { number, plan: 0, k: *k, code, offset, length, cost: *k });
            flow.block_mut(number).expect("it is open").fill(vec![number as u8; length]);
            offset += length as u64;
        }
        let path = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };
        Self { flow, path, now: Time::ZERO, encodes: Vec::new(), holds_replies: false, held: Vec::new() }
    }

    /// Sets the path's loss rate.
    pub const fn losing(mut self, loss: f64) -> Self {
        self.path.loss = loss;
        self
    }

    /// The receiver knows the flow.
    pub fn announced(mut self) -> Self {
        self.flow.on_announced();
        self
    }

    /// Lets time pass.
    pub fn after(&mut self, time: Duration) {
        self.now += time;
    }

    /// Sends at most `most` symbols that can be sent now; returns their block and esi.
    pub fn send(&mut self, most: usize) -> Vec<(u32, u32)> {
        (0..most).map_while(|_| self.next()).collect()
    }

    /// Sends symbols up to and including this one.
    pub fn send_until(&mut self, last: (u32, u32)) -> Vec<(u32, u32)> {
        let mut sent = Vec::new();
        while sent.last() != Some(&last) {
            sent.push(self.next().expect("it arrives"));
        }
        sent
    }

    /// Sends one packet of at most `most` symbols; returns their block and esi.
    pub fn packet(&mut self, most: usize) -> Vec<(u32, u32)> {
        let mut symbols: Vec<(u32, u32)> = self.next().into_iter().collect();
        while let Some((block, esi)) = symbols.last().copied().filter(|_| symbols.len() < most) {
            let last = SymbolId { flow: FLOW, block, esi };
            match self.pick(|line| line.step_in_packet(last)) {
                Some(symbol) => symbols.push(symbol),
                None => break,
            }
        }
        symbols
    }

    fn next(&mut self) -> Option<(u32, u32)> {
        self.pick(Self::step)
    }

    fn pick(&mut self, mut step: impl FnMut(&mut Self) -> Option<Done>) -> Option<(u32, u32)> {
        loop {
            match step(self)? {
                Done::Sent(picked) => return Some((picked.id.block, picked.id.esi)),
                Done::Ordered(..) => {}
                Done::GaveUp => panic!("no flow is abandoned"),
            }
        }
    }

    /// Logs up to `most` things done now, each as [`Done`] prints it.
    pub fn log(&mut self, most: usize) -> String {
        let mut log: Vec<String> = Vec::new();
        while log.len() < most
            && log.last().is_none_or(|last| last != "gives up")
            && let Some(done) = self.step()
        {
            log.push(done.to_string());
        }
        log.join(" ")
    }

    fn step(&mut self) -> Option<Done> {
        let step = self.flow.next(self.now, &self.path, false, true);
        self.done(step)
    }

    fn step_in_packet(&mut self, last: SymbolId) -> Option<Done> {
        let step = self.flow.next_in_packet(self.now, &self.path, false, last);
        self.done(step)
    }

    fn done(&mut self, step: Pick) -> Option<Done> {
        match step {
            Pick::Symbol(picked) => {
                assert_eq!(self.flow.symbol(picked.id).len(), SYMBOL);
                Some(Done::Sent(picked))
            }
            Pick::Request(WorkRequest::Encode(job)) => {
                let (block, count) = (job.block, job.count);
                self.encodes.push((block, count));
                self.held.push(job);
                if !self.holds_replies {
                    self.reply();
                }
                Some(Done::Ordered(block, count))
            }
            Pick::Request(other) => panic!("{other:?}"),
            Pick::Failed => Some(Done::GaveUp),
            Pick::Idle => None,
        }
    }

    /// Lets the encoders reply.
    pub fn reply(&mut self) {
        for job in std::mem::take(&mut self.held) {
            match WorkRequest::Encode(job).run_pure() {
                Ok(WorkReply::Encoded(job)) => self.flow.on_encoded(job),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the blocks.
    pub fn blocks(&self) -> &SendBlocks {
        self.flow.blocks()
    }

    /// Returns the time at which the flow acts next.
    pub fn due_at(&self) -> Option<Time> {
        self.flow.due_at()
    }

    /// More source symbols will be opened.
    pub const fn add_source(&mut self, symbols: u32) {
        self.flow.add_source(symbols);
    }

    /// A symbol arrived.
    pub fn deliver(&mut self, symbol: SymbolId) {
        self.flow.on_delivered(symbol);
    }

    /// A symbol is declared lost.
    pub fn declare_lost(&mut self, symbol: SymbolId) {
        self.flow.on_lost(symbol);
    }

    /// A symbol that was declared lost arrived.
    pub fn take_back(&mut self, symbol: SymbolId) {
        self.flow.on_spurious(symbol);
    }

    /// The sender gets a report.
    pub fn report(&mut self, report: &Report<'_>) {
        self.flow.on_report(report);
    }

    /// Reports that the receiver has a block.
    pub fn acknowledge(&mut self, block: u32) {
        let status = FlowStatus { flow: FLOW, done_below: 0, blocks: vec![BlockStatus { block, need: 0 }] };
        self.flow.on_status(&status, &mut Pool::default(), &mut |_| {});
        self.flow.on_report(&Report::empty(self.now));
    }

    /// Declares a symbol lost.
    pub fn lose(&mut self, block: u32, esi: u32) {
        self.flow.on_lost(SymbolId { flow: FLOW, block, esi });
    }

    /// Reports symbols as lost or delivered.
    pub fn hear(&mut self, lost: &[(u32, u32)], delivered: &[(u32, u32)]) {
        lost.iter().for_each(|&(block, esi)| self.lose(block, esi));
        let ids = delivered.iter().map(|&(block, esi)| SymbolId { flow: FLOW, block, esi });
        ids.clone().for_each(|id| self.flow.on_delivered(id));
        let sent =
            |id: SymbolId| SentPacket { number: 0, time: self.now, bytes: 1000, content: Content::Symbols(id.into()) };
        let delivered: Vec<SentPacket> = ids.map(sent).collect();
        self.flow.on_report(&Report { delivered: &delivered, ..Report::empty(self.now) });
    }

    /// Reports that a retransmission timeout has declared these lost.
    pub fn time_out(&mut self, lost: &[(u32, u32)]) {
        lost.iter().for_each(|&(block, esi)| self.lose(block, esi));
        self.flow.on_report(&Report { cause: Cause::Timeout, ..Report::empty(self.now) });
    }

    /// Reports the arrival of a symbol declared lost.
    pub fn hear_late(&mut self, block: u32, esi: u32) {
        self.flow.on_spurious(SymbolId { flow: FLOW, block, esi });
        self.flow.on_report(&Report::empty(self.now));
    }
}
