//! Dense matrices over GF(256).

mod echelon;

pub(crate) use echelon::{Row, RowEchelon};

use crate::{field, kernel};

/// A matrix that has no inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Singular;

/// Rows are padded to whole registers while they are worked on.
const ALIGNMENT: usize = 64;

/// Inverts the square `matrix` of `size` rows in place, by Gauss-Jordan elimination with row exchanges.
///
/// # Errors
///
/// If the rows are not independent; the matrix is unchanged then.
///
/// # Panics
///
/// When the matrix does not have `size` rows of `size` bytes.
pub(crate) fn invert(matrix: &mut [u8], size: usize) -> Result<(), Singular> {
    assert_eq!(matrix.len(), size * size, "a square matrix");
    let stride = size.next_multiple_of(ALIGNMENT);
    let mut rows = vec![0; size * stride];
    for (row, entries) in rows.chunks_exact_mut(stride.max(1)).zip(matrix.chunks_exact(size.max(1))) {
        row[..size].copy_from_slice(entries);
    }
    // The row of each pivot moves to its place, and its column becomes that of the inverse.
    let (mut row, mut factors) = (vec![0; stride], vec![0; size]);
    let mut exchanges = Vec::with_capacity(size);
    for pivot in 0..size {
        let found = (pivot..size).find(|row| rows[row * stride + pivot] != 0).ok_or(Singular)?;
        exchanges.push(found);
        row.copy_from_slice(&rows[found * stride..][..stride]);
        rows.copy_within(pivot * stride..(pivot + 1) * stride, found * stride);
        let inverse = field::inverse(std::mem::replace(&mut row[pivot], 1));
        kernel::scale(&mut row, inverse);
        for (factor, other) in factors.iter_mut().zip(rows.chunks_exact_mut(stride)) {
            *factor = std::mem::take(&mut other[pivot]);
        }
        kernel::add_outer(&mut rows, &row, &factors);
        rows[pivot * stride..][..stride].copy_from_slice(&row);
    }
    // Row exchanges in the matrix are column exchanges in the inverse, in the opposite order.
    for (entries, row) in matrix.chunks_exact_mut(size.max(1)).zip(rows.chunks_exact_mut(stride.max(1))) {
        for (pivot, &found) in exchanges.iter().enumerate().rev() {
            row.swap(pivot, found);
        }
        entries.copy_from_slice(&row[..size]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::multiply;
    use crate::testing::noise;

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
                // Zeros on the diagonal, so that rows must be exchanged.
                for at in (0..size / 2).filter(|at| (at + seed).is_multiple_of(3)) {
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
    fn dependent_rows_are_reported() {
        for size in [1, 2, 7, 40] {
            let mut matrix = noise(5, size * size);
            let (rest, last) = matrix.split_at_mut((size - 1) * size);
            last.fill(0);
            for (factor, row) in (1..).zip(rest.chunks_exact(size)) {
                kernel::add_scaled(last, row, factor);
            }
            let before = matrix.clone();
            assert_eq!(invert(&mut matrix, size), Err(Singular), "size {size}");
            assert_eq!(matrix, before, "size {size}");
        }
    }
}
