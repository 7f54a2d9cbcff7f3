//! The receiving half of a flow: symbols fill blocks, and complete blocks go where the flow's bytes go.

mod block_receiver;
mod object;
mod stream;
mod window;

pub(in crate::flow) use block_receiver::MOST_AHEAD;
pub(crate) use block_receiver::SymbolOutcome;
pub(crate) use window::largest_window;

use super::announcement::{FlowAnnouncement, FlowKind};
use super::credit::ReceiveCredit;
use super::layout::{BadPlan, BlockShape, FlowLayout};
use super::pool::Pool;
use super::request::{DecodeJob, Request};
use crate::wire::{BlockFeedback, BlockMask, FlowId, FlowStatus, Plan, SymbolId};
use block_receiver::{BlockReceiver, DecodeOutcome, Placed};
use erasure::{Block, Progress};
use object::ObjectSink;
use stream::StreamSink;
use window::WindowReceiver;

/// What this side accepts of a peer's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Largest number of source symbols in a block.
    pub largest_k: u32,
    /// Largest symbol in bytes.
    pub largest_symbol: u16,
    /// Most symbols in a packet.
    pub most_per_packet: u8,
}

/// The credit that a receiver gives to all flows of its peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvCredit {
    /// That of all objects together.
    pub(crate) objects: ReceiveCredit,
    /// Symbols that streams may still start beyond those that each has of its own.
    pub(crate) shared: u64,
}

/// Why a flow's bytes cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadBlock {
    /// A block of a stream contradicts itself or another: the peer is broken.
    #[error("impossible block of a stream")]
    Contradiction,
    /// The sender was told that a block is done, and it cannot be decoded: its bytes are lost.
    #[error("a block was acknowledged before it was decoded, and cannot be")]
    Undecodable,
}

/// Where the bytes of a flow go.
#[derive(Debug)]
enum Sink {
    Object(ObjectSink),
    Stream(StreamSink),
}

/// A flow of the peer.
#[derive(Debug)]
pub(crate) struct RecvFlow {
    announcement: FlowAnnouncement,
    blocks: BlockReceiver,
    sink: Sink,
    /// Recovers lost symbols of a stream with a window code.
    window: Option<WindowReceiver>,
    requests: Vec<Request>,
}

impl RecvFlow {
    /// A flow that the peer announced. Its status is given as `told` says; a stream has `window` symbols of credit of its own.
    ///
    /// # Errors
    /// [`BadPlan`] when the announcement contradicts itself or asks for more than `limits`.
    pub(crate) fn new(
        announcement: FlowAnnouncement,
        limits: FlowLimits,
        window: u32,
        told: BlockFeedback,
    ) -> Result<Self, BadPlan> {
        let (sink, k, symbol_size) = match announcement {
            FlowAnnouncement::Object(object) => {
                (Sink::Object(ObjectSink::new(&object)?), object.plan.k, object.symbol_size)
            }
            FlowAnnouncement::Stream(stream) => {
                (Sink::Stream(StreamSink::new(stream, window)?), stream.k, stream.symbol_size)
            }
        };
        let per_packet = announcement.symbols_per_packet();
        if k > limits.largest_k || symbol_size > limits.largest_symbol || per_packet > limits.most_per_packet {
            return Err(BadPlan);
        }
        let blocks = BlockReceiver::new(announcement.first(), usize::from(symbol_size), told);
        let window = sink.layout().window().map(WindowReceiver::new);
        Ok(Self { announcement, blocks, sink, window, requests: Vec::new() })
    }

    pub(crate) const fn announcement(&self) -> &FlowAnnouncement {
        &self.announcement
    }

    /// The id by which the programs know the flow.
    pub(crate) const fn first(&self) -> FlowId {
        self.announcement.first()
    }

    pub(crate) const fn kind(&self) -> FlowKind {
        self.announcement.kind()
    }

    /// Bytes per symbol.
    pub(crate) const fn symbol_size(&self) -> usize {
        self.blocks.symbol_size()
    }

    /// The most symbols in a packet.
    pub(crate) const fn symbols_per_packet(&self) -> u8 {
        self.announcement.symbols_per_packet()
    }

    /// Adds a plan. That of a block which has begun is refused: it keeps its shape.
    ///
    /// # Errors
    /// [`BadPlan`] when it does not fit the flow, or is larger than `limits`.
    pub(crate) fn add_plan(&mut self, plan: Plan, limits: FlowLimits) -> Result<(), BadPlan> {
        let Sink::Object(object) = &mut self.sink else { return Err(BadPlan) };
        let known = usize::from(plan.number) < object.layout.plans().len();
        if plan.k > limits.largest_k || (!known && plan.first_block < self.blocks.begun_below()) {
            return Err(BadPlan);
        }
        object.layout.add(Plan { flow: self.announcement.first(), ..plan })
    }

