//! Programs of additions: which symbols to add up to which, run on one strip of all symbols at a time.
//!
//! A block's symbols do not fit the first caches, a strip of some lines of each does. So a program is run from its beginning to its end
//! for one strip after the other, and every sum is gathered in registers from all its sources before it is written once.

use super::vector::Vector;
use super::{Level, dispatch};

/// 64 bytes: the unit of a strip.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; Self::BYTES]);

impl Line {
    pub(crate) const BYTES: usize = 64;
    pub(crate) const ZERO: Self = Self([0; Self::BYTES]);
}

/// A list of sums. Each has a target slot, an input, and sources, which are slots; input 0 is all zeros.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    /// For each sum: target, input, number of first sources, number of all, the sources.
    words: Vec<u32>,
    /// All slots named are below.
    slots: u32,
    /// All targets are below.
    targets: u32,
    /// All inputs named are below.
    inputs: u32,
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

    /// Adds a sum whose `last` sources are left out of a run over the [`Part::First`].
    pub(crate) fn push_parts(
        &mut self,
        target: u32,
        input: u32,
        first: impl IntoIterator<Item = u32>,
        last: impl IntoIterator<Item = u32>,
    ) {
        let start = self.words.len();
        self.words.extend([target, input, 0, 0]);
        self.words.extend(first);
        let first = self.words.len() - start - HEADER;
        self.words.extend(last);
        let all = self.words.len() - start - HEADER;
        self.words[start + 2] = first as u32;
        self.words[start + 3] = all as u32;
        self.targets = self.targets.max(target + 1);
        self.inputs = self.inputs.max(input + 1);
        for &source in &self.words[start + HEADER..] {
            self.slots = self.slots.max(source + 1);
        }
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
    lines: &'a mut [Line],
    /// Lines of a slot.
    width: usize,
    level: Level,
}

impl<'a> Slots<'a> {
    pub(crate) fn new(lines: &'a mut [Line], width: usize) -> Self {
        assert!(width > 0, "slots have a line at least");
        Self { lines, width, level: Level::detected() }
    }

    fn count(&self) -> usize {
        self.lines.len() / self.width
    }

    fn bytes(&self) -> usize {
        self.width * Line::BYTES
    }

    /// Makes the sums of `program` in these slots. The inputs are read from byte `offset` on.
    pub(crate) fn run(&mut self, program: &Program, part: Part, inputs: &Inputs<'_>, offset: usize) {
        assert!(program.targets as usize <= self.count() && program.slots as usize <= self.count(), "slots");
        assert!(program.inputs as usize <= inputs.symbols.len() && offset + self.bytes() <= inputs.size, "inputs");
        let slots = self.lines.as_mut_ptr().cast();
        let run = Run { slots, bytes: self.bytes(), inputs: inputs.symbols.as_ptr(), offset, part, outputs: None };
        // SAFETY: every target, source and input of the program exists, as asserted; a sum is written after its sources were read.
        unsafe { sums(self.level, &program.words, run) }
    }

    /// Makes the sums of `program`, whose targets are `outputs`; only as many bytes as those have from `offset` on are written.
    pub(crate) fn output(&mut self, program: &Program, outputs: &mut [&mut [u8]], offset: usize) {
        assert!(program.targets as usize <= outputs.len() && program.slots as usize <= self.count(), "slots");
        assert!(program.inputs <= 1, "outputs have no inputs");
        assert!(outputs.iter().all(|output| offset + self.bytes() <= output.len()), "outputs");
        let zeros: [&[u8]; 1] = [&[]];
        let pointers: Vec<*mut u8> = outputs.iter_mut().map(|output| output.as_mut_ptr()).collect();
        let run = Run {
            slots: self.lines.as_mut_ptr().cast(),
            bytes: self.bytes(),
            inputs: zeros.as_ptr(),
            offset,
            part: Part::All,
            outputs: Some(pointers.as_ptr()),
        };
        // SAFETY: every target and source of the program exists, as asserted; with outputs no input is read.
        unsafe { sums(self.level, &program.words, run) }
    }

    /// The chain of RFC 6330's HDPC rows: with y doubled and slot j added at each step j, adds y to the two slots, counted from
    /// `first`, that `taps[j]` names; the last step, which has no taps, adds y to the first of `rows` slots, 2 y to the second and so on.
    pub(crate) fn chain(&mut self, taps: &[[u8; 2]], first: u32, rows: u32) {
        assert!(taps.len() < first as usize && (first + rows) as usize <= self.count(), "slots");
        assert!(taps.iter().flatten().all(|&tap| u32::from(tap) < rows), "taps");
        let slots = self.lines.as_mut_ptr().cast();
        // SAFETY: the slots of the steps and the sums exist, as asserted.
        unsafe { chain(self.level, slots, self.bytes(), taps, first as usize, rows as usize) }
    }

    /// Adds to each target the sources times their coefficients, `sources.len()` for each target.
    pub(crate) fn combine(&mut self, targets: &[u32], sources: &[u32], coefficients: &[u8]) {
        assert!(targets.iter().chain(sources).all(|&slot| (slot as usize) < self.count()), "slots");
        assert_eq!(coefficients.len(), targets.len() * sources.len(), "a coefficient for each pair");
        let slots = self.lines.as_mut_ptr().cast();
        // SAFETY: all slots exist, as asserted.
        unsafe { combine(self.level, slots, self.bytes(), targets, sources, coefficients) }
    }

    pub(crate) fn clear(&mut self, slots: impl IntoIterator<Item = u32>) {
        for slot in slots {
            self.lines[slot as usize * self.width..][..self.width].fill(Line::ZERO);
        }
    }
}

/// What a run over a program works on.
#[derive(Clone, Copy)]
struct Run<'a> {
    slots: *mut u8,
    /// Bytes of a slot.
    bytes: usize,
    inputs: *const &'a [u8],
    /// Where inputs and outputs begin.
    offset: usize,
    part: Part,
    /// Targets, where they are not slots.
    outputs: Option<*const *mut u8>,
}

dispatch! {
    /// Runs the sums of `words`.
    ///
    /// # Safety
    ///
    /// All that the words name exists in `run`, with so many bytes.
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
            let stop = sources.add(if run.part == Part::First { first } else { all });
            let to = match run.outputs {
                None => run.slots.add(target * run.bytes),
                Some(outputs) => (*outputs.add(target)).add(run.offset),
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
                let mut source = sources;
                while source < stop {
                    let slot = run.slots.add(*source as usize * run.bytes + part);
                    for (register, sum) in sum.iter_mut().enumerate() {
                        *sum = sum.xor(V::load(slot.add(register * V::BYTES)));
                    }
                    source = source.add(1);
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
