//! Symbols beyond k that a decoder needs, in trials on every core.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use erasure::{Block, BlockCode, Encoder, Progress};
use fastrand::Rng;

use super::ours::block;
use xtask::failure::Failure;

/// Failure does not depend on the size of symbols.
const SYMBOL_SIZE: usize = 2;
/// The repair symbols are drawn from this number of first ones.
const REACH: u32 = 1 << 20;
/// A trial with more than this factor of the block's symbols has failed.
const MOST: u32 = 3;
/// Trials in one batch of a thread.
const BATCH: u64 = 64;

/// The symbols that reach the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrivals {
    /// A random number of source symbols is lost, and replaced by random repair symbols.
    Repaired,
    /// Coded symbols only, as in the senders of these codes.
    Coded,
    /// All symbols that the code has, in random order.
    Shuffled,
}

impl Arrivals {
    fn of(code: BlockCode, k: u32) -> Self {
        match code {
            _ if code.symbol_limit(k) / k <= 8 => Self::Shuffled,
            BlockCode::Lt | BlockCode::PrecodedLt => Self::Coded,
            _ => Self::Repaired,
        }
    }
}

/// The results of trials.
#[derive(Clone, Debug, Default)]
pub(super) struct Overheads {
    /// The number of trials by their symbols beyond k.
    counts: Vec<u64>,
    /// The number of trials that did not decode from all symbols.
    never: u64,
}

impl Overheads {
    /// Runs this number of trials.
    pub(super) fn of(code: BlockCode, k: u32, trials: u64, seed: u64) -> Result<Self, Failure> {
        let next = AtomicU64::new(0);
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let source = block(k, SYMBOL_SIZE, &mut Rng::with_seed(seed));
        thread::scope(|scope| {
            let work = || {
                let mut receiver = Receiver::new(code, &source)?;
                let mut overheads = Self::default();
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= trials {
                        return Ok(overheads);
                    }
                    for trial in first..trials.min(first + BATCH) {
                        // Each trial has a generator of its own: threads do not affect the result.
                        let rng = Rng::with_seed(seed ^ trial.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                        overheads.add(receiver.trial(rng)?);
                    }
                }
            };
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let mut all = Self::default();
            for worker in workers {
                all.merge(worker.join().map_err(|_| Failure::new(format_args!("{code}, k = {k}: panicked")))??);
            }
            Ok(all)
        })
    }

    fn add(&mut self, beyond: Option<u32>) {
        let Some(beyond) = beyond else {
            self.never += 1;
            return;
        };
        let place = beyond as usize;
        self.counts.resize(self.counts.len().max(place + 1), 0);
        self.counts[place] += 1;
    }

    fn merge(&mut self, other: Self) {
        self.never += other.never;
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(other.counts).for_each(|(count, other)| *count += other);
    }

    pub(super) fn trials(&self) -> u64 {
        self.never + self.counts.iter().sum::<u64>()
    }

    /// Returns the trials that did not decode from any number of symbols.
    pub(super) fn never(&self) -> u64 {
        self.never
    }

    /// Returns the trials that do not decode with this number of symbols beyond k.
    pub(super) fn failures(&self, beyond: usize) -> u64 {
        self.never + self.counts.iter().skip(beyond + 1).sum::<u64>()
    }

    /// Returns the symbols beyond k that suffice for this share of the trials, if any.
    pub(super) fn quantile(&self, share: f64) -> Option<usize> {
        let allowed = (self.trials() as f64 * (1.0 - share)).floor() as u64;
        (0..self.counts.len()).find(|&beyond| self.failures(beyond) <= allowed)
    }

    /// Returns the largest number needed.
    pub(super) fn largest(&self) -> usize {
        self.counts.len().saturating_sub(1)
    }
}

/// A receiver, and the sender of its symbols.
struct Receiver<'a> {
    code: BlockCode,
    source: &'a Block,
    encoder: Box<dyn Encoder>,
    arrivals: Arrivals,
    symbol: Vec<u8>,
}

impl<'a> Receiver<'a> {
    fn new(code: BlockCode, source: &'a Block) -> Result<Self, Failure> {
        let (k, size) = (source.k(), source.symbol_size());
        let encoder = code.encoder(k, size).map_err(Failure::at(code))?;
        Ok(Self { code, source, encoder, arrivals: Arrivals::of(code, k), symbol: vec![0; size] })
    }

