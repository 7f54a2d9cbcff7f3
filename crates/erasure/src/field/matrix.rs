//! Dense matrices over GF(256), row after row.

use crate::{field, kernel};

/// A matrix that has no inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Singular;

/// Inverts the square `matrix` of `size` rows in place, by Gauss-Jordan elimination with row exchanges.
///
/// # Errors
///
/// Where the rows are not independent; the matrix then holds nothing of use.
///
/// # Panics
///
/// When the matrix does not have `size` rows of `size` bytes.
pub(crate) fn invert(matrix: &mut [u8], size: usize) -> Result<(), Singular> {
    assert_eq!(matrix.len(), size * size, "a square matrix");
    let mut exchanges = Vec::with_capacity(size);
    for pivot in 0..size {
        let found = (pivot..size).find(|row| matrix[row * size + pivot] != 0).ok_or(Singular)?;
        exchanges.push(found);
        let (before, rest) = matrix.split_at_mut(pivot * size);
        let (row, after) = rest.split_at_mut(size);
        if found != pivot {
            row.swap_with_slice(&mut after[(found - pivot - 1) * size..][..size]);
        }
        // The column of the pivot is that of the identity from now on, and its place takes the column of the inverse.
        let inverse = field::inverse(row[pivot]);
        row[pivot] = 1;
        kernel::scale(row, inverse);
        for other in before.chunks_exact_mut(size).chain(after.chunks_exact_mut(size)) {
            let factor = std::mem::take(&mut other[pivot]);
            if factor != 0 {
                kernel::add_scaled(other, row, factor);
            }
        }
    }
    // Rows were exchanged in the matrix, so columns are in the inverse, in the opposite order.
    for (pivot, found) in exchanges.into_iter().enumerate().rev() {
        if found != pivot {
            for row in matrix.chunks_exact_mut(size) {
                row.swap(pivot, found);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::multiply;

    fn noise(seed: u32, length: usize) -> Vec<u8> {
        (1..=length as u32).map(|i| (i + seed * 0x1_0001).wrapping_mul(0x9e37_79b1).to_le_bytes()[3]).collect()
    }

    fn product(a: &[u8], b: &[u8], size: usize) -> Vec<u8> {
        let entry =
            |at: usize| (0..size).fold(0, |sum, i| sum ^ multiply(a[at / size * size + i], b[i * size + at % size]));
        (0..size * size).map(entry).collect()
    }

    fn identity(size: usize) -> Vec<u8> {
        (0..size * size).map(|at| u8::from(at / size == at % size)).collect()
    }

    #[test]
    fn a_matrix_times_its_inverse_is_the_identity() {
        let mut inverted = 0;
        for size in [0, 1, 2, 3, 5, 16, 33, 64, 100] {
            for seed in 0..20 {
                let mut matrix = noise(seed, size * size);
                // Zeros on the diagonal, so that rows must change places.
                for at in (0..size / 2).filter(|at| (at + seed as usize).is_multiple_of(3)) {
                    matrix[at * size + at] = 0;
                }
                let before = matrix.clone();
                if invert(&mut matrix, size).is_ok() {
                    assert_eq!(product(&before, &matrix, size), identity(size), "size {size}, seed {seed}");
                    assert_eq!(product(&matrix, &before, size), identity(size), "size {size}, seed {seed}");
                    inverted += 1;
                }
            }
        }
        // 1 in 255 random matrices is singular.
        assert!(inverted > 165, "{inverted} of 180");
    }

    #[test]
    fn every_exchange_of_rows_is_undone() {
        let size = 8;
        let mut matrix = vec![0; size * size];
        for row in 0..size {
            matrix[row * size + (row * 3 + 1) % size] = row as u8 + 1;
        }
        let before = matrix.clone();
        assert_eq!(invert(&mut matrix, size), Ok(()));
        assert_eq!(product(&before, &matrix, size), identity(size));
    }

    #[test]
    fn dependent_rows_are_told() {
        for size in [1, 2, 7, 40] {
            let mut matrix = noise(5, size * size);
            let (rest, last) = matrix.split_at_mut((size - 1) * size);
            last.fill(0);
            for (factor, row) in (1..).zip(rest.chunks_exact(size)) {
                kernel::add_scaled(last, row, factor);
            }
            assert_eq!(invert(&mut matrix, size), Err(Singular), "size {size}");
        }
    }
}
