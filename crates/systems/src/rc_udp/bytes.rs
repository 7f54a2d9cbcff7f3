//! Blocks of a number of bytes (rc-udp §IV-B).

use erasure::BlockCode;
use transport::flow::{CODES, FixedBlocks, SizingFactory};
use transport::settings::{IntegerRange, Setting, Settings, field};

/// Blocks of a number of bytes: as many symbols as hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesBlocks {
    /// B: bytes of a block. It is rounded up to whole symbols, so that blocks begin with a symbol.
    pub bytes: u32,
    /// The code of every block.
    pub code: BlockCode,
}

impl Default for BytesBlocks {
    fn default() -> Self {
        // rc-udp §IV-C: blocks of 1 MB, for the shortest coding times. §III: an LT code over K symbols and those of a
        // pre-code.
        Self { bytes: 1_000_000, code: BlockCode::PrecodedLt }
    }
}

impl Settings for BytesBlocks {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("bytes", bytes, IntegerRange(1, u32::MAX as u64)), field!("code", code, CODES)];
}

impl SizingFactory for BytesBlocks {
    const NAME: &'static str = "bytes";

    fn of_streams(&self, symbol_size: u16) -> FixedBlocks {
        FixedBlocks::alike(self.k(symbol_size), self.code)
    }
}

impl BytesBlocks {
    /// Returns K = ceil(B / L), at most the code's limit.
    pub(super) fn k(&self, symbol_size: u16) -> u32 {
        self.bytes.div_ceil(u32::from(symbol_size.max(1))).clamp(1, self.code.max_source_symbols())
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{PATH, sizing};
    use erasure::BlockCode;
    use transport::wire::FlowId;

    #[test]
    fn a_block_has_the_symbols_that_hold_it() {
        let shape = |text: &str, length: u64, symbol_size: u16| {
            let sizing = sizing(text);
            let symbols = length.div_ceil(symbol_size.into());
            let plans = sizing.plans(FlowId(1), symbols, symbol_size, 8_192, &PATH);
            plans.iter().map(|plan| (plan.first_block, plan.k, plan.code)).collect::<Vec<_>>()
        };
        // rc-udp §IV-C: 1 MB of symbols of 1 KB.
        assert_eq!(shape("bytes", 10_000_000, 1_024), [(0, 977, BlockCode::PrecodedLt)]);
        assert_eq!(shape("bytes:code=raptor", 10_000_000, 512), [(0, 1_954, BlockCode::Raptor)]);
        assert_eq!(shape("bytes:bytes=100000000", 1 << 40, 1_024), [(0, 8_192, BlockCode::PrecodedLt)]);
        assert_eq!(shape("bytes", 5_000, 1_024), [(0, 5, BlockCode::PrecodedLt)], "all of it");
    }
}
