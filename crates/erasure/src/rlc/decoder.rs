//! The receiver's half: Gaussian elimination as symbols arrive (RFC 8681, section 6.2).

use super::coefficients::{Field, coefficients};
use super::{MAX_WINDOW, RepairId};
use crate::Progress;
use crate::kernel::{add_scaled, scale};
use crate::matrix::{Row, RowEchelon};
use std::collections::VecDeque;

/// Source symbols kept, in windows: one being repaired, and one for late symbols.
const WINDOWS_KEPT: u32 = 2;

/// A repair symbol less everything known: a linear equation of missing source symbols.
///
/// The equations are kept in reduced row echelon form, so that a symbol is found as soon as it follows from the
/// received ones.
#[derive(Debug)]
struct Equation {
    /// By id modulo the number of symbols kept; 0 for known symbols.
    coefficients: Vec<u8>,
    sum: Vec<u8>,
}

impl Row for Equation {
    fn coefficient(&self, column: usize) -> u8 {
        self.coefficients[column]
    }

    fn add_scaled(&mut self, other: &Self, factor: u8) {
        add_scaled(&mut self.coefficients, &other.coefficients, factor);
        add_scaled(&mut self.sum, &other.sum, factor);
    }

    fn scale(&mut self, factor: u8) {
        scale(&mut self.coefficients, factor);
        scale(&mut self.sum, factor);
    }
}

/// Source symbols of the last windows and equations of the missing ones.
///
/// It takes memory as symbols arrive, and never more than twice the window of source symbols and half a window of
/// equations, each a symbol and a coefficient for every symbol kept. One packet costs at most one pass over its window
/// and two over the equations. Older symbols are dropped. No input makes it panic.
#[derive(Debug)]
pub struct WindowDecoder {
    field: Field,
    symbol_size: usize,
    window: u32,
    /// Symbols from `low` on; missing ones are `None`.
    symbols: VecDeque<Option<Vec<u8>>>,
    low: u64,
    equations: RowEchelon<Equation>,
    recovered: VecDeque<u64>,
    /// Buffers of dropped symbols.
    spare: Vec<Vec<u8>>,
}

