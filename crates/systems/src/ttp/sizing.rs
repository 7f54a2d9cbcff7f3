//! Chunks of ttp: a number of bits each, with a Tornado code of a rate that follows the loss estimate (ttp §II-A).

use erasure::BlockCode;
use erasure::tornado::CheckShare;
use transport::flow::{BlockSizer, FixedBlocks, PathEstimate, SizingFactory};
use transport::settings::{IntegerRange, Setting, Settings, Share, field};
use transport::wire::{FlowId, Plan};

/// Chunks of a number of bits.
#[derive(Clone, Debug, PartialEq)]
pub struct TtpBlocks {
    /// Bits of a chunk, rounded up to whole symbols.
    pub bits: u64,
    /// Capacity of the code beyond the need of 99 of 100 chunks, as a share of k: the schedule's padding is limited to
    /// it.
    pub spare: f64,
}

impl Default for TtpBlocks {
    fn default() -> Self {
        // ttp §III-A: 1 Mb; §II-A has 1 MB.
        Self { bits: 1_000_000, spare: 0.1 }
    }
}

impl Settings for TtpBlocks {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("bits", bits, IntegerRange(1, 1 << 32)), field!("spare", spare, Share(0.0, 1.0))];
}

impl SizingFactory for TtpBlocks {
    const NAME: &'static str = "ttp";

    /// A stream keeps its code; the schedule pads as far as the loss requires.
    fn of_streams(&self, symbol_size: u16) -> FixedBlocks {
        FixedBlocks::alike(self.k(symbol_size), BlockCode::Tornado(CheckShare::HALF))
    }

    fn plans(&self, flow: FlowId, symbols: u64, symbol_size: u16, most: u32, path: &PathEstimate) -> Vec<Plan> {
        let k = self.k(symbol_size);
        FixedBlocks::alike(k, BlockCode::Tornado(self.rate(k, path.loss))).plans(flow, symbols, most)
    }

    fn sizer(&self, symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        Some(Box::new(Chunker::new(self.clone(), symbol_size)))
    }
}

impl TtpBlocks {
    /// Returns the source symbols of a full chunk.
    pub(super) fn k(&self, symbol_size: u16) -> u32 {
        let bits = u64::from(symbol_size.max(1)) * 8;
        self.bits.div_ceil(bits).clamp(1, u64::from(BlockCode::Tornado(CheckShare::HALF).max_source_symbols())) as u32
    }

    /// Returns the rate for a chunk of `k` at this loss. Departs: a chunk sent with more check symbols than source, as
    /// ttp's is where more than half is lost, has no rate on the wire; it gets the largest.
    pub(super) fn rate(&self, k: u32, loss: f64) -> CheckShare {
        CheckShare::for_loss(k, loss, self.spare).unwrap_or(CheckShare::HALF)
    }
}

/// Cuts one object into chunks.
#[derive(Debug)]
pub(super) struct Chunker {
    blocks: TtpBlocks,
    symbol_size: u16,
    rate: Option<CheckShare>,
}

impl Chunker {
    pub(super) const fn new(blocks: TtpBlocks, symbol_size: u16) -> Self {
        Self { blocks, symbol_size, rate: None }
    }
}

impl BlockSizer for Chunker {
    fn next(&mut self, _left: u64, path: &PathEstimate) -> (u32, BlockCode) {
        let k = self.blocks.k(self.symbol_size);
        let wanted = self.blocks.rate(k, path.loss);
        // Unused capacity costs next to nothing, and an object has 255 plans: the rate follows a falling loss in
        // halves.
        let fits = |rate: &CheckShare| *rate >= wanted && rate.of_128() <= 2 * wanted.of_128();
        let rate = self.rate.filter(fits).unwrap_or(wanted);
        self.rate = Some(rate);
        (k, BlockCode::Tornado(rate))
    }

    /// ttp §II-C: one chunk is encoded while one is sent, with the estimates of that time.
    fn read_ahead(&self, _path: &PathEstimate) -> u64 {
        self.blocks.k(self.symbol_size).into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChunksConfig;
    use super::*;

    #[test]
    fn a_chunk_has_its_bits() {
        let k = |bits, symbol_size| TtpBlocks { bits, ..TtpBlocks::default() }.k(symbol_size);
        assert_eq!([k(1_000_000, 1_408), k(8_000_000, 1_408), k(1_000_000, 1_000)], [89, 711, 125]);
        assert_eq!([k(1, 1_408), k(u64::MAX, 1), k(8_000, 0)], [1, 65_536, 1_000]);
    }

    /// Up at once, down in halves: chance alone causes few plans.
    #[test]
    fn the_rate_follows_the_loss() {
        let mut chunker = Chunker::new(TtpBlocks::default(), 1_408);
        let mut rate = |loss| {
            let path = PathEstimate { rtt: None, loss, burst: 1.0, window: 1 };
            let (89, BlockCode::Tornado(rate)) = chunker.next(1_000, &path) else { panic!("a chunk of 1 Mb") };
            let room = BlockCode::Tornado(rate).symbol_limit(89) - 89;
            (rate.of_128(), room)
        };
        let losses = [0.5, 0.3, 0.1, 0.08, 0.12, 0.01, 0.0, 0.2];
        let rates = losses.map(&mut rate);
        assert_eq!(rates.map(|(rate, _)| rate), [64, 64, 28, 28, 30, 11, 11, 42]);
        // The code has room for the padding that completes 999 of 1000, except with the initially assumed half.
        for (loss, (rate, room)) in losses.into_iter().zip(rates).skip(1) {
            let code = BlockCode::Tornado(CheckShare::new(rate).expect("a rate"));
            let path = PathEstimate { rtt: None, loss, burst: 1.0, window: 1 };
            let padding = ChunksConfig::default().padding(89, code, &path);
            assert!(padding <= room, "{padding} symbols of padding at {loss}, room for {room}");
        }
    }
}
