//! Degree distributions, and degrees drawn from them with integers alone: both ends must draw the same on every
//! machine, and the rounding of `ln` and `sqrt` in floats may differ between machines.

use crate::splitmix::SplitMix64;

/// The number of symbols that an encoding symbol adds up.
///
/// `n` is the number of symbols to choose from: the source symbols and the parities of the pre-code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// The ideal soliton (Luby 2002, definition 4): 1/n for degree 1, 1/(d (d - 1)) for degree d. One symbol of degree
    /// 1 is expected at each step of peeling, so that in practice some step has none.
    Ideal,
    /// The robust soliton (Luby 2002, definitions 5 and 6): the ideal one, more of the low degrees, and a spike at n/S
    /// that covers every symbol, where S = c ln(n/delta) sqrt(n). The spike is at half of n at most.
    Robust {
        /// `c`, in thousandths, 1 to 10,000.
        c: u32,
        /// `delta`, in thousandths, 1 to 999: Luby's bound on the probability that peeling fails.
        delta: u32,
    },
    /// Pairs of a degree, from 1 on, and its weight; a degree above n counts as n.
    Weights(Vec<(u32, u32)>),
}

/// The weight of certainty in the soliton distributions.
const UNIT: u64 = 1 << 40;

/// Degrees and, at each, the sum of the weights up to it.
#[derive(Debug)]
pub(super) struct Degrees {
    sums: Vec<(u64, u32)>,
}

impl Degrees {
    /// Computes the distribution for `n` symbols to choose from.
    ///
    /// # Panics
    ///
    /// When the parameters are outside the limits of [`Distribution`].
    pub(super) fn new(distribution: &Distribution, n: u32) -> Self {
        let weights = match distribution {
            Distribution::Ideal => ideal(n),
            &Distribution::Robust { c, delta } => robust(n, c, delta),
            Distribution::Weights(weights) => {
                assert!(weights.iter().all(|&(degree, _)| degree > 0), "a degree of 0");
                weights.iter().map(|&(degree, weight)| (degree.min(n), weight.into())).collect()
            }
        };
        let mut sum = 0;
        let sums = weights.into_iter().map(|(degree, weight)| {
            sum += weight;
            (sum, degree)
        });
        let degrees = Self { sums: sums.collect() };
        assert!(sum > 0, "no weights");
        degrees
    }

    pub(super) fn draw(&self, random: &mut SplitMix64) -> u32 {
        let &(total, _) = self.sums.last().expect("weights are not empty");
        let number = random.below(total);
        self.sums[self.sums.partition_point(|&(sum, _)| sum <= number)].1
    }
}

fn ideal(n: u32) -> Vec<(u32, u64)> {
    let weight = |degree: u32| {
        if degree == 1 { UNIT / u64::from(n) } else { UNIT / (u64::from(degree) * u64::from(degree - 1)) }
    };
    (1..=n).map(|degree| (degree, weight(degree))).collect()
}

/// All divisions round down. S is a multiple of 2^-16, like the logarithms.
fn robust(n: u32, c: u32, delta: u32) -> Vec<(u32, u64)> {
    assert!((1..=10_000).contains(&c) && (1..1000).contains(&delta), "c {c}, delta {delta}");
    let (wide, c, delta) = (u64::from(n), u64::from(c), u64::from(delta));
    let ripple = c * (ln(1000 * wide) - ln(delta)) * (wide << 16).isqrt() / (1000 << 8);
    let ripple = ripple.clamp(1, wide << 16);
    // Departs: at most half of n, which matters for n of 14 and less. With the spike at n, that many encoding symbols
    // were identical.
    let spike = ((wide << 16) / ripple).clamp(1, wide.div_ceil(2)) as u32;
    let mut weights = ideal(n);
    // UNIT times S, over n.
    let share = (ripple << 24) / wide;
    for (degree, weight) in &mut weights[..spike as usize - 1] {
        *weight += share / u64::from(*degree);
    }
    // ln(S / delta), where S counts in 2^-16.
    let log = (ln(ripple) + ln(1000)).saturating_sub(ln(1 << 16) + ln(delta));
    weights[spike as usize - 1].1 += (share * log) >> 16;
    weights
}

