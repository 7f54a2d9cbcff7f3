//! Where the blocks of a stream come from: bytes that the program writes are put into blocks as these may go out, and kept until the
//! receiver has them.

use super::block_sender::BlockSender;
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

/// Bytes written and not yet in a block that a stream keeps: a few milliseconds of the fastest path.
const MOST_WAITING: usize = 4 << 20;

/// A block opens while fewer symbols of earlier ones are unsent: the later it does, the more bytes it takes along, and one
/// batch must not run dry.
const READ_AHEAD: u64 = 64;

/// Blocks between the first that is not done and the last: fewer than a receiver takes ([`MOST_AHEAD`]), since each survey of the
/// tail looks at them. Nobody surveys the blocks of a window code: there may be as many as the receiver takes.
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

/// The bytes of a stream that are in no block yet, and how they get into one.
#[derive(Debug)]
pub(super) struct StreamSource {
    pub(super) layout: StreamLayout,
    credit: StreamCredit,
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
    /// When a block that is not full may be opened.
    short_block_at: Option<Time>,
}

impl StreamSource {
    pub(super) fn new(announcement: StreamAnnouncement, own: u32) -> Self {
        Self {
            layout: StreamLayout::new(announcement),
            credit: StreamCredit::new(own),
            sizer: None,
            phase: Phase::Writing,
            waiting: VecDeque::new(),
            offset: 0,
            read: false,
            wants_room: false,
            opened_at: None,
            held_back: false,
            short_block_at: None,
        }
    }

    pub(super) fn set_sizer(&mut self, rule: Option<Box<dyn BlockSizer>>) {
        self.sizer = rule;
    }

    /// Symbols of it may have to go out yet.
    pub(super) const fn may_send(&self) -> bool {
        matches!(self.phase, Phase::Writing | Phase::Finishing | Phase::Ended)
    }

    /// Takes as many of `bytes` as there is room for; `None` when the stream is finished or given up.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.phase != Phase::Writing {
            return None;
        }
        let taken = bytes.len().min(MOST_WAITING - self.waiting.len());
        self.waiting.extend(&bytes[..taken]);
        self.wants_room |= taken < bytes.len();
        Some(taken)
    }

    /// No more is written. The end is a block's, not a packet's, so that repair brings it like any byte (lt-tcp §3.2): what waits goes into
    /// blocks, the last of which is marked; where nothing waits, an empty block is.
    /// Departs: a block that is open is not marked any more, sent or not. Its first symbol, and what is coded over it, says what it is.
    pub(super) const fn finish(&mut self) {
        if matches!(self.phase, Phase::Writing) {
            self.phase = Phase::Finishing;
        }
    }

    /// The stream is given up; false when it was before, or when there is nothing left to give up.
    pub(super) fn reset(&mut self, code: u32) -> bool {
        if self.is_given_up() {
            return false;
        }
        self.phase = Phase::Reset(code);
        self.waiting = VecDeque::new();
        (self.held_back, self.short_block_at, self.wants_room) = (false, None, false);
        true
    }

    pub(super) const fn is_given_up(&self) -> bool {
        matches!(self.phase, Phase::Reset(_) | Phase::Over)
    }

    /// The code that it was given up with, until the receiver knows.
    pub(super) const fn reset_code(&self) -> Option<u32> {
        if let Phase::Reset(code) = self.phase { Some(code) } else { None }
    }

    /// The receiver knows that the stream is given up.
    pub(super) const fn on_reset_delivered(&mut self) {
        if matches!(self.phase, Phase::Reset(_)) {
            self.phase = Phase::Over;
        }
    }

    /// The receiver's program has read blocks of so many symbols in all.
    pub(super) const fn on_peer_read(&mut self, symbols: u64) {
        self.credit.note_read(symbols);
    }

    pub(super) const fn shared_credit(&self) -> u64 {
        self.credit.shared()
    }

    /// Bytes wait for credit.
    pub(super) const fn is_held_back(&self) -> bool {
        self.held_back
    }

    /// When a block that is not full is to be opened.
    pub(super) const fn short_block_at(&self) -> Option<Time> {
        self.short_block_at
    }

    /// The receiver lacks something of the stream that is written.
    pub(super) fn is_unfinished(&self, blocks: &BlockSender) -> bool {
        match self.phase {
            Phase::Writing => !blocks.announced() || !self.waiting.is_empty() || blocks.span() > 0,
            Phase::Finishing | Phase::Ended | Phase::Reset(_) => true,
            Phase::Sent | Phase::Over => false,
        }
    }

    /// Nothing is left to be said of it: it is read to its end, or the receiver knows that it is given up.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over) || (self.is_sent() && self.read)
    }

    /// Every byte has arrived, and the program knows.
    pub(super) const fn is_sent(&self) -> bool {
        matches!(self.phase, Phase::Sent)
    }

    /// True once: when every byte of a finished stream has arrived.
    pub(super) fn newly_sent(&mut self, blocks: &BlockSender) -> bool {
        let now = self.phase == Phase::Ended && blocks.span() == 0;
        if now {
            self.phase = Phase::Sent;
        }
        now
    }

    /// True once after a write that was cut short: when half of the room is free again.
    pub(super) fn newly_writable(&mut self) -> bool {
        let now = self.wants_room && self.waiting.len() <= MOST_WAITING / 2;
        self.wants_room &= !now;
        now
    }

    /// Opens a block with what waits: at once when it fills one, or when none has been opened lately. It has at most `room` symbols, and
    /// `shared` may be out of the credit that all streams share. Answers whether it opened one.
    pub(super) fn open_block(
        &mut self,
        blocks: &mut BlockSender,
        now: Time,
        path: &PathEstimate,
        (room, shared): (u64, u64),
        pool: &mut Pool,
    ) -> bool {
        (self.held_back, self.short_block_at) = (false, None);
        let finishing = self.phase == Phase::Finishing;
        if (self.waiting.is_empty() && !finishing) || blocks.unsent() >= READ_AHEAD {
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
            self.short_block_at = Some(due);
            return false;
        }
        let most = u32::try_from(room.min(self.credit.left(shared))).unwrap_or(u32::MAX).min(full);
        let number = blocks.next_number();
        // The last number of all stands for a stream that is over.
        let most_blocks = if self.layout.window().is_some() { MOST_AHEAD as usize } else { MOST_BLOCKS };
        if most == 0 || blocks.span() >= most_blocks || number >= u32::MAX - 1 {
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
        self.credit.start(shape.cost.into());
        blocks.open(shape);
        blocks.add_source(shape.k);
        if let Some(block) = blocks.block_mut(number) {
            block.fill(buffer);
        }
        self.opened_at = Some(now);
        if end {
            self.phase = Phase::Ended;
        }
        true
    }

    /// The receiver has a block; its bytes of the stream.
    pub(super) const fn on_block_done(&self, shape: &BlockShape) -> u64 {
        (shape.length - STREAM_HEADER) as u64
    }

    /// The receiver may have read all of the stream.
    pub(super) fn on_status(&mut self, status: &FlowStatus) {
        self.read |= status.done_below == u32::MAX && matches!(self.phase, Phase::Ended | Phase::Sent);
    }
}

#[cfg(test)]
mod tests;
