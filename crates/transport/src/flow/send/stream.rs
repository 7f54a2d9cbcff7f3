//! The sender half of a stream: bytes that wait are put into blocks as these may go out, and kept until the receiver has them.

use super::block_sender::{BlockSender, Pick};
use crate::flow::credit::StreamCredit;
use crate::flow::layout::{BadPlan, FlowLayout};
use crate::flow::pool::Pool;
use crate::flow::receive::MOST_AHEAD;
use crate::flow::schedule::{PathEstimate, Schedule};
use crate::flow::sizing::{BlockSizer, BlockSizing};
use crate::flow::stream_layout::{StreamHeader, StreamLayout};
use crate::time::Time;
use crate::wire::{FlowId, FlowStatus, STREAM_HEADER, StreamAnnouncement, StreamSuccessor};
use std::collections::VecDeque;

/// Bytes written and not yet in a block that a stream keeps: a few milliseconds of the fastest path.
const MOST_WAITING: usize = 4 << 20;

/// A block opens while fewer symbols of earlier ones are unsent: the later it does, the more bytes it takes along, and one
/// batch must not run dry.
const READ_AHEAD: u64 = 64;

/// Blocks between the first that is not done and the last: less than a receiver takes ([`MOST_AHEAD`]), since each survey of the
/// tail looks at them. Nobody surveys the blocks of a window code: there may be all.
const MOST_BLOCKS: usize = 1_024;

/// Small writes that follow each other closely share a block: blocks that are not full open this often per round trip, as often
/// as feedback tells of them. Larger blocks want less repair.
const SHORT_BLOCKS_PER_RTT: u32 = 32;

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The program may write.
    Writing,
    /// It has finished; the end is in no block yet.
    Finishing,
    /// The end is on its way.
    Ended,
    /// Every byte has arrived, and the program knows; the receiver's may not have read it.
    Sent,
    /// Given up with this code; the receiver is being told.
    Reset(u32),
    /// The receiver knows that it is given up.
    Over,
}

/// A stream on its way out.
#[derive(Debug)]
pub(crate) struct StreamSender {
    flow: BlockSender,
    layout: StreamLayout,
    usage: StreamCredit,
    /// Says how large blocks are as they are opened; without it, as the announcement has it.
    sizer: Option<Box<dyn BlockSizer>>,
    phase: Phase,
    /// Written and in no block yet.
    waiting: VecDeque<u8>,
    /// Bytes that are in blocks or arrived.
    offset: u64,
    /// The receiver's program has read all of it.
    read: bool,
    /// A write was cut short, and the program waits to hear that there is room again.
    wants_room: bool,
    opened_at: Option<Time>,
    held_back: bool,
    short_at: Option<Time>,
}

impl StreamSender {
    /// A stream as announced, of whose blocks `window` symbols are its own to start.
    pub(crate) fn new(announcement: StreamAnnouncement, window: u32, schedule: Box<dyn Schedule>) -> Self {
        let layout = StreamLayout::new(announcement);
        let mut flow = BlockSender::new(announcement.flow, layout.symbol_size(), 0, schedule);
        flow.set_window(layout.window());
        Self {
            flow,
            layout,
            usage: StreamCredit::new(window),
            sizer: None,
            phase: Phase::Writing,
            waiting: VecDeque::new(),
            offset: 0,
            read: false,
            wants_room: false,
            opened_at: None,
            held_back: false,
            short_at: None,
        }
    }

    /// Blocks have at most as many source symbols as `rule` says.
    pub(crate) fn set_sizer(&mut self, rule: Option<Box<dyn BlockSizer>>) {
        self.sizer = rule;
    }

    /// Blocks that are not open yet are cut by another rule, within the largest size and with the code that the stream was announced with.
    pub(crate) fn resize_blocks(&mut self, blocks: &BlockSizing) {
        self.sizer = Some(blocks.live_stream_sizer(self.layout.announcement().symbol_size));
    }

    /// The flow.
    pub(crate) const fn id(&self) -> FlowId {
        self.flow.id()
    }

    /// The first flow that carried the stream: what both programs know it by.
    pub(crate) const fn stream(&self) -> FlowId {
        self.layout.announcement().flow
    }

    /// Its blocks on their way.
    pub(crate) const fn flow(&self) -> &BlockSender {
        &self.flow
    }