impl WindowDecoder {
    /// Creates a decoder for repair symbols over at most `window` symbols of `symbol_size` bytes.
    ///
    /// # Panics
    ///
    /// When a size is 0 or `window` exceeds [`MAX_WINDOW`].
    #[must_use]
    pub fn new(field: Field, symbol_size: usize, window: u32) -> Self {
        assert!(symbol_size > 0 && (1..=MAX_WINDOW).contains(&window), "{window} symbols of {symbol_size} bytes");
        Self {
            field,
            symbol_size,
            window,
            symbols: VecDeque::new(),
            low: 0,
            equations: RowEchelon::new(),
            recovered: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Handles an arrived source symbol. Known ones, too old ones and those of another size are
    /// [`Progress::Redundant`]; otherwise as [`WindowDecoder::repair`].
    pub fn source(&mut self, id: u64, symbol: &[u8]) -> Progress {
        if symbol.len() != self.symbol_size || id < self.low || id == u64::MAX {
            return Progress::Redundant;
        }
        self.reach(id);
        let at = (id - self.low) as usize;
        if self.symbols[at].is_some() {
            return Progress::Redundant;
        }
        self.symbols[at] = Some(copy_of(symbol, &mut self.spare));
        self.settle(id, symbol);
        self.gather()
    }

    /// Handles an arrived repair symbol. [`Progress::Ready`]: [`WindowDecoder::next_recovered`] may return a symbol.
    ///
    /// [`Progress::Redundant`] are symbols that are linearly dependent or of another size, whose window is empty,
    /// larger than the decoder's, or begins with a dropped symbol, and those without room.
    pub fn repair(&mut self, repair: RepairId, symbol: &[u8]) -> Progress {
        let symbols = u32::from(repair.symbols);
        let shaped = symbol.len() == self.symbol_size && (1..=self.window).contains(&symbols);
        let Some(end) = repair.first.checked_add(symbols.into()).filter(|_| shaped && repair.first >= self.low) else {
            return Progress::Redundant;
        };
        self.reach(end - 1);
        let from = (repair.first - self.low) as usize;
        let missing = (from..from + symbols as usize).any(|at| self.symbols[at].is_none());
        if !missing || self.equations.rank() >= self.most_equations() {
            return Progress::Redundant;
        }
        let sum = copy_of(symbol, &mut self.spare);
        let equation = self.equation(repair, sum);
        if self.insert(equation) { self.gather() } else { Progress::Redundant }
    }

    /// Returns a recovered source symbol and its id; each once, while it is kept.
    pub fn next_recovered(&mut self) -> Option<(u64, &[u8])> {
        let id = loop {
            let id = self.recovered.pop_front()?;
            if id >= self.low {
                break id;
            }
        };
        Some((id, self.symbols.get((id - self.low) as usize)?.as_deref()?))
    }

    /// Returns the numbers of buffers of a symbol's size held for symbols and for equations.
    #[cfg(any(test, fuzzing))]
    pub(super) fn buffers(&self) -> (usize, usize) {
        (self.symbols.iter().flatten().count() + self.spare.len(), self.equations.rank())
    }

    const fn kept(&self) -> u64 {
        (WINDOWS_KEPT * self.window) as u64
    }

    /// Returns how many losses can be repaired at a time: half a window.
    pub(super) const fn most_equations(&self) -> usize {
        self.window.div_ceil(2) as usize
    }

    const fn column(&self, id: u64) -> usize {
        (id % self.kept()) as usize
    }

    /// Makes room for `id`; the oldest symbols are dropped.
    fn reach(&mut self, id: u64) {
        let kept = self.kept();
        let end = self.low + self.symbols.len() as u64;
        if id >= end.saturating_add(kept) {
            // No kept symbol is near it.
            self.spare.extend(self.symbols.drain(..).flatten());
            self.equations.clear();
            self.low = (id + 1).saturating_sub(kept);
        }
        while self.low + self.symbols.len() as u64 <= id {
            if self.symbols.len() as u64 == kept {
                self.forget_oldest();
            }
            self.symbols.push_back(None);
        }
    }

    fn forget_oldest(&mut self) {
        let column = self.column(self.low);
        match self.symbols.pop_front() {
            Some(Some(buffer)) => self.spare.push(buffer),
            _ => self.forget_missing(column),
        }
        self.low += 1;
    }

    /// Gives up a missing symbol. One of the equations that contain it is spent to eliminate it from the others.
    fn forget_missing(&mut self, column: usize) {
        self.spare.extend(self.equations.forget(column).map(|spent| spent.sum));
    }

    /// Returns a repair symbol's equation of the missing symbols.
    fn equation(&self, repair: RepairId, mut sum: Vec<u8>) -> Equation {
        let mut factors = vec![0; usize::from(repair.symbols)];
        coefficients(self.field, repair.density, repair.key, &mut factors);
        let mut coefficients = vec![0; self.kept() as usize];
        for (offset, factor) in (0..).zip(factors) {
            let id = repair.first + offset;
            match &self.symbols[(id - self.low) as usize] {
                Some(known) if factor != 0 => add_scaled(&mut sum, known, factor),
                Some(_) => {}
                None => coefficients[self.column(id)] = factor,
            }
        }
        Equation { coefficients, sum }
    }

    /// Adds an equation to the others; returns false if it follows from them.
    fn insert(&mut self, equation: Equation) -> bool {
        let (low, kept) = (self.low, self.kept());
        let mut ids = low..low + self.symbols.len() as u64;
        // The oldest as pivot, so that dropping it next costs no other equation.
        self.equations.insert(equation, |equation| {
            let pivot = ids.find(|id| equation.coefficients[(id % kept) as usize] != 0)?;
            Some((pivot % kept) as usize)
        })
    }

    /// Removes a newly known symbol from the equations.
    fn settle(&mut self, id: u64, symbol: &[u8]) {
        let column = self.column(id);
        for equation in self.equations.rows_mut() {
            let factor = std::mem::take(&mut equation.coefficients[column]);
            if factor != 0 {
                add_scaled(&mut equation.sum, symbol, factor);
            }
        }
        if let Some(equation) = self.equations.remove(column) {
            self.insert(equation);
        }
    }

    /// Takes out the equations that have one term left.
    fn gather(&mut self) -> Progress {
        let kept = self.kept();
        let Self { equations, symbols, recovered, low, .. } = self;
        recovered.retain(|id| id >= low);
        let solved = |equation: &Equation| equation.coefficients.iter().filter(|factor| **factor != 0).count() == 1;
        for (column, equation) in equations.extract(solved) {
            let offset = (column as u64 + kept - *low % kept) % kept;
            symbols[offset as usize] = Some(equation.sum);
            recovered.push_back(*low + offset);
        }
        if recovered.is_empty() { Progress::Need(1) } else { Progress::Ready }
    }
}

/// Returns a copy, in a reused buffer if any.
fn copy_of(symbol: &[u8], spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    buffer.clear();
    buffer.extend_from_slice(symbol);
    buffer
}
