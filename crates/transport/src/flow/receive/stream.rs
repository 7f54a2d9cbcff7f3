//! The receiver half of a stream: bytes in order out of blocks that fill in any order.

use super::FlowLimits;
use super::block_receiver::SymbolOutcome;
use super::block_receiver::{BlockReceiver, DecodeOutcome, Placed, Undecodable};
use super::window::{WindowReceiver, largest_window};
use crate::flow::credit::StreamCredit;
use crate::flow::layout::{BadPlan, BlockShape};
use crate::flow::pool::Pool;
use crate::flow::request::{DecodeJob, Request};
use crate::flow::stream_layout::{StreamHeader, StreamLayout};
use crate::wire::{BlockFeedback, FlowId, FlowStatus, STREAM_HEADER, StreamAnnouncement, SymbolId};
use erasure::{Block, Progress};
use std::collections::BTreeMap;
use std::ops::Range;

/// A block whose header contradicts itself or another: the peer is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("impossible block of a stream")]
pub(crate) struct BadBlock;

/// What is wrong with a block that a decoder has tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadDecode {
    /// The peer is broken.
    #[error(transparent)]
    Block(#[from] BadBlock),
    /// Its bytes are lost.
    #[error(transparent)]
    Lost(#[from] Undecodable),
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The program wants no more; the sender's reset is awaited.
    Stopped,
    /// All of it is read.
    Over,
}

/// A stream on its way in.
#[derive(Debug)]
pub(crate) struct StreamReceiver {
    layout: StreamLayout,
    assembly: BlockReceiver,
    /// Blocks that are done and not read to their end, with their cost.
    whole: BTreeMap<u32, (u32, Block)>,
    usage: StreamCredit,
    /// The symbols of which the sender was told last that they are read.
    told: u64,
    /// The block that is being read, and the place of the next byte in it.
    front: u32,
    at: usize,
    /// The last block of all, once its header has come.
    end: Option<u32>,
    phase: Phase,
    readable_told: bool,
    finished_told: bool,
    requests: Vec<Request>,
    /// Makes lost symbols good, of a stream with a window code.
    window: Option<WindowReceiver>,
}

impl StreamReceiver {
    /// A stream that the peer announced, with `window` symbols of its own, which wants to hear of its blocks as `told` says; `None` when it asks
    /// for more than `limits`.
    pub(crate) fn new(
        announcement: StreamAnnouncement,
        window: u32,
        limits: FlowLimits,
        told: BlockFeedback,
    ) -> Option<Self> {
        if announcement.k > limits.largest_k || announcement.symbol_size > limits.largest_symbol {
            return None;
        }
        let layout = StreamLayout::new(announcement);
        if layout.window().is_some() && announcement.k > largest_window(window) {
            return None;
        }
        Some(Self {
            window: layout.window().map(WindowReceiver::new),
            layout,
            assembly: BlockReceiver::new(announcement.flow, layout.symbol_size(), told),
            whole: BTreeMap::new(),
            usage: StreamCredit::new(window),
            told: 0,
            front: 0,
            at: STREAM_HEADER,
            end: None,
            phase: Phase::Open,
            readable_told: false,
            finished_told: false,
            requests: Vec::new(),
        })
    }

    /// Whether the announcement repeats the one this stream was made from.
    pub(crate) fn is_announced_by(&self, announcement: &StreamAnnouncement) -> bool {
        self.layout.announcement() == announcement
    }

    /// The first flow that carried the stream: what both programs know it by.
    pub(crate) const fn stream(&self) -> FlowId {
        self.layout.announcement().flow
    }

    /// Bytes per symbol.
    pub(crate) fn symbol_size(&self) -> usize {
        self.layout.symbol_size()
    }

    /// Goes on as another flow, of smaller symbols: what is done and what is read stay so.
    ///
    /// # Errors
    /// [`BadPlan`] for a size that does not suit the stream; nothing has changed then.
    pub(crate) fn succeed(&mut self, flow: FlowId, symbol_size: u16, pool: &mut Pool) -> Result<(), BadPlan> {
        self.layout.shrink(symbol_size)?;
        let layout = &self.layout;
        self.assembly.succeed(flow, layout.symbol_size(), pool, |shape| layout.k_of(shape));
        self.window = layout.window().map(WindowReceiver::new);
        Ok(())
    }

    /// A symbol arrived. What the stream has no credit of its own for comes out of `store`.
    ///
    /// # Errors
    /// [`BadBlock`] when what came contradicts itself.
    pub(crate) fn on_symbol(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        store: &mut u64,
        pool: &mut Pool,
    ) -> Result<SymbolOutcome, BadBlock> {
        if self.phase != Phase::Open {
            return Ok(SymbolOutcome::Surplus);
        }
        if let Some(window) = &self.window {
            if WindowReceiver::is_repair(id) {
                return self.on_window_repair(id, plan, symbol, store, pool);
            }
            // Of a block that is done nothing else would look at these.
            if plan != 0 || !window.has_source(id) {
                return Ok(SymbolOutcome::Refused);
            }
        }
        let taken = self.place(id, plan, symbol, store, pool)?;
        if let Some(window) = self.window.as_mut().filter(|_| taken != SymbolOutcome::Refused) {
            window.on_source(id, symbol);
            self.make_good(store, pool)?;
        }
        Ok(taken)
    }

    /// Repair of symbols that may all have been sent: none but those has credit, a place before the end, and blocks near enough.
    fn on_window_repair(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        store: &mut u64,
        pool: &mut Pool,
    ) -> Result<SymbolOutcome, BadBlock> {
        let begun = u64::from(self.assembly.begun_below());
        let startable = begun + self.usage.left(self.usage.shared() + *store);
        let within = self.end.is_none_or(|end| id.block <= end) && u64::from(id.block) < startable;
        let fits = plan == 0 && symbol.len() == self.layout.symbol_size() && self.assembly.is_near(id.block);
        let Some(window) = self.window.as_mut().filter(|_| within && fits) else { return Ok(SymbolOutcome::Refused) };
        let Some(repair) = window.repair(id) else { return Ok(SymbolOutcome::Refused) };
        if !window.on_repair(repair, symbol) {
            return Ok(SymbolOutcome::Surplus);
        }
        self.make_good(store, pool)?;
        Ok(SymbolOutcome::New)
    }

    /// Takes what was lost and follows from what came, as if it had arrived.
    fn make_good(&mut self, store: &mut u64, pool: &mut Pool) -> Result<(), BadBlock> {
        let Some(mut window) = self.window.take() else { return Ok(()) };
        let flow = self.assembly.flow();
        while let Some((id, symbol)) = window.next_recovered(flow) {
            // One without credit is sent again when there is some.
            self.place(id, 0, symbol, store, pool)?;
        }
        // The last of all may have been among them.
        self.window = Some(window).filter(|_| self.phase == Phase::Open);
        Ok(())
    }

    /// Puts a symbol where it belongs.
    fn place(
        &mut self,
        id: SymbolId,
        plan: u8,
        symbol: &[u8],
        store: &mut u64,
        pool: &mut Pool,
    ) -> Result<SymbolOutcome, BadBlock> {
        let Self { layout, usage, end, .. } = self;
        let open = || {
            let shape = layout.shape(id.block, plan).ok_or(SymbolOutcome::Refused)?;
            let within = end.is_none_or(|end| id.block <= end) && id.esi < shape.code.symbol_limit(shape.k);
            let (cost, before) = (u64::from(shape.cost), usage.shared());
            if !within || cost > usage.left(before + *store) {
                return Err(SymbolOutcome::Refused);
            }
            usage.start(cost);
            *store -= usage.shared() - before;
            Ok(shape)
        };
        match self.assembly.on_symbol(id, plan, symbol, pool, open) {
            Placed::Symbol(SymbolOutcome::New) if id.esi == 0 => {
                let length = self.assembly.partial(id.block).map_or(0, |(shape, _)| shape.length);
                self.check(id.block, symbol, length)?;
            }
            Placed::Symbol(taken) => return Ok(taken),
            Placed::Decodable(job) => {
                self.requests.push(Request::Decode(job));
                if !self.assembly.is_early() {
                    return Ok(SymbolOutcome::New);
                }
            }
            Placed::Complete(shape, block) => self.keep(shape, block, store, pool)?,
        }
        Ok(SymbolOutcome::CompletesBlock)
    }

    /// A decoder has tried.
    ///
    /// # Errors
    /// [`BadDecode`] when the block contradicts itself, or the sender was told that it is done and it cannot be decoded.
    pub(crate) fn on_decoded(
        &mut self,
        job: DecodeJob,
        progress: Progress,
        store: &mut u64,
        pool: &mut Pool,
    ) -> Result<(), BadDecode> {
        match self.assembly.on_decoded(job, progress) {
            DecodeOutcome::Complete(shape, block) => Ok(self.keep(shape, block, store, pool)?),
            DecodeOutcome::Incomplete => Ok(()),
            DecodeOutcome::Lost => Err(Undecodable.into()),
        }
    }

    /// The sender was told that a block is done which a decoder still has.
    pub(crate) fn has_promised(&self) -> bool {
        self.assembly.has_promised()
    }

    /// The first source symbol, by block and esi, that has not come; `None` when nothing more is wanted.
    pub(crate) fn gap(&mut self) -> Option<(u32, u32)> {
        (self.phase == Phase::Open).then(|| self.assembly.gap())
    }

    /// Appends at most `max` bytes, the next in order, to `out`; the credit of blocks read to their end goes back.
    pub(crate) fn read(&mut self, out: &mut Vec<u8>, max: usize, store: &mut u64, pool: &mut Pool) -> usize {
        let mut read = 0;
        while let Some((block, ready)) = self.ready(max - read).filter(|(_, ready)| !ready.is_empty()) {
            out.extend_from_slice(&block.bytes()[ready.clone()]);
            read += ready.len();
            self.at = ready.end;
            self.pass(store, pool);
        }
        self.readable_told &= self.is_readable();
        read
    }

    /// The program wants no more of it; false when there is no more.
    pub(crate) fn stop(&mut self) -> bool {
        let open = self.phase == Phase::Open;
        if open {
            self.phase = Phase::Stopped;
            self.drop_blocks();
        }
        open
    }

    /// The program has asked for its end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Everything is read.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Every block is done, read or not.
    pub(crate) fn is_complete(&self) -> bool {
        self.phase == Phase::Over || self.end.is_some_and(|end| self.assembly.done_below() > end)
    }

    /// Every block of which anything has come is done.
    pub(crate) fn lacks_nothing(&self) -> bool {
        self.assembly.begun_below() == self.assembly.done_below()
    }

    /// Symbols that it has out of the store: they go back when it is forgotten.
    pub(crate) const fn shared(&self) -> u64 {
        self.usage.shared()
    }

    /// True once, until a read finds nothing left: when there are bytes to read.
    pub(crate) fn newly_readable(&mut self) -> bool {
        let now = !self.readable_told && self.is_readable();
        self.readable_told |= now;
        now
    }

    /// True once: when everything is read.
    pub(crate) fn newly_finished(&mut self) -> bool {
        let now = self.phase == Phase::Over && !self.finished_told;
        self.finished_told |= now;
        now
    }

    /// How many symbols are read, when it is time to tell the sender: a quarter of what it takes for unread.
    pub(crate) fn newly_read(&mut self) -> Option<u64> {
        let (read, taken_for_unread) = (self.usage.read(), self.usage.started() - self.told);
        let worth_it = (read - self.told) * 4 >= taken_for_unread.max(self.usage.own() / 2).max(1);
        if self.phase != Phase::Open || !worth_it {
            return None;
        }
        self.told = read;
        Some(read)
    }

    /// Work this stream wants done.
    pub(crate) fn take_requests(&mut self) -> impl Iterator<Item = Request> {
        self.requests.drain(..)
    }

    /// What feedback says of this stream; `None` when its blocks are of no interest.
    pub(crate) fn status(&self) -> Option<FlowStatus> {
        match self.phase {
            Phase::Open => Some(self.assembly.status()),
            Phase::Stopped => None,
            Phase::Over => Some(FlowStatus { flow: self.assembly.flow(), done_below: u32::MAX, blocks: Vec::new() }),
        }
    }

    /// A block is done: its bytes wait to be read.
    fn keep(&mut self, shape: BlockShape, block: Block, store: &mut u64, pool: &mut Pool) -> Result<(), BadBlock> {
        if self.phase != Phase::Open {
            return Ok(());
        }
        self.check(shape.number, block.bytes(), shape.length)?;
        self.whole.insert(shape.number, (shape.cost, block));
        self.pass(store, pool);
        Ok(())
    }

    /// Whether the beginning of a block of `length` bytes makes sense, alone and with what is known of the end.
    fn check(&mut self, number: u32, beginning: &[u8], length: usize) -> Result<(), BadBlock> {
        let header = StreamHeader::decode(beginning, length).ok_or(BadBlock)?;
        if header.end {
            let last = self.end.is_none_or(|end| end == number) && self.assembly.begun_below() <= number + 1;
            self.end = Some(number).filter(|_| last);
            return last.then_some(()).ok_or(BadBlock);
        }
        self.end.is_none_or(|end| number < end).then_some(()).ok_or(BadBlock)
    }

    /// The block that is being read, as far as it has come.
    fn front(&self) -> Option<&Block> {
        let whole = self.whole.get(&self.front).map(|(_, block)| block);
        whole.or_else(|| self.assembly.partial(self.front).map(|(_, block)| block))
    }

    /// Bytes of the front block that can be read now, up to `max`: those of symbols that are there without a gap.
    fn ready(&self, max: usize) -> Option<(&Block, Range<usize>)> {
        let block = self.front()?;
        let header = StreamHeader::decode(block.symbol(0)?, block.bytes().len())?;
        let end = STREAM_HEADER + header.length as usize;
        let limit = end.min(self.at.saturating_add(max));
        // What was done before the stream went on in smaller symbols has larger ones.
        let size = block.symbol_size();
        let mut until = self.at;
        while until < limit && block.is_present((until / size) as u32) {
            until = ((until / size + 1) * size).min(limit);
        }
        Some((block, self.at..until))
    }

    fn is_readable(&self) -> bool {
        self.phase == Phase::Open && self.ready(1).is_some_and(|(_, ready)| !ready.is_empty())
    }

    /// Leaves blocks behind that are done and read to their end.
    fn pass(&mut self, store: &mut u64, pool: &mut Pool) {
        while let Some((_, block)) = self.whole.get(&self.front) {
            let header = StreamHeader::decode(block.bytes(), block.bytes().len());
            if header.is_some_and(|header| self.at < STREAM_HEADER + header.length as usize) {
                return;
            }
            if let Some((cost, block)) = self.whole.remove(&self.front) {
                let before = self.usage.shared();
                self.usage.note_read(self.usage.read() + u64::from(cost));
                *store += before - self.usage.shared();
                pool.put(block.into_buffer());
            }
            if self.end == Some(self.front) {
                self.phase = Phase::Over;
                return self.drop_blocks();
            }
            self.front += 1;
            self.at = STREAM_HEADER;
        }
    }

    fn drop_blocks(&mut self) {
        self.assembly.clear();
        self.whole.clear();
        self.requests.clear();
        if let Some(window) = &mut self.window {
            window.close();
        }
    }
}
