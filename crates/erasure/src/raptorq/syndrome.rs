//! Decoding from the syndromes of the missing symbols: fast when few are missing, for it never eliminates in the size
//! of the block.
//!
//! The code is linear. Let `r` be a received repair symbol, and `b` the same repair symbol of the block with zeros for
//! the missing symbols `m_1 .. m_l`. Then `r - b = a_1 m_1 + .. + a_l m_l` over GF(256), where `a_j` is that repair
//! symbol of a block that is 1 at `m_j` and 0 at all others. Both come from the encoder's plan: the coefficients `a`
//! from a block whose symbols are the rows of the identity over the missing symbols, the syndromes `r - b` from the
//! block itself, once there are `l` independent rows.

use super::system::RaptorqSystem;
use crate::inactivation::System as _;
use crate::linear::Solved;
use crate::matrix::RowEchelon;
use crate::repairs::Repairs;
use crate::systematic::Systematic as _;
use crate::{Block, kernel};

/// Returns whether this is the faster way for `block`. The cost of the elimination is proportional to the square of the
/// number of missing symbols, that of inactivation to `k`; they are equal at about 5 `k` (measured at 1280 bytes a
/// symbol, `k` from 100 to 10,000).
pub(super) fn is_faster(block: &Block) -> bool {
    let missing = u64::from(block.k() - block.present_count());
    missing * missing <= 5 * u64::from(block.k())
}

/// Equations for the symbols missing at the first attempt.
#[derive(Debug)]
pub(super) struct Syndrome {
    /// The esi of each column.
    columns: Vec<u32>,
    /// Columns whose symbol arrived after the first attempt and is an equation of its own.
    came: Vec<bool>,
    /// The coefficients of every repair symbol, as a code of their own.
    coefficients: Solved,
    /// Coefficients of the columns, then the coefficient of each equation in the row.
    inverse: RowEchelon<Vec<u8>>,
    equations: Vec<Equation>,
    /// How many of the held repair symbols have been processed.
    used: usize,
}

/// The source of an equation about the missing symbols.
#[derive(Clone, Copy, Debug)]
enum Equation {
    /// A source symbol itself.
    Source(u32),
    /// A repair symbol: its index among those held and its esi.
    Repair(usize, u32),
}

impl Syndrome {
    pub(super) fn new(system: &RaptorqSystem, block: &Block) -> Self {
        let columns: Vec<u32> = block.missing().collect();
        let count = columns.len();
        let mut identity = vec![0; count * count];
        identity.iter_mut().step_by(count + 1).for_each(|octet| *octet = 1);
        let inputs = system.source_inputs(count, |esi| {
            let column = columns.binary_search(&esi).ok()?;
            Some(&identity[column * count..][..count])
        });
        Self {
            coefficients: Solved::new(system.encoding_plan(), &inputs),
            inverse: RowEchelon::new(),
            equations: Vec::with_capacity(count),
            came: vec![false; count],
            used: 0,
            columns,
        }
    }

    /// Adds the symbols that arrived since the last call; returns the least number of further symbols needed. Linearly
    /// dependent repair symbols are dropped, so that no peer can make this hold more than one for each missing symbol.
    pub(super) fn add_symbols(&mut self, system: &RaptorqSystem, repairs: &mut Repairs, block: &Block) -> u32 {
        let count = self.columns.len();
        for column in 0..count {
            if block.is_present(self.columns[column]) && !self.came[column] {
                self.came[column] = true;
                let mut unit = vec![0; count];
                unit[column] = 1;
                if self.add_row(unit) {
                    self.equations.push(Equation::Source(self.columns[column]));
                }
            }
        }
        self.add_repairs(system, repairs);
        (count - self.equations.len()) as u32
    }

    fn add_repairs(&mut self, system: &RaptorqSystem, repairs: &mut Repairs) {
        let count = self.columns.len();
        let esis: Vec<u32> = repairs.iter().skip(self.used).map(|(esi, _)| esi).collect();
        let mut rows = vec![0; esis.len() * count];
        let mut outputs: Vec<&mut [u8]> = rows.chunks_exact_mut(count).collect();
        self.coefficients.output(&system.symbols(esis), &mut outputs);
        let mut rows = rows.chunks_exact(count);
        repairs.retain(self.used, |place, esi| {
            let row = rows.next().expect("a row for each symbol").to_vec();
            let is_new = self.equations.len() < count && self.add_row(row);
            if is_new {
                self.equations.push(Equation::Repair(place, esi));
            }
            is_new
        });
        self.used = repairs.count() as usize;
    }

    /// Takes the coefficients of one more equation; returns false, and changes nothing, if it depends on the earlier
    /// ones.
    fn add_row(&mut self, mut row: Vec<u8>) -> bool {
        let count = self.columns.len();
        row.resize(2 * count, 0);
        if let Some(own) = row.get_mut(count + self.equations.len()) {
            *own = 1;
        }
        self.inverse.insert(row, |row| row[..count].iter().position(|&octet| octet != 0))
    }

    /// Writes the missing symbols into the block, when none is lacking.
    pub(super) fn fill(&self, system: &RaptorqSystem, repairs: &Repairs, block: &mut Block) {
        let size = block.symbol_size();
        // The repair symbols of the block with zeros for all columns, then their difference from those received.
        let esis = self.equations.iter().filter_map(|equation| match equation {
            Equation::Source(_) => None,
            &Equation::Repair(_, esi) => Some(esi),
        });
        let mut syndromes = vec![0; self.equations.len() * size];
        let mut of_repairs: Vec<&mut [u8]> = syndromes
            .chunks_exact_mut(size)
            .zip(&self.equations)
            .filter_map(|(syndrome, equation)| matches!(equation, Equation::Repair(..)).then_some(syndrome))
            .collect();
        let inputs = system.source_inputs(size, |esi| {
            let symbol = block.symbol(esi)?;
            self.columns.binary_search(&esi).is_err().then_some(symbol)
        });
        system.encoding_plan().solve(&inputs, &system.symbols(esis), &mut of_repairs);
        let received: Vec<&[u8]> = repairs.iter().map(|(_, symbol)| symbol).collect();
        for (syndrome, &equation) in syndromes.chunks_exact_mut(size).zip(&self.equations) {
            match equation {
                Equation::Source(esi) => {
                    let symbol = block.symbol(esi).expect("it arrived, and symbols are kept");
                    syndrome.copy_from_slice(symbol);
                }
                Equation::Repair(index, _) => kernel::add(syndrome, received[index]),
            }
        }
        let syndromes: Vec<&[u8]> = syndromes.chunks_exact(size).collect();
        let still_missing = (0..self.columns.len()).filter(|&column| !self.came[column]);
        let row = |column| self.inverse.row(column).expect("as many equations as columns");
        let coefficients: Vec<u8> =
            still_missing.flat_map(|column| &row(column)[self.columns.len()..]).copied().collect();
        let (_, mut missing) = block.split_missing();
        kernel::combine(&mut missing, &coefficients, &syndromes);
        block.set_complete();
    }
}