    /// Its blocks on their way.
    pub(crate) const fn flow_mut(&mut self) -> &mut BlockSender {
        &mut self.flow
    }

    /// The announcement of the stream; `None` once it is given up.
    pub(crate) const fn announcement(&self) -> Option<StreamAnnouncement> {
        match self.phase {
            Phase::Reset(_) | Phase::Over => None,
            _ => Some(*self.layout.announcement()),
        }
    }

    /// What announces the flow, where it is not the stream's first; `None` too once it is given up.
    pub(crate) fn successor(&self) -> Option<StreamSuccessor> {
        let (flow, symbol_size) = (self.id(), self.layout.symbol_size() as u16);
        let stream = self.announcement().filter(|stream| stream.flow != flow)?;
        Some(StreamSuccessor { flow, symbol_size, stream })
    }

    /// Symbols of it may have to go out yet.
    pub(crate) const fn may_send(&self) -> bool {
        matches!(self.phase, Phase::Writing | Phase::Finishing | Phase::Ended)
    }

    /// Whether the stream can go on in symbols of this size.
    pub(crate) fn can_shrink(&self, symbol_size: u16) -> bool {
        self.layout.can_shrink(symbol_size)
    }

    /// Goes on as another flow, of smaller symbols.
    ///
    /// # Errors
    /// [`BadPlan`] where [`StreamSender::can_shrink`] says no; nothing has changed then.
    pub(crate) fn succeed(&mut self, flow: FlowId, symbol_size: u16) -> Result<(), BadPlan> {
        self.layout.shrink(symbol_size)?;
        let layout = &self.layout;
        self.flow.succeed(flow, layout.symbol_size(), 0, |shape| layout.k_of(shape));
        self.flow.set_window(layout.window());
        Ok(())
    }

    /// The announcement has arrived.
    pub(crate) const fn on_announced(&mut self) {
        self.flow.on_announced();
    }

