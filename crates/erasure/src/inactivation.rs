//! Decoding by inactivation over the whole block, for every code defined by linear equations (RFC 6330, section 5.4.2;
//! RFC 5053, section 5.5.2).

use std::fmt::Debug;

use crate::kernel::program::Inputs;
use crate::linear::{Elimination, Equations, Heavy};
use crate::repairs::Repairs;
use crate::{Block, Progress};

/// A code as equations of unknown symbols.
pub(crate) trait System: Send + Debug {
    /// Source symbols of a block.
    fn k(&self) -> u32;

    /// The equations that hold for any block.
    fn constraints(&self) -> Equations;

    /// The dense equations that hold for any block.
    fn heavy(&self) -> Option<Heavy> {
        None
    }

    /// Most unknowns that may be inactive with an honest sender: with more, an elimination is not begun, since its cost
    /// is cubic in them.
    fn most_inactive(&self) -> usize;

    /// Returns an empty list of equations of this system's unknowns.
    fn lists(&self) -> Equations;

    /// Appends the unknowns that add up to encoding symbol `esi` to `terms`.
    fn terms(&self, esi: u32, terms: &mut Vec<u32>);

    /// Returns the unknowns of each of these encoding symbols.
    fn symbols(&self, esis: impl IntoIterator<Item = u32>) -> Equations
    where
        Self: Sized,
    {
        let mut lists = self.lists();
        for esi in esis {
            lists.push_with(None, |terms| self.terms(esi, terms));
        }
        lists
    }
}

/// The elimination of an attempt, and its contents.
#[derive(Debug)]
pub(crate) struct Inactivation {
    elimination: Option<Elimination>,
    /// The source symbols not in the elimination.
    missing: Vec<u32>,
    /// How many of the held repair symbols are in it.
    used: usize,
}

impl Inactivation {
    pub(crate) fn new() -> Self {
        Self { elimination: None, missing: Vec::new(), used: 0 }
    }

    /// Begins an elimination of the available symbols; returns the least number of further symbols needed.
    fn begin(&mut self, system: &impl System, repairs: &mut Repairs, block: &Block) -> u32 {
        let k = system.k();
        let mut equations = system.constraints();
        for esi in (0..k).filter(|&esi| block.is_present(esi)) {
            equations.push_with(Some(esi), |terms| system.terms(esi, terms));
        }
        for ((esi, _), input) in repairs.iter().zip(k..) {
            equations.push_with(Some(input), |terms| system.terms(esi, terms));
        }
        self.elimination = Elimination::bounded(equations, system.heavy(), system.most_inactive());
        let Some(elimination) = &self.elimination else {
            // No honest sender's symbols are so entangled: wait for others.
            repairs.clear();
            return k - block.present_count();
        };
        self.missing = block.missing().collect();
        self.used = repairs.count() as usize;
        elimination.lacking()
    }

    /// Adds the symbols that arrived since the last call; returns the least number of further symbols needed. Linearly
    /// dependent repair symbols are dropped, so that no peer can make this hold more than `k` symbols and one for each
    /// unknown.
    pub(crate) fn add_symbols(&mut self, system: &impl System, repairs: &mut Repairs, block: &Block) -> u32 {
        let k = system.k();
        let Some(elimination) = &mut self.elimination else {
            return self.begin(system, repairs, block);
        };
        self.missing.retain(|&esi| {
            let came = block.is_present(esi);
            if came {
                elimination.push_with(Some(esi), |terms| system.terms(esi, terms));
            }
            !came
        });
        repairs.retain(self.used, |place, esi| {
            elimination.push_with(Some(k + place as u32), |terms| system.terms(esi, terms))
        });
        self.used = repairs.count() as usize;
        elimination.lacking()
    }

    /// Writes the missing symbols into the block, when none is lacking.
    pub(crate) fn fill(self, system: &impl System, repairs: &Repairs, block: &mut Block) {
        let Some(elimination) = self.elimination else { return };
        let plan = elimination.into_plan();
        let lists = system.symbols(block.missing());
        let size = block.symbol_size();
        let (present, mut missing) = block.split_missing();
        let symbols = present.into_iter().chain(repairs.iter().map(|(_, symbol)| Some(symbol)));
        plan.solve(&Inputs::new(size, symbols), &lists, &mut missing);
        block.set_complete();
    }
}

/// The decoder of a code that has no faster way to recover missing symbols.
#[derive(Debug)]
pub(crate) struct Decoder<S> {
    system: S,
    repairs: Repairs,
    attempt: Option<Inactivation>,
}

impl<S: System> Decoder<S> {
    pub(crate) fn new(system: S, symbol_size: usize, symbol_limit: u32) -> Self {
        let repairs = Repairs::new(system.k(), symbol_size, symbol_limit);
        Self { system, repairs, attempt: None }
    }
}

impl<S: System> crate::Decoder for Decoder<S> {
    fn push(&mut self, block: &Block, esi: u32, symbol: &[u8]) -> Progress {
        self.repairs.push(block, esi, symbol)
    }

    fn wait_for(&mut self, symbols: u32) {
        self.repairs.wait_for_first(symbols);
    }

    fn recover(&mut self, block: &mut Block) -> Progress {
        let progress = self.repairs.progress(block);
        if progress != Progress::Ready || block.is_complete() {
            return progress;
        }
        let mut attempt = self.attempt.take().unwrap_or_else(Inactivation::new);
        match attempt.add_symbols(&self.system, &mut self.repairs, block) {
            0 => {
                attempt.fill(&self.system, &self.repairs, block);
                self.repairs.clear();
                Progress::Ready
            }
            lacking => {
                self.attempt = Some(attempt);
                self.repairs.wait_for(block, lacking)
            }
        }
    }
}