    /// Returns the symbols beyond k until the block is complete, if it decodes.
    fn trial(&mut self, mut rng: Rng) -> Result<Option<u32>, Failure> {
        let (k, size) = (self.source.k(), self.source.symbol_size());
        let mut ids = Ids::new(self.arrivals, k, self.encoder.symbol_limit(), &mut rng);
        let mut block = Block::new_missing(k, size, vec![0xee; self.source.bytes().len()]);
        let mut decoder = self.code.decoder(k, size).map_err(Failure::at(self.code))?;
        let mut received = 0;
        // A decoder requests only symbols that it needs for certain, so it cannot decode without them.
        while let Progress::Need(more) = decoder.recover(&mut block) {
            for _ in 0..more {
                let Some(esi) = ids.next(&mut rng).filter(|_| received < MOST * k.max(100)) else { return Ok(None) };
                received += 1;
                if let Some(symbol) = self.source.symbol(esi) {
                    block.insert(esi, symbol);
                } else {
                    self.encoder.write_repair(self.source, esi, &mut self.symbol);
                    decoder.push(&block, esi, &self.symbol);
                }
            }
        }
        if block == *self.source {
            Ok(Some(received - k))
        } else {
            Err(Failure::new(format_args!("{}, k = {k}: decoded to wrong bytes", self.code)))
        }
    }
}

/// Ids of symbols in the order of arrival, without duplicates.
struct Ids {
    /// The drawn ids, from the end.
    drawn: Vec<u32>,
    repairs: std::ops::Range<u32>,
    known: std::collections::BTreeSet<u32>,
}

impl Ids {
    fn new(arrivals: Arrivals, k: u32, limit: u32, rng: &mut Rng) -> Self {
        let mut drawn: Vec<u32> = match arrivals {
            Arrivals::Repaired => (0..k).collect(),
            Arrivals::Coded => Vec::new(),
            Arrivals::Shuffled => (0..limit).collect(),
        };
        rng.shuffle(&mut drawn);
        let repairs = match arrivals {
            Arrivals::Repaired => {
                drawn.truncate(rng.u32(0..k) as usize);
                k..limit.min(k + REACH)
            }
            Arrivals::Coded => k..limit.min(k + REACH),
            Arrivals::Shuffled => k..k,
        };
        Self { drawn, repairs, known: std::collections::BTreeSet::new() }
    }

    fn next(&mut self, rng: &mut Rng) -> Option<u32> {
        if let Some(esi) = self.drawn.pop() {
            return Some(esi);
        }
        if self.known.len() >= self.repairs.len() {
            return None;
        }
        loop {
            let esi = rng.u32(self.repairs.clone());
            if self.known.insert(esi) {
                return Some(esi);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_follow_from_their_seed_and_are_counted() {
        let run = || Overheads::of(BlockCode::RaptorQ, 10, 3000, 5).expect("right bytes");
        let once = run();
        assert_eq!((once.trials(), once.never()), (3000, 0));
        assert_eq!(once.counts, run().counts, "whichever thread ran a trial");
        // The probability is 1/256; that of 40 in 3000 is 1e-10.
        assert!((1..40).contains(&once.failures(0)) && once.failures(1) <= 2, "{once:?}");
        assert_eq!((once.quantile(0.5), once.quantile(1.0)), (Some(0), Some(once.largest())));
        // Any k symbols decode.
        let exact = Overheads::of(BlockCode::ReedSolomon, 30, 200, 5).expect("right bytes");
        assert_eq!((exact.failures(0), exact.largest()), (0, 0));
    }

    #[test]
    fn ids_are_drawn_once() {
        let mut rng = Rng::with_seed(3);
        for (arrivals, count) in [(Arrivals::Repaired, 60), (Arrivals::Coded, 40), (Arrivals::Shuffled, 60)] {
            let mut ids = Ids::new(arrivals, 20, 60, &mut rng);
            let all: Vec<u32> = std::iter::from_fn(|| ids.next(&mut rng)).collect();
            let distinct: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(distinct.len(), all.len(), "{arrivals:?}");
            assert!(all.len() <= count && all.len() >= 40, "{arrivals:?}: {}", all.len());
        }
    }
}
