//! The sending half of a flow: the source of its blocks, and the choice of the next symbol.

mod block;
mod block_sender;
mod blocks;
mod object;
mod stream;
mod window;

pub use block::SendBlock;
pub(crate) use block_sender::{BlockSender, Pick, PickedSymbol, SymbolKind};
pub use blocks::SendBlocks;

use super::announcement::{FlowAnnouncement, FlowKind};
use super::credit::SendCredit;
use super::layout::{BadPlan, FlowLayout};
use super::pool::Pool;
use super::schedule::{PathEstimate, Schedule};
use super::sizing::{BlockSizer, BlockSizing};
use super::work::WorkRequest;
use crate::time::Time;
use crate::wire::{Announcement, FlowId, FlowStatus, Frame, Plan, StreamAnnouncement, SymbolId};
use object::ObjectSource;
use std::ops::Range;
use stream::StreamSource;

/// The source of a flow's bytes.
#[derive(Debug)]
enum FlowSource {
    Object(ObjectSource),
    Stream(StreamSource),
}

/// A flow that this side sends.
#[derive(Debug)]
pub(crate) struct SendFlow {
    announcement: FlowAnnouncement,
    blocks: BlockSender,
    source: FlowSource,
    /// The peer waits for it: a reset is sent even if the peer has not received the announcement.
    is_awaited: bool,
}

impl SendFlow {
    /// Creates an object divided according to its announcement and `further` plans. `digest`: digest each block after
    /// it is read.
    ///
    /// # Errors
    /// [`BadPlan`] for plans that do not make up the object; those of [`BlockSizing`] do.
    pub(crate) fn object(
        object: Announcement,
        further: &[Plan],
        schedule: Box<dyn Schedule>,
        digest: bool,
    ) -> Result<Self, BadPlan> {
        let source = ObjectSource::new(&object, further, digest)?;
        let (symbol_size, symbols) = (source.layout.symbol_size(), source.layout.symbols());
        let blocks = BlockSender::new(object.flow, symbol_size, symbols, schedule);
        Ok(Self {
            announcement: FlowAnnouncement::Object(object),
            blocks,
            source: FlowSource::Object(source),
            is_awaited: false,
        })
    }

    /// Creates a stream that has `own` symbols of credit of its own.
    pub(crate) fn stream(stream: StreamAnnouncement, own: u32, schedule: Box<dyn Schedule>) -> Self {
        let source = StreamSource::new(stream, own);
        let mut blocks = BlockSender::new(stream.flow, source.layout.symbol_size(), 0, schedule);
        blocks.set_window(source.layout.window());
        Self {
            announcement: FlowAnnouncement::Stream(stream),
            blocks,
            source: FlowSource::Stream(source),
            is_awaited: false,
        }
    }

    /// Has a reset sent even if the peer has not received the announcement.
    pub(crate) const fn set_awaited(&mut self, is_awaited: bool) {
        self.is_awaited = is_awaited;
    }

    /// Returns whether the peer has to receive the announcement before a reset.
    pub(crate) const fn is_announced_first(&self) -> bool {
        self.is_awaited && !self.blocks.announced()
    }

    /// Divides unopened data into blocks by `rule`, that of an object into at most `largest_k` source symbols. `None`:
    /// by the announcement and the plans.
    pub(crate) fn set_sizer(&mut self, rule: Option<Box<dyn BlockSizer>>, largest_k: u32) {
        match &mut self.source {
            FlowSource::Object(object) => object.set_sizer(rule, largest_k),
            FlowSource::Stream(stream) => stream.set_sizer(rule),
        }
    }

    /// Divides unopened data by another rule, if possible midway. `symbol_size` is that of new flows.
    pub(crate) fn resize_blocks(&mut self, blocks: &BlockSizing, symbol_size: u16, largest_k: u32) {
        let rule = match self.announcement {
            FlowAnnouncement::Object(_) => blocks.live_sizer(symbol_size),
            // Within the largest size and with the code in its announcement.
            FlowAnnouncement::Stream(stream) => Some(blocks.live_stream_sizer(stream.symbol_size)),
        };
        if rule.is_some() {
            self.set_sizer(rule, largest_k);
        }
    }

    /// Returns the id in its packets.
    pub(crate) const fn id(&self) -> FlowId {
        self.blocks.id()
    }

    /// Returns the id by which the programs know the flow.
    pub(crate) const fn first(&self) -> FlowId {
        self.announcement.first()
    }

