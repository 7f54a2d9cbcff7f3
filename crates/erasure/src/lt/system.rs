//! The symbols that an encoding symbol adds up.

use std::sync::OnceLock;

use super::LtCode;
use super::distribution::Degrees;
use crate::linear::Equations;
use crate::raptor::ldpc;
use crate::splitmix::{SplitMix64, mix};

/// The equations of blocks of `k` source symbols: unknowns 0 to k - 1 are the source symbols, the R parities of the
/// pre-code follow.
#[derive(Debug)]
pub(crate) struct LtSystem {
    parameters: LtCode,
    k: u32,
    parities: u32,
    /// Computed with the first repair symbol.
    degrees: OnceLock<Degrees>,
}

impl LtSystem {
    pub(crate) fn new(parameters: LtCode, k: u32) -> Self {
        let parities = parameters.parities(k);
        Self { parameters, k, parities, degrees: OnceLock::new() }
    }

    /// Returns the number of source symbols and parities.
    fn unknowns(&self) -> u32 {
        self.k + self.parities
    }

    /// Returns the source symbols that each parity adds up.
    pub(super) fn parities(&self) -> Vec<Vec<u32>> {
        if self.parities == 0 { Vec::new() } else { ldpc::sets(self.k, self.parities) }
    }

    /// Draws a degree, and that many symbols by Floyd's method (Bentley 1987), which needs one number for each symbol,
    /// whatever the degree.
    fn repair_terms(&self, esi: u32, terms: &mut Vec<u32>) {
        let unknowns = self.unknowns();
        let degrees = self.degrees.get_or_init(|| Degrees::new(&self.parameters.distribution, unknowns));
        let mut random = numbers_of_symbol(self.parameters.seed, self.k, esi);
        let degree = degrees.draw(&mut random);
        let mut chosen = vec![0_u64; unknowns.div_ceil(64) as usize];
        let choose = |last: u32| {
            // At most `last`.
            let drawn = random.below(u64::from(last) + 1) as u32;
            let is_chosen = chosen[drawn as usize / 64] >> (drawn % 64) & 1 == 1;
            let symbol = if is_chosen { last } else { drawn };
            chosen[symbol as usize / 64] |= 1 << (symbol % 64);
            symbol
        };
        terms.extend((unknowns - degree..unknowns).map(choose));
    }
}

/// Returns the number sequence of encoding symbol `esi` in the code of `k` symbols with this seed.
fn numbers_of_symbol(seed: u64, k: u32, esi: u32) -> SplitMix64 {
    // Mixed once: otherwise the sequence of one symbol would continue in that of another.
    SplitMix64::new(mix(seed ^ (u64::from(k) << 32 | u64::from(esi))))
}

impl crate::inactivation::System for LtSystem {
    fn k(&self) -> u32 {
        self.k
    }

    /// The parities.
    fn constraints(&self) -> Equations {
        let mut equations = self.lists();
        for (set, parity) in self.parities().iter_mut().zip(self.k..) {
            set.push(parity);
            equations.push(set, None);
        }
        equations
    }

    /// All unknowns: next to source symbols that arrived, a repair symbol of high degree may be the only one with a
    /// lost symbol in it. The largest block bounds the cost.
    fn most_inactive(&self) -> usize {
        self.unknowns() as usize
    }

    fn lists(&self) -> Equations {
        Equations::new(self.unknowns())
    }

    fn terms(&self, esi: u32, terms: &mut Vec<u32>) {
        if esi < self.k { terms.push(esi) } else { self.repair_terms(esi, terms) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::inactivation::terms_of;
    use crate::lt::{Distribution, Parities};

    #[test]
    fn terms_are_distinct_and_follow_from_the_id_alone() {
        for (parameters, k) in [(LtCode::robust(), 1), (LtCode::robust(), 300), (LtCode::precoded(), 1000)] {
            let system = LtSystem::new(parameters.clone(), k);
            for esi in (k..k + 1000).rev() {
                let found = terms_of(&system, esi);
                let distinct: BTreeSet<u32> = found.iter().copied().collect();
                assert!(!found.is_empty() && distinct.len() == found.len(), "k {k}, esi {esi}: {found:?}");
                assert!(distinct.last() < Some(&system.unknowns()));
                assert_eq!(found, terms_of(&LtSystem::new(parameters.clone(), k), esi), "k {k}, esi {esi}");
            }
        }
    }

    /// Every symbol is chosen about equally often, also with the degree of all but one of them.
    #[test]
    fn symbols_are_chosen_evenly() {
        for degree in [1, 3, 19] {
            let distribution = Distribution::Weights(vec![(degree, 1)]);
            let system = LtSystem::new(LtCode { distribution, parities: Parities::None, seed: 5 }, 20);
            let mut counts = [0_u32; 20];
            for esi in 20..20_020 {
                terms_of(&system, esi).iter().for_each(|&symbol| counts[symbol as usize] += 1);
            }
            let expected = 1000 * degree;
            assert!(counts.iter().all(|count| count.abs_diff(expected) < 250), "degree {degree}: {counts:?}");
        }
    }

    /// Against numbers from a second implementation, written from docs/PROTOCOL.md, section 6.
    #[test]
    fn terms_are_those_of_the_protocol() {
        let (robust, precoded) = (LtCode::robust(), LtCode::precoded());
        for (parameters, k, esi, expected) in [
            (&robust, 10, 10, &[7][..]),
            (&robust, 1000, 1000, &[235, 103, 832]),
            (&robust, 1000, (1 << 24) - 1, &[566, 893]),
            (&precoded, 10, 10, &[12, 0]),
            (&precoded, 1000, 1003, &[179, 760, 416]),
            (&precoded, 1000, (1 << 24) - 1, &[600, 946]),
        ] {
            assert_eq!(terms_of(&LtSystem::new(parameters.clone(), k), esi), expected, "k {k}, esi {esi}");
        }
        for (parameters, k, expected) in [
            (&robust, 1, 2_108_210_348),
            (&robust, 10, 3_738_638_279),
            (&robust, 977, 476_255_160),
            (&robust, 10_000, 158_551_244),
            (&precoded, 1, 636_610_096),
            (&precoded, 10, 1_058_597_640),
            (&precoded, 977, 3_427_269_832),
            (&precoded, 10_000, 394_624_434),
        ] {
            let system = LtSystem::new(parameters.clone(), k);
            let numbers = (k..k + 300).flat_map(|esi| terms_of(&system, esi).into_iter().chain([system.unknowns()]));
            let hash = numbers.fold(0_u32, |hash, number| hash.wrapping_mul(31).wrapping_add(number));
            assert_eq!(hash, expected, "k {k}, {} unknowns", system.unknowns());
        }
    }
}
