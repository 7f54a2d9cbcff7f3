//! Sums and products of slices of any length.

use super::vector::{Vector, load_up_to, store_up_to};
use super::{Level, dispatch};

/// `to += from`.
///
/// # Panics
///
/// When the lengths differ, as in every function of this module.
pub(crate) fn add(to: &mut [u8], from: &[u8]) {
    add_at(Level::detected(), to, from);
}

/// `to += factor * from`.
pub(crate) fn add_scaled(to: &mut [u8], from: &[u8], factor: u8) {
    add_scaled_at(Level::detected(), to, from, factor);
}

/// Adds `factors[i] * row` to row `i` of `matrix`, whose rows are as long as `row`: an outer product.
pub(crate) fn add_outer(matrix: &mut [u8], row: &[u8], factors: &[u8]) {
    add_outer_at(Level::detected(), matrix, row, factors);
}

/// `row *= factor`.
pub(crate) fn scale(row: &mut [u8], factor: u8) {
    scale_at(Level::detected(), row, factor);
}

/// Adds each slice of `from` to `to`, which is read and written once for all of them.
pub(crate) fn add_many(to: &mut [u8], from: &[&[u8]]) {
    add_many_at(Level::detected(), to, from);
}

pub(super) fn add_at(level: Level, to: &mut [u8], from: &[u8]) {
    assert_eq!(to.len(), from.len(), "sums are of like lengths");
    // SAFETY: the lengths are equal.
    unsafe { add_kernel(level, to, from) }
}

pub(super) fn add_scaled_at(level: Level, to: &mut [u8], from: &[u8], factor: u8) {
    assert_eq!(to.len(), from.len(), "sums are of like lengths");
    // SAFETY: the lengths are equal.
    unsafe { add_scaled_kernel(level, to, from, factor) }
}

pub(super) fn add_outer_at(level: Level, matrix: &mut [u8], row: &[u8], factors: &[u8]) {
    assert_eq!(matrix.len(), row.len() * factors.len(), "a factor for each row");
    // SAFETY: the matrix has these rows.
    unsafe { add_outer_kernel(level, matrix, row, factors) }
}

pub(super) fn scale_at(level: Level, row: &mut [u8], factor: u8) {
    // SAFETY: only the level is required.
    unsafe { scale_kernel(level, row, factor) }
}

pub(super) fn add_many_at(level: Level, to: &mut [u8], from: &[&[u8]]) {
    for from in from {
        assert_eq!(to.len(), from.len(), "sums are of like lengths");
    }
    // SAFETY: all lengths are equal.
    unsafe { add_many_kernel(level, to, from) }
}

dispatch! {
    unsafe fn add_kernel(to: &mut [u8], from: &[u8]) = add_body;
}
dispatch! {
    unsafe fn add_scaled_kernel(to: &mut [u8], from: &[u8], factor: u8) = add_scaled_body;
}
dispatch! {
    unsafe fn add_outer_kernel(matrix: &mut [u8], row: &[u8], factors: &[u8]) = add_outer_body;
}
dispatch! {
    unsafe fn scale_kernel(row: &mut [u8], factor: u8) = scale_body;
}
dispatch! {
    unsafe fn add_many_kernel(to: &mut [u8], from: &[&[u8]]) = add_many_body;
}

/// # Safety
///
/// The CPU has the instructions of `V`; `from` is as long as `to`.
#[inline(always)]
unsafe fn add_body<V: Vector>(to: &mut [u8], from: &[u8]) {
    let whole = to.len() - to.len() % V::BYTES;
    let (to, from, rest) = (to.as_mut_ptr(), from.as_ptr(), to.len() - whole);
    // SAFETY: `whole + rest` bytes lie at both.
    unsafe {
        for at in (0..whole).step_by(V::BYTES) {
            V::load(to.add(at)).xor(V::load(from.add(at))).store(to.add(at));
        }
        if rest > 0 {
            let (to, from) = (to.add(whole), from.add(whole));
            store_up_to(load_up_to::<V>(to, rest).xor(load_up_to(from, rest)), to, rest);
        }
    }
}

