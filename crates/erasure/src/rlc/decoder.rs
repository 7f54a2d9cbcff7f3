//! The receiver's half: Gaussian elimination as symbols come (RFC 8681, section 6.2).

use super::coefficients::{Field, coefficients};
use super::{MAX_WINDOW, Repair};
use crate::Progress;
use crate::kernel::{add_scaled, scale};
use crate::matrix::{Row, RowEchelon};
use std::collections::VecDeque;

/// Source symbols kept, in windows: one that is being repaired, and one for what comes late.
const WINDOWS_KEPT: u32 = 2;

/// A repair symbol less all that is known: a linear equation of missing source symbols.
///
/// The equations are kept in reduced row echelon form, so that a symbol is found as soon as it follows from what has come.
#[derive(Debug)]
struct Equation {
    /// By id modulo the symbols kept; of known symbols 0.
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

/// Source symbols of the last windows and equations of those that are missing.
///
/// It takes memory as symbols arrive, and never more than twice the window of source symbols and half a window of equations, each
/// a symbol and a coefficient for every symbol kept. One packet costs at most one pass over its window and two over the
/// equations. What is older than the symbols kept is forgotten. No input makes it panic.
#[derive(Debug)]
pub struct Decoder {
    field: Field,
    symbol_size: usize,
    window: u32,
    /// Symbols from `low` on; those that are missing are `None`.
    symbols: VecDeque<Option<Vec<u8>>>,
    low: u64,
    equations: RowEchelon<Equation>,
    recovered: VecDeque<u64>,
    /// Buffers of symbols that were forgotten.
    spare: Vec<Vec<u8>>,
}

impl Decoder {
    /// A decoder for repair symbols over at most `window` symbols of `symbol_size` bytes.
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

    /// A source symbol arrived. Known ones, those that are too old and those of another size are [`Progress::Useless`];
    /// otherwise as [`Decoder::repair`].
    pub fn source(&mut self, id: u64, symbol: &[u8]) -> Progress {
        if symbol.len() != self.symbol_size || id < self.low || id == u64::MAX {
            return Progress::Useless;
        }
        self.reach(id);
        let at = (id - self.low) as usize;
        if self.symbols[at].is_some() {
            return Progress::Useless;
        }
        self.symbols[at] = Some(copy_of(symbol, &mut self.spare));
        self.settle(id, symbol);
        self.gather()
    }

    /// A repair symbol arrived. [`Progress::Ready`]: something may be taken by [`Decoder::next_recovered`].
    ///
    /// [`Progress::Useless`] are those that say nothing new, that are of another size, whose window is empty, larger than was
    /// said, or begins with a symbol that is forgotten, and those for which there is no room.
    pub fn repair(&mut self, repair: Repair, symbol: &[u8]) -> Progress {
        let symbols = u32::from(repair.symbols);
        let shaped = symbol.len() == self.symbol_size && (1..=self.window).contains(&symbols);
        let Some(end) = repair.first.checked_add(symbols.into()).filter(|_| shaped && repair.first >= self.low) else {
            return Progress::Useless;
        };
        self.reach(end - 1);
        let from = (repair.first - self.low) as usize;
        let missing = (from..from + symbols as usize).any(|at| self.symbols[at].is_none());
        if !missing || self.equations.rank() >= self.most_equations() {
            return Progress::Useless;
        }
        let sum = copy_of(symbol, &mut self.spare);
        let equation = self.equation(repair, sum);
        if self.insert(equation) { self.gather() } else { Progress::Useless }
    }

    /// A source symbol that followed from what came, and its id; each once, while it is kept.
    pub fn next_recovered(&mut self) -> Option<(u64, &[u8])> {
        let id = loop {
            let id = self.recovered.pop_front()?;
            if id >= self.low {
                break id;
            }
        };
        Some((id, self.symbols.get((id - self.low) as usize)?.as_deref()?))
    }

    /// Buffers of a symbol's size that are held, for symbols and for equations.
    pub(super) fn buffers(&self) -> (usize, usize) {
        (self.symbols.iter().flatten().count() + self.spare.len(), self.equations.rank())
    }

    const fn kept(&self) -> u64 {
        (WINDOWS_KEPT * self.window) as u64
    }

    /// As many losses as half of a window are made up for at a time.
    pub(super) const fn most_equations(&self) -> usize {
        self.window.div_ceil(2) as usize
    }

    const fn column(&self, id: u64) -> usize {
        (id % self.kept()) as usize
    }

    /// Makes room for `id`; the oldest symbols are forgotten.
    fn reach(&mut self, id: u64) {
        let kept = self.kept();
        let end = self.low + self.symbols.len() as u64;
        if id >= end.saturating_add(kept) {
            // Nothing that is here is near it.
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

    /// A missing symbol will not be known any more. One of the equations that it stands in is spent to rid the others of it.
    fn forget_missing(&mut self, column: usize) {
        self.spare.extend(self.equations.forget(column).map(|spent| spent.sum));
    }

    /// What a repair symbol says of the symbols that are missing.
    fn equation(&self, repair: Repair, mut sum: Vec<u8>) -> Equation {
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

    /// Adds an equation to the others; false when it follows from them.
    fn insert(&mut self, equation: Equation) -> bool {
        let (low, kept) = (self.low, self.kept());
        let mut ids = low..low + self.symbols.len() as u64;
        // The oldest first: who is forgotten next takes no other equation along.
        self.equations.insert(equation, |equation| {
            let pivot = ids.find(|id| equation.coefficients[(id % kept) as usize] != 0)?;
            Some((pivot % kept) as usize)
        })
    }

    /// A missing symbol is known now: the equations are about the others.
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

    /// Takes the equations out that have one term left.
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

/// A copy in a buffer that was used before, if there is one.
fn copy_of(symbol: &[u8], spare: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut buffer = spare.pop().unwrap_or_default();
    buffer.clear();
    buffer.extend_from_slice(symbol);
    buffer
}
