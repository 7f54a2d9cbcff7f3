//! How a sender cuts an object into blocks, the code of each, and the coding of streams.

use super::schedule::PathEstimate;
use crate::settings::{IntegerRange, Itself, Or, Setting, Settings, Share, choices, field, seam};
use crate::wire::{FlowId, Plan};
use erasure::{BlockCode, WindowCode};
use std::fmt::Debug;

/// The size of blocks and their coding.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockSizing {
    /// All of a number of symbols.
    Fixed(FixedBlocks),
    /// A sizing of another crate: [`BlockSizing::custom`].
    Custom(CustomSizing),
}

choices! { "block sizing", BlockSizing { "fixed" => Fixed(FixedBlocks) } else Custom }

seam! {
    /// Numbers of a sizing that another crate implements: the packet and block size calculator of lt-tcp §4.2.
    SizingFactory, DynSizing, CustomSizing, BlockSizing;
    required {
        /// Returns the division of a stream into blocks, as its length is unknown, for symbols of `symbol_size` bytes.
        fn of_streams(&self, symbol_size: u16) -> FixedBlocks;
    }
    provided {
        /// Returns the source symbols of the largest possible block of symbols of this size.
        fn max_source_symbols(&self, symbol_size: u16) -> u32 {
            self.of_streams(symbol_size).k
        }

        /// Returns the plans of an object of `symbols` source symbols: full blocks of at most `most`, then the
        /// remainder. If a [`BlockSizer`] cuts the blocks, returns the plan of the first one.
        fn plans(&self, flow: FlowId, symbols: u64, symbol_size: u16, most: u32, _path: &PathEstimate) -> Vec<Plan> {
            self.of_streams(symbol_size).plans(flow, symbols, most)
        }

        /// Returns the sizer that cuts the blocks, unless they are all settled before the first one.
        fn sizer(&self, _symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
            None
        }

        /// Returns the sizer for an object in progress with other first blocks; `None` if this divides only whole
        /// objects.
        fn live_sizer(&self, symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
            Some(self.sizer(symbol_size).unwrap_or_else(|| Box::new(self.of_streams(symbol_size))))
        }
    }
}

/// Blocks of one size. The size decides how well loss averages out within a block; up to about 1500 symbols, a block
/// stays in a core's second-level cache (docs/design/block-sizes.md).
#[derive(Clone, Debug, PartialEq)]
pub struct FixedBlocks {
    /// Source symbols of a full block.
    pub k: u32,
    /// Code of full blocks.
    pub code: BlockCode,
    /// Code of a last block of at most `small_k` symbols: an MDS code needs no symbol beyond k, which matters for
    /// these.
    pub small_code: BlockCode,
    /// Largest block coded with `small_code`.
    pub small_k: u32,
}

impl Default for FixedBlocks {
    fn default() -> Self {
        Self { k: 1024, code: BlockCode::RaptorQ, small_code: BlockCode::ReedSolomon, small_k: 256 }
    }
}

/// The values of a setting that names a code.
pub const CODES: Itself =
    Itself("one of uncoded, reed-solomon, raptorq, raptor, lt, precoded-lt, or tornado:R with R from 1 to 64");

impl Settings for FixedBlocks {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("k", k, IntegerRange(1, 56_403)),
        field!("code", code, CODES),
        field!("small-code", small_code, CODES),
        field!("small-k", small_k, IntegerRange(0, 56_403)),
    ];
}

impl Default for BlockSizing {
    fn default() -> Self {
        Self::Fixed(FixedBlocks::default())
    }
}

impl BlockSizing {
    /// Returns the sizer that cuts the blocks, unless they are all settled before the first one.
    pub(crate) fn sizer(&self, symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        match self {
            Self::Fixed(_) => None,
            Self::Custom(custom) => custom.0.sizer(symbol_size),
        }
    }

    /// Returns the sizer for an object in progress with other first blocks; `None` if it divides only whole objects.
    pub(crate) fn live_sizer(&self, symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        match self {
            Self::Fixed(blocks) => Some(Box::new(blocks.clone())),
            Self::Custom(custom) => custom.0.live_sizer(symbol_size),
        }
    }

    /// Returns the sizer for the next blocks of a stream under way. Its code and the size of its largest block stay
    /// those of its announcement.
    pub(crate) fn live_stream_sizer(&self, symbol_size: u16) -> Box<dyn BlockSizer> {
        // The waiting bytes of a stream are not its last block: more may be written.
        self.sizer(symbol_size).unwrap_or_else(|| Box::new(FixedBlocks { small_k: 0, ..self.of_streams(symbol_size) }))
    }

    /// Returns the source symbols of the largest possible block of symbols of this size.
    pub fn max_source_symbols(&self, symbol_size: u16) -> u32 {
        match self {
            Self::Fixed(blocks) => blocks.k,
            Self::Custom(custom) => custom.0.max_source_symbols(symbol_size),
        }
    }

    /// Returns the division of a stream into blocks, as its length is unknown.
    pub(crate) fn of_streams(&self, symbol_size: u16) -> FixedBlocks {
        match self {
            Self::Fixed(blocks) => blocks.clone(),
            Self::Custom(custom) => custom.0.of_streams(symbol_size),
        }
    }

    /// Returns the plans of an object of `symbols` source symbols of `symbol_size` bytes: full blocks of at most
    /// `most`, then the remainder. If a [`BlockSizer`] cuts the blocks, returns the plan of the first one.
    pub fn plans(&self, flow: FlowId, symbols: u64, symbol_size: u16, most: u32, path: &PathEstimate) -> Vec<Plan> {
        match self {
            Self::Fixed(blocks) => blocks.plans(flow, symbols, most),
            Self::Custom(custom) => custom.0.plans(flow, symbols, symbol_size, most, path),
        }
    }
}

