//! Helpers for the tests of several codes.

/// Returns octets without a pattern: the low 8 bits of each state of xorshift64. Vectors checked against other
/// implementations use them.
pub(crate) fn octets(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Returns bytes without a pattern that a kernel or a matrix could share.
pub(crate) fn noise(seed: usize, length: usize) -> Vec<u8> {
    (1..=length).map(|i| ((i + seed * 0x1_0001) as u32).wrapping_mul(0x9e37_79b1).to_le_bytes()[3]).collect()
}
