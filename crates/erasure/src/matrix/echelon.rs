//! Gaussian elimination of rows as they arrive.

use crate::{field, kernel};

/// A row: the coefficients of the unknowns, and any data carried along with them.
pub(crate) trait Row {
    /// Returns the coefficient of the unknown in this column.
    fn coefficient(&self, column: usize) -> u8;

    /// Adds `factor` times another row.
    fn add_scaled(&mut self, other: &Self, factor: u8);

    /// Multiplies the row by `factor`.
    fn scale(&mut self, factor: u8);
}

/// Coefficients, then any further columns.
impl Row for Vec<u8> {
    fn coefficient(&self, column: usize) -> u8 {
        self[column]
    }

    fn add_scaled(&mut self, other: &Self, factor: u8) {
        kernel::add_scaled(self, other, factor);
    }

    fn scale(&mut self, factor: u8) {
        kernel::scale(self, factor);
    }
}

/// Independent rows in reduced row echelon form: each has a pivot, a column in which its coefficient is 1 and that of
/// every other row is 0.
///
/// An unknown is determined by the rows exactly when the row with its pivot has no other coefficient.
#[derive(Debug)]
pub(crate) struct RowEchelon<R> {
    rows: Vec<(usize, R)>,
}

impl<R: Row> RowEchelon<R> {
    pub(crate) const fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Returns the number of rows.
    pub(crate) fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Returns the row with this pivot.
    pub(crate) fn row(&self, pivot: usize) -> Option<&R> {
        self.rows.iter().find_map(|(other, row)| (*other == pivot).then_some(row))
    }

    /// Iterates over all rows, in no particular order. The caller keeps them in echelon form.
    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut R> {
        self.rows.iter_mut().map(|(_, row)| row)
    }

    /// Adds a row. `pivot` chooses a column in which the reduced row has a coefficient. Returns false, and drops the
    /// row, if none is left: the row depends on the others.
    pub(crate) fn insert(&mut self, mut row: R, pivot: impl FnOnce(&R) -> Option<usize>) -> bool {
        for (pivot, other) in &self.rows {
            let factor = row.coefficient(*pivot);
            if factor != 0 {
                row.add_scaled(other, factor);
            }
        }
        let Some(pivot) = pivot(&row) else { return false };
        self.eliminate(&mut row, pivot);
        self.rows.push((pivot, row));
        true
    }

    /// Removes the row with this pivot.
    pub(crate) fn remove(&mut self, pivot: usize) -> Option<R> {
        let at = self.rows.iter().position(|(other, _)| *other == pivot)?;
        Some(self.rows.swap_remove(at).1)
    }

    /// Removes every row that `is_wanted`, with its pivot.
    pub(crate) fn extract(&mut self, is_wanted: impl Fn(&R) -> bool) -> impl Iterator<Item = (usize, R)> {
        self.rows.extract_if(.., move |(_, row)| is_wanted(row))
    }

    /// Eliminates an unknown from all rows at the cost of one of them, which is returned; `None` if no row has it.
    pub(crate) fn forget(&mut self, column: usize) -> Option<R> {
        let at = self.rows.iter().position(|(_, row)| row.coefficient(column) != 0)?;
        let (_, mut spent) = self.rows.swap_remove(at);
        self.eliminate(&mut spent, column);
        Some(spent)
    }

    /// Removes all rows.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Makes the coefficient of `row` in this column 1, and that of every other row 0.
    fn eliminate(&mut self, row: &mut R, column: usize) {
        row.scale(field::inverse(row.coefficient(column)));
        for other in self.rows_mut() {
            let factor = other.coefficient(column);
            if factor != 0 {
                other.add_scaled(row, factor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::invert;
    use crate::testing::noise;

    fn leftmost(row: &[u8]) -> Option<usize> {
        row.iter().position(|&coefficient| coefficient != 0)
    }

    #[test]
    fn rows_with_the_identity_beside_them_become_the_inverse() {
        for size in [1, 2, 5, 16, 40] {
            let matrix = noise(size, size * size);
            let mut inverse = matrix.clone();
            invert(&mut inverse, size).expect("these are independent");
            let mut echelon = RowEchelon::new();
            for (index, row) in matrix.chunks_exact(size).enumerate() {
                let mut row = row.to_vec();
                row.resize(2 * size, 0);
                row[size + index] = 1;
                assert!(echelon.insert(row, |row| leftmost(&row[..size])), "size {size}, row {index}");
            }
            for (pivot, expected) in inverse.chunks_exact(size).enumerate() {
                assert_eq!(&echelon.row(pivot).expect("full rank")[size..], expected, "size {size}, row {pivot}");
            }
        }
    }

    #[test]
    fn dependent_rows_are_refused() {
        let mut echelon = RowEchelon::new();
        assert!(echelon.insert(vec![0, 2, 4], |row| leftmost(row)));
        assert!(echelon.insert(vec![1, 1, 1], |row| leftmost(row)));
        assert!(!echelon.insert(vec![1, 3, 5], |row| leftmost(row)), "the sum of the two");
        assert_eq!(echelon.rank(), 2);
        assert_eq!((echelon.row(1), echelon.row(0)), (Some(&vec![0, 1, 2]), Some(&vec![1, 0, 3])));
    }

    #[test]
    fn forgetting_an_unknown_spends_one_row() {
        let mut echelon = RowEchelon::new();
        assert!(echelon.insert(vec![1, 0, 1], |row| leftmost(row)));
        assert!(echelon.insert(vec![0, 1, 1], |row| leftmost(row)));
        assert_eq!(echelon.forget(2), Some(vec![1, 0, 1]));
        assert_eq!((echelon.rank(), echelon.row(1)), (1, Some(&vec![1, 1, 0])));
        assert_eq!(echelon.forget(2), None);
        assert_eq!(echelon.extract(|row| row[0] == 1).collect::<Vec<_>>(), [(1, vec![1, 1, 0])]);
        assert_eq!(echelon.remove(1), None);
    }
}