impl FixedBlocks {
    /// Returns blocks of `k` symbols, all with this code.
    #[must_use]
    pub const fn alike(k: u32, code: BlockCode) -> Self {
        Self { k, code, small_code: code, small_k: 0 }
    }

    /// Returns the plans of an object of `symbols` source symbols: full blocks of at most `most`, then the remainder.
    #[must_use]
    pub fn plans(&self, flow: FlowId, symbols: u64, most: u32) -> Vec<Plan> {
        let of = self.k.min(most).max(1);
        let k = u64::from(of);
        let (full, left) = (symbols / k, symbols % k);
        let full_blocks = u32::try_from(full).unwrap_or(u32::MAX);
        let small = left > 0 && left <= u64::from(self.small_k);
        let plan = |number, first_block: u32, k: u32, code| Plan {
            flow,
            number,
            first_block,
            first_symbol: u64::from(first_block) * u64::from(of),
            k,
            code,
        };
        match (full, small) {
            (0, true) => vec![plan(0, 0, left as u32, self.small_code)],
            (_, true) => {
                vec![plan(0, 0, of, self.code), plan(1, full_blocks, left as u32, self.small_code)]
            }
            (0, false) if left > 0 => vec![plan(0, 0, left as u32, self.code)],
            (_, false) => vec![plan(0, 0, of, self.code)],
        }
    }
}

/// Decides how the blocks of one object are cut and coded, each as it is opened.
pub trait BlockSizer: Debug + Send {
    /// Returns the source symbols and code of the next block. `left` symbols of the object are in no block yet; if the
    /// block would have more, it gets those.
    fn next(&mut self, left: u64, path: &PathEstimate) -> (u32, BlockCode);

    /// Returns the number of unsent source symbols in open blocks at which no other is opened yet: the later it is, the
    /// more is known by then.
    fn read_ahead(&self, _path: &PathEstimate) -> u64 {
        u64::MAX
    }
}

impl BlockSizer for FixedBlocks {
    fn next(&mut self, left: u64, _path: &PathEstimate) -> (u32, BlockCode) {
        match u32::try_from(left) {
            Ok(left) if left <= self.small_k => (left, self.small_code),
            _ => (self.k, self.code),
        }
    }
}

/// The coding of a stream's bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamCoding {
    /// Blocks, as for an object: few extra packets in mid-transfer, and repair of each block in the last round trips.
    Blocks(BlockCoding),
    /// A window that slides over the stream, with repair throughout: a lost symbol is recovered after a few symbols,
    /// not after a round trip, at the cost of slightly more than the loss.
    Window(WindowCoding),
}

choices! { "coding of streams", StreamCoding { "blocks" => Blocks(BlockCoding), "window" => Window(WindowCoding) } }

impl StreamCoding {
    /// Blocks with as much repair as their schedule wants.
    pub const UNBOUNDED: Self = Self::Blocks(BlockCoding { overhead: None });

    /// Returns the most repair ahead of losses, as a share of the written bytes; `None`: without a bound.
    pub(crate) const fn overhead(&self) -> Option<f64> {
        match self {
            Self::Blocks(BlockCoding { overhead }) | Self::Window(WindowCoding { overhead, .. }) => *overhead,
        }
    }
}

/// The most repair of a stream ahead of losses, as a share of the written bytes, if those are more than a few
/// keystrokes.
const OVERHEAD: Option<f64> = Some(0.5);
/// How it is written.
const OVERHEADS: Or<Share> = Or("none", Share(0.0, 100.0));

/// Blocks of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockCoding {
    /// The most repair ahead of losses, as a share of the written bytes; `None`: without a bound.
    pub overhead: Option<f64>,
}

impl Default for BlockCoding {
    fn default() -> Self {
        Self { overhead: OVERHEAD }
    }
}

impl Settings for BlockCoding {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("overhead", overhead, OVERHEADS)];
}

/// A window that slides over a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCoding {
    /// The code.
    pub code: WindowCode,
    /// Source symbols in the largest window. The receiver may allow fewer.
    pub symbols: u32,
    /// The most repair ahead of losses, as a share of the written bytes; `None`: without a bound.
    pub overhead: Option<f64>,
}

impl Default for WindowCoding {
    fn default() -> Self {
        // A quarter of each stream's own credit by default: the largest window that a receiver accepts.
        Self { code: WindowCode::Rlc, symbols: 64, overhead: OVERHEAD }
    }
}

impl Settings for WindowCoding {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("code", code, Itself("rlc")),
        field!("symbols", symbols, IntegerRange(1, 4_095)),
        field!("overhead", overhead, OVERHEADS),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that loses nothing.
    const PATH: PathEstimate = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };

    fn shape(symbols: u64) -> Vec<(u32, u32, BlockCode)> {
        BlockSizing::default()
            .plans(FlowId(1), symbols, 1_408, u32::MAX, &PATH)
            .iter()
            .map(|p| (p.first_block, p.k, p.code))
            .collect()
    }

    #[test]
    fn a_small_rest_gets_the_mds_code() {
        use BlockCode::{RaptorQ, ReedSolomon};
        assert_eq!(shape(0), [(0, 1024, RaptorQ)]);
        assert_eq!(shape(1), [(0, 1, ReedSolomon)]);
        assert_eq!(shape(256), [(0, 256, ReedSolomon)]);
        assert_eq!(shape(257), [(0, 257, RaptorQ)]);
        assert_eq!(shape(1024), [(0, 1024, RaptorQ)]);
        assert_eq!(shape(2049), [(0, 1024, RaptorQ), (2, 1, ReedSolomon)]);
        assert_eq!(shape(2048 + 300), [(0, 1024, RaptorQ)]);
    }
}
