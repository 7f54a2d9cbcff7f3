//! The receiving half of a flow: symbols fill blocks, and complete blocks go to the flow's destination.

mod block_receiver;
mod object;
mod stream;
mod window;

pub(in crate::flow) use block_receiver::MOST_AHEAD;
pub use block_receiver::PartialBlock;
pub(crate) use block_receiver::SymbolOutcome;
pub(crate) use window::largest_window;

use super::announcement::{FlowAnnouncement, FlowKind};
use super::credit::ReceiveCredit;
use super::layout::{BadPlan, BlockShape, FlowLayout};
use super::pool::Pool;
use super::work::{DecodeJob, WorkRequest};
use crate::wire::{BlockFeedback, BlockMask, FlowId, FlowStatus, Plan, SymbolId};
use block_receiver::{BlockReceiver, DecodeOutcome, PlaceResult};
use erasure::{Block, Progress};
use object::ObjectSink;
use stream::StreamSink;
use window::WindowReceiver;

/// The limits that this side sets to a peer's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// Largest number of source symbols in a block.
    pub largest_k: u32,
    /// Largest symbol in bytes.
    pub largest_symbol: u16,
    /// Largest number of symbols in a packet.
    pub most_per_packet: u8,
}

/// The credit that a receiver gives to all of its peer's flows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvCredit {
    /// Credit shared by all objects.
    pub(crate) objects: ReceiveCredit,
    /// Symbols that streams may still start beyond the credit that each has of its own.
    pub(crate) shared: u64,
}

/// The reason why a flow's bytes are unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadBlock {
    /// A block of a stream contradicts itself or another: a protocol violation by the peer.
    #[error("sent an invalid block of a stream")]
    Contradiction,
    /// A block reported as done cannot be decoded: its bytes are lost.
    #[error("a block acknowledged before decoding cannot be decoded")]
    Undecodable,
}

/// The destination of a flow's bytes.
#[derive(Debug)]
enum Sink {
    Object(ObjectSink),
    Stream(StreamSink),
}

/// A flow that the peer sends.
#[derive(Debug)]
pub(crate) struct RecvFlow {
    announcement: FlowAnnouncement,
    blocks: BlockReceiver,
    sink: Sink,
    /// Recovers lost symbols of a stream with a window code.
    window: Option<WindowReceiver>,
    requests: Vec<WorkRequest>,
}

impl RecvFlow {
    /// Creates a flow that the peer announced. `block_feedback` sets the form of its status in feedback; a stream has
    /// `window` symbols of its own credit.
    ///
    /// # Errors
    /// [`BadPlan`] when the announcement contradicts itself or asks for more than `limits`.
    pub(crate) fn new(
        announcement: FlowAnnouncement,
        limits: FlowLimits,
        window: u32,
        block_feedback: BlockFeedback,
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
        let blocks = BlockReceiver::new(announcement.first(), usize::from(symbol_size), block_feedback);
        let window = sink.layout().window().map(WindowReceiver::new);
        Ok(Self { announcement, blocks, sink, window, requests: Vec::new() })
    }

    pub(crate) const fn announcement(&self) -> &FlowAnnouncement {
        &self.announcement
    }

    /// Returns the id by which the programs know the flow.
    pub(crate) const fn first(&self) -> FlowId {
        self.announcement.first()
    }

    pub(crate) const fn kind(&self) -> FlowKind {
        self.announcement.kind()
    }

    /// Returns the bytes per symbol.
    pub(crate) const fn symbol_size(&self) -> usize {
        self.blocks.symbol_size()
    }

    /// Returns the most bytes of symbols that its blocks have had at once while they were not done.
    pub(crate) const fn most_held(&self) -> u64 {
        self.blocks.most_held()
    }

    /// Returns the bytes of received symbols of unwritten blocks; 0 for a stream.
    pub(crate) fn bytes_arriving(&self) -> u64 {
        match self.kind() {
            FlowKind::Object => self.blocks.held() + self.waiting_symbols() * self.symbol_size() as u64,
            FlowKind::Stream => 0,
        }
    }

    /// Returns the largest number of symbols in a packet.
    pub(crate) const fn symbols_per_packet(&self) -> u8 {
        self.announcement.symbols_per_packet()
    }

    /// Adds a plan. A plan for a block that has begun is refused: the block keeps its shape.
    ///
    /// # Errors
    /// [`BadPlan`] when it does not fit the flow, or exceeds `limits`.
    pub(crate) fn add_plan(&mut self, plan: Plan, limits: FlowLimits) -> Result<(), BadPlan> {
        let Sink::Object(object) = &mut self.sink else { return Err(BadPlan) };
        let known = usize::from(plan.number) < object.layout.plans().len();
        if plan.k > limits.largest_k || (!known && plan.first_block < self.blocks.begun_below()) {
            return Err(BadPlan);
        }
        object.layout.add(Plan { flow: self.announcement.first(), ..plan })
    }

