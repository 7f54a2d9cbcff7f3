//! The sender half of a connection: flows by turn, the control stream, and the reliable frames around them.

mod shrinking;
mod streams;
#[cfg(test)]
mod tests;

pub(super) use streams::StreamNews;

use super::outbox::{Outbox, Piece};
use super::turns::Turns;
use crate::flow::{
    BlockSender, BlockSizing, ControlSender, Direction, FlowKey, ObjectSender, PathEstimate, Pick, PickedSymbol, Pool,
    Reply, Request, ScheduleConfig, SendCredit, StreamSender, SymbolKind,
};
use crate::recovery::{Content, Report};
use crate::time::Time;
use crate::trace::Symbols;
use crate::wire::limits::MAX_OPEN_FLOWS;
use crate::wire::{CONTROL_FRAME_HEADER, FlowId, FlowStatus, Frame, StreamsAllowed, SymbolId, SymbolRun};
use std::collections::VecDeque;

/// How far ahead of sending blocks are read: in source symbols, about 4 MB.
const READ_AHEAD: u64 = 3_000;

/// Requests that one ask for data may lead to before the caller gets to run them.
const REQUESTS_PER_ASK: usize = 16;

/// Everything this side sends but feedback.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Open flows in the order they were opened, which is the order they are served in: an earlier object is never held
    /// up by a later one, and the tail of one is filled with the source of the next.
    flows: Vec<ObjectSender>,
    /// Flows that are not announced yet: a peer takes [`MAX_OPEN_FLOWS`] at once.
    waiting: VecDeque<ObjectSender>,
    /// Source symbols of the waiting flows.
    waiting_source: u64,
    /// Streams that are announced, until the peer has read them or knows that they are given up.
    streams: Vec<StreamSender>,
    /// Streams that are not announced yet: the peer takes so many at once.
    waiting_streams: VecDeque<StreamSender>,
    streams_allowed: StreamsAllowed,
    turns: Turns,
    /// A schedule has given up a block.
    pub(super) failed: bool,
    pub(super) control: ControlSender,
    pub(super) outbox: Outbox,
    pub(super) credit: SendCredit,
    pub(super) pool: Pool,
    /// Highest feedback number acted upon.
    last_feedback: u32,
    pub(super) bytes_acknowledged: u64,
    pub(super) counts: SymbolCounts,
    /// When the first symbol went out since one was acknowledged or a block became done.
    pub(super) unanswered: Option<Time>,
}

/// Symbols sent so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SymbolCounts {
    pub(super) source: u64,
    pub(super) resent: u64,
    pub(super) repair: u64,
}

impl Outgoing {
    pub(super) fn new() -> Self {
        Self {
            flows: Vec::new(),
            waiting: VecDeque::new(),
            waiting_source: 0,
            streams: Vec::new(),
            waiting_streams: VecDeque::new(),
            streams_allowed: StreamsAllowed::default(),
            turns: Turns::default(),
            failed: false,
            control: ControlSender::default(),
            outbox: Outbox::default(),
            credit: SendCredit::default(),
            pool: Pool::default(),
            last_feedback: 0,
            bytes_acknowledged: 0,
            counts: SymbolCounts::default(),
            unanswered: None,
        }
    }

    pub(super) fn open(&mut self, flow: ObjectSender) {
        self.waiting_source += flow.flow().source_left();
        self.waiting.push_back(flow);
        self.announce_waiting();
    }

    fn announce_waiting(&mut self) {
        while self.flows.len() < MAX_OPEN_FLOWS
            && let Some(flow) = self.waiting.pop_front()
        {
            self.waiting_source -= flow.flow().source_left();
            self.flows.push(flow);
            self.announce(self.flows.len() - 1);
        }
    }

    fn announce(&mut self, at: usize) {
        let flow = &self.flows[at];
        self.outbox.push_thrice(Piece::Announce(flow.id()));
        for plan in flow.further_plans() {
            self.outbox.push_thrice(Piece::Plan(flow.id(), plan));
        }
    }

