//! Programs of additions: which symbols to add up to which, run on one strip of all symbols at a time.
//!
//! A block's symbols do not fit the first caches, a strip of some lines of each does. So a program is run from its beginning to its end
//! for one strip after the other, and every sum is gathered in registers from all its sources before it is written once.

#[cfg(test)]
mod tests;

use super::vector::Vector;
use super::{Level, dispatch};

/// Bytes of a line, the unit of a strip.
pub(crate) const LINE: usize = 64;

/// Memory for slots, which begins where a line of the caches does. It is zeroed by the system, which costs nothing where it is new.
#[derive(Debug)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    start: usize,
}

impl Lines {
    /// `count` lines of zeros.
    pub(crate) fn new(count: usize) -> Self {
        let bytes = vec![0; (count + 1) * LINE];
        let start = bytes.as_ptr().align_offset(LINE).min(LINE - 1);
        Self { bytes, start }
    }

    /// Slots of `width` lines in `count` lines from line `first` on.
    pub(crate) fn slots(&mut self, first: usize, count: usize, width: usize) -> Slots<'_> {
        assert!(width > 0, "slots have a line at least");
        let bytes = &mut self.bytes[self.start..][first * LINE..(first + count) * LINE];
        Slots { bytes, width: width * LINE, level: Level::detected() }
    }
}

/// A list of sums. Each has a target slot, an input, and sources, which are slots; input 0 is all zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// For each sum: target, input, number of first sources, number of all, the sources.
    words: Vec<u32>,
    /// Where the sum begun last is.
    start: usize,
    // Bounds are wider than what they bound: one above the largest number is no number below it.
    /// All first sources are below.
    slots: u64,
    /// All last sources are below.
    others: u64,
    /// All targets are below.
    targets: u64,
    /// All inputs named are below.
    inputs: u64,
}

/// Words of a sum before its sources.
const HEADER: usize = 4;

impl Program {
    pub(crate) fn with_capacity(sums: usize, sources: usize) -> Self {
        Self { words: Vec::with_capacity(HEADER * sums + sources), ..Self::default() }
    }

    /// Adds a sum of an input and sources.
    pub(crate) fn push(&mut self, target: u32, input: u32, sources: impl IntoIterator<Item = u32>) {
        self.push_parts(target, input, sources, []);
    }

    /// Adds a sum in two parts: the `last` sources are left out of a run over the [`Part::First`], or lie among other slots.
    pub(crate) fn push_parts(
        &mut self,
        target: u32,
        input: u32,
        first: impl IntoIterator<Item = u32>,
        last: impl IntoIterator<Item = u32>,
    ) {
        self.begin(target, input);
        self.add_first(first);
        self.add_last(last);
    }

    /// Begins a sum, whose sources are to be added.
    pub(crate) fn begin(&mut self, target: u32, input: u32) {
        self.start = self.words.len();
        self.words.extend([target, input, 0, 0]);
        self.targets = self.targets.max(u64::from(target) + 1);
        self.inputs = self.inputs.max(u64::from(input) + 1);
    }

    /// Adds first sources to the sum begun last, which has no last ones yet.
    pub(crate) fn add_first(&mut self, sources: impl IntoIterator<Item = u32>) {
        assert_eq!(self.words[self.start + 2], self.words[self.start + 3], "first sources before the last ones");
        for source in sources {
            self.slots = self.slots.max(u64::from(source) + 1);
            self.add(source);
            self.words[self.start + 2] = self.words[self.start + 3];
        }
    }

    /// Adds last sources to the sum begun last, after its first ones.
    pub(crate) fn add_last(&mut self, sources: impl IntoIterator<Item = u32>) {
        for source in sources {
            self.others = self.others.max(u64::from(source) + 1);
            self.add(source);
        }
    }