    /// The number of the next plan; `None` for a stream, which has none.
    pub(crate) fn next_plan(&self) -> Option<usize> {
        match &self.sink {
            Sink::Object(object) => Some(object.layout.plans().len()),
            Sink::Stream(_) => None,
        }
    }

    /// Goes on as another flow, of smaller symbols. Blocks that are done stay; the others begin anew.
    ///
    /// # Errors
    /// [`BadPlan`] for a size that does not suit the flow; nothing has changed then.
    pub(crate) fn succeed(&mut self, flow: FlowId, symbol_size: u16, pool: &mut Pool) -> Result<(), BadPlan> {
        let layout = self.sink.layout_mut();
        layout.shrink(symbol_size)?;
        self.blocks.succeed(flow, layout.symbol_size(), pool, |shape| layout.k_of(shape));
        self.window = layout.window().map(WindowReceiver::new);
        Ok(())
    }

    /// A symbol arrived. A block that begins with it takes its cost from `credit`.
    ///
    /// # Errors
    /// [`BadBlock::Contradiction`] when it reveals that the flow contradicts itself.
    pub(crate) fn on_symbol(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        credit: &mut RecvCredit,
        pool: &mut Pool,
    ) -> Result<SymbolOutcome, BadBlock> {
        if !self.sink.is_open() {
            return Ok(SymbolOutcome::Surplus);
        }
        if let Some(window) = &self.window {
            if WindowReceiver::is_repair(id) {
                return self.on_window_repair(id, plan, symbol, credit, pool);
            }
            // Once a block is done, nothing else would look at these.
            if plan != 0 || !window.has_source(id) {
                return Ok(SymbolOutcome::Refused);
            }
        }
        let outcome = self.place(id, plan, symbol, credit, pool)?;
        if let Some(window) = self.window.as_mut().filter(|_| outcome != SymbolOutcome::Refused) {
            window.on_source(id, symbol);
            self.place_recovered(credit, pool)?;
        }
        Ok(outcome)
    }

    /// Repair over the last blocks. It is taken only where every symbol that it covers may have been sent: within the credit, before
    /// the end of the stream, and near enough.
    fn on_window_repair(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        credit: &mut RecvCredit,
        pool: &mut Pool,
    ) -> Result<SymbolOutcome, BadBlock> {
        let near = plan == 0 && symbol.len() == self.symbol_size() && self.blocks.is_near(id.block);
        let within = self.sink.may_begin(id.block, self.blocks.begun_below(), credit);
        let Some(window) = self.window.as_mut().filter(|_| near && within) else { return Ok(SymbolOutcome::Refused) };
        let Some(repair) = window.repair(id) else { return Ok(SymbolOutcome::Refused) };
        if !window.on_repair(repair, symbol) {
            return Ok(SymbolOutcome::Surplus);
        }
        self.place_recovered(credit, pool)?;
        Ok(SymbolOutcome::New)
    }

    /// Places the symbols that the window code has recovered, as if they had arrived.
    fn place_recovered(&mut self, credit: &mut RecvCredit, pool: &mut Pool) -> Result<(), BadBlock> {
        let Some(mut window) = self.window.take() else { return Ok(()) };
        let flow = self.blocks.flow();
        while let Some((id, symbol)) = window.next_recovered(flow) {
            // One without credit is sent again when there is some.
            self.place(id, 0, symbol, credit, pool)?;
        }
        // The last of all may have been among them.
        self.window = Some(window).filter(|_| self.sink.is_open());
        Ok(())
    }

    /// Puts a symbol into its block, and the block where it goes once it is complete.
    fn place(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        credit: &mut RecvCredit,
        pool: &mut Pool,
    ) -> Result<SymbolOutcome, BadBlock> {
        let Self { blocks, sink, .. } = self;
        let outcome = match blocks.on_symbol(id, plan, symbol, pool, || sink.begin_block(id, plan, credit)) {
            Placed::Symbol(SymbolOutcome::New) => self.sink.on_new_symbol(id, symbol, &self.blocks)?,
            Placed::Symbol(outcome) => return Ok(outcome),
            Placed::Decodable(job) => {
                self.requests.push(Request::Decode(job));
                if self.blocks.is_early() { SymbolOutcome::CompletesBlock } else { SymbolOutcome::New }
            }
            Placed::Complete(shape, block) => {
                self.on_block(shape, block, credit, pool)?;
                SymbolOutcome::CompletesBlock
            }
        };
        if let Sink::Object(_) = self.sink {
            credit.objects.note_arrival();
        }
        Ok(outcome)
    }