/// Returns the unknowns that add up to encoding symbol `esi`.
#[cfg(test)]
pub(crate) fn terms_of(system: &impl System, esi: u32) -> Vec<u32> {
    let mut terms = Vec::new();
    system.terms(esi, &mut terms);
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lt::{Distribution, LtCode, Parities};
    use crate::splitmix::SplitMix64;
    use crate::{lt, raptor};

    /// A plain elimination of dense rows, to count independent equations.
    struct Dense {
        /// The row whose first unknown is the index.
        rows: Vec<Option<Vec<bool>>>,
        rank: u32,
    }

    impl Dense {
        fn add(&mut self, terms: impl IntoIterator<Item = u32>) {
            let mut row = vec![false; self.rows.len()];
            terms.into_iter().for_each(|term| row[term as usize] ^= true);
            while let Some(first) = row.iter().position(|&bit| bit) {
                let Some(other) = &self.rows[first] else {
                    self.rows[first] = Some(row);
                    self.rank += 1;
                    return;
                };
                row.iter_mut().zip(other).for_each(|(bit, &other)| *bit ^= other);
            }
        }
    }

    /// An attempt reports the same number of missing symbols as a plain elimination, at first and whenever more have
    /// arrived.
    fn compare(system: &impl System, seed: u64) {
        let (k, mut random) = (system.k(), SplitMix64::new(seed));
        let (unknowns, constraints) = system.constraints().parts();
        let mut dense = Dense { rows: vec![None; unknowns as usize], rank: 0 };
        constraints.into_iter().for_each(|terms| dense.add(terms));
        let mut block = Block::new_missing(k, 1, Vec::new());
        let loss = random.below(101);
        for esi in (0..k).filter(|_| random.below(100) >= loss) {
            block.insert(esi, &[0]);
            dense.add(terms_of(system, esi));
        }
        let mut repairs = Repairs::new(k, 1, 1 << 16);
        let mut attempt = Inactivation::new();
        let mut attempts = 0;
        loop {
            while repairs.lacking(&block) > 0 {
                let esi = random.below_u32(1 << 16);
                let came = if esi < k {
                    block.insert(esi, &[0])
                } else {
                    repairs.push(&block, esi, &[0]) != Progress::Redundant
                };
                if came {
                    dense.add(terms_of(system, esi));
                }
            }
            if block.is_complete() {
                return;
            }
            let lacking = attempt.add_symbols(system, &mut repairs, &block);
            assert_eq!(lacking, unknowns - dense.rank, "{system:?}, seed {seed}, attempt {attempts}");
            if lacking == 0 {
                return;
            }
            attempts += 1;
            repairs.wait_for(&block, 1);
        }
    }

    #[test]
    fn inactivation_need_matches_dense_rank() {
        for seed in 0..150 {
            let k = 1 + seed as u32 * 7 % 130;
            compare(&raptor::RaptorSystem::new(k), seed);
            for parameters in [
                LtCode::robust(),
                LtCode::precoded(),
                LtCode { distribution: Distribution::Ideal, parities: Parities::AtLeast(8), seed },
            ] {
                compare(&lt::LtSystem::new(parameters, k), seed);
            }
        }
    }

    /// Linearly dependent ids are accepted, reported as redundant, and not kept.
    #[test]
    fn redundant_symbols_are_dropped() {
        let system = lt::LtSystem::new(LtCode::robust(), 2);
        let mut same = (2_u32..).filter(|&esi| terms_of(&system, esi) == [0]);
        let mut decoder = Decoder::new(lt::LtSystem::new(LtCode::robust(), 2), 1, lt::SYMBOL_LIMIT);
        let mut block = Block::new_missing(2, 1, Vec::new());
        for (esi, expected) in same
            .by_ref()
            .take(500)
            .zip([Progress::Need(1), Progress::Ready].into_iter().chain(std::iter::repeat(Progress::Ready)))
        {
            use crate::Decoder as _;
            assert_eq!(decoder.push(&block, esi, &[7]), expected, "esi {esi}");
            assert_eq!(decoder.recover(&mut block), Progress::Need(1), "esi {esi}");
            assert!(decoder.repairs.count() <= 2, "{} held", decoder.repairs.count());
        }
        block.insert(1, &[9]);
        assert_eq!(crate::Decoder::recover(&mut decoder, &mut block), Progress::Ready);
        assert_eq!(block.bytes(), [7, 9]);
    }

    /// Next to source symbols most repair symbols of LT are redundant, and decoding depends on the few of high degree.
    #[test]
    fn a_large_lt_block_decodes_beside_its_source() {
        use crate::BlockCode;
        let k = 7000;
        for code in [BlockCode::Lt, BlockCode::PrecodedLt] {
            let mut random = SplitMix64::new(5);
            let sent = Block::new_complete(k, 1, (0..k).map(|_| random.next() as u8).collect());
            let mut encoder = code.encoder(k, 1).unwrap();
            let mut decoder = code.decoder(k, 1).unwrap();
            let mut block = Block::new_missing(k, 1, Vec::new());
            for esi in (0..k).filter(|esi| esi % 3 != 0) {
                block.insert(esi, sent.symbol(esi).unwrap());
            }
            let (mut esi, mut symbol) = (k, [0]);
            while decoder.recover(&mut block) != Progress::Ready {
                assert!(esi < 3 * k, "{code}: {esi}");
                encoder.write_repair(&sent, esi, &mut symbol);
                decoder.push(&block, esi, &symbol);
                esi += 1;
            }
            assert!(block == sent, "{code}");
        }
    }
}
