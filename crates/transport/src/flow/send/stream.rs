//! The source of a stream's blocks: bytes that the program writes are put into blocks when these may be sent, and kept
//! until the receiver has them.

use super::block_sender::BlockSender;
use crate::flow::append_range;
use crate::flow::credit::StreamCredit;
use crate::flow::layout::{BlockShape, FlowLayout};
use crate::flow::pool::Pool;
use crate::flow::receive::MOST_AHEAD;
use crate::flow::schedule::PathEstimate;
use crate::flow::sizing::BlockSizer;
use crate::flow::stream_layout::{StreamHeader, StreamLayout};
use crate::time::Time;
use crate::wire::{FlowStatus, STREAM_HEADER, StreamAnnouncement};
use std::collections::VecDeque;

/// A block opens while fewer symbols of earlier ones are unsent: the later it opens, the more bytes it takes along, but
/// a batch must not run dry.
const READ_AHEAD: u64 = 64;

/// Blocks between the first incomplete one and the last: fewer than a receiver accepts ([`MOST_AHEAD`]), since each
/// survey of the tail visits them. The blocks of a window code are not surveyed: their number is limited by the
/// receiver only.
const MOST_BLOCKS: usize = 1_024;

/// Exclusive upper bound of the block numbers of a stream: `done_below` at its maximum means that a stream is over.
const BLOCK_NUMBERS: u32 = u32::MAX - 1;

/// Small writes in close succession share a block: short blocks open this often per round trip, as often as feedback
/// reports them. Larger blocks need less repair.
const SHORT_BLOCKS_PER_RTT: u32 = 32;

/// The state of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendStreamState {
    /// The program may write.
    Writing,
    /// The program has finished it; the end is in no block yet.
    Finishing,
    /// The end has been sent.
    Ended,
    /// Every byte has arrived, and the program knows it; the receiver's program may not have read it.
    Sent,
    /// Reset with this code; the receiver does not know yet.
    Reset(u32),
    /// The receiver knows of the reset.
    Over,
}

/// The bytes of a stream not yet in a block, and the rules for putting them into one.
#[derive(Debug)]
pub(super) struct StreamSource {
    pub(super) layout: StreamLayout,
    credit: StreamCredit,
    /// Decides how large blocks are as they are opened; without it, the announcement does.
    sizer: Option<Box<dyn BlockSizer>>,
    phase: SendStreamState,
    /// Written and not yet in a block, and the limit of that.
    waiting: VecDeque<u8>,
    room: usize,
    /// Bytes in blocks or arrived.
    offset: u64,
    /// The receiver's program has read all of it.
    read: bool,
    /// A write was partial, and the program waits for the event that there is room again.
    wants_room: bool,
    /// A write was partial, and since then bytes have waited all the time: the program writes faster than the path takes.
    backlogged: bool,
    opened_at: Option<Time>,
    held_back: bool,
    /// When a partly filled block may be opened.
    short_block_at: Option<Time>,
    /// Whether another block is needed but all block numbers are used.
    exhausted: bool,
}

impl StreamSource {
    pub(super) fn new(announcement: StreamAnnouncement, own: u32) -> Self {
        Self {
            layout: StreamLayout::new(announcement),
            credit: StreamCredit::new(own),
            sizer: None,
            phase: SendStreamState::Writing,
            waiting: VecDeque::new(),
            room: 0,
            offset: 0,
            read: false,
            wants_room: false,
            backlogged: false,
            opened_at: None,
            held_back: false,
            short_block_at: None,
            exhausted: false,
        }
    }

    pub(super) fn set_sizer(&mut self, rule: Option<Box<dyn BlockSizer>>) {
        self.sizer = rule;
    }

    /// Returns whether symbols of it may still have to be sent.
    pub(super) const fn may_send(&self) -> bool {
        matches!(self.phase, SendStreamState::Writing | SendStreamState::Finishing | SendStreamState::Ended)
    }

    /// Accepts as many of `bytes` as fit, if `room` of them may wait for a block; `None` when the stream is finished or
    /// reset.
    pub(super) fn write(&mut self, bytes: &[u8], room: usize) -> Option<usize> {
        if self.phase != SendStreamState::Writing {
            return None;
        }
        self.room = room;
        let taken = bytes.len().min(room.saturating_sub(self.waiting.len()));
        self.waiting.extend(&bytes[..taken]);
        self.wants_room |= taken < bytes.len();
        self.backlogged |= taken < bytes.len();
        Some(taken)
    }

    /// Ends the stream: no more is written. The end is marked in a block, not a packet, so that repair covers it like
    /// any byte (lt-tcp §3.2): waiting bytes go into blocks, the last of which is marked; if none wait, an empty block
    /// is. Departs: a block already open is not marked, sent or not. Its first symbol, and the symbols coded over it,
    /// state its content.
    pub(super) const fn finish(&mut self) {
        if matches!(self.phase, SendStreamState::Writing) {
            self.phase = SendStreamState::Finishing;
        }
    }

    /// Resets the stream; returns false when it already was, or when all of it has arrived.
    pub(super) fn reset(&mut self, code: u32) -> bool {
        if self.is_reset() {
            return false;
        }
        self.phase = SendStreamState::Reset(code);
        self.waiting = VecDeque::new();
        (self.held_back, self.short_block_at, self.wants_room) = (false, None, false);
        true
    }

    pub(super) const fn is_reset(&self) -> bool {
        matches!(self.phase, SendStreamState::Reset(_) | SendStreamState::Over)
    }