    /// Flows of which the peer lacks something: objects that it does not have wholly, streams with bytes it does not have.
    pub(super) fn flow_count(&self) -> usize {
        let streams = self.streams.iter().filter(|stream| stream.is_unfinished()).count();
        self.flows.len() + self.waiting.len() + streams + self.waiting_streams.len()
    }

    /// Another schedule for every flow.
    pub(super) fn reschedule(&mut self, schedule: &ScheduleConfig) {
        let objects = self.flows.iter_mut().chain(&mut self.waiting).map(ObjectSender::flow_mut);
        let streams = self.streams.iter_mut().chain(&mut self.waiting_streams).map(StreamSender::flow_mut);
        objects.chain(streams).for_each(|flow| flow.set_schedule(schedule.build()));
    }

    /// Other blocks for what is not open yet of every object and stream.
    pub(super) fn resize_blocks(&mut self, blocks: &BlockSizing, symbol_size: u16, largest_k: u32) {
        for object in self.flows.iter_mut().chain(&mut self.waiting) {
            if let Some(rule) = blocks.live_sizer(symbol_size) {
                object.set_sizer(Some(rule), largest_k);
            }
        }
        for stream in self.streams.iter_mut().chain(&mut self.waiting_streams) {
            stream.resize_blocks(blocks);
        }
    }

    /// What has been sent so far.
    pub(super) fn symbols(&self) -> Symbols {
        let objects = self.flows.iter().map(ObjectSender::flow);
        let flows = objects.chain(self.streams.iter().map(StreamSender::flow));
        let SymbolCounts { source, resent, repair } = self.counts;
        Symbols { source, beyond: resent + repair, open_blocks: flows.map(BlockSender::unfinished).sum() }
    }

    /// Symbols of the flows that have not gone out for the first time.
    pub(super) fn source_left(&self) -> u64 {
        let streams: u64 = self.streams.iter().map(|stream| stream.flow().source_left()).sum();
        self.objects_left() + streams
    }

    /// The same of the objects alone.
    fn objects_left(&self) -> u64 {
        self.flows.iter().map(|flow| flow.flow().source_left()).sum::<u64>() + self.waiting_source
    }

    /// A flow that the receiver has wholly: it is dropped.
    pub(super) fn take_finished(&mut self) -> Option<FlowId> {
        let at = self.flows.iter().position(ObjectSender::is_finished)?;
        let finished = self.flows.remove(at).object();
        self.announce_waiting();
        Some(finished)
    }

    /// Whether this is an object that the peer does not have wholly.
    pub(super) fn is_object(&self, id: FlowId) -> bool {
        self.flows.iter().chain(&self.waiting).any(|flow| flow.id() == id || flow.object() == id)
    }

    /// The object that the program knows by this flow.
    fn object(&mut self, name: FlowId) -> Option<&mut ObjectSender> {
        self.flows.iter_mut().find(|flow| flow.object() == name)
    }

    /// The blocks of an object or a stream.
    fn flow(&mut self, id: FlowId) -> Option<&mut BlockSender> {
        let Self { flows, streams, .. } = self;
        let object = flows.iter_mut().find(|flow| flow.id() == id).map(ObjectSender::flow_mut);
        object.or_else(|| streams.iter_mut().find(|stream| stream.id() == id).map(StreamSender::flow_mut))
    }

    /// Opens blocks as far as credit, the read-ahead and `most` open source symbols go.
    pub(super) fn open_blocks(&mut self, most: u64, path: &PathEstimate, requests: &mut impl Extend<Request>) {
        let mut open: u64 = self.flows.iter().map(ObjectSender::held_symbols).sum();
        let Self { flows, outbox, credit, pool, .. } = self;
        for flow in flows {
            let open_before = open - flow.held_symbols();
            let planned = flow.further_plans().end;
            while open < most
                && let Some(request) = flow.open_block(credit, READ_AHEAD, path, pool)
            {
                requests.extend([request]);
                open = open_before + flow.held_symbols();
            }
            for plan in planned..flow.further_plans().end {
                outbox.push_thrice(Piece::Plan(flow.id(), plan));
            }
            // Later flows read ahead only once this one is all opened.
            if flow.has_unopened() {
                break;
            }
        }
    }

