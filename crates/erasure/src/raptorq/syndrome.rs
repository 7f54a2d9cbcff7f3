//! Decoding over the syndromes of the missing symbols: fast when few are missing, for it never solves for the whole block.
//!
//! The code is linear. Let `r` be a repair symbol that was received, and `b` the same repair symbol of the block with zeros for the
//! missing symbols `m_1 .. m_l`. Then `r - b = a_1 m_1 + .. + a_l m_l` over GF(256), where `a_j` is that repair symbol of a block that
//! is 1 at `m_j` and 0 elsewhere. Both come from the ordinary encoder with its cached plan, and from one pass of it: symbol `i` of the
//! block that is encoded is the row `i` of the identity over the missing symbols (its *coefficients*) followed by the bytes of the
//! symbol. `l` independent rows `a | r - b` give the missing symbols by Gauss-Jordan elimination.

use std::fmt;

use super::padded;
use super::plan::Intermediate;
use crate::repairs::Repairs;
use crate::{Block, gf256};

/// Coefficients are padded to a multiple of this many bytes, so that symbols stay aligned for the vector instructions.
const ALIGNMENT: usize = 64;

/// Bytes of the coefficients of `missing` symbols.
fn coefficients(missing: u32) -> usize {
    (missing as usize).next_multiple_of(ALIGNMENT)
}

/// Whether a row of coefficients and symbol is a symbol the encoder can make.
pub(super) fn fits(block: &Block) -> bool {
    coefficients(block.k() - block.present()) + block.symbol_size() <= usize::from(u16::MAX)
}

/// Whether this is the faster way for `block`. The elimination costs in proportion to the square of what is missing, the crate's
/// solver in proportion to `k`; they cost the same at 14 `k` (measured, `examples/measure.rs crossover`).
pub(super) fn is_faster(block: &Block) -> bool {
    let missing = u64::from(block.k() - block.present());
    missing * missing <= 12 * u64::from(block.k())
}

/// Equations for the symbols that were missing at the first attempt.
pub(super) struct Syndrome {
    /// The esi each column of the coefficients stands for.
    columns: Vec<u32>,
    /// Columns without a pivot row.
    open: Vec<usize>,
    /// Columns whose symbol came after the first attempt and is an equation of its own.
    came: Vec<bool>,
    /// Row `i` is the only row with a coefficient, 1, in column `pivots[i]`.
    pivots: Vec<usize>,
    /// Coefficients and syndrome: the pivot rows, then those that came since the last elimination.
    rows: Vec<Vec<u8>>,
    /// How many of the repair symbols held have become rows.
    used: usize,
    intermediate: Intermediate,
    multiples: gf256::Multiples,
}

impl Syndrome {
    pub(super) fn new(block: &Block) -> Self {
        let columns: Vec<u32> = block.missing().collect();
        let coefficients = coefficients(block.k() - block.present());
        let width = coefficients + block.symbol_size();
        let mut padded_block = vec![0; padded(block.k()) as usize * width];
        for (row, esi) in padded_block.chunks_exact_mut(width).zip(0..block.k()) {
            if let Some(symbol) = block.symbol(esi) {
                row[coefficients..].copy_from_slice(symbol);
            }
        }
        for (column, &esi) in columns.iter().enumerate() {
            padded_block[esi as usize * width + column] = 1;
        }
        Self {
            open: (0..columns.len()).collect(),
            came: vec![false; columns.len()],
            pivots: Vec::with_capacity(columns.len()),
            rows: Vec::with_capacity(columns.len()),
            used: 0,
            intermediate: Intermediate::new(block.k(), width, &padded_block),
            multiples: gf256::Multiples::new(width),
            columns,
        }
    }

    /// Completes the block with the symbols that came since the last attempt, or says how many more rows it needs.
    pub(super) fn solve(&mut self, repairs: &Repairs, block: &mut Block) -> u32 {
        self.add_source(block);
        loop {
            self.eliminate();
            if self.open.is_empty() {
                self.fill(block);
                return 0;
            }
            if self.used == repairs.count() as usize {
                return self.open.len() as u32;
            }
            self.add_repairs(repairs, self.open.len());
        }
    }

    /// Bytes of a row before its syndrome.
    fn coefficients(&self) -> usize {
        self.columns.len().next_multiple_of(ALIGNMENT)
    }

    /// Adds a row for each source symbol that came since the last attempt.
    fn add_source(&mut self, block: &Block) {
        let coefficients = self.coefficients();
        for (column, &esi) in self.columns.iter().enumerate() {
            if let Some(symbol) = block.symbol(esi)
                && !self.came[column]
            {
                let mut row = vec![0; coefficients + symbol.len()];
                row[column] = 1;
                row[coefficients..].copy_from_slice(symbol);
                self.rows.push(row);
                self.came[column] = true;
            }
        }
    }

    /// Adds a row for each of the next `count` repair symbols.
    fn add_repairs(&mut self, repairs: &Repairs, count: usize) {
        let coefficients = self.coefficients();
        for (esi, symbol) in repairs.iter().skip(self.used).take(count) {
            let mut row = self.intermediate.repair(esi);
            gf256::add(&mut row[coefficients..], symbol);
            self.rows.push(row);
            self.used += 1;
        }
    }

    /// Gauss-Jordan elimination, going on from the pivot rows there are.
    fn eliminate(&mut self) {
        let Self { open, pivots, rows, multiples, .. } = self;
        // The new rows first lose what the old pivots cover, all of it: a pivot row must be 0 in the columns of the others.
        let (old, new) = rows.split_at_mut(pivots.len());
        if !new.is_empty() {
            for (row, &column) in old.iter().zip(pivots.iter()) {
                multiples.set(row);
                cancel(multiples, new, column);
            }
        }
        open.retain(|&column| {
            let rank = pivots.len();
            let Some(found) = rows[rank..].iter().position(|row| row[column] != 0) else {
                return true;
            };
            rows.swap(rank, rank + found);
            let inverse = gf256::inverse(rows[rank][column]);
            gf256::scale(&mut rows[rank], inverse);
            multiples.set(&rows[rank]);
            let (before, rest) = rows.split_at_mut(rank);
            cancel(multiples, before, column);
            cancel(multiples, &mut rest[1..], column);
            pivots.push(column);
            false
        });
        // What is left over depends on the pivot rows.
        rows.truncate(pivots.len());
    }

    /// Writes the solved symbols to the block.
    fn fill(&self, block: &mut Block) {
        let coefficients = self.coefficients();
        for (row, &column) in self.rows.iter().zip(&self.pivots) {
            block.insert(self.columns[column], &row[coefficients..]);
        }
    }
}

/// Makes `column` of every row 0 by the multiples of the pivot row of that column.
fn cancel(multiples: &gf256::Multiples, rows: &mut [Vec<u8>], column: usize) {
    for row in rows {
        match row[column] {
            0 => (),
            factor => multiples.add_to(row, factor),
        }
    }
}

impl fmt::Debug for Syndrome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Syndrome")
            .field("missing", &self.columns.len())
            .field("rank", &self.pivots.len())
            .finish_non_exhaustive()
    }
}
