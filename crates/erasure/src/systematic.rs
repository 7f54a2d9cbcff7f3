//! Encoding of systematic codes: a plan computes the intermediate symbols from the source symbols, and repair symbols
//! are made from them.

use std::fmt;
use std::sync::Arc;

use crate::Block;
use crate::inactivation::System;
use crate::kernel::program::Inputs;
use crate::linear::{Plan, Solved};

/// A system whose unknowns, the intermediate symbols, follow from the source symbols alone.
pub(crate) trait Systematic: System {
    /// Returns the first encoding symbol id that does not exist.
    fn symbol_limit(&self) -> u32;

    /// Returns the plan of the unknowns: its inputs are source symbols, then padding.
    fn encoding_plan(&self) -> Arc<Plan>;

    /// Returns the number of inputs of the plan, including padding.
    fn encoding_inputs(&self) -> u32;

    /// Returns the inputs of the plan, with zeros for absent source symbols.
    fn source_inputs<'a>(&self, size: usize, symbol: impl Fn(u32) -> Option<&'a [u8]>) -> Inputs<'a> {
        Inputs::new(size, (0..self.encoding_inputs()).map(|esi| if esi < self.k() { symbol(esi) } else { None }))
    }
}

/// Makes repair symbols from the intermediate symbols, which the first call computes.
pub(crate) struct Encoder<S> {
    system: S,
    symbol_size: usize,
    solved: Option<Solved>,
}

impl<S: Systematic> Encoder<S> {
    pub(crate) fn new(system: S, symbol_size: usize) -> Self {
        Self { system, symbol_size, solved: None }
    }
}

impl<S: Systematic> crate::Encoder for Encoder<S> {
    fn symbol_limit(&self) -> u32 {
        self.system.symbol_limit()
    }

    fn write_repair(&mut self, source: &Block, esi: u32, out: &mut [u8]) {
        assert_eq!(out.len(), self.symbol_size, "one symbol");
        self.repairs(source, esi, out);
    }

    fn repairs(&mut self, source: &Block, first: u32, out: &mut [u8]) {
        let Self { system, symbol_size, solved } = self;
        let (k, size) = (system.k(), *symbol_size);
        assert!(
            source.is_complete() && source.k() == k && source.symbol_size() == size,
            "not the block of this encoder"
        );
        assert!(out.len().is_multiple_of(size), "whole symbols");
        let end = u64::from(first) + (out.len() / size) as u64;
        assert!(first >= k && end <= u64::from(system.symbol_limit()), "no repair symbols {first} to {end}");
        let inputs = || system.source_inputs(size, |esi| source.symbol(esi));
        let solved = solved.get_or_insert_with(|| Solved::new(system.encoding_plan(), &inputs()));
        let mut outputs: Vec<_> = out.chunks_exact_mut(size).collect();
        solved.expect(outputs.len(), inputs);
        solved.output(&system.symbols((first..).take(outputs.len())), &mut outputs);
    }
}

impl<S: System> fmt::Debug for Encoder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder")
            .field("system", &self.system)
            .field("symbol_size", &self.symbol_size)
            .field("built", &self.solved.is_some())
            .finish()
    }
}
