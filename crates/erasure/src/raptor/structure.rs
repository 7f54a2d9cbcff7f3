//! The equations of RFC 5053, section 5.4: which intermediate symbols each constraint and each encoding symbol adds up.

use super::ldpc::{self, prime_at_or_above};
use super::random::{degree, random};
use super::systematic_index::SYSTEMATIC_INDEX;

/// Least K, section 5.4.2.1.
pub(super) const MIN_K: u32 = 4;

/// Largest K, section 5.4.2.1.
pub(super) const MAX_K: u32 = 8192;

/// Q, section 5.4.4.4: the largest prime below 2^16.
const Q: u64 = 65_521;

/// The numbers that follow from K: those of section 5.4.2.3 and the constants of the triple generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Structure {
    k: u32,
    /// S, the LDPC symbols.
    ldpc: u32,
    /// H, the half symbols.
    half: u32,
    /// L', the smallest prime at or above L.
    modulus: u32,
    /// A and B of section 5.4.4.4.
    a: u64,
    b: u64,
}

impl Structure {
    /// Computes the structure for `k` in `MIN_K..=MAX_K`.
    pub(super) fn new(k: u32) -> Self {
        let ldpc = ldpc::symbols(k);
        let half = half_symbols(k + ldpc);
        let index = u64::from(SYSTEMATIC_INDEX[(k - MIN_K) as usize]);
        Self {
            k,
            ldpc,
            half,
            modulus: prime_at_or_above(k + ldpc + half),
            a: (53_591 + index * 997) % Q,
            b: 10_267 * (index + 1) % Q,
        }
    }

    /// Returns L, the number of intermediate symbols.
    pub(super) fn intermediate(&self) -> u32 {
        self.k + self.ldpc + self.half
    }

    /// Returns the S + H sets of intermediate symbols that add up to zero, section 5.4.2.3.
    pub(super) fn constraints(&self) -> Vec<Vec<u32>> {
        let mut half = vec![Vec::new(); self.half as usize];
        // m[j, H']: the Gray sequence without the numbers of another weight.
        let weight = self.half.div_ceil(2);
        let gray = (0_u32..).map(|i| i ^ i >> 1).filter(|number| number.count_ones() == weight);
        for (j, number) in (0..self.k + self.ldpc).zip(gray) {
            for (row, set) in half.iter_mut().enumerate() {
                if number >> row & 1 == 1 {
                    set.push(j);
                }
            }
        }
        let mut sets = ldpc::sets(self.k, self.ldpc);
        sets.append(&mut half);
        for (set, symbol) in sets.iter_mut().zip(self.k..) {
            set.push(symbol);
        }
        sets
    }

    /// Appends the intermediate symbols, without repetition, that encoding symbol `esi` adds up: Trip and LTEnc,
    /// sections 5.4.4.4 and 5.4.4.3.
    pub(super) fn terms(&self, esi: u32, terms: &mut Vec<u32>) {
        // Below Q.
        let y = ((self.b + u64::from(esi) * self.a) % Q) as u32;
        let degree = degree(random(y, 0, 1 << 20)).min(self.intermediate());
        let step = 1 + random(y, 1, self.modulus - 1);
        let mut at = random(y, 2, self.modulus);
        let end = terms.len() + degree as usize;
        // Numbers from L on are skipped; L' is prime, so that the steps reach every number below it.
        while terms.len() < end {
            if at < self.intermediate() {
                terms.push(at);
            }
            at = (at + step) % self.modulus;
        }
    }
}

/// Returns H, section 5.4.2.3: the smallest H such that halves of H symbols can be chosen in at least `symbols` ways.
fn half_symbols(symbols: u32) -> u32 {
    let ways = |of: u64| (0..of.div_ceil(2)).fold(1, |ways, i| ways * (of - i) / (i + 1));
    // Found below 20: 20 has 184,756 halves.
    (1..).find(|&half: &u32| ways(half.into()) >= symbols.into()).expect("they grow without end")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// S, H and L for some K, worked out by hand from section 5.4.2.3.
    #[test]
    fn numbers_of_symbols() {
        for (k, ldpc, half) in [(4, 5, 5), (10, 7, 6), (14, 7, 7), (500, 41, 12), (1000, 59, 13), (8192, 211, 16)] {
            let structure = Structure::new(k);
            assert_eq!((structure.ldpc, structure.half), (ldpc, half), "k {k}");
            assert_eq!(structure.intermediate(), k + ldpc + half);
        }
    }

    /// The first half rows of K = 10, from the sequence 7, 13, 14, 11, ..
    #[test]
    fn constraints_of_ten_symbols() {
        let sets = Structure::new(10).constraints();
        assert_eq!(sets.len(), 13);
        assert_eq!(sets[0], [0, 5, 6, 7, 10]);
        assert_eq!(sets[1], [0, 1, 6, 8, 11]);
        assert!(sets[7].starts_with(&[0, 1, 3]) && sets[7].ends_with(&[17]), "{:?}", sets[7]);
        // Each of the K + S symbols before is in H' = 3 of the half rows.
        let entries: usize = sets[7..].iter().map(|set| set.len() - 1).sum();
        assert_eq!(entries, 3 * 17);
    }

    /// Ids that the RFC leaves to the generator, at its limits: no panic, no repetition.
    #[test]
    fn terms_are_distinct_intermediate_symbols() {
        for k in (MIN_K..60).chain([100, 1000, 8191, MAX_K]) {
            let structure = Structure::new(k);
            for esi in (0..2000).chain(65_500..65_536) {
                let mut out = Vec::new();
                structure.terms(esi, &mut out);
                let distinct: BTreeSet<u32> = out.iter().copied().collect();
                assert_eq!(distinct.len(), out.len(), "k {k}, esi {esi}");
                assert!((1..=40).contains(&out.len()) && distinct.last() < Some(&structure.intermediate()));
            }
        }
    }
}
