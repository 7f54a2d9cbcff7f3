//! The LDPC symbols of RFC 5053, section 5.4.2.3: every source symbol is added to three of them. The pre-code of `lt`
//! is the same.

use crate::raptorq::is_prime;

/// Returns S, section 5.4.2.3: the smallest prime at or above K / 100 + X, for the smallest X with X (X - 1) >= 2 K.
///
/// That many LDPC symbols suffice to give each of `k` symbols three of its own, see [`sets`].
pub(crate) fn symbols(k: u32) -> u32 {
    let k = u64::from(k);
    let x = (1..).find(|x| x * (x - 1) >= 2 * k).expect("squares grow without end");
    // Far below 2^32 for any k of 32 bits.
    prime_at_or_above((k.div_ceil(100) + x) as u32)
}

/// Returns the three of `ldpc` LDPC symbols, a prime number of them, to which symbol `i` is added, section 5.4.2.3.
/// They differ from those of any other of the first `ldpc * (ldpc - 1) / 2` symbols.
fn neighbours(i: u32, ldpc: u32) -> [u32; 3] {
    let step = 1 + i / ldpc % (ldpc - 1);
    let first = i % ldpc;
    [first, (first + step) % ldpc, (first + 2 * step) % ldpc]
}

/// Returns the source symbols that each of the `ldpc` LDPC symbols, a prime number of them, adds up.
pub(crate) fn sets(k: u32, ldpc: u32) -> Vec<Vec<u32>> {
    let mut sets = vec![Vec::new(); ldpc as usize];
    for i in 0..k {
        for symbol in neighbours(i, ldpc) {
            sets[symbol as usize].push(i);
        }
    }
    sets
}

/// Returns the smallest prime at or above `number`.
pub(crate) fn prime_at_or_above(number: u32) -> u32 {
    (number..).find(|&n| is_prime(n)).expect("primes do not end")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn primes() {
        assert_eq!([0, 2, 3, 4, 90, 8192].map(prime_at_or_above), [2, 2, 3, 5, 97, 8209]);
    }

    #[test]
    fn no_two_symbols_have_the_same_symbols() {
        for k in [4, 5, 10, 99, 1000, 8192, 100_000] {
            let ldpc = symbols(k);
            let mut seen = BTreeSet::new();
            for i in 0..k {
                let mut of = neighbours(i, ldpc);
                of.sort_unstable();
                assert!(of[0] < of[1] && of[1] < of[2] && of[2] < ldpc, "k {k}, i {i}: {of:?}");
                assert!(seen.insert(of), "k {k}, i {i}: {of:?}");
            }
        }
    }
}