    /// Takes as many of `bytes` as there is room for; `None` when the stream is finished or given up.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.phase != Phase::Writing {
            return None;
        }
        let taken = bytes.len().min(MOST_WAITING - self.waiting.len());
        self.waiting.extend(&bytes[..taken]);
        self.wants_room |= taken < bytes.len();
        Some(taken)
    }

    /// No more is written. The end is a block's, not a packet's, so that repair brings it like any byte (lt-tcp §3.2): what waits is in blocks
    /// the last of which is marked; where nothing waits, an empty block is.
    /// Departs: a block that is open is not marked any more, sent or not. Its first symbol, and what is coded over it, says what it is.
    pub(crate) fn finish(&mut self) {
        if self.phase == Phase::Writing {
            self.phase = Phase::Finishing;
        }
    }

    /// The stream is given up; false when it was before, or when there is nothing left to give up.
    pub(crate) fn reset(&mut self, code: u32) -> bool {
        if matches!(self.phase, Phase::Reset(_) | Phase::Over) {
            return false;
        }
        self.phase = Phase::Reset(code);
        self.waiting = VecDeque::new();
        (self.held_back, self.short_at, self.wants_room) = (false, None, false);
        self.flow.give_up();
        true
    }

    /// The code that it was given up with, while the receiver may not know.
    pub(crate) const fn reset_code(&self) -> Option<u32> {
        if let Phase::Reset(code) = self.phase { Some(code) } else { None }
    }

    /// The receiver knows that the stream is given up.
    pub(crate) fn on_reset_delivered(&mut self) {
        if matches!(self.phase, Phase::Reset(_)) {
            self.phase = Phase::Over;
        }
    }

    /// The receiver's program has read blocks of so many symbols in all.
    pub(crate) const fn on_read(&mut self, symbols: u64) {
        self.usage.note_read(symbols);
    }

    /// Symbols that it has out of the store that all streams share.
    pub(crate) const fn shared(&self) -> u64 {
        self.usage.shared()
    }

    /// Bytes wait for credit.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// When there will be something to do: a short block to open, or repair to send.
    pub(crate) fn due_at(&self) -> Option<Time> {
        self.short_at.into_iter().chain(self.flow.due_at()).min()
    }

    /// The receiver lacks something of the stream that is written.
    pub(crate) fn is_unfinished(&self) -> bool {
        match self.phase {
            Phase::Writing => !self.flow.announced() || !self.waiting.is_empty() || self.flow.span() > 0,
            Phase::Finishing | Phase::Ended | Phase::Reset(_) => true,
            Phase::Sent | Phase::Over => false,
        }
    }

    /// Nothing is left to be said of it: it is read to its end, or the receiver knows that it is given up.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over || (self.phase == Phase::Sent && self.read)
    }

    /// Every byte has arrived, and the program knows.
    pub(crate) fn is_sent(&self) -> bool {
        self.phase == Phase::Sent
    }

    /// True once: when every byte of a finished stream has arrived.
    pub(crate) fn newly_sent(&mut self) -> bool {
        let now = self.phase == Phase::Ended && self.flow.span() == 0;
        if now {
            self.phase = Phase::Sent;
        }
        now
    }

    /// True once after a write that was cut short: when half of the room is free again.
    pub(crate) fn newly_writable(&mut self) -> bool {
        let now = self.wants_room && self.waiting.len() <= MOST_WAITING / 2;
        self.wants_room &= !now;
        now
    }

    /// Opens a block of at most `room` symbols with what waits: at once when it fills one, or when none has been opened lately.
    /// `shared` symbols may be out of the store that all streams share. Answers whether it opened one.
    pub(crate) fn open_block(
        &mut self,
        now: Time,
        path: &PathEstimate,
        room: u64,
        shared: u64,
        pool: &mut Pool,
    ) -> bool {
        (self.held_back, self.short_at) = (false, None);
        let finishing = self.phase == Phase::Finishing;
        if (self.waiting.is_empty() && !finishing) || self.flow.unsent() >= READ_AHEAD {
            return false;
        }
        let unit = self.layout.unit();
        let symbols = u32::try_from((self.waiting.len() + STREAM_HEADER).div_ceil(unit)).unwrap_or(u32::MAX);
        let largest = self.sizer.as_mut().map_or(u32::MAX, |rule| rule.next(symbols.into(), path).0);
        let full = self.layout.full().min(largest);
        // Where every block is one symbol, it may not be filled.
        let short = if full == 1 { self.waiting.len() + STREAM_HEADER < unit } else { symbols < full };
        let spacing = path.rtt.unwrap_or_default() / SHORT_BLOCKS_PER_RTT;
        let due = self.opened_at.map_or(now, |at| at + spacing);
        if short && !finishing && due > now {
            self.short_at = Some(due);
            return false;
        }
        let most = u32::try_from(room.min(self.usage.left(shared))).unwrap_or(u32::MAX).min(full);
        let number = self.flow.next_number();
        // The last number of all stands for a stream that is over.
        let most_blocks = if self.layout.window().is_some() { MOST_AHEAD as usize } else { MOST_BLOCKS };
        if most == 0 || self.flow.span() >= most_blocks || number >= u32::MAX - 1 {
            self.held_back = true;
            return false;
        }
        let plan = self.layout.plan_for(symbols, most);
        let Some(mut shape) = self.layout.shape(number, plan) else { return false };
        let length = self.waiting.len().min(shape.length - STREAM_HEADER);
        let end = finishing && length == self.waiting.len();
        let mut buffer = pool.take();
        buffer.clear();
        buffer.extend_from_slice(&StreamHeader { length: length as u32, end }.encode());
        buffer.extend(self.waiting.drain(..length));
        (shape.offset, shape.length) = (self.offset, buffer.len());
        self.offset += length as u64;
        self.usage.start(shape.cost.into());
        self.flow.open(shape);
        self.flow.add_source(shape.k);
        if let Some(block) = self.flow.block_mut(number) {
            block.fill(buffer);
        }
        self.opened_at = Some(now);
        if end {
            self.phase = Phase::Ended;
        }
        true
    }

    /// The next symbol by the stream's schedule. Bytes that only wait for their block to open do not put off repair.
    pub(crate) fn next(&mut self, now: Time, path: &PathEstimate) -> Pick {
        self.flow.next(now, path, self.held_back)
    }

    /// The receiver's view of the blocks; answers with the bytes of the stream newly known to have arrived.
    pub(crate) fn on_status(&mut self, status: &FlowStatus, pool: &mut Pool) -> u64 {
        let mut bytes = 0;
        self.flow.on_status(status, pool, &mut |shape| bytes += (shape.length - STREAM_HEADER) as u64);
        self.read |= status.done_below == u32::MAX && matches!(self.phase, Phase::Ended | Phase::Sent);
        bytes
    }
}

#[cfg(test)]
mod tests;
