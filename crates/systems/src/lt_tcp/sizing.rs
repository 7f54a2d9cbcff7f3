//! The packet and block size calculator of lt-tcp (§4.2), which the document names but does not specify.

use erasure::BlockCode;
use transport::flow::{BlockSizer, CODES, FixedBlocks, PathEstimate, SizingFactory};
use transport::settings::{IntegerRange, Setting, Settings, field};
use transport::wire::{FlowId, Plan};

/// Blocks that span about a window: feedback on the first symbols of a block arrives while its last are sent. Packets
/// are as large as the path carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LtTcpBlocks {
    /// Source symbols of the smallest full block.
    pub least: u32,
    /// Source symbols of the largest.
    pub most: u32,
    /// The code of every block.
    pub code: BlockCode,
}

impl Default for LtTcpBlocks {
    fn default() -> Self {
        // lt-tcp §3.4: any k of the n packets decode. Reed-Solomon achieves that with the least work up to 128 symbols,
        // n being 256.
        Self { least: 8, most: 128, code: BlockCode::ReedSolomon }
    }
}

impl Settings for LtTcpBlocks {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("least", least, IntegerRange(1, 32_768)),
        field!("most", most, IntegerRange(1, 32_768)),
        field!("code", code, CODES),
    ];

    fn contradiction(&self) -> Option<(&'static str, &'static str)> {
        (self.least > self.most).then_some(("least", "most"))
    }
}

impl SizingFactory for LtTcpBlocks {
    const NAME: &'static str = "lt-tcp";

    fn of_streams(&self, _symbol_size: u16) -> FixedBlocks {
        FixedBlocks::alike(self.largest(), self.code)
    }

    fn plans(&self, flow: FlowId, symbols: u64, _symbol_size: u16, most: u32, path: &PathEstimate) -> Vec<Plan> {
        FixedBlocks::alike(self.k(path), self.code).plans(flow, symbols, most)
    }

    fn sizer(&self, _symbol_size: u16) -> Option<Box<dyn BlockSizer>> {
        Some(Box::new(Calculator::new(self.clone())))
    }
}

impl LtTcpBlocks {
    /// Returns the source symbols of a block sent now: the window without its repair. Rounded to powers of two, so that
    /// a varying window leads to few plans.
    pub(super) fn k(&self, path: &PathEstimate) -> u32 {
        let source = self.source(path).clamp(1.0, f64::from(self.largest())) as u32;
        (1 << source.ilog2()).clamp(self.least, self.largest().max(self.least))
    }

    /// Returns the source symbols in the window.
    fn source(&self, path: &PathEstimate) -> f64 {
        path.window as f64 * (1.0 - path.loss)
    }

    /// Returns the source symbols of the largest block.
    pub(super) fn largest(&self) -> u32 {
        self.most.min(self.code.max_source_symbols())
    }
}

/// Sizes the blocks of one object, each by the window at that time.
#[derive(Debug)]
pub(super) struct Calculator {
    blocks: LtTcpBlocks,
    k: Option<u32>,
}

impl Calculator {
    pub(super) const fn new(blocks: LtTcpBlocks) -> Self {
        Self { blocks, k: None }
    }
}

impl BlockSizer for Calculator {
    fn next(&mut self, _left: u64, path: &PathEstimate) -> (u32, BlockCode) {
        let wanted = self.blocks.k(path);
        // A window that varies around a power of two would need a plan every few blocks, and an object has 255: a size
        // is kept until the window is a quarter beyond its range.
        let source = self.blocks.source(path);
        let fits = |k: &u32| source >= f64::from(*k) * 0.75 && source < f64::from(*k) * 2.5;
        let k = self.k.filter(fits).unwrap_or(wanted);
        self.k = Some(k);
        (k, self.blocks.code)
    }

    fn read_ahead(&self, path: &PathEstimate) -> u64 {
        path.window.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::settings::read;

    #[test]
    fn a_block_spans_about_the_window() {
        let k = |numbers: &str, window, loss| {
            let blocks = read("lt-tcp", numbers, LtTcpBlocks::default()).expect("numbers");
            blocks.k(&PathEstimate { rtt: None, loss, burst: 1.0, window })
        };
        let windows = [0, 10, 40, 64, 127, 128, 400, u64::MAX];
        assert_eq!(windows.map(|window| k("", window, 0.0)), [8, 8, 32, 64, 64, 128, 128, 128]);
        assert_eq!(k("", 66, 0.05), 32, "a part of the window is repair");
        assert_eq!(k("code=raptorq,most=1024", 2_000, 0.5), 512);
        assert_eq!(k("least=200", 10, 0.0), 200);
    }

    /// A window that varies around a power of two needs no plan.
    #[test]
    fn a_size_is_kept_while_the_window_is_near_it() {
        let mut calculator = Calculator::new(LtTcpBlocks::default());
        let windows = [40, 63, 65, 79, 80, 63, 50, 47, 23, 25, 40, 200, 96, 95];
        let sizes =
            windows.map(|window| calculator.next(10_000, &PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window }).0);
        assert_eq!(sizes, [32, 32, 32, 32, 64, 64, 64, 32, 16, 16, 32, 128, 128, 64]);
    }
}
