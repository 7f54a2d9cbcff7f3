//! A sender's open block: its sent, arrived and repair symbols.

use crate::flow::layout::BlockShape;
use crate::flow::work::{EncodeJob, WorkRequest};
use crate::wire::FlowId;
use erasure::{Block, BlockCode, Encoder};
use std::collections::VecDeque;
use std::sync::Arc;

/// Flags of the source symbols, one bit each.
#[derive(Clone, Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(bits: u32) -> Self {
        Self(vec![0; (bits as usize).div_ceil(64)])
    }

    fn get(&self, at: u32) -> bool {
        self.0.get(at as usize / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Sets the bit; returns false when it was set already.
    fn set(&mut self, at: u32) -> bool {
        let word = &mut self.0[at as usize / 64];
        let fresh = *word >> (at % 64) & 1 == 0;
        *word |= 1 << (at % 64);
        fresh
    }

    fn first_clear(&self) -> u32 {
        let word = self.0.iter().position(|word| *word != u64::MAX).unwrap_or(self.0.len());
        (word * 64) as u32 + self.0.get(word).map_or(0, |bits| bits.trailing_ones())
    }
}

/// The repair symbols of a block, made on request in given numbers.
#[derive(Debug, Default)]
struct Repairs {
    encoder: Option<Box<dyn Encoder>>,
    /// Symbols made; those from `sent` on are not sent yet.
    symbols: Vec<u8>,
    /// esi of the first symbol in `symbols`.
    first: u32,
    made: u32,
    sent: u32,
    busy: bool,
}

/// Returns whether enough repair symbols of the code decode without source, and it hardly runs out of them.
const fn is_fountain(code: BlockCode) -> bool {
    matches!(code, BlockCode::RaptorQ | BlockCode::Raptor | BlockCode::Lt | BlockCode::PrecodedLt)
}

/// A block, from the request for its bytes until the receiver has it.
#[derive(Debug)]
pub struct SendBlock {
    shape: BlockShape,
    symbol_size: usize,
    data: Option<Arc<Block>>,
    /// Only repair is sent: source is a last resort when no more repair can be made.
    coded: bool,
    /// Next source symbol to send for the first time.
    next_source: u32,
    delivered: Bits,
    delivered_source: u32,
    delivered_repair: u32,
    in_flight: u32,
    called_lost: u32,
    /// Lost source symbols, by number: where feedback names arrivals in order, none is named before the first of these.
    lost: VecDeque<u32>,
    /// Symbols that the receiver reported to need, less those known to have arrived since.
    reported_need: Option<u32>,
    repairs: Repairs,
    stall: Rounds,
    done: bool,
}

/// How often a block was found waiting with nothing of it in flight.
#[derive(Debug, Default)]
struct Rounds {
    /// It was at the last look, and nothing of it has been sent since.
    quiet: bool,
    /// Number of whole rounds for which it was.
    count: u32,
    /// The source symbol to repeat next.
    turn: u32,
}

impl SendBlock {
    /// Creates a block whose bytes are not read yet. `coded`: send repair alone, if its code allows it.
    pub(in crate::flow) fn new(shape: BlockShape, symbol_size: usize, coded: bool) -> Self {
        let delivered = Bits::new(shape.k);
        Self {
            shape,
            symbol_size,
            data: None,
            coded: coded && is_fountain(shape.code),
            next_source: 0,
            delivered,
            delivered_source: 0,
            delivered_repair: 0,
            in_flight: 0,
            called_lost: 0,
            lost: VecDeque::new(),
            reported_need: None,
            repairs: Repairs::default(),
            stall: Rounds::default(),
            done: false,
        }
    }

    /// Returns the block's number in its flow.
    pub const fn number(&self) -> u32 {
        self.shape.number
    }

    /// Returns the number of source symbols.
    pub const fn k(&self) -> u32 {
        self.shape.k
    }

    /// Returns the bytes of it that the receiver is known to have, as symbols of any kind.
    pub(in crate::flow) fn bytes_delivered(&self) -> u64 {
        let symbols = self.delivered_source.saturating_add(self.delivered_repair) as usize;
        (symbols.saturating_mul(self.symbol_size)).min(self.shape.length) as u64
    }

    /// Returns the code of its repair symbols.
    pub const fn code(&self) -> BlockCode {
        self.shape.code
    }

    /// Returns the number of source symbols sent.
    pub const fn source_sent(&self) -> u32 {
        self.next_source
    }

    /// Returns the number of repair symbols sent.
    pub const fn repair_sent(&self) -> u32 {
        self.repairs.sent
    }

    /// Returns the number of losses of symbols that have not arrived since; a symbol counts each time it is lost.
    pub const fn known_lost(&self) -> u32 {
        self.called_lost
    }

    /// Sets whether only repair is sent from now on, or source too.
    pub(in crate::flow) fn set_coded(&mut self, coded: bool) {
        self.coded = coded && is_fountain(self.shape.code);
    }

    /// Returns whether only repair of it is sent.
    pub const fn is_repair_only(&self) -> bool {
        self.coded
    }

    /// Returns the number of sent symbols without a known outcome.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns how many symbols the receiver needs beyond those known to have arrived.
    pub fn need(&self) -> u32 {
        let arrived = self.delivered_source + self.delivered_repair;
        self.reported_need.unwrap_or_else(|| self.shape.k.saturating_sub(arrived))
    }

    /// Returns whether the receiver needs symbols of it, as far as known.
    pub(in crate::flow) fn is_lacking(&self) -> bool {
        !self.done && self.need() > 0
    }

    /// Returns whether only source was sent, and none of it is known lost.
    pub fn is_intact(&self) -> bool {
        self.repairs.sent == 0 && self.delivered_source + self.in_flight >= self.next_source
    }

    /// Returns whether the receiver has the block.
    pub const fn is_done(&self) -> bool {
        self.done
    }

    /// Returns the number of repair symbols made and not sent yet.
    pub const fn repair_ready(&self) -> u32 {
        self.repairs.made - self.repairs.sent
    }

    /// Returns whether every repair symbol of its code has been made.
    pub fn is_exhausted(&self) -> bool {
        self.shape.k + self.repairs.made >= self.code().symbol_limit(self.shape.k)
    }

    /// Returns whether more repair symbols can be ordered now.
    pub fn can_prepare(&self) -> bool {
        !self.repairs.busy && self.is_filled() && !self.is_exhausted()
    }

    /// Returns whether a source symbol can be sent for the first time now.
    pub fn has_source_ready(&self) -> bool {
        self.data.is_some() && !self.coded && self.next_source < self.shape.k
    }

    /// Returns the number of source symbols not sent yet; for a block of repair alone, of its first k symbols.
    pub const fn source_left(&self) -> u32 {
        let sent = if self.coded { self.repairs.sent } else { self.next_source };
        self.shape.k.saturating_sub(sent)
    }

    /// Returns a source symbol for use when no more repair can be made: a lost one, or, in a block of repair alone, an
    /// unsent one.
    pub(in crate::flow) fn last_resort(&self) -> Option<u32> {
        let spent = self.data.is_some() && !self.repairs.busy && self.repair_ready() == 0 && !self.can_prepare();
        let unsent = || (self.coded && self.next_source < self.shape.k).then_some(self.next_source);
        self.first_lost().filter(|_| spent).or_else(|| unsent().filter(|_| spent))
    }

    /// Returns whether repair symbols are being made.
    pub(in crate::flow) const fn is_encoding(&self) -> bool {
        self.repairs.busy
    }

    /// Notes that the block is waiting with nothing of it in flight. If it was before and nothing has been sent since,
    /// returns the number of symbols to repeat: as many as the receiver is known to need, or one; four times as many in
    /// each round, up to the whole block.
    pub(in crate::flow) fn wait_a_round(&mut self) -> Option<u32> {
        if !std::mem::replace(&mut self.stall.quiet, true) {
            return None;
        }
        let round = self.stall.count;
        self.stall.count += 1;
        let symbols = self.need().max(1).saturating_mul(4u32.saturating_pow(round)).min(self.shape.k);
        if symbols == self.shape.k {
            // A queue with room for the first of them only must not drop the same ones in every round.
            self.stall.turn += 1;
        }
        Some(symbols)
    }

    /// Returns the rounds for which it has waited with nothing of it in flight.
    pub(in crate::flow) const fn rounds(&self) -> u32 {
        self.stall.count
    }

    /// Returns the next sent source symbol to repeat.
    pub(in crate::flow) fn next_in_turn(&mut self) -> Option<u32> {
        let sent = if self.coded { self.shape.k } else { self.next_source };
        let esi = self.stall.turn.checked_rem(sent)?;
        self.stall.turn = esi + 1;
        Some(esi)
    }

    /// Returns whether the block's bytes are read.
    pub const fn is_filled(&self) -> bool {
        self.data.is_some()
    }

    pub(in crate::flow) const fn shape(&self) -> &BlockShape {
        &self.shape
    }

    /// Drops leading lost source symbols that have arrived since; returns whether any lost one is left.
    pub(in crate::flow) fn prune_lost(&mut self) -> bool {
        while self.lost.front().is_some_and(|esi| self.delivered.get(*esi)) {
            self.lost.pop_front();
        }
        !self.lost.is_empty()
    }

    pub(in crate::flow) fn first_lost(&self) -> Option<u32> {
        self.lost.front().copied()
    }

    /// Returns the oldest source symbol sent that is not known to have arrived, for a probe.
    pub(in crate::flow) fn oldest_unacknowledged(&self) -> Option<u32> {
        let esi = self.delivered.first_clear();
        (self.data.is_some() && esi < self.next_source).then_some(esi)
    }

    /// Fills the block with its bytes, which may be shared with a digest.
    pub(in crate::flow) fn fill(&mut self, mut buffer: Vec<u8>) -> Arc<Block> {
        let whole = self.shape.k as usize * self.symbol_size;
        buffer.truncate(self.shape.length);
        buffer.resize(whole, 0);
        let data = Arc::new(Block::new_complete(self.shape.k, self.symbol_size, buffer));
        self.data = Some(Arc::clone(&data));
        data
    }

    pub(in crate::flow) fn take_source(&mut self) -> u32 {
        self.stall.quiet = false;
        self.next_source += 1;
        self.in_flight += 1;
        self.next_source - 1
    }

    pub(in crate::flow) fn take_resend(&mut self, esi: u32) {
        self.stall.quiet = false;
        if self.lost.front() == Some(&esi) {
            self.lost.pop_front();
        } else if self.coded && esi == self.next_source {
            self.next_source += 1;
        }
        self.in_flight += 1;
    }

    pub(in crate::flow) fn take_repair(&mut self) -> u32 {
        self.stall.quiet = false;
        self.repairs.sent += 1;
        self.in_flight += 1;
        self.shape.k + self.repairs.sent - 1
    }

    /// Returns the bytes of a symbol that `take_*` named.
    pub(in crate::flow) fn symbol(&self, esi: u32) -> &[u8] {
        if esi < self.shape.k {
            return self.data.as_ref().and_then(|data| data.symbol(esi)).unwrap_or_default();
        }
        let at = (esi - self.repairs.first) as usize * self.symbol_size;
        &self.repairs.symbols[at..at + self.symbol_size]
    }

    /// Returns how many bytes of a symbol are not padding. A repair symbol is as long as the longest source symbol: of
    /// two or more one is full, and the codes combine the bytes at each position of a single one by themselves.
    pub(in crate::flow) fn unpadded(&self, esi: u32) -> usize {
        let before = if esi < self.shape.k { esi as usize * self.symbol_size } else { 0 };
        self.shape.length.saturating_sub(before).min(self.symbol_size)
    }

    /// Returns the bytes held for repair symbols.
    #[cfg(test)]
    pub(in crate::flow) const fn memory_of_repair(&self) -> usize {
        self.repairs.symbols.len()
    }

    /// Orders `count` more repair symbols.
    pub(in crate::flow) fn prepare(&mut self, flow: FlowId, count: u32) -> Option<WorkRequest> {
        let source = Arc::clone(self.data.as_ref()?);
        let encoder = match self.repairs.encoder.take() {
            Some(encoder) => encoder,
            None => self.code().encoder(self.shape.k, self.symbol_size).ok()?,
        };
        let first = self.shape.k + self.repairs.made;
        let count = count.min(encoder.symbol_limit().saturating_sub(first));
        self.repairs.busy = true;
        let symbols = Vec::new();
        Some(WorkRequest::Encode(EncodeJob { flow, block: self.number(), source, encoder, first, count, symbols }))
    }

    pub(in crate::flow) fn prepared(&mut self, job: EncodeJob) {
        let repairs = &mut self.repairs;
        repairs.busy = false;
        repairs.encoder = Some(job.encoder);
        if repairs.sent == repairs.made {
            repairs.symbols = job.symbols;
            repairs.first = job.first;
        } else {
            // Those sent meanwhile are dropped: a block with endless repair keeps only unsent symbols.
            let next = self.shape.k + repairs.sent;
            repairs.symbols.drain(..(next - repairs.first) as usize * self.symbol_size);
            repairs.first = next;
            repairs.symbols.extend_from_slice(&job.symbols);
        }
        repairs.made += job.count;
    }

    pub(in crate::flow) fn on_delivered(&mut self, esi: u32) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.on_arrived(esi);
    }

    /// Handles the arrival of a symbol declared lost.
    pub(in crate::flow) fn on_spurious(&mut self, esi: u32) {
        self.called_lost = self.called_lost.saturating_sub(1);
        self.on_arrived(esi);
    }

    fn on_arrived(&mut self, esi: u32) {
        let fresh = if esi >= self.shape.k {
            self.delivered_repair += 1;
            true
        } else {
            let fresh = self.delivered.set(esi);
            self.delivered_source += u32::from(fresh);
            fresh
        };
        if fresh {
            self.reported_need = self.reported_need.map(|need| need.saturating_sub(1));
        }
    }

    pub(in crate::flow) fn on_lost(&mut self, esi: u32) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.called_lost += 1;
        if esi < self.shape.k
            && !self.delivered.get(esi)
            && !self.done
            && let Err(place) = self.lost.binary_search(&esi)
        {
            self.lost.insert(place, esi);
        }
    }

    /// Sets the receiver's need. It is limited to the whole block: a false claim would make the sender produce repair
    /// without end.
    pub(in crate::flow) fn on_need(&mut self, need: u32) {
        self.reported_need = Some(need.min(self.shape.k));
    }

    /// Returns the block's bytes, if they are read.
    pub(in crate::flow) fn into_data(self) -> Option<Arc<Block>> {
        self.data
    }

    /// Marks the block as received, and frees its memory.
    pub(in crate::flow) fn finish(&mut self) -> Option<Arc<Block>> {
        self.done = true;
        self.lost = VecDeque::new();
        self.repairs = Repairs { made: self.repairs.sent, sent: self.repairs.sent, ..Repairs::default() };
        self.data.take()
    }
}
