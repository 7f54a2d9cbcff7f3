//! A matrix over GF(256) times symbols.

use super::vector::{Vector, load_up_to, store_up_to};
use super::{Level, dispatch};

/// Outputs kept in registers while the inputs are read.
const BLOCK: usize = 4;

/// Vectors of each output in registers. With AVX2 and a block of outputs they take half of the 16 registers, the tables
/// and halves of bytes the other half.
const WIDTH: usize = 2;

/// Bytes of all inputs together that are multiplied into one block of outputs after the other: they stay in a
/// first-level cache.
const STRIP: usize = 24 << 10;

/// `outputs[i]` becomes the sum over all `j` of `coefficients[i * inputs.len() + j] * inputs[j]`.
///
/// # Panics
///
/// When the outputs and inputs are not all of one length, or the matrix is not of their shape.
pub(crate) fn combine(outputs: &mut [&mut [u8]], coefficients: &[u8], inputs: &[&[u8]]) {
    combine_at(Level::detected(), outputs, coefficients, inputs);
}

pub(super) fn combine_at(level: Level, outputs: &mut [&mut [u8]], coefficients: &[u8], inputs: &[&[u8]]) {
    assert_eq!(
        outputs.len().checked_mul(inputs.len()),
        Some(coefficients.len()),
        "a coefficient for each output and input"
    );
    let Some(length) = outputs.first().map(|output| output.len()) else {
        return;
    };
    assert!(outputs.iter().all(|output| output.len() == length), "outputs of one length");
    assert!(inputs.iter().all(|input| input.len() == length), "inputs as long as the outputs");
    // SAFETY: the shapes are as the kernel requires.
    unsafe { combine_kernel(level, outputs, coefficients, inputs) }
}

dispatch! {
    unsafe fn combine_kernel(outputs: &mut [&mut [u8]], coefficients: &[u8], inputs: &[&[u8]]) = combine_body;
}

/// # Safety
///
/// The CPU has the instructions of `V`; at least one output exists, the outputs and inputs have one length, and the
/// coefficients are as many as the outputs times the inputs.
#[inline(always)]
unsafe fn combine_body<V: Vector>(outputs: &mut [&mut [u8]], coefficients: &[u8], inputs: &[&[u8]]) {
    let length = outputs[0].len();
    let unit = WIDTH * V::BYTES;
    // If one block holds all outputs, no input is read twice.
    let strip = if outputs.len() <= BLOCK { length } else { (STRIP / inputs.len().max(1)).next_multiple_of(unit) };
    let strip = strip.max(unit);
    for start in (0..length).step_by(strip) {
        let end = length.min(start + strip);
        for (block, outputs) in outputs.chunks_mut(BLOCK).enumerate() {
            let coefficients = &coefficients[block * BLOCK * inputs.len()..];
            // SAFETY: the pointer begins a row of coefficients for each output, and the range lies in all outputs and
            // inputs.
            unsafe {
                match outputs {
                    [a] => rows::<V, 1>([a.as_mut_ptr()], coefficients, inputs, start, end),
                    [a, b] => rows::<V, 2>([a, b].map(|to| to.as_mut_ptr()), coefficients, inputs, start, end),
                    [a, b, c] => rows::<V, 3>([a, b, c].map(|to| to.as_mut_ptr()), coefficients, inputs, start, end),
                    [a, b, c, d] => {
                        rows::<V, BLOCK>([a, b, c, d].map(|to| to.as_mut_ptr()), coefficients, inputs, start, end);
                    }
                    _ => unreachable!("chunks have 1 to {BLOCK} outputs"),
                }
            }
        }
    }
}

/// Computes the bytes `start..end` of `ROWS` outputs.
///
/// # Safety
///
/// The CPU has the instructions of `V`; the range lies in every output and input; each output and input has at least
/// one coefficient, those of one output after those of the previous one.
#[inline(always)]
unsafe fn rows<V: Vector, const ROWS: usize>(
    outputs: [*mut u8; ROWS],
    coefficients: &[u8],
    inputs: &[&[u8]],
    start: usize,
    end: usize,
) {
    let mut at = start;
    // SAFETY: all reads and writes lie in `start..end` of the inputs and outputs, and every index below `ROWS *
    // inputs.len()`.
    unsafe {
        while at + WIDTH * V::BYTES <= end {
            let mut sums = [[V::zero(); WIDTH]; ROWS];
            for (column, input) in inputs.iter().enumerate() {
                let mut vectors = [V::zero(); WIDTH];
                for (index, vector) in vectors.iter_mut().enumerate() {
                    *vector = V::load(input.as_ptr().add(at + index * V::BYTES));
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let factor = V::factor(*coefficients.get_unchecked(row * inputs.len() + column));
                    for (sum, vector) in sums.iter_mut().zip(vectors) {
                        *sum = sum.xor(vector.multiply(factor));
                    }
                }
            }
            for (sums, output) in sums.into_iter().zip(outputs) {
                for (index, sum) in sums.into_iter().enumerate() {
                    sum.store(output.add(at + index * V::BYTES));
                }
            }
            at += WIDTH * V::BYTES;
        }
        // The rest, which does not fill the registers, vector by vector; the last one in part.
        while at < end {
            let bytes = V::BYTES.min(end - at);
            let mut sums = [V::zero(); ROWS];
            for (column, input) in inputs.iter().enumerate() {
                let vector = load_up_to::<V>(input.as_ptr().add(at), bytes);
                for (row, sum) in sums.iter_mut().enumerate() {
                    let factor = V::factor(*coefficients.get_unchecked(row * inputs.len() + column));
                    *sum = sum.xor(vector.multiply(factor));
                }
            }
            for (sum, output) in sums.into_iter().zip(outputs) {
                store_up_to(sum, output.add(at), bytes);
            }
            at += bytes;
        }
    }
}
