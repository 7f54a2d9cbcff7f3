//! Intermediate symbols, from plans that are computed once per `K'`.

use std::sync::{Arc, Mutex, PoisonError};

use ::raptorq::{ObjectTransmissionInformation, SourceBlockEncoder, SourceBlockEncodingPlan};

use super::padded;

/// Plans are kept for this many source symbols altogether: a plan has 30 to 40 operations of 32 bytes per symbol, so about 36 MB.
/// A single larger plan is kept alone.
const CACHED_SYMBOLS: u32 = 1 << 15;

/// Plans are the same whoever computes them, so the cache belongs to the process; it changes the time a call takes, never its result.
static CACHE: Mutex<Vec<(u32, Arc<SourceBlockEncodingPlan>)>> = Mutex::new(Vec::new());

/// The plan of a block of `padded` symbols.
fn plan(padded: u32) -> Arc<SourceBlockEncodingPlan> {
    let cached = |cache: &mut Vec<(u32, Arc<SourceBlockEncodingPlan>)>| {
        let at = cache.iter().position(|&(symbols, _)| symbols == padded)?;
        cache[at..].rotate_left(1);
        cache.last().map(|(_, plan)| Arc::clone(plan))
    };
    if let Some(plan) = cached(&mut CACHE.lock().unwrap_or_else(PoisonError::into_inner)) {
        return plan;
    }
    // Computed without the lock: other blocks go on meanwhile, at worst the same plan is computed twice.
    let symbols = u16::try_from(padded).expect("K' is at most 56,403");
    let plan = Arc::new(SourceBlockEncodingPlan::generate(symbols));
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = cached(&mut cache) {
        return plan;
    }
    cache.push((padded, Arc::clone(&plan)));
    let mut total: u32 = cache.iter().map(|(symbols, _)| symbols).sum();
    while total > CACHED_SYMBOLS && cache.len() > 1 {
        total -= cache.remove(0).0;
    }
    plan
}

/// What the crate calls the object. It needs the symbol size of it only: one sub-block, alignment 1, and the transfer length is not used.
pub(super) fn transmission_information(symbol_size: usize) -> ObjectTransmissionInformation {
    let symbol_size = u16::try_from(symbol_size).expect("symbols have at most 65,535 bytes");
    ObjectTransmissionInformation::new(0, symbol_size, 1, 1, 1)
}

/// The intermediate symbols of a block, section 5.3.3.4 of RFC 6330: every repair symbol is a sum of a few of them.
pub(super) struct Intermediate {
    k: u32,
    encoder: SourceBlockEncoder,
}

impl Intermediate {
    /// From a block of `k` symbols, padded with zero symbols to `K'`.
    pub(super) fn new(k: u32, symbol_size: usize, padded_bytes: &[u8]) -> Self {
        let information = transmission_information(symbol_size);
        Self { k, encoder: SourceBlockEncoder::with_encoding_plan(0, &information, padded_bytes, &plan(padded(k))) }
    }

    /// Repair symbol `esi`, in `k..symbol_limit(k)`.
    pub(super) fn repair(&self, esi: u32) -> Vec<u8> {
        let mut packets = self.encoder.repair_packets(esi - self.k, 1);
        packets.pop().expect("one packet was asked for").split().1
    }
}