    pub(crate) const fn kind(&self) -> FlowKind {
        self.announcement.kind()
    }

    /// Returns the largest number of symbols in a packet.
    pub(crate) const fn symbols_per_packet(&self) -> u8 {
        self.announcement.symbols_per_packet()
    }

    /// Returns its blocks being sent.
    pub(crate) const fn blocks(&self) -> &BlockSender {
        &self.blocks
    }

    /// Returns its blocks being sent.
    pub(crate) const fn blocks_mut(&mut self) -> &mut BlockSender {
        &mut self.blocks
    }

    /// Returns the frame that announces the flow; `None` once it is reset, unless the peer waits for it.
    pub(crate) fn announcement_frame(&self) -> Option<Frame<'static>> {
        let symbol_size = self.source.layout().symbol_size() as u16;
        (self.is_awaited || !self.is_reset()).then(|| self.announcement.frame(self.id(), symbol_size))
    }

    /// Returns a plan of the flow.
    pub(crate) fn plan(&self, number: u8) -> Option<Plan> {
        self.source.plans().get(usize::from(number)).map(|plan| Plan { flow: self.id(), ..*plan })
    }

    /// Returns the numbers of the plans after the one in the announcement.
    pub(crate) fn further_plans(&self) -> Range<u8> {
        1..self.source.plans().len().max(1) as u8
    }

    /// Handles the arrival of the announcement.
    pub(crate) const fn on_announced(&mut self) {
        self.blocks.on_announced();
    }

    /// Returns whether symbols of it may still have to be sent.
    pub(crate) const fn may_send(&self) -> bool {
        match &self.source {
            FlowSource::Object(_) => true,
            FlowSource::Stream(stream) => stream.may_send(),
        }
    }

    /// Returns whether the flow can continue in symbols of this size.
    pub(crate) fn can_shrink(&self, symbol_size: u16) -> bool {
        self.source.layout().can_shrink(symbol_size)
    }

    /// Continues as another flow, of smaller symbols.
    ///
    /// # Errors
    /// [`BadPlan`] where [`SendFlow::can_shrink`] returns false; nothing has changed then.
    pub(crate) fn succeed(&mut self, flow: FlowId, symbol_size: u16) -> Result<(), BadPlan> {
        let layout = self.source.layout_mut();
        layout.shrink(symbol_size)?;
        let unopened = layout.source_from(self.blocks.next_number());
        self.blocks.succeed(flow, layout.symbol_size(), unopened, |shape| layout.k_of(shape));
        self.blocks.set_window(layout.window());
        Ok(())
    }

    /// Returns the cost of the next block of an object to open; `None` when all are open.
    pub(crate) fn next_cost(&self) -> Option<u32> {
        match &self.source {
            FlowSource::Object(object) => object.layout.block(self.blocks.next_number()).map(|shape| shape.cost),
            FlowSource::Stream(_) => None,
        }
    }

    /// Opens the next block of an object when credit and the read-ahead allow it, and requests its bytes. It may need a
    /// plan of its own, which is then the last of [`SendFlow::further_plans`].
    pub(crate) fn open_object_block(
        &mut self,
        credit: &mut SendCredit,
        read_ahead: u64,
        path: &PathEstimate,
        pool: &mut Pool,
    ) -> Option<WorkRequest> {
        match &mut self.source {
            FlowSource::Object(object) => object.open_block(&mut self.blocks, credit, read_ahead, path, pool),
            FlowSource::Stream(_) => None,
        }
    }

    /// Opens a block of a stream, of at most `room` symbols, with the bytes that wait. The stream may hold `shared`
    /// symbols of the credit that all streams share. Returns whether it opened one.
    pub(crate) fn open_stream_block(
        &mut self,
        now: Time,
        path: &PathEstimate,
        room: u64,
        shared: u64,
        pool: &mut Pool,
    ) -> bool {
        match &mut self.source {
            FlowSource::Object(_) => false,
            FlowSource::Stream(stream) => stream.open_block(&mut self.blocks, now, path, (room, shared), pool),
        }
    }

    /// Returns whether a stream needs another block but has no number left for it.
    pub(crate) const fn is_exhausted(&self) -> bool {
        matches!(&self.source, FlowSource::Stream(stream) if stream.is_exhausted())
    }

    /// Handles the bytes of a block of an object. Returns the request for its digest, if digests are wanted.
    pub(crate) fn on_read(&mut self, number: u32, buffer: Vec<u8>) -> Option<WorkRequest> {
        match &mut self.source {
            FlowSource::Object(object) => object.on_read(&mut self.blocks, number, buffer),
            FlowSource::Stream(_) => None,
        }
    }

    /// Handles the digest of a block of an object.
    pub(crate) fn on_digest(&mut self, number: u32) {
        if let FlowSource::Object(object) = &mut self.source {
            object.on_digest(&self.blocks, number);
        }
    }

    /// Accepts as many of `bytes` as a stream has room for, if `room` of them may wait for a block; `None` when it is
    /// finished or reset, and for an object.
    pub(crate) fn write(&mut self, bytes: &[u8], room: usize) -> Option<usize> {
        match &mut self.source {
            FlowSource::Object(_) => None,
            FlowSource::Stream(stream) => stream.write(bytes, room),
        }
    }

    /// Ends a stream after the bytes written so far; returns false for an object.
    pub(crate) const fn finish(&mut self) -> bool {
        let FlowSource::Stream(stream) = &mut self.source else { return false };
        stream.finish();
        true
    }

    /// Resets the flow with `code`. Returns false if it already was, if all of it has arrived, and for an object, for
    /// which the wire has no reset.
    pub(crate) fn reset(&mut self, code: u32) -> bool {
        let reset = match &mut self.source {
            FlowSource::Object(_) => false,
            FlowSource::Stream(stream) => stream.reset(code),
        };
        if reset {
            self.blocks.abandon();
        }
        reset
    }

    /// Returns whether the flow is reset.
    const fn is_reset(&self) -> bool {
        matches!(&self.source, FlowSource::Stream(stream) if stream.is_reset())
    }

    /// Returns the code with which the flow was reset, until the receiver knows it.
    pub(crate) const fn reset_code(&self) -> Option<u32> {
        match &self.source {
            FlowSource::Object(_) => None,
            FlowSource::Stream(stream) => stream.reset_code(),
        }
    }

    /// Handles the receiver's confirmation of the reset.
    pub(crate) const fn on_reset_delivered(&mut self) {
        if let FlowSource::Stream(stream) = &mut self.source {
            stream.on_reset_delivered();
        }
    }

    /// Handles the report that the receiver's program has read blocks of `symbols` symbols of a stream in all.
    pub(crate) const fn on_peer_read(&mut self, symbols: u64) {
        if let FlowSource::Stream(stream) = &mut self.source {
            stream.on_peer_read(symbols);
        }
    }

    /// Returns the symbols that a stream holds of the credit that all streams share.
    pub(crate) const fn shared_credit(&self) -> u64 {
        match &self.source {
            FlowSource::Object(_) => 0,
            FlowSource::Stream(stream) => stream.shared_credit(),
        }
    }

    /// Returns whether bytes of a stream wait for credit.
    pub(crate) const fn is_held_back(&self) -> bool {
        matches!(&self.source, FlowSource::Stream(stream) if stream.is_held_back())
    }

    /// Returns the cost of buffered blocks: the receiver lacks them, or their digest is being made.
    pub(crate) const fn held_symbols(&self) -> u64 {
        let digesting = match &self.source {
            FlowSource::Object(object) => object.done_digesting(),
            FlowSource::Stream(_) => 0,
        };
        self.blocks.open_symbols() + digesting
    }

    /// Returns the number of open blocks whose bytes are not read yet.
    pub(crate) fn reading(&self) -> usize {
        self.blocks.blocks().open_blocks().filter(|block| !block.is_filled()).count()
    }

    /// Returns whether bytes of open blocks are being read, digested or encoded.
    pub(crate) fn is_prepared_here(&self) -> bool {
        let is_digesting = matches!(&self.source, FlowSource::Object(object) if object.done_digesting() > 0);
        let mut open = self.blocks.blocks().open_blocks();
        is_digesting || open.any(|block| !block.is_filled() || block.is_encoding())
    }

    /// Returns the flow's next deadline if no packet arrives: its schedule waits, or a short block of a stream or its
    /// repair becomes due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let short = match &self.source {
            FlowSource::Object(_) => None,
            FlowSource::Stream(stream) => stream.short_block_at(),
        };
        short.into_iter().chain(self.blocks.due_at()).min()
    }

    /// Returns the next symbol. `behind`: later objects have source to send. Bytes of a stream that only wait for their
    /// block to open do not defer repair. `ahead`: repair may be sent before anything is known to be lost.
    pub(crate) fn next(&mut self, now: Time, path: &PathEstimate, behind: bool, ahead: bool) -> Pick {
        let others_waiting = behind || self.is_held_back();
        if let FlowSource::Stream(stream) = &self.source {
            self.blocks.set_backlogged(stream.is_backlogged());
        }
        self.blocks.next(now, path, others_waiting, ahead)
    }

    /// Returns the symbol after `last` for the packet that so far ends with it.
    pub(crate) fn next_in_packet(&mut self, now: Time, path: &PathEstimate, behind: bool, last: SymbolId) -> Pick {
        self.blocks.next_in_packet(now, path, behind, last)
    }

    /// Applies the receiver's view of the blocks. Done blocks return their memory to `pool`. Returns the number of
    /// bytes newly known to have arrived, and passes the blocks' numbers to `finished`.
    pub(crate) fn on_status(&mut self, status: &FlowStatus, pool: &mut Pool, mut finished: impl FnMut(u32)) -> u64 {
        let Self { blocks, source, .. } = self;
        let mut bytes = 0;
        blocks.on_status(status, pool, &mut |shape| {
            bytes += match source {
                FlowSource::Object(object) => object.on_block_done(shape),
                FlowSource::Stream(stream) => stream.on_block_done(shape),
            };
            finished(shape.number);
        });
        if let FlowSource::Stream(stream) = source {
            stream.on_status(status);
        }
        bytes
    }

    /// Returns whether the receiver lacks any written part of the flow.
    pub(crate) fn is_unfinished(&self) -> bool {
        match &self.source {
            FlowSource::Object(object) => !object.is_finished(&self.blocks),
            FlowSource::Stream(stream) => stream.is_unfinished(&self.blocks),
        }
    }

    /// Returns whether a stream has nothing to send, and holds no credit that all share, until something happens to it.
    pub(crate) fn is_idle(&self) -> bool {
        !self.is_unfinished() && self.shared_credit() == 0
    }

    /// Returns whether unsent bytes wait.
    pub(crate) fn has_source(&self) -> bool {
        self.blocks.source_left() > 0 || matches!(&self.source, FlowSource::Stream(stream) if stream.is_waiting())
    }

    /// Returns whether bytes of a stream, or its end, are in no block yet.
    pub(crate) fn has_unopened(&self) -> bool {
        matches!(&self.source, FlowSource::Stream(stream) if stream.is_waiting() || stream.is_finishing())
    }

    /// Returns true once after a partial write to a stream: when half of the room is free again.
    pub(crate) fn newly_writable(&mut self) -> bool {
        match &mut self.source {
            FlowSource::Object(_) => false,
            FlowSource::Stream(stream) => stream.newly_writable(),
        }
    }

    /// Returns true when every byte has arrived: once for a stream, until it is removed for an object.
    pub(crate) fn newly_sent(&mut self) -> bool {
        match &mut self.source {
            FlowSource::Object(object) => object.is_finished(&self.blocks),
            FlowSource::Stream(stream) => stream.newly_sent(&self.blocks),
        }
    }

    /// Returns whether every byte of the flow has arrived and the program knows it.
    pub(crate) const fn is_sent(&self) -> bool {
        matches!(&self.source, FlowSource::Stream(stream) if stream.is_sent())
    }

    /// Returns whether the flow is over: the receiver has the whole object, has read a stream to its end, or knows of
    /// the reset.
    pub(crate) fn is_over(&self) -> bool {
        match &self.source {
            FlowSource::Object(object) => object.is_finished(&self.blocks),
            FlowSource::Stream(stream) => stream.is_over(),
        }
    }
}

impl FlowSource {
    fn layout(&self) -> &dyn FlowLayout {
        match self {
            Self::Object(object) => &object.layout,
            Self::Stream(stream) => &stream.layout,
        }
    }

    fn layout_mut(&mut self) -> &mut dyn FlowLayout {
        match self {
            Self::Object(object) => &mut object.layout,
            Self::Stream(stream) => &mut stream.layout,
        }
    }

    /// Returns the plans that have to arrive: a stream's are known by their numbers.
    fn plans(&self) -> &[Plan] {
        match self {
            Self::Object(object) => object.layout.plans(),
            Self::Stream(_) => &[],
        }
    }
}