    /// Whether a block waits for the receiver's credit.
    pub(super) fn is_credit_limited(&self) -> bool {
        let object = self.flows.iter().find_map(ObjectSender::next_cost).is_some_and(|cost| !self.credit.covers(cost));
        object || self.streams.iter().any(StreamSender::is_held_back)
    }

    /// The next symbol by the flows' schedules: the streams and, as one, the objects take turns. Work that has to be done first
    /// goes to `requests`.
    pub(super) fn next_symbol(
        &mut self,
        now: Time,
        path: &PathEstimate,
        requests: &mut impl Extend<Request>,
    ) -> Option<PickedSymbol> {
        for turn in self.turns.order(self.streams.len()) {
            let picked = match turn.checked_sub(1) {
                None => self.next_of_objects(now, path, requests),
                Some(at) => self.next_of_stream(at, now, path, requests),
            };
            if picked.is_some() {
                self.turns.taken(turn);
                return picked;
            }
        }
        None
    }

    fn next_of_stream(
        &mut self,
        at: usize,
        now: Time,
        path: &PathEstimate,
        requests: &mut impl Extend<Request>,
    ) -> Option<PickedSymbol> {
        for _ in 0..REQUESTS_PER_ASK {
            match self.streams[at].next(now, path) {
                Pick::Symbol(picked) => return Some(picked),
                Pick::Request(request) => requests.extend([request]),
                Pick::Failed => {
                    self.failed = true;
                    break;
                }
                Pick::Idle => break,
            }
        }
        None
    }

    fn next_of_objects(
        &mut self,
        now: Time,
        path: &PathEstimate,
        requests: &mut impl Extend<Request>,
    ) -> Option<PickedSymbol> {
        for _ in 0..REQUESTS_PER_ASK {
            let mut behind = self.objects_left();
            let mut asked = false;
            for flow in self.flows.iter_mut().map(ObjectSender::flow_mut) {
                behind -= flow.source_left();
                match flow.next(now, path, behind > 0) {
                    Pick::Symbol(picked) => return Some(picked),
                    Pick::Request(request) => {
                        requests.extend([request]);
                        asked = true;
                        break;
                    }
                    Pick::Failed => self.failed = true,
                    Pick::Idle => {}
                }
            }
            if !asked {
                break;
            }
        }
        None
    }

    /// The symbol after `last`, which a packet ends with so far, if the flow's schedule wants that next.
    pub(super) fn next_in_packet(
        &mut self,
        now: Time,
        path: &PathEstimate,
        last: SymbolId,
        requests: &mut impl Extend<Request>,
    ) -> Option<PickedSymbol> {
        let mut behind = self.objects_left();
        let flow = self.flows.iter_mut().map(ObjectSender::flow_mut).find(|flow| {
            behind -= flow.source_left();
            flow.id() == last.flow
        })?;
        for _ in 0..REQUESTS_PER_ASK {
            match flow.next_in_packet(now, path, behind > 0, last) {
                Pick::Symbol(picked) => return Some(picked),
                Pick::Request(request) => requests.extend([request]),
                Pick::Failed => {
                    self.failed = true;
                    return None;
                }
                Pick::Idle => return None,
            }
        }
        None
    }

    /// The most symbols in a packet of this flow. Streams have one.
    pub(super) fn per_packet(&self, flow: FlowId) -> u8 {
        self.flows.iter().find(|object| object.id() == flow).map_or(1, ObjectSender::per_packet)
    }

    /// Something is sent that is no stream.
    pub(super) const fn has_objects(&self) -> bool {
        !self.flows.is_empty()
    }