    /// Adds a source and counts it at once, so that the words are a row of whole sums even if the iterator it is from panics next.
    fn add(&mut self, source: u32) {
        let count = self.words[self.start + 3].checked_add(1).expect("a sum of less than 2^32 sources");
        self.words.push(source);
        self.words[self.start + 3] = count;
    }

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        4 * self.words.len()
    }

    /// Additions it makes, with each sum counted once more for its input.
    #[cfg(test)]
    pub(crate) fn additions(&self, part: Part) -> usize {
        let (mut at, mut sum) = (0, 0);
        while at < self.words.len() {
            let [first, all] = [self.words[at + 2], self.words[at + 3]];
            sum += 1 + if part == Part::First { first } else { all } as usize;
            at += HEADER + all as usize;
        }
        sum
    }
}

/// How much of each sum a run makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    First,
    All,
}

/// The inputs of a program: symbols of one size, the first of them zeros.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    symbols: Vec<&'a [u8]>,
    size: usize,
}

impl<'a> Inputs<'a> {
    /// Of `size` bytes each; `None` is zeros.
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

    /// Bytes of each.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn symbols(&self) -> &[&'a [u8]] {
        &self.symbols
    }
}

/// Slots of one width, in a row.
#[derive(Debug)]
pub(crate) struct Slots<'a> {
    bytes: &'a mut [u8],
    /// Bytes of a slot.
    width: usize,
    level: Level,
}

impl Slots<'_> {
    /// Slots there are, in the type of a program's bounds.
    fn count(&self) -> u64 {
        (self.bytes.len() / self.width) as u64
    }

    /// Makes the sums of `program` in these slots. The inputs are read from byte `offset` on.
    pub(crate) fn run(&mut self, program: &Program, part: Part, inputs: &Inputs<'_>, offset: usize) {
        assert!(program.targets.max(program.slots).max(program.others) <= self.count(), "slots");
        let end = offset.checked_add(self.width);
        assert!(program.inputs <= inputs.symbols.len() as u64 && end.is_some_and(|end| end <= inputs.size), "inputs");
        let slots = self.bytes.as_mut_ptr();
        let run = Run {
            bytes: self.width,
            first: slots,
            last: slots,
            inputs: inputs.symbols.as_ptr(),
            offset,
            part,
            to: Targets::Slots(slots),
        };
        // SAFETY: a program's words are whole sums; every target, source and input exists, as asserted; a sum is written after its
        // sources were read.
        unsafe { sums(self.level, &program.words, run) }
    }

    /// Makes the sums of `program` in `tables`, which the last sources are in too; the first ones are in these slots. No inputs.
    pub(crate) fn fill(&self, program: &Program, tables: &mut Slots<'_>) {
        assert!(program.slots <= self.count() && tables.width == self.width, "slots");
        assert!(program.targets.max(program.others) <= tables.count(), "tables");
        let to = tables.bytes.as_mut_ptr();
        // SAFETY: a program's words are whole sums; every target and source exists, as asserted, and input 0 is not read.
        unsafe { sums(self.level, &program.words, self.run_without_inputs(program, to, Targets::Slots(to))) }
    }

    /// Makes the sums of `program`, whose targets are `outputs`, of slots and `tables`: the bytes of the outputs from `offset` on.
    pub(crate) fn output(&self, program: &Program, tables: &Slots<'_>, outputs: &mut [&mut [u8]], offset: usize) {
        assert!(program.targets <= outputs.len() as u64 && program.slots <= self.count(), "slots");
        assert!(program.others <= tables.count() && tables.width == self.width, "tables");
        let pointers: Vec<*mut u8> =
            outputs.iter_mut().map(|output| output[offset..][..self.width].as_mut_ptr()).collect();
        let run = self.run_without_inputs(program, tables.bytes.as_ptr(), Targets::Outputs(pointers.as_ptr()));
        // SAFETY: a program's words are whole sums; every target and source exists, as asserted, and input 0 is not read.
        unsafe { sums(self.level, &program.words, run) }
    }

    fn run_without_inputs(&self, program: &Program, last: *const u8, to: Targets) -> Run<'static> {
        assert!(program.inputs <= 1, "a program without inputs");
        const ZEROS: &[&[u8]] = &[&[]];
        let first = self.bytes.as_ptr();
        Run { bytes: self.width, first, last, inputs: ZEROS.as_ptr(), offset: 0, part: Part::All, to }
    }

    /// The chain of RFC 6330's HDPC rows: with y doubled and slot j added at each step j, adds y to the two slots, counted from
    /// `first`, that `taps[j]` names; the last step, which has no taps, adds y to the first of `rows` slots, 2 y to the second and so on.
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

