//! The operands of programs: slots in memory and the inputs.

use super::sums::{SumOperands, Targets, chain, combine, sums};
use super::{Part, Program};
use crate::kernel::Level;

/// Bytes of a line, the unit of a strip.
pub(crate) const LINE: usize = 64;

/// Memory for slots, aligned to cache lines. It is zeroed by the system, which costs nothing for new memory.
#[derive(Debug)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    start: usize,
}

impl Lines {
    /// Allocates `count` lines of zeros.
    pub(crate) fn new(count: usize) -> Self {
        let bytes = vec![0; (count + 1) * LINE];
        let start = bytes.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { bytes, start }
    }

    /// Returns slots of `width` lines in `count` lines from line `first` on.
    pub(crate) fn slots(&mut self, first: usize, count: usize, width: usize) -> Slots<'_> {
        self.slots_at(Level::detected(), first, count, width)
    }

    pub(super) fn slots_at(&mut self, level: Level, first: usize, count: usize, width: usize) -> Slots<'_> {
        assert!(width > 0, "slots have a line at least");
        let bytes = &mut self.bytes[self.start..][first * LINE..(first + count) * LINE];
        Slots { bytes, width: width * LINE, level }
    }
}

/// The inputs of a program: symbols of one size, the first of them zeros.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    symbols: Vec<&'a [u8]>,
    size: usize,
}

impl<'a> Inputs<'a> {
    /// Creates inputs of `size` bytes each; `None` is zeros.
    ///
    /// # Panics
    ///
    /// When a symbol has another size, or more than 2^16 bytes.
    pub(crate) fn new(size: usize, symbols: impl Iterator<Item = Option<&'a [u8]>>) -> Self {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let zeros = &ZEROS[..size];
        let symbols: Vec<_> = std::iter::once(zeros).chain(symbols.map(|symbol| symbol.unwrap_or(zeros))).collect();
        assert!(symbols.iter().all(|symbol| symbol.len() == size), "symbols of one size");
        Self { symbols, size }
    }

    /// Returns the bytes of each input.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn symbols(&self) -> &[&'a [u8]] {
        &self.symbols
    }
}

/// Contiguous slots of one width.
#[derive(Debug)]
pub(crate) struct Slots<'a> {
    pub(super) bytes: &'a mut [u8],
    /// Bytes of a slot.
    width: usize,
    level: Level,
}

impl Slots<'_> {
    /// Returns the number of slots, in the type of a program's bounds.
    fn count(&self) -> u64 {
        (self.bytes.len() / self.width) as u64
    }

    /// Computes the sums of `program` in these slots. The inputs are read from byte `offset` on.
    pub(crate) fn run(&mut self, program: &Program, part: Part, inputs: &Inputs<'_>, offset: usize) {
        assert!(program.targets.max(program.slots).max(program.others) <= self.count(), "slots");
        let end = offset.checked_add(self.width);
        assert!(program.inputs <= inputs.symbols.len() as u64 && end.is_some_and(|end| end <= inputs.size), "inputs");
        let slots = self.bytes.as_mut_ptr();
        let run = SumOperands {
            bytes: self.width,
            first: slots,
            last: slots,
            inputs: inputs.symbols.as_ptr(),
            offset,
            part,
            to: Targets::Slots(slots),
        };
        // SAFETY: a program's words are whole sums; every target, source and input exists, as asserted; a sum is
        // written after its sources were read.
        unsafe { sums(self.level, program.words(), run) }
    }

    /// Computes the sums of `program` in `tables`, which also hold the last sources; the first ones are in these slots.
    /// No inputs.
    pub(crate) fn fill(&self, program: &Program, tables: &mut Slots<'_>) {
        assert!(program.slots <= self.count() && tables.width == self.width, "slots");
        assert!(program.targets.max(program.others) <= tables.count(), "tables");
        let to = tables.bytes.as_mut_ptr();
        // SAFETY: a program's words are whole sums; every target and source exists, as asserted, and input 0 is not
        // read.
        unsafe { sums(self.level, program.words(), self.run_without_inputs(program, to, Targets::Slots(to))) }
    }

    /// Computes the sums of `program`, whose targets are `outputs`, from slots and `tables`: the bytes of the outputs
    /// from `offset` on.
    pub(crate) fn output(&self, program: &Program, tables: &Slots<'_>, outputs: &mut [&mut [u8]], offset: usize) {
        assert!(program.targets <= outputs.len() as u64 && program.slots <= self.count(), "slots");
        assert!(program.others <= tables.count() && tables.width == self.width, "tables");
        let pointers: Vec<*mut u8> =
            outputs.iter_mut().map(|output| output[offset..][..self.width].as_mut_ptr()).collect();
        let run = self.run_without_inputs(program, tables.bytes.as_ptr(), Targets::Outputs(pointers.as_ptr()));
        // SAFETY: a program's words are whole sums; every target and source exists, as asserted, and input 0 is not
        // read.
        unsafe { sums(self.level, program.words(), run) }
    }

    fn run_without_inputs(&self, program: &Program, last: *const u8, to: Targets) -> SumOperands<'static> {
        assert!(program.inputs <= 1, "a program without inputs");
        const ZEROS: &[&[u8]] = &[&[]];
        let first = self.bytes.as_ptr();
        SumOperands { bytes: self.width, first, last, inputs: ZEROS.as_ptr(), offset: 0, part: Part::All, to }
    }

    /// The chain of RFC 6330's HDPC rows: with y doubled and slot j added at each step j, adds y to the two slots,
    /// counted from `first`, that `taps[j]` names; the last step, which has no taps, adds y to the first of `rows`
    /// slots, 2 y to the second and so on.
    pub(crate) fn chain(&mut self, taps: &[[u8; 2]], first: u32, rows: u32) {
        assert!(taps.len() < first as usize && u64::from(first) + u64::from(rows) <= self.count(), "slots");
        assert!(taps.iter().flatten().all(|&tap| u32::from(tap) < rows), "taps");
        let slots = self.bytes.as_mut_ptr();
        // SAFETY: the slots of the steps and the sums exist, as asserted.
        unsafe { chain(self.level, slots, self.width, taps, first as usize, rows as usize) }
    }

    /// Adds to each target the sources times their coefficients, `sources.len()` for each target.
    pub(crate) fn combine(&mut self, targets: &[u32], sources: &[u32], coefficients: &[u8]) {
        assert!(targets.iter().chain(sources).all(|&slot| u64::from(slot) < self.count()), "slots");
        assert_eq!(coefficients.len(), targets.len() * sources.len(), "a coefficient for each pair");
        let slots = self.bytes.as_mut_ptr();
        // SAFETY: all slots exist, as asserted.
        unsafe { combine(self.level, slots, self.width, targets, sources, coefficients) }
    }

    pub(crate) fn clear(&mut self, slots: impl IntoIterator<Item = u32>) {
        for slot in slots {
            self.bytes[slot as usize * self.width..][..self.width].fill(0);
        }
    }
}