/// Returns the natural logarithm of `number`, 1 or above, in 2^-16: that to base 2, found bit by bit by squaring, times
/// 45,426 / 2^16 (ln 2).
fn ln(number: u64) -> u64 {
    let mut log = u64::from(number.ilog2());
    // A number of 1 to 2, in 2^-31.
    let mut rest = if log > 31 { number >> (log - 31) } else { number << (31 - log) };
    for _ in 0..16 {
        rest = (rest * rest) >> 31;
        let bit = rest >> 32;
        rest >>= bit;
        log = log << 1 | bit;
    }
    (log * 45_426) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of each degree.
    fn shares(distribution: &Distribution, n: u32) -> Vec<f64> {
        let degrees = Degrees::new(distribution, n);
        let total = degrees.sums.last().unwrap().0 as f64;
        let mut before = 0;
        let mut shares = vec![0.0; n as usize + 1];
        for &(sum, degree) in &degrees.sums {
            shares[degree as usize] += (sum - before) as f64 / total;
            before = sum;
        }
        shares
    }

    #[test]
    fn logarithms_are_close() {
        for number in [1, 2, 3, 7, 1000, 65_536, 131_072_000, 1 << 33, (1 << 37) + 12_345] {
            let expected = (number as f64).ln();
            assert!((ln(number) as f64 / 65_536.0 - expected).abs() < 2e-4, "ln {number}: {}", ln(number));
        }
    }

    /// Against the formulas in floats, which the code does not use.
    #[test]
    fn solitons_follow_their_formulas() {
        for n in [1_u32, 2, 10, 100, 1000, 10_000, 131_072] {
            let ideal = |d: usize| if d == 1 { 1.0 / f64::from(n) } else { 1.0 / (d as f64 * (d as f64 - 1.0)) };
            for (d, share) in shares(&Distribution::Ideal, n).into_iter().enumerate().skip(1) {
                assert!((share / ideal(d) - 1.0).abs() < 0.02, "n {n}, ideal, degree {d}: {share}");
            }
            for (c, delta) in [(30, 1), (100, 500), (1, 999), (10_000, 1)] {
                let ratio = f64::from(delta) / 1000.0;
                let size = f64::from(n);
                let ripple = (f64::from(c) / 1000.0 * (size / ratio).ln() * size.sqrt()).min(size);
                let spike = ((size / ripple) as usize).clamp(1, n.div_ceil(2) as usize);
                let weight = |d: usize| {
                    ideal(d)
                        + match d {
                            d if d < spike => ripple / (d as f64 * size),
                            d if d == spike => ripple * (ripple / ratio).ln().max(0.0) / size,
                            _ => 0.0,
                        }
                };
                let total: f64 = (1..=n as usize).map(weight).sum();
                let found = shares(&Distribution::Robust { c, delta }, n);
                let distance: f64 = (1..=n as usize).map(|d| (found[d] - weight(d) / total).abs()).sum();
                assert!(distance < 0.01, "n {n}, c {c}, delta {delta}: {distance}");
            }
        }
    }

    /// The sum of all weights, and of those up to degree 2, from a second implementation, written from
    /// docs/PROTOCOL.md, section 6.
    #[test]
    fn weights_are_exact() {
        let robust = Distribution::Robust { c: 30, delta: 1 };
        for (distribution, n, all, low) in [
            (&Distribution::Ideal, 10, 1_099_511_627_772, 659_706_976_665),
            (&Distribution::Ideal, 131_072, 1_099_511_562_328, 549_764_202_496),
            (&robust, 10, 1_949_685_330_184, 803_715_887_922),
            (&robust, 1000, 1_306_757_889_475, 572_470_302_079),
            (&robust, 131_072, 1_132_321_483_489, 552_318_611_968),
        ] {
            let sums = Degrees::new(distribution, n).sums;
            assert_eq!((sums[n as usize - 1].0, sums[1].0), (all, low), "{distribution:?}, n {n}");
        }
    }

    #[test]
    fn degrees_are_drawn_as_they_weigh() {
        let degrees = Degrees::new(&Distribution::Weights(vec![(1, 1), (3, 0), (5, 3), (40, 4)]), 20);
        let mut random = SplitMix64::new(6);
        let mut counts = [0; 21];
        for _ in 0..8000 {
            counts[degrees.draw(&mut random) as usize] += 1;
        }
        assert_eq!(counts[3], 0);
        assert_eq!(counts[1] + counts[5] + counts[20], 8000);
        assert!((900..1100).contains(&counts[1]) && (2850..3150).contains(&counts[5]), "{counts:?}");
    }
}
