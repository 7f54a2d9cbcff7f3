//! Blocks as small as RFC 6330 allows: at most 256 of an object (tornado-transfer §2.1, "Parameter setting").

use erasure::{BlockCode, raptorq_padded};
use transport::flow::{BlockSizer, FixedBlocks, PathEstimate, SizingFactory};
use transport::settings::{IntegerRange, Setting, Settings, field};
use transport::wire::{FlowId, Plan};

/// Source blocks of an object, RFC 6330 §4.4.1.2: the RFC's block numbers have 8 bits.
const MOST_BLOCKS: u64 = 256;

/// Returns the smallest legal number of source symbols per block of an object of `symbols`.
///
/// The document increases WS, the memory that a receiver decodes in, from a small number until the derivation of RFC
/// 6330 §4.4.1.2 gives a legal number of blocks. With one sub-block, KL is the largest K' of the RFC's Table 2 that WS
/// holds and Z = ceil(Kt / KL): the search ends with the smallest K' for which Z is at most 256, which the table gives
/// at once. `None` above 256 blocks of the largest K'.
fn smallest_legal(symbols: u64) -> Option<u32> {
    u32::try_from(symbols.div_ceil(MOST_BLOCKS).max(1)).ok().and_then(raptorq_padded)
}

/// Returns Partition[Kt, Z] of RFC 6330 §4.4.1.2: the first blocks have one symbol more than the others. Blocks have at
/// most `most` symbols; if that is below the legal size, their number exceeds 256.
fn plans(flow: FlowId, symbols: u64, most: u32) -> Vec<Plan> {
    let largest = most.clamp(1, BlockCode::RaptorQ.max_source_symbols());
    let k = smallest_legal(symbols).unwrap_or(largest).min(largest);
    let blocks = symbols.div_ceil(k.into()).max(1);
    let (large, small) = (symbols.div_ceil(blocks), symbols / blocks);
    let larger = symbols - small * blocks;
    let plan = |number, first_block: u64, k: u64| Plan {
        flow,
        number,
        // Fits: a block has at least one symbol, and a flow that needs more blocks cannot be announced.
        first_block: u32::try_from(first_block).unwrap_or(u32::MAX),
        first_symbol: first_block * large,
        k: k.max(1) as u32,
        code: BlockCode::RaptorQ,
    };
    let first = plan(0, 0, large);
    if larger == 0 { vec![first] } else { vec![first, plan(1, larger, small)] }
}

/// Blocks as small as RFC 6330 allows, at most 256 of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition;

impl Settings for Partition {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[];
}

impl SizingFactory for Partition {
    const NAME: &'static str = "partition";

    fn of_streams(&self, _symbol_size: u16) -> FixedBlocks {
        FixedBlocks::alike(FixedBlocks::default().k, BlockCode::RaptorQ)
    }

    fn max_source_symbols(&self, _symbol_size: u16) -> u32 {
        BlockCode::RaptorQ.max_source_symbols()
    }

    fn plans(&self, flow: FlowId, symbols: u64, _symbol_size: u16, most: u32, _path: &PathEstimate) -> Vec<Plan> {
        plans(flow, symbols, most)
    }

    fn live_sizer(&self, _symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        None
    }
}

/// An object as a row of files of one size, each of which would have at most 256 blocks (tornado-transfer §3.3: regular
/// times whatever the size of the file).
///
/// Departs: blocks cross the boundaries of these files, since all have one k; only the last block of the object is
/// smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubFiles {
    /// Bytes of each.
    pub bytes: u64,
}

impl Default for SubFiles {
    fn default() -> Self {
        // The document leaves the size open; the largest file that it mentions (§2.1.1) has 100 MB.
        Self { bytes: 100_000_000 }
    }
}

impl Settings for SubFiles {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("bytes", bytes, IntegerRange(1, 1 << 40))];
}

impl SizingFactory for SubFiles {
    const NAME: &'static str = "sub-files";

    fn of_streams(&self, symbol_size: u16) -> FixedBlocks {
        FixedBlocks::alike(self.k(symbol_size), BlockCode::RaptorQ)
    }

    fn live_sizer(&self, _symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        None
    }
}

impl SubFiles {
    /// Returns the smallest legal number of source symbols per block of one such file.
    pub(super) fn k(&self, symbol_size: u16) -> u32 {
        let symbols = self.bytes.div_ceil(symbol_size.max(1).into());
        smallest_legal(symbols).unwrap_or(BlockCode::RaptorQ.max_source_symbols())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::PATH;

    fn shape(bytes: u64, most: u32) -> Vec<(u32, u32)> {
        plans(FlowId(1), bytes.div_ceil(1_400), most).iter().map(|plan| (plan.first_block, plan.k)).collect()
    }

    /// tornado-transfer §2.1.1 gives 296 for its 100 MB. 296 is no K' of Table 2, and the table gives 280 for 10^8
    /// bytes.
    #[test]
    fn a_hundred_megabytes_have_blocks_of_280() {
        assert_eq!(smallest_legal(100_000_000u64.div_ceil(1_400)), Some(280));
        assert_eq!(shape(100_000_000, 8_192), [(0, 280), (5, 279)], "71,429 symbols in 256 blocks");
        assert_eq!(smallest_legal((100u64 << 20).div_ceil(1_400)), Some(295), "of 2^20 bytes to the megabyte");
    }

    #[test]
    fn every_object_is_cut_whole() {
        for bytes in
            [0, 1, 1_400, 1_401, 14_000, 1_400 * 2_560, 1_400 * 2_561, 10_000_000, 50_000_000, 1 << 33, 1 << 44]
        {
            let symbols = u64::div_ceil(bytes, 1_400);
            let plans = plans(FlowId(1), symbols, 8_192);
            let last = plans[plans.len() - 1];
            let rest = symbols - last.first_symbol;
            let blocks = u64::from(last.first_block) + rest.div_ceil(last.k.into());
            assert!(rest.is_multiple_of(u64::from(last.k)) || symbols == 0, "{bytes}: {plans:?}");
            let legal = smallest_legal(symbols).is_some_and(|k| k <= 8_192);
            assert_eq!(blocks <= MOST_BLOCKS, legal, "{bytes}: {plans:?}");
            assert!(plans.iter().all(|plan| plan.k <= 8_192));
        }
        assert_eq!(shape(14_000, 8_192), [(0, 10)], "10 is the smallest K'");
        assert_eq!(shape(14_000, 4), [(0, 4), (1, 3)], "as the receiver takes them");
    }

    /// §3.3: one k whatever the size of the whole.
    #[test]
    fn sub_files_have_blocks_of_one_size() {
        let sizing = SubFiles { bytes: 10_000_000 };
        for bytes in [1_000_000u64, 10_000_000, 1 << 33] {
            let plans = sizing.plans(FlowId(1), bytes.div_ceil(1_400), 1_400, 8_192, &PATH);
            assert_eq!(plans.iter().map(|plan| plan.k).collect::<Vec<_>>(), [30], "{bytes}");
        }
    }
}