    /// When there will be something to do although nothing is heard: a schedule waits, or a stream has a short block to open or repair
    /// to send.
    pub(super) fn due_at(&self) -> Option<Time> {
        let objects = self.flows.iter().filter_map(|flow| flow.flow().due_at());
        objects.chain(self.streams.iter().filter_map(StreamSender::due_at)).min()
    }

    /// A symbol that is worth sending when nothing is heard.
    pub(super) fn probe(&mut self) -> Option<PickedSymbol> {
        let Self { flows, streams, .. } = self;
        let objects = flows.iter_mut().map(ObjectSender::flow_mut);
        objects.chain(streams.iter_mut().map(StreamSender::flow_mut)).find_map(BlockSender::probe)
    }

    /// The bytes of a symbol picked just now, which goes out.
    pub(super) fn take_symbol(&mut self, now: Time, picked: &PickedSymbol) -> &[u8] {
        self.unanswered.get_or_insert(now);
        match picked.kind {
            SymbolKind::Source | SymbolKind::Coded => self.counts.source += 1,
            SymbolKind::Resent => self.counts.resent += 1,
            SymbolKind::Repair => self.counts.repair += 1,
        }
        let id = picked.id;
        self.flow(id.flow).map_or(&[], |flow| flow.symbol(id))
    }

    /// A reply to a request of a flow that is sent; the request that follows from it.
    pub(super) fn on_reply(&mut self, reply: Reply) -> Option<Request> {
        match reply {
            Reply::Read { flow, block, buffer } => self.object(flow)?.on_read(block, buffer),
            Reply::Encoded(job) => {
                self.flow(job.flow)?.on_encoded(job);
                None
            }
            Reply::Digested { key: FlowKey { direction: Direction::Sending, flow }, block } => {
                self.object(flow)?.on_digest(block);
                None
            }
            _ => None,
        }
    }

    /// The fate of packets: first to what they carried, then to the schedules.
    pub(super) fn on_report(&mut self, report: &Report<'_>) {
        for sent in report.delivered {
            match sent.content {
                Content::Symbols(run) => {
                    self.unanswered = None;
                    self.each_symbol(run, BlockSender::on_delivered);
                }
                Content::Control(key) => self.on_pieces_delivered(key),
                Content::Nothing => {}
            }
        }
        for sent in report.lost {
            match sent.content {
                Content::Symbols(run) => self.each_symbol(run, BlockSender::on_lost),
                Content::Control(key) => self.on_pieces_lost(key),
                Content::Nothing => {}
            }
        }
        for sent in report.spurious.iter().chain(report.outlived) {
            // Control frames are on their way again already, under another key.
            if let Content::Symbols(run) = sent.content {
                // It came late, but the peer has it.
                self.unanswered = None;
                self.each_symbol(run, BlockSender::on_spurious);
            }
        }
        self.flows.iter_mut().for_each(|flow| flow.flow_mut().on_report(report));
        self.streams.iter_mut().for_each(|stream| stream.flow_mut().on_report(report));
    }

    fn each_symbol(&mut self, run: SymbolRun, act: impl Fn(&mut BlockSender, SymbolId)) {
        if let Some(flow) = self.flow(run.first.flow) {
            run.ids().for_each(|id| act(flow, id));
        }
    }

    fn on_pieces_delivered(&mut self, key: u32) {
        for piece in self.outbox.settle(key) {
            match piece {
                Piece::Announce(id) => {
                    if let Some(flow) = self.flows.iter_mut().find(|flow| flow.id() == id) {
                        flow.on_announced();
                    } else if let Some(stream) = self.streams.iter_mut().find(|stream| stream.id() == id) {
                        stream.on_announced();
                    }
                }
                Piece::Control(range) => self.control.on_delivered(range),
                Piece::Reset(id) => {
                    if let Some(stream) = self.stream(id) {
                        stream.on_reset_delivered();
                    }
                }
                Piece::Ping | Piece::Plan(..) | Piece::Stop(..) | Piece::StreamRead(..) => {}
            }
        }
    }

