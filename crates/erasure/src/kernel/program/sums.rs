//! The kernels that run programs on slots.

use super::{HEADER, Part};
use crate::kernel::dispatch;
use crate::kernel::vector::Vector;

/// The operands of a run over a program.
#[derive(Clone, Copy)]
pub(super) struct SumOperands<'a> {
    /// Bytes of a slot.
    pub(super) bytes: usize,
    /// Slots of the first sources.
    pub(super) first: *const u8,
    /// Slots of the last sources.
    pub(super) last: *const u8,
    pub(super) inputs: *const &'a [u8],
    /// Offset of the inputs.
    pub(super) offset: usize,
    pub(super) part: Part,
    pub(super) to: Targets,
}

/// Where sums are written.
#[derive(Clone, Copy)]
pub(super) enum Targets {
    Slots(*mut u8),
    Outputs(*const *mut u8),
}

dispatch! {
    /// Runs the sums of `words`.
    ///
    /// # Safety
    ///
    /// The words are a row of whole sums, each its header and as many sources as the header counts. Everything that
    /// they name exists in `run`, with `run.bytes` bytes.
    pub(super) unsafe fn sums(words: &[u32], run: SumOperands<'_>) = sums_body;
}

dispatch! {
    /// See [`Slots::chain`](super::Slots::chain).
    ///
    /// # Safety
    ///
    /// The slots `0..=taps.len()` and `first..first + rows` exist, with `bytes` bytes each, and taps are below `rows`.
    pub(super) unsafe fn chain(slots: *mut u8, bytes: usize, taps: &[[u8; 2]], first: usize, rows: usize) = chain_body;
}

dispatch! {
    /// See [`Slots::combine`](super::Slots::combine).
    ///
    /// # Safety
    ///
    /// All named slots exist, with `bytes` bytes each, and each pair has a coefficient.
    pub(super) unsafe fn combine(slots: *mut u8, bytes: usize, targets: &[u32], sources: &[u32], coefficients: &[u8]) = combine_body;
}

/// Registers of a sum gathered at once: enough to hide the latency of an addition.
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
unsafe fn sums_body<V: Vector>(words: &[u32], run: SumOperands<'_>) {
    // SAFETY: the caller upholds the same contract.
    unsafe { by_registers!(run.bytes, sums_by::<V>(words, run)) }
}

#[inline(always)]
unsafe fn sums_by<V: Vector, const N: usize>(words: &[u32], run: SumOperands<'_>) {
    let mut at = words.as_ptr();
    let end = words.as_ptr_range().end;
    // SAFETY: a program is a row of whole sums; the caller guarantees that their slots exist.
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
    // SAFETY: the caller upholds the same contract.
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
    // SAFETY: the caller guarantees that all slots exist.
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
    // SAFETY: the caller upholds the same contract.
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
            // SAFETY: the caller guarantees that all slots exist.
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