/// # Safety
///
/// The CPU has the instructions of `V`; `from` is as long as `to`.
#[inline(always)]
unsafe fn add_scaled_body<V: Vector>(to: &mut [u8], from: &[u8], factor: u8) {
    let whole = to.len() - to.len() % V::BYTES;
    let (to, from, rest) = (to.as_mut_ptr(), from.as_ptr(), to.len() - whole);
    // SAFETY: `whole + rest` bytes lie at both.
    unsafe {
        let factor = V::factor(factor);
        for at in (0..whole).step_by(V::BYTES) {
            V::load(to.add(at)).xor(V::load(from.add(at)).multiply(factor)).store(to.add(at));
        }
        if rest > 0 {
            let (to, from) = (to.add(whole), from.add(whole));
            store_up_to(load_up_to::<V>(to, rest).xor(load_up_to::<V>(from, rest).multiply(factor)), to, rest);
        }
    }
}

/// # Safety
///
/// The CPU has the instructions of `V`; `matrix` has a row as long as `row` for each factor.
#[inline(always)]
unsafe fn add_outer_body<V: Vector>(matrix: &mut [u8], row: &[u8], factors: &[u8]) {
    for (to, &factor) in matrix.chunks_exact_mut(row.len().max(1)).zip(factors) {
        // SAFETY: the rows of the matrix are as long as `row`.
        unsafe { add_scaled_body::<V>(to, row, factor) }
    }
}

/// # Safety
///
/// The CPU has the instructions of `V`.
#[inline(always)]
unsafe fn scale_body<V: Vector>(row: &mut [u8], factor: u8) {
    let whole = row.len() - row.len() % V::BYTES;
    let (row, rest) = (row.as_mut_ptr(), row.len() - whole);
    // SAFETY: the slice has `whole + rest` bytes.
    unsafe {
        let factor = V::factor(factor);
        for at in (0..whole).step_by(V::BYTES) {
            V::load(row.add(at)).multiply(factor).store(row.add(at));
        }
        if rest > 0 {
            store_up_to(load_up_to::<V>(row.add(whole), rest).multiply(factor), row.add(whole), rest);
        }
    }
}

/// # Safety
///
/// The CPU has the instructions of `V`; each of `from` is as long as `to`.
#[inline(always)]
unsafe fn add_many_body<V: Vector>(to: &mut [u8], from: &[&[u8]]) {
    /// How many vectors of the sum are kept in registers: enough to hide that the pointer to each source is fetched
    /// again for them.
    const WIDTH: usize = 4;
    let (wide, whole) = (to.len() - to.len() % (WIDTH * V::BYTES), to.len() - to.len() % V::BYTES);
    let (to, rest) = (to.as_mut_ptr(), to.len() - whole);
    // SAFETY: `whole + rest` bytes lie at `to` and at each of `from`.
    unsafe {
        for at in (0..wide).step_by(WIDTH * V::BYTES) {
            let mut sums = [V::zero(); WIDTH];
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum = V::load(to.add(at + index * V::BYTES));
            }
            for from in from {
                for (index, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.xor(V::load(from.as_ptr().add(at + index * V::BYTES)));
                }
            }
            for (index, sum) in sums.into_iter().enumerate() {
                sum.store(to.add(at + index * V::BYTES));
            }
        }
        for at in (wide..whole).step_by(V::BYTES) {
            let mut sum = V::load(to.add(at));
            for from in from {
                sum = sum.xor(V::load(from.as_ptr().add(at)));
            }
            sum.store(to.add(at));
        }
        if rest > 0 {
            let mut sum = load_up_to::<V>(to.add(whole), rest);
            for from in from {
                sum = sum.xor(load_up_to(from.as_ptr().add(whole), rest));
            }
            store_up_to(sum, to.add(whole), rest);
        }
    }
}