    /// A decoder has tried.
    ///
    /// # Errors
    /// [`BadBlock`] when the block contradicts itself, or the sender was told that it is done and it cannot be decoded.
    pub(crate) fn on_decoded(
        &mut self,
        job: DecodeJob,
        progress: Progress,
        credit: &mut RecvCredit,
        pool: &mut Pool,
    ) -> Result<(), BadBlock> {
        match self.blocks.on_decoded(job, progress) {
            DecodeOutcome::Complete(shape, block) => self.on_block(shape, block, credit, pool),
            DecodeOutcome::Incomplete => Ok(()),
            DecodeOutcome::Lost => Err(BadBlock::Undecodable),
        }
    }

    fn on_block(
        &mut self,
        shape: BlockShape,
        block: Block,
        credit: &mut RecvCredit,
        pool: &mut Pool,
    ) -> Result<(), BadBlock> {
        match &mut self.sink {
            Sink::Object(object) => object.on_block(shape, block, &mut self.requests),
            Sink::Stream(stream) => {
                stream.on_block(shape, block, &self.blocks, credit, pool)?;
                self.drop_unwanted();
            }
        }
        Ok(())
    }

    /// Forgets what nobody wants any more, once a stream is stopped or read to its end.
    fn drop_unwanted(&mut self) {
        if !self.sink.is_open() {
            self.blocks.clear();
            self.requests.clear();
            self.window = None;
        }
    }

    /// The sender was told that a block is done which a decoder still has.
    pub(crate) fn has_promised(&self) -> bool {
        self.blocks.has_promised()
    }

    /// The program takes an object: its blocks are digested, if wanted, and written from now on.
    pub(crate) fn accept(&mut self, digest: bool) {
        if let Sink::Object(object) = &mut self.sink {
            object.accept(digest, &mut self.requests);
        }
    }

    /// A block of an object is digested or written. The cost and the bytes of the block once both are done.
    pub(crate) fn on_stored(&mut self, number: u32) -> Option<(u32, usize)> {
        match &mut self.sink {
            Sink::Object(object) => object.on_stored(number),
            Sink::Stream(_) => None,
        }
    }

    /// Appends at most `max` bytes of a stream, the next in order, to `out`. The credit of blocks that are read to their end goes back.
    pub(crate) fn read(&mut self, out: &mut Vec<u8>, max: usize, credit: &mut RecvCredit, pool: &mut Pool) -> usize {
        let Sink::Stream(stream) = &mut self.sink else { return 0 };
        let read = stream.read(out, max, &self.blocks, credit, pool);
        self.drop_unwanted();
        read
    }

    /// The program wants no more of a stream; false when there is no more of it, or when it is an object, which cannot be stopped.
    pub(crate) fn stop(&mut self) -> bool {
        let Sink::Stream(stream) = &mut self.sink else { return false };
        let stopped = stream.stop();
        self.drop_unwanted();
        stopped
    }

    /// The program has stopped the stream.
    pub(crate) const fn is_stopped(&self) -> bool {
        matches!(&self.sink, Sink::Stream(stream) if stream.is_stopped())
    }

    /// Every block is done; whether its bytes are written or read is another matter.
    pub(crate) fn is_complete(&self) -> bool {
        self.sink.is_complete(self.blocks.done_below())
    }

    /// The sender may hear that the flow is over: every block of an object is done, every byte of a stream is read.
    pub(crate) fn is_over(&self) -> bool {
        match &self.sink {
            Sink::Object(_) => self.is_complete(),
            Sink::Stream(stream) => stream.is_over(),
        }
    }

    /// Nothing is left to do once the sender has heard that the flow is over.
    pub(crate) const fn is_finished(&self) -> bool {
        match &self.sink {
            Sink::Object(object) => object.is_reported(),
            Sink::Stream(stream) => stream.is_over(),
        }
    }

