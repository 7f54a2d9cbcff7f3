//! A packet and block size calculator: blocks that last a fixed share of the window, cut anew for each block.

use erasure::BlockCode;
use transport::flow::{BlockSizer, FixedBlocks, PathEstimate, SizingFactory};
use transport::settings::{IntegerRange, Setting, Settings, field};

/// Blocks of a share of the window.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShareOfWindow {
    /// Blocks in a window.
    blocks: u32,
}

/// The largest block.
const MOST: u32 = 128;

impl Default for ShareOfWindow {
    fn default() -> Self {
        Self { blocks: 4 }
    }
}

impl Settings for ShareOfWindow {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("blocks", blocks, IntegerRange(1, 64))];
}

impl SizingFactory for ShareOfWindow {
    const NAME: &'static str = "share-of-window";

    fn of_streams(&self, _symbol_size: u16) -> FixedBlocks {
        FixedBlocks::alike(MOST, BlockCode::ReedSolomon)
    }

    fn sizer(&self, _symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        Some(Box::new(Sizer(self.blocks)))
    }
}

/// Cuts the blocks of one object.
#[derive(Debug)]
struct Sizer(u32);

impl BlockSizer for Sizer {
    fn next(&mut self, _left: u64, path: &PathEstimate) -> (u32, BlockCode) {
        // Rounded to powers of two: an object may change its size 255 times.
        let k = (path.window / u64::from(self.0)).clamp(8, MOST.into()) as u32;
        (1 << k.ilog2(), BlockCode::ReedSolomon)
    }
}
