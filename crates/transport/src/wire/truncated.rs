//! 64-bit numbers of which the wire carries the lower 32 bits.

/// Returns the number with these lower 32 bits nearest to `expected` (RFC 9000 appendix A.3). It is the sent number if
/// that lies within 2^31 of `expected`.
pub fn expand(truncated: u32, expected: u64) -> u64 {
    const TURN: u64 = 1 << 32;
    let candidate = expected & !(TURN - 1) | u64::from(truncated);
    if expected > candidate && expected - candidate > TURN / 2 {
        candidate.checked_add(TURN).unwrap_or(candidate)
    } else if candidate > expected && candidate - expected > TURN / 2 {
        candidate.checked_sub(TURN).unwrap_or(candidate)
    } else {
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: u64 = 1 << 32;

    #[test]
    fn a_number_is_found_again_from_its_lower_half_near_any_border() {
        for border in [0, TURN, 7 * TURN, u64::MAX - TURN + 1] {
            for expected in (border.saturating_sub(3)..border + 3).chain([border + TURN / 2]) {
                for distance in [0, 1, 5, 65_536, TURN / 2 - 1] {
                    for number in [expected.checked_sub(distance), expected.checked_add(distance)].into_iter().flatten()
                    {
                        assert_eq!(expand(number as u32, expected), number, "expected {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn there_is_nothing_below_the_first_number_and_nothing_above_the_last() {
        assert_eq!(expand(u32::MAX, 0), u64::from(u32::MAX));
        assert_eq!(expand(0, u64::MAX), u64::MAX - u64::from(u32::MAX));
    }
}