    fn on_pieces_lost(&mut self, key: u32) {
        for piece in self.outbox.settle(key) {
            match piece {
                Piece::Control(range) => self.control.on_lost(range),
                Piece::Ping => {}
                other => self.outbox.push(other),
            }
        }
    }

    /// The block sections of feedback `number`. Feedback that others have overtaken says nothing new.
    pub(super) fn on_statuses(&mut self, number: u32, statuses: &[FlowStatus]) {
        if number <= self.last_feedback {
            return;
        }
        self.last_feedback = number;
        let open = self.open_symbols();
        for status in statuses {
            if let Some(at) = self.flows.iter().position(|flow| flow.id() == status.flow) {
                self.bytes_acknowledged += self.flows[at].on_status(status, &mut self.pool);
            } else if let Some(at) = self.streams.iter().position(|stream| stream.id() == status.flow) {
                self.bytes_acknowledged += self.streams[at].on_status(status, &mut self.pool);
            }
        }
        // The last symbols of a block may be lost, and needed no more.
        if self.open_symbols() < open {
            self.unanswered = None;
        }
    }

    /// The cost of the blocks that the peer does not have yet.
    fn open_symbols(&self) -> u64 {
        let objects = self.flows.iter().map(ObjectSender::flow);
        objects.chain(self.streams.iter().map(StreamSender::flow)).map(BlockSender::open_symbols).sum()
    }

    /// Fills a control packet's plaintext with what is pending, at most `most` bytes in all; the pieces it carries.
    pub(super) fn take_frames(&mut self, most: usize, out: &mut Vec<u8>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        while let Some(piece) = self.outbox.front() {
            let frame = self.frame_of(piece);
            let length = frame.as_ref().map_or(0, Frame::encoded_len);
            if out.len() + length > most {
                return pieces;
            }
            if let Some(frame) = frame {
                frame.encode(out);
                pieces.extend(self.outbox.pop());
            } else {
                // Its flow is gone: nobody needs it any more.
                self.outbox.pop();
            }
        }
        let mut data = Vec::new();
        while let Some(room) = most.checked_sub(out.len() + CONTROL_FRAME_HEADER).filter(|room| *room > 0) {
            data.clear();
            let Some(range) = self.control.take(room, &mut data) else {
                break;
            };
            Frame::Control { offset: range.start, data: &data }.encode(out);
            pieces.push(Piece::Control(range));
        }
        pieces
    }

    fn frame_of(&self, piece: &Piece) -> Option<Frame<'static>> {
        let flow = |id: &FlowId| self.flows.iter().find(|flow| flow.id() == *id);
        let stream = |id: &FlowId| self.streams.iter().find(|stream| stream.id() == *id);
        let named = |id: &FlowId| self.streams.iter().find(|stream| stream.stream() == *id);
        match piece {
            Piece::Ping => Some(Frame::Ping),
            Piece::Announce(id) => match flow(id) {
                Some(flow) => {
                    Some(flow.successor().map_or_else(|| Frame::Announce(flow.announcement()), Frame::Successor))
                }
                None => {
                    let stream = stream(id)?;
                    let successor = stream.successor().map(Frame::StreamSuccessor);
                    successor.or_else(|| stream.announcement().map(Frame::AnnounceStream))
                }
            },
            Piece::Plan(id, number) => flow(id).and_then(|flow| flow.plan(*number)).map(Frame::Plan),
            Piece::Reset(id) => {
                let code = named(id).and_then(StreamSender::reset_code)?;
                Some(Frame::Reset { flow: *id, code })
            }
            Piece::Stop(flow, code) => Some(Frame::Stop { flow: *flow, code: *code }),
            Piece::StreamRead(flow, symbols) => Some(Frame::StreamRead { flow: *flow, symbols: *symbols }),
            Piece::Control(_) => None,
        }
    }
}
