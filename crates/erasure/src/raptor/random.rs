//! The generators of RFC 5053, section 5.4.4: random numbers, degrees. Its tables V0 and V1 (section 5.6) are the first
//! two of RFC 6330.

use crate::raptorq::tables::V;

/// Returns Rand[X, i, m], section 5.4.4.1: a number below `m`, for `i` below 256.
pub(super) fn random(x: u32, i: u32, m: u32) -> u32 {
    let low = V[0][((x + i) % 256) as usize];
    let high = V[1][((x / 256 + i) % 256) as usize];
    (low ^ high) % m
}

/// Returns Deg[v], section 5.4.4.2, for `v` below 2^20.
pub(super) fn degree(v: u32) -> u32 {
    const DEGREES: [(u32, u32); 7] =
        [(10_241, 1), (491_582, 2), (712_794, 3), (831_695, 4), (948_446, 10), (1_032_189, 11), (1 << 20, 40)];
    DEGREES.iter().find(|&&(bound, _)| v < bound).map_or(40, |&(_, degree)| degree)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of the tables as printed in the RFC, modulo 2^32.
    #[test]
    fn the_tables_are_those_of_the_rfc() {
        let sum = |table: &[u32]| table.iter().fold(0, |sum: u32, &value| sum.wrapping_add(value));
        assert_eq!((sum(&V[0]), sum(&V[1])), (331_395_769, 3_270_332_586));
        assert_eq!(
            (random(0, 0, u32::MAX), random(65_520, 2, 1 << 20)),
            ((V[0][0] ^ V[1][0]) % u32::MAX, (V[0][242] ^ V[1][1]) % (1 << 20))
        );
    }

    #[test]
    fn degrees_change_at_the_limits_of_the_rfc() {
        for (v, expected) in [(0, 1), (10_240, 1), (10_241, 2), (491_581, 2), (491_582, 3), (712_793, 3), (831_694, 4)]
        {
            assert_eq!(degree(v), expected, "v {v}");
        }
        for (v, expected) in [(831_695, 10), (948_445, 10), (948_446, 11), (1_032_188, 11), (1_032_189, 40)] {
            assert_eq!(degree(v), expected, "v {v}");
        }
        assert_eq!(degree((1 << 20) - 1), 40);
    }
}
