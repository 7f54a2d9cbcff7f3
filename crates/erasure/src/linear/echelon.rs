//! The dense remainder over GF(2): equations of the inactive unknowns alone, kept in reduced echelon form as they
//! arrive.

use super::bits;

/// Independent equations of the inactive unknowns: each has one unknown, its pivot, that no other has. Next to its
/// unknowns each records the added equations of which it is the sum.
#[derive(Debug)]
pub(super) struct Echelon {
    unknowns: usize,
    /// Words of the unknowns, and of the equations.
    words: usize,
    /// Row by row: unknowns, then equations.
    rows: Vec<u64>,
    /// The pivot of each row.
    pivots: Vec<u32>,
    scratch: Vec<u64>,
}

impl Echelon {
    pub(super) fn new(unknowns: usize) -> Self {
        let words = bits::words(unknowns);
        Self { unknowns, words, rows: Vec::new(), pivots: Vec::new(), scratch: vec![0; 2 * words] }
    }

    /// Adds an equation of these unknowns; returns false, and changes nothing, if it follows from the others.
    pub(super) fn insert(&mut self, unknowns: &[u64]) -> bool {
        let (words, stride) = (self.words, 2 * self.words);
        self.scratch[..words].copy_from_slice(unknowns);
        self.scratch[words..].fill(0);
        for (row, &pivot) in self.rows.chunks_exact(stride).zip(&self.pivots) {
            if bits::is_set(unknowns, pivot as usize) {
                bits::add(&mut self.scratch, row);
            }
        }
        let Some(pivot) = bits::ones(&self.scratch[..words]).next() else { return false };
        bits::flip(&mut self.scratch[words..], self.pivots.len());
        for row in self.rows.chunks_exact_mut(stride) {
            if bits::is_set(row, pivot) {
                bits::add(row, &self.scratch);
            }
        }
        self.rows.extend_from_slice(&self.scratch);
        self.pivots.push(pivot as u32);
        true
    }

    /// Returns the number of independent equations.
    pub(super) fn rank(&self) -> usize {
        self.pivots.len()
    }

    /// Returns the pivot of each row.
    pub(super) fn pivots(&self) -> &[u32] {
        &self.pivots
    }

    /// Returns the unknowns without a row, in ascending order.
    pub(super) fn free(&self) -> Vec<u32> {
        let mut is_pivot = vec![false; self.unknowns];
        for &pivot in &self.pivots {
            is_pivot[pivot as usize] = true;
        }
        (0..self.unknowns as u32).filter(|&unknown| !is_pivot[unknown as usize]).collect()
    }

    /// Returns the unknowns of row `row`.
    pub(super) fn unknowns(&self, row: usize) -> &[u64] {
        &self.rows[row * 2 * self.words..][..self.words]
    }

    /// Returns the added equations of which row `row` is the sum; refused equations are not numbered.
    pub(super) fn made_of(&self, row: usize) -> &[u64] {
        &self.rows[row * 2 * self.words + self.words..][..self.words]
    }
}
