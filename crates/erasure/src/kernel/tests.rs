//! Every level of this machine against arithmetic of single bytes, and so against the portable level, which is one of
//! them.

use super::combine::combine_at;
use super::slices::{add_at, add_many_at, add_outer_at, add_scaled_at, scale_at};
use super::{Instructions, Level};
use crate::field;
use crate::testing::noise;

/// Lengths around and below every register, and beyond several registers: in Miri, which is slow, those of the portable
/// level's.
const LENGTHS: std::ops::Range<usize> = if cfg!(miri) { 0..40 } else { 0..300 };

/// Runs `kernel` on rows of every length at every level, inside a buffer whose other bytes must not change. `expected`
/// computes the first row's byte from those of all rows.
fn check(sources: usize, kernel: impl Fn(Level, &mut [u8], &[&[u8]]), expected: impl Fn(u8, &[u8]) -> u8) {
    const MARGIN: usize = 3;
    for level in Level::available() {
        for length in LENGTHS {
            let rows: Vec<_> = (0..sources).map(|row| noise(row + 1, length + MARGIN)).collect();
            let rows: Vec<&[u8]> = rows.iter().enumerate().map(|(i, row)| &row[i % MARGIN..][..length]).collect();
            let before = noise(0, length + 2 * MARGIN);
            let mut after = before.clone();
            kernel(level, &mut after[MARGIN..MARGIN + length], &rows);
            for (at, (&after, &before)) in after.iter().zip(&before).enumerate() {
                let expected = if (MARGIN..MARGIN + length).contains(&at) {
                    let bytes: Vec<u8> = rows.iter().map(|row| row[at - MARGIN]).collect();
                    expected(before, &bytes)
                } else {
                    before
                };
                assert_eq!(after, expected, "{level:?}, length {length}, byte {at} of the buffer");
            }
        }
    }
}

/// The widest instructions are used if the machine has all of their features, and only then.
#[test]
fn the_detected_level_matches_the_features() {
    println!("levels: {:?}", Level::available().collect::<Vec<_>>());
    let mut expected = Instructions::Portable;
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        expected = Instructions::Neon;
    }
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2");
        // The features that `dispatch!` enables for the kernels of that level.
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("gfni");
        if avx2 {
            expected = Instructions::Avx2;
        }
        if avx512 {
            expected = Instructions::Avx512;
        }
    }
    assert_eq!(Level::detected(), Level(expected));
}

#[test]
fn rows_are_added() {
    check(1, |level, to, from| add_at(level, to, from[0]), |to, from| to ^ from[0]);
}

#[test]
fn rows_are_scaled_and_added_by_every_factor() {
    for factor in (0..=255).step_by(17).chain([1, 2, 29, 142]) {
        let times = |byte| field::multiply(factor, byte);
        check(1, |level, to, from| add_scaled_at(level, to, from[0], factor), |to, from| to ^ times(from[0]));
        check(0, |level, row, _| scale_at(level, row, factor), |row, _| times(row));
    }
}

#[test]
fn every_product_is_right() {
    let bytes: Vec<u8> = (0..=255).collect();
    for level in Level::available() {
        for factor in 0..=255 {
            let mut row = bytes.clone();
            scale_at(level, &mut row, factor);
            let expected: Vec<u8> = bytes.iter().map(|&byte| field::multiply(factor, byte)).collect();
            assert_eq!(row, expected, "{level:?}, factor {factor}");
        }
    }
}

#[test]
fn many_rows_are_gathered() {
    for sources in [0, 1, 2, 3, 8, 13] {
        let sum = |to, from: &[u8]| from.iter().fold(to, |sum, byte| sum ^ byte);
        check(sources, add_many_at, sum);
    }
}

#[test]
fn an_outer_product_is_added() {
    for level in Level::available() {
        for length in LENGTHS {
            let (row, factors, before) = (noise(1, length), noise(2, 5), noise(3, 5 * length));
            let mut after = before.clone();
            add_outer_at(level, &mut after, &row, &factors);
            for (at, (&after, &before)) in after.iter().zip(&before).enumerate() {
                let product = field::multiply(factors[at / length], row[at % length]);
                assert_eq!(after, before ^ product, "{level:?}, length {length}, byte {at} of the matrix");
            }
        }
    }
}

/// Checks a product of `outputs` outputs and `inputs` inputs of `length` bytes at every level.
fn check_product(outputs: usize, inputs: usize, length: usize) {
    let coefficients = noise(99, outputs * inputs);
    let symbols: Vec<_> = (0..inputs).map(|input| noise(input, length)).collect();
    let symbols: Vec<&[u8]> = symbols.iter().map(Vec::as_slice).collect();
    for level in Level::available() {
        let mut products = vec![vec![0xee; length]; outputs];
        let mut rows: Vec<&mut [u8]> = products.iter_mut().map(Vec::as_mut_slice).collect();
        combine_at(level, &mut rows, &coefficients, &symbols);
        for (row, product) in products.iter().enumerate() {
            let factors = &coefficients[row * inputs..][..inputs];
            for (at, &byte) in product.iter().enumerate() {
                let terms = factors.iter().zip(&symbols).map(|(&factor, symbol)| field::multiply(factor, symbol[at]));
                let expected = terms.fold(0, |sum, term| sum ^ term);
                assert_eq!(byte, expected, "{level:?}, {outputs} of {inputs}, length {length}, row {row}, byte {at}");
            }
        }
    }
}

/// From no input to more outputs than one block of registers and one strip hold.
#[test]
fn a_matrix_times_symbols() {
    let shapes = [(1, 0), (1, 1), (2, 3), (3, 2), (4, 5), (5, 4), (9, 130)];
    // In Miri the last takes longer than all other tests.
    let count = if cfg!(miri) { shapes.len() - 1 } else { shapes.len() };
    for &(outputs, inputs) in &shapes[..count] {
        for length in LENGTHS.step_by(if inputs > 100 || cfg!(miri) { 13 } else { 1 }) {
            check_product(outputs, inputs, length);
        }
    }
}

/// A strip has less than one byte of each input.
#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn a_matrix_times_more_symbols_than_a_strip_has_bytes() {
    check_product(5, 25_000, 150);
}

#[test]
#[should_panic(expected = "as long as the outputs")]
fn an_input_too_short_is_refused() {
    combine_at(Level::detected(), &mut [&mut [0; 64]], &[1, 1], &[&[0; 64], &[0; 63]]);
}

#[test]
#[should_panic(expected = "a coefficient for each")]
fn a_matrix_too_small_is_refused() {
    combine_at(Level::detected(), &mut [&mut [0; 64]], &[1], &[&[0; 64], &[0; 64]]);
}

#[test]
#[should_panic(expected = "like lengths")]
fn a_row_too_short_is_refused() {
    add_many_at(Level::detected(), &mut [0; 64], &[&[0; 64], &[0; 63]]);
}