    /// Something of the flow has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.blocks.begun_below() > 0
    }

    /// Something is known to be missing: of an object whatever has not arrived, of a stream the rest of a block.
    pub(crate) fn lacks_something(&self) -> bool {
        match &self.sink {
            Sink::Object(_) => !self.is_complete(),
            Sink::Stream(stream) => !stream.is_over() && !self.has_caught_up(),
        }
    }

    /// Every block of a stream of which anything has arrived is done. Of an object more is sure to come.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.kind() == FlowKind::Stream && self.blocks.begun_below() == self.blocks.done_below()
    }

    /// The first source symbol, by block and esi, that has not arrived; `None` when no more is wanted.
    pub(crate) fn gap(&mut self) -> Option<(u32, u32)> {
        self.sink.is_open().then(|| self.blocks.gap())
    }

    /// Symbols of a stream that are out of the shared credit: they go back when it is forgotten.
    pub(crate) const fn shared_credit(&self) -> u64 {
        match &self.sink {
            Sink::Object(_) => 0,
            Sink::Stream(stream) => stream.shared_credit(),
        }
    }

    /// The cost of blocks of an object that are done and not written.
    pub(crate) const fn waiting_symbols(&self) -> u64 {
        match &self.sink {
            Sink::Object(object) => object.waiting_symbols(),
            Sink::Stream(_) => 0,
        }
    }

    /// Moves out the work that the flow wants done.
    pub(crate) fn take_requests(&mut self) -> impl Iterator<Item = Request> {
        self.requests.drain(..)
    }

    /// True once, until a read leaves nothing: when a stream has bytes to read.
    pub(crate) fn newly_readable(&mut self) -> bool {
        match &mut self.sink {
            Sink::Object(_) => false,
            Sink::Stream(stream) => stream.newly_readable(&self.blocks),
        }
    }

    /// True once: when every byte of an accepted object is written, or every byte of a stream is read.
    pub(crate) fn newly_received(&mut self) -> bool {
        match &mut self.sink {
            Sink::Object(object) => object.newly_received(),
            Sink::Stream(stream) => stream.newly_received(),
        }
    }

    /// How many symbols of a stream are read, when it is time to tell the sender: a quarter of those it takes for unread.
    pub(crate) fn newly_read(&mut self) -> Option<u64> {
        match &mut self.sink {
            Sink::Object(_) => None,
            Sink::Stream(stream) => stream.newly_read(),
        }
    }

    /// What feedback says of this flow as a mask, where the sender asked for masks and the flow is short enough for one.
    pub(crate) fn mask(&self) -> Option<BlockMask> {
        let Sink::Object(object) = &self.sink else { return None };
        self.blocks.mask().filter(|_| object.layout.block(256).is_none())
    }

    /// What feedback says of this flow; `None` when its blocks are of no interest any more.
    pub(crate) fn status(&self) -> Option<FlowStatus> {
        if let Sink::Stream(stream) = &self.sink {
            if stream.is_over() {
                return Some(FlowStatus { flow: self.blocks.flow(), done_below: u32::MAX, blocks: Vec::new() });
            }
            if stream.is_stopped() {
                return None;
            }
        }
        Some(self.blocks.status())
    }
}

impl Sink {
    const fn layout(&self) -> &dyn FlowLayout {
        match self {
            Self::Object(object) => &object.layout,
            Self::Stream(stream) => &stream.layout,
        }
    }

    const fn layout_mut(&mut self) -> &mut dyn FlowLayout {
        match self {
            Self::Object(object) => &mut object.layout,
            Self::Stream(stream) => &mut stream.layout,
        }
    }

    /// Symbols are wanted.
    const fn is_open(&self) -> bool {
        match self {
            Self::Object(_) => true,
            Self::Stream(stream) => stream.is_open(),
        }
    }

    /// Takes the credit of the block that begins with a symbol, and says how it is shaped, or why it cannot be.
    fn begin_block(&mut self, id: SymbolId, plan: u8, credit: &mut RecvCredit) -> Result<BlockShape, SymbolOutcome> {
        match self {
            Self::Object(object) => object.begin_block(id, plan, &mut credit.objects),
            Self::Stream(stream) => stream.begin_block(id, plan, &mut credit.shared),
        }
    }

    /// Whether a block of one symbol may begin, given that those below `begun` have.
    fn may_begin(&self, block: u32, begun: u32, credit: &RecvCredit) -> bool {
        match self {
            Self::Object(_) => false,
            Self::Stream(stream) => stream.may_begin(block, begun, credit.shared),
        }
    }

    /// A symbol was new, and its block is not complete with it.
    fn on_new_symbol(
        &mut self,
        id: SymbolId,
        symbol: &[u8],
        blocks: &BlockReceiver,
    ) -> Result<SymbolOutcome, BadBlock> {
        match self {
            Self::Stream(stream) if id.esi == 0 => {
                stream.on_header(id.block, symbol, blocks)?;
                // Told like a complete block: a reader may go on with what follows the header.
                Ok(SymbolOutcome::CompletesBlock)
            }
            _ => Ok(SymbolOutcome::New),
        }
    }

    fn is_complete(&self, done_below: u32) -> bool {
        match self {
            Self::Object(object) => object.layout.block(done_below).is_none(),
            Self::Stream(stream) => stream.is_complete(done_below),
        }
    }
}