    /// Returns the number of the next plan; `None` for a stream, which has none.
    pub(crate) fn next_plan(&self) -> Option<usize> {
        match &self.sink {
            Sink::Object(object) => Some(object.layout.plans().len()),
            Sink::Stream(_) => None,
        }
    }

    /// Continues as another flow, of smaller symbols. Done blocks stay; the others start over.
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

    /// Handles an arrived symbol. A block that begins with it takes its cost from `credit`.
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
            // Once a block is done, no other check covers these.
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

    /// Handles a repair symbol over the last blocks. It is used only if every symbol that it covers may have been sent:
    /// within the credit, before the end of the stream, and near enough.
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
            // A symbol without credit is retransmitted once credit is granted.
            self.place(id, 0, symbol, credit, pool)?;
        }
        // The stream's last symbol may have been among them.
        self.window = Some(window).filter(|_| self.sink.is_open());
        Ok(())
    }

    /// Places a symbol into its block, and delivers the block once it is complete.
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
            PlaceResult::Symbol(SymbolOutcome::New) => self.sink.on_new_symbol(id, symbol, &self.blocks)?,
            PlaceResult::Symbol(outcome) => return Ok(outcome),
            PlaceResult::Decodable(job) => {
                self.requests.push(WorkRequest::Decode(job));
                if self.blocks.is_early() { SymbolOutcome::CompletesBlock } else { SymbolOutcome::New }
            }
            PlaceResult::Complete(shape, block) => {
                self.on_block(shape, block, credit, pool)?;
                SymbolOutcome::CompletesBlock
            }
        };
        if let Sink::Object(_) = self.sink {
            credit.objects.note_arrival();
        }
        Ok(outcome)
    }

    /// Handles the end of a decoding attempt.
    ///
    /// # Errors
    /// [`BadBlock`] when the block contradicts itself, or was reported done and cannot be decoded.
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

    /// Drops unneeded state once a stream is stopped or read to its end.
    fn drop_unwanted(&mut self) {
        if !self.sink.is_open() {
            self.blocks.clear();
            self.requests.clear();
            self.window = None;
        }
    }

    /// Returns whether a block reported done is still being decoded.
    pub(crate) fn has_promised(&self) -> bool {
        self.blocks.has_promised()
    }

    /// Iterates over the incomplete blocks of an object that are not being decoded; yields none for a stream.
    pub(crate) fn partial_blocks(&self) -> impl Iterator<Item = PartialBlock<'_>> {
        self.blocks.partial_blocks().filter(|_| self.kind() == FlowKind::Object)
    }

    /// Accepts an object for the program: from now on its blocks are written, and digested if `digest` is set.
    pub(crate) fn accept(&mut self, digest: bool) {
        if let Sink::Object(object) = &mut self.sink {
            object.accept(digest, &mut self.requests);
        }
    }

    /// Handles the digest or write of a block of an object. Returns the block's cost and length once both are done.
    pub(crate) fn on_stored(&mut self, number: u32) -> Option<(u32, usize)> {
        match &mut self.sink {
            Sink::Object(object) => object.on_stored(number),
            Sink::Stream(_) => None,
        }
    }

    /// Appends at most `max` bytes of a stream, the next in order, to `out`. The credit of blocks read to their end is
    /// returned.
    pub(crate) fn read(&mut self, out: &mut Vec<u8>, max: usize, credit: &mut RecvCredit, pool: &mut Pool) -> usize {
        let Sink::Stream(stream) = &mut self.sink else { return 0 };
        let read = stream.read(out, max, &self.blocks, credit, pool);
        self.drop_unwanted();
        read
    }

    /// Stops a stream that the program no longer wants; returns false when it has ended, and for an object, which
    /// cannot be stopped.
    pub(crate) fn stop(&mut self) -> bool {
        let Sink::Stream(stream) = &mut self.sink else { return false };
        let stopped = stream.stop();
        self.drop_unwanted();
        stopped
    }

    /// Returns whether the program has stopped the stream.
    pub(crate) const fn is_stopped(&self) -> bool {
        matches!(&self.sink, Sink::Stream(stream) if stream.is_stopped())
    }

    /// Returns whether every block is done; its bytes may not be written or read yet.
    pub(crate) fn is_complete(&self) -> bool {
        self.sink.is_complete(self.blocks.done_below())
    }

    /// Returns whether feedback may report the flow as over: every block of an object is done, or every byte of a
    /// stream is read.
    pub(crate) fn is_over(&self) -> bool {
        match &self.sink {
            Sink::Object(_) => self.is_complete(),
            Sink::Stream(stream) => stream.is_over(),
        }
    }

    /// Returns whether nothing is left to do once the sender knows that the flow is over.
    pub(crate) const fn is_finished(&self) -> bool {
        match &self.sink {
            Sink::Object(object) => object.is_reported(),
            Sink::Stream(stream) => stream.is_over(),
        }
    }

    /// Returns whether anything of the flow has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        self.blocks.begun_below() > 0
    }

    /// Returns whether something is known to be missing: of an object anything that has not arrived, of a stream the
    /// rest of a block.
    pub(crate) fn lacks_something(&self) -> bool {
        match &self.sink {
            Sink::Object(_) => !self.is_complete(),
            Sink::Stream(stream) => !stream.is_over() && !self.has_caught_up(),
        }
    }

    /// Returns whether every begun block of a stream is done. An object always has more to follow.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.kind() == FlowKind::Stream && self.blocks.begun_below() == self.blocks.done_below()
    }

    /// Returns the first source symbol, by block and esi, that has not arrived; `None` when no more is wanted.
    pub(crate) fn gap(&mut self) -> Option<(u32, u32)> {
        self.sink.is_open().then(|| self.blocks.gap())
    }

    /// Returns the symbols of a stream from the shared credit, which are returned when it is removed.
    pub(crate) const fn shared_credit(&self) -> u64 {
        match &self.sink {
            Sink::Object(_) => 0,
            Sink::Stream(stream) => stream.shared_credit(),
        }
    }

    /// Returns the cost of the done and unwritten blocks of an object.
    pub(crate) const fn waiting_symbols(&self) -> u64 {
        match &self.sink {
            Sink::Object(object) => object.waiting_symbols(),
            Sink::Stream(_) => 0,
        }
    }

    /// Takes the flow's pending requests.
    pub(crate) fn take_requests(&mut self) -> impl Iterator<Item = WorkRequest> {
        self.requests.drain(..)
    }

    /// Returns true once, until a read leaves nothing: when a stream has bytes to read.
    pub(crate) fn newly_readable(&mut self) -> bool {
        match &mut self.sink {
            Sink::Object(_) => false,
            Sink::Stream(stream) => stream.newly_readable(&self.blocks),
        }
    }

    /// Returns true once: when every byte of an accepted object is written, or every byte of a stream is read.
    pub(crate) fn newly_received(&mut self) -> bool {
        match &mut self.sink {
            Sink::Object(object) => object.newly_received(),
            Sink::Stream(stream) => stream.newly_received(),
        }
    }

    /// Returns how many symbols of a stream are read when this should be reported: after a quarter of those that the
    /// sender takes for unread.
    pub(crate) fn newly_read(&mut self) -> Option<u64> {
        match &mut self.sink {
            Sink::Object(_) => None,
            Sink::Stream(stream) => stream.newly_read(),
        }
    }

    /// Returns the flow's status as a mask, if the sender requested masks and the flow is short enough for one.
    pub(crate) fn mask(&self) -> Option<BlockMask> {
        let Sink::Object(object) = &self.sink else { return None };
        self.blocks.mask().filter(|_| object.layout.block(256).is_none())
    }

    /// Returns the flow's status for feedback; `None` when its blocks are no longer of interest.
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

    /// Returns whether symbols are wanted.
    const fn is_open(&self) -> bool {
        match self {
            Self::Object(_) => true,
            Self::Stream(stream) => stream.is_open(),
        }
    }

    /// Takes the credit of the block that begins with a symbol, and returns its shape, or the reason to refuse it.
    fn begin_block(&mut self, id: SymbolId, plan: u8, credit: &mut RecvCredit) -> Result<BlockShape, SymbolOutcome> {
        match self {
            Self::Object(object) => object.begin_block(id, plan, &mut credit.objects),
            Self::Stream(stream) => stream.begin_block(id, plan, &mut credit.shared),
        }
    }

    /// Returns whether a block of one symbol may begin, given that those below `begun` have.
    fn may_begin(&self, block: u32, begun: u32, credit: &RecvCredit) -> bool {
        match self {
            Self::Object(_) => false,
            Self::Stream(stream) => stream.may_begin(block, begun, credit.shared),
        }
    }

    /// Handles a new symbol that did not complete its block.
    fn on_new_symbol(
        &mut self,
        id: SymbolId,
        symbol: &[u8],
        blocks: &BlockReceiver,
    ) -> Result<SymbolOutcome, BadBlock> {
        match self {
            Self::Stream(stream) if id.esi == 0 => {
                stream.on_header(id.block, symbol, blocks)?;
                // Reported like a complete block: a reader may continue with the bytes after the header.
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