    /// Returns the code with which it was reset, until the receiver knows it.
    pub(super) const fn reset_code(&self) -> Option<u32> {
        if let SendStreamState::Reset(code) = self.phase { Some(code) } else { None }
    }

    /// Handles the receiver's confirmation of the reset.
    pub(super) const fn on_reset_delivered(&mut self) {
        if matches!(self.phase, SendStreamState::Reset(_)) {
            self.phase = SendStreamState::Over;
        }
    }

    /// Handles the report that the receiver's program has read blocks of `symbols` symbols in all.
    pub(super) const fn on_peer_read(&mut self, symbols: u64) {
        self.credit.note_read(symbols);
    }

    pub(super) const fn shared_credit(&self) -> u64 {
        self.credit.shared()
    }

    /// Returns whether bytes wait for a block.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether the end is in no block yet.
    pub(super) const fn is_finishing(&self) -> bool {
        matches!(self.phase, SendStreamState::Finishing)
    }

    /// Returns whether the program writes faster than the path takes.
    pub(super) const fn is_backlogged(&self) -> bool {
        self.backlogged
    }

    /// Returns whether bytes wait for credit.
    pub(super) const fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// Returns whether another block is needed but all block numbers are used.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns when to open a partly filled block.
    pub(super) const fn short_block_at(&self) -> Option<Time> {
        self.short_block_at
    }

    /// Returns whether the receiver lacks any written part of the stream.
    pub(super) fn is_unfinished(&self, blocks: &BlockSender) -> bool {
        match self.phase {
            SendStreamState::Writing => !blocks.announced() || !self.waiting.is_empty() || blocks.span() > 0,
            SendStreamState::Finishing | SendStreamState::Ended | SendStreamState::Reset(_) => true,
            SendStreamState::Sent | SendStreamState::Over => false,
        }
    }

    /// Returns whether it is over: it is read to its end, or the receiver knows of the reset.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.phase, SendStreamState::Over) || (self.is_sent() && self.read)
    }

    /// Returns whether every byte has arrived and the program knows it.
    pub(super) const fn is_sent(&self) -> bool {
        matches!(self.phase, SendStreamState::Sent)
    }

    /// Returns true once: when every byte of a finished stream has arrived.
    pub(super) fn newly_sent(&mut self, blocks: &BlockSender) -> bool {
        let now = self.phase == SendStreamState::Ended && blocks.span() == 0;
        if now {
            self.phase = SendStreamState::Sent;
        }
        now
    }

    /// Returns true once after a partial write: when half of the room is free again.
    pub(super) fn newly_writable(&mut self) -> bool {
        let now = self.wants_room && self.waiting.len() <= self.room / 2;
        self.wants_room &= !now;
        now
    }

    /// Opens a block with the waiting bytes: at once when they fill one, or when none has been opened lately. It has at
    /// most `room` symbols, and the stream may hold `shared` of the credit that all streams share. Returns whether it
    /// opened one.
    pub(super) fn open_block(
        &mut self,
        blocks: &mut BlockSender,
        now: Time,
        path: &PathEstimate,
        (room, shared): (u64, u64),
        pool: &mut Pool,
    ) -> bool {
        (self.held_back, self.short_block_at) = (false, None);
        let finishing = self.phase == SendStreamState::Finishing;
        if (self.waiting.is_empty() && !finishing) || blocks.unsent() >= READ_AHEAD {
            return false;
        }
        let unit = self.layout.unit();
        let symbols = u32::try_from((self.waiting.len() + STREAM_HEADER).div_ceil(unit)).unwrap_or(u32::MAX);
        let largest = self.sizer.as_mut().map_or(u32::MAX, |rule| rule.next(symbols.into(), path).0);
        let full = self.layout.full().min(largest);
        // Where every block is one symbol, that symbol may not be full.
        let short = if full == 1 { self.waiting.len() + STREAM_HEADER < unit } else { symbols < full };
        let spacing = path.rtt.unwrap_or_default() / SHORT_BLOCKS_PER_RTT;
        let due = self.opened_at.map_or(now, |at| at + spacing);
        if short && !finishing && due > now {
            self.short_block_at = Some(due);
            return false;
        }
        let most = u32::try_from(room.min(self.credit.left(shared))).unwrap_or(u32::MAX).min(full);
        let number = blocks.next_number();
        if number >= BLOCK_NUMBERS {
            self.exhausted = true;
            return false;
        }
        let most_blocks = if self.layout.window().is_some() { MOST_AHEAD as usize } else { MOST_BLOCKS };
        if most == 0 || blocks.span() >= most_blocks {
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
        append_range(&self.waiting, 0..length, &mut buffer);
        self.waiting.drain(..length);
        self.backlogged &= !self.waiting.is_empty();
        (shape.offset, shape.length) = (self.offset, buffer.len());
        self.offset += length as u64;
        self.credit.start(shape.cost.into());
        blocks.open(shape);
        blocks.add_source(shape.k);
        if let Some(block) = blocks.block_mut(number) {
            block.fill(buffer);
        }
        self.opened_at = Some(now);
        if end {
            self.phase = SendStreamState::Ended;
        }
        true
    }

    /// Handles the receipt of a block by the receiver; returns its bytes of the stream.
    pub(super) const fn on_block_done(&self, shape: &BlockShape) -> u64 {
        (shape.length - STREAM_HEADER) as u64
    }

    /// Notes whether the receiver has read all of the stream.
    pub(super) fn on_status(&mut self, status: &FlowStatus) {
        self.read |=
            status.done_below == u32::MAX && matches!(self.phase, SendStreamState::Ended | SendStreamState::Sent);
    }
}

#[cfg(test)]
mod tests;
