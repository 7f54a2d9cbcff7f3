//! The encoder: parities once, then one exclusive or for each symbol.

use std::fmt;

use super::SYMBOL_LIMIT;
use super::system::LtSystem;
use crate::inactivation::System as _;
use crate::{Block, kernel};

/// Makes repair symbols from the block and its parities, which the first call computes.
pub(super) struct Encoder {
    system: LtSystem,
    symbol_size: usize,
    parities: Option<Vec<u8>>,
}

impl Encoder {
    pub(super) fn new(system: LtSystem, symbol_size: usize) -> Self {
        Self { system, symbol_size, parities: None }
    }
}

/// Returns the parities of a block, one after the other.
fn parities(system: &LtSystem, source: &Block) -> Vec<u8> {
    let sets = system.parities();
    let mut parities = vec![0; sets.len() * source.symbol_size()];
    for (set, parity) in sets.iter().zip(parities.chunks_exact_mut(source.symbol_size())) {
        let symbols: Vec<&[u8]> = set.iter().filter_map(|&symbol| source.symbol(symbol)).collect();
        kernel::add_many(parity, &symbols);
    }
    parities
}

impl crate::Encoder for Encoder {
    fn symbol_limit(&self) -> u32 {
        SYMBOL_LIMIT
    }

    fn write_repair(&mut self, source: &Block, esi: u32, out: &mut [u8]) {
        let (k, size) = (self.system.k(), self.symbol_size);
        assert!(
            source.is_complete() && source.k() == k && source.symbol_size() == size,
            "not the block of this encoder"
        );
        assert!((k..SYMBOL_LIMIT).contains(&esi), "no repair symbol {esi}");
        let parities = self.parities.get_or_insert_with(|| parities(&self.system, source));
        let mut terms = Vec::new();
        self.system.terms(esi, &mut terms);
        let symbols = terms.into_iter().map(|term| match term.checked_sub(k) {
            None => &source.bytes()[term as usize * size..][..size],
            Some(parity) => &parities[parity as usize * size..][..size],
        });
        out.fill(0);
        kernel::add_many(out, &symbols.collect::<Vec<_>>());
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("lt::Encoder")
            .field("system", &self.system)
            .field("symbol_size", &self.symbol_size)
            .field("built", &self.parities.is_some())
            .finish()
    }
}