/// What a run over a program works on.
#[derive(Clone, Copy)]
struct Run<'a> {
    /// Bytes of a slot.
    bytes: usize,
    /// Slots of the first sources.
    first: *const u8,
    /// Slots of the last sources.
    last: *const u8,
    inputs: *const &'a [u8],
    /// Where inputs begin.
    offset: usize,
    part: Part,
    to: Targets,
}

/// Where sums go.
#[derive(Clone, Copy)]
enum Targets {
    Slots(*mut u8),
    Outputs(*const *mut u8),
}

dispatch! {
    /// Runs the sums of `words`.
    ///
    /// # Safety
    ///
    /// The words are a row of whole sums, each its header and as many sources as that counts. All that they name exists in `run`, with
    /// so many bytes.
    unsafe fn sums(words: &[u32], run: Run<'_>) = sums_body;
}

dispatch! {
    /// See [`Slots::chain`].
    ///
    /// # Safety
    ///
    /// The slots `0..=taps.len()` and `first..first + rows` exist, with `bytes` bytes each, and taps are below `rows`.
    unsafe fn chain(slots: *mut u8, bytes: usize, taps: &[[u8; 2]], first: usize, rows: usize) = chain_body;
}

dispatch! {
    /// See [`Slots::combine`].
    ///
    /// # Safety
    ///
    /// All slots named exist, with `bytes` bytes each, and there is a coefficient for each pair.
    unsafe fn combine(slots: *mut u8, bytes: usize, targets: &[u32], sources: &[u32], coefficients: &[u8]) = combine_body;
}

/// Registers of a sum that are gathered at once: enough to hide the latency of an addition.
const REGISTERS: usize = 4;

/// Picks the instance of a body for the number of registers that make up a slot, or divide it.
macro_rules! by_registers {
    ($bytes:expr, $body:ident::<$vector:ident>($($argument:expr),*)) => {
        match $bytes / $vector::BYTES {
            registers if registers % REGISTERS == 0 => $body::<$vector, REGISTERS>($($argument),*),
            registers if registers % 2 == 0 => $body::<$vector, 2>($($argument),*),
            _ => $body::<$vector, 1>($($argument),*),
        }
    };
}

#[inline(always)]
unsafe fn sums_body<V: Vector>(words: &[u32], run: Run<'_>) {
    // SAFETY: handed on.
    unsafe { by_registers!(run.bytes, sums_by::<V>(words, run)) }
}

#[inline(always)]
unsafe fn sums_by<V: Vector, const N: usize>(words: &[u32], run: Run<'_>) {
    let mut at = words.as_ptr();
    let end = words.as_ptr_range().end;
    // SAFETY: a program is a row of whole sums; the caller says that what they name exists.
    unsafe {
        while at < end {
            let (target, input) = (*at as usize, *at.add(1) as usize);
            let (first, all) = (*at.add(2) as usize, *at.add(3) as usize);
            let sources = at.add(HEADER);
            at = sources.add(all);
            let between = sources.add(first);
            let stop = if run.part == Part::First { between } else { at };
            let to = match run.to {
                Targets::Slots(slots) => slots.add(target * run.bytes),
                Targets::Outputs(outputs) => *outputs.add(target),
            };
            let from = if input == 0 { None } else { Some((*run.inputs.add(input)).as_ptr().add(run.offset)) };
            let mut part = 0;
            while part < run.bytes {
                let mut sum = [V::zero(); N];
                if let Some(from) = from {
                    for (register, sum) in sum.iter_mut().enumerate() {
                        *sum = V::load(from.add(part + register * V::BYTES));
                    }
                }
                for (slots, mut source, end) in [(run.first, sources, between), (run.last, between, stop)] {
                    while source < end {
                        let slot = slots.add(*source as usize * run.bytes + part);
                        for (register, sum) in sum.iter_mut().enumerate() {
                            *sum = sum.xor(V::load(slot.add(register * V::BYTES)));
                        }
                        source = source.add(1);
                    }
                }
                for (register, sum) in sum.into_iter().enumerate() {
                    sum.store(to.add(part + register * V::BYTES));
                }
                part += N * V::BYTES;
            }
        }
    }
}

#[inline(always)]
unsafe fn chain_body<V: Vector>(slots: *mut u8, bytes: usize, taps: &[[u8; 2]], first: usize, rows: usize) {
    // SAFETY: handed on.
    unsafe { by_registers!(bytes, chain_by::<V>(slots, bytes, taps, first, rows)) }
}

#[inline(always)]
unsafe fn chain_by<V: Vector, const N: usize>(
    slots: *mut u8,
    bytes: usize,
    taps: &[[u8; 2]],
    first: usize,
    rows: usize,
) {
    // SAFETY: the caller says that all slots exist.
    unsafe {
        let two = V::factor(2);
        let sums = slots.add(first * bytes);
        let mut part = 0;
        while part < bytes {
            let mut y = [V::zero(); N];
            for (step, taps) in taps.iter().enumerate() {
                let slot = slots.add(step * bytes + part);
                for (register, y) in y.iter_mut().enumerate() {
                    *y = y.multiply(two).xor(V::load(slot.add(register * V::BYTES)));
                }
                for &tap in taps {
                    let sum = sums.add(usize::from(tap) * bytes + part);
                    for (register, &y) in y.iter().enumerate() {
                        let sum = sum.add(register * V::BYTES);
                        V::load(sum).xor(y).store(sum);
                    }
                }
            }
            let slot = slots.add(taps.len() * bytes + part);
            for (register, y) in y.iter_mut().enumerate() {
                *y = y.multiply(two).xor(V::load(slot.add(register * V::BYTES)));
            }
            for row in 0..rows {
                for (register, y) in y.iter_mut().enumerate() {
                    let sum = sums.add(row * bytes + part + register * V::BYTES);
                    V::load(sum).xor(*y).store(sum);
                    *y = y.multiply(two);
                }
            }
            part += N * V::BYTES;
        }
    }
}

#[inline(always)]
unsafe fn combine_body<V: Vector>(slots: *mut u8, bytes: usize, targets: &[u32], sources: &[u32], coefficients: &[u8]) {
    // SAFETY: handed on.
    unsafe { by_registers!(bytes, combine_by::<V>(slots, bytes, targets, sources, coefficients)) }
}

#[inline(always)]
unsafe fn combine_by<V: Vector, const N: usize>(
    slots: *mut u8,
    bytes: usize,
    targets: &[u32],
    sources: &[u32],
    coefficients: &[u8],
) {
    for (index, &target) in targets.iter().enumerate() {
        let coefficients = &coefficients[index * sources.len()..][..sources.len()];
        let mut part = 0;
        while part < bytes {
            // SAFETY: the caller says that all slots exist.
            unsafe {
                let to = slots.add(target as usize * bytes + part);
                let mut sum = [V::zero(); N];
                for (register, sum) in sum.iter_mut().enumerate() {
                    *sum = V::load(to.add(register * V::BYTES));
                }
                for (&source, &coefficient) in sources.iter().zip(coefficients) {
                    let factor = V::factor(coefficient);
                    let slot = slots.add(source as usize * bytes + part);
                    for (register, sum) in sum.iter_mut().enumerate() {
                        *sum = sum.xor(V::load(slot.add(register * V::BYTES)).multiply(factor));
                    }
                }
                for (register, sum) in sum.into_iter().enumerate() {
                    sum.store(to.add(register * V::BYTES));
                }
            }
            part += N * V::BYTES;
        }
    }
}
