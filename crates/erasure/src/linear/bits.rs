//! Rows of bits, packed into words.

/// Returns the number of words that hold `bits` bits.
pub(super) const fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

/// `row += other` over GF(2).
#[inline]
pub(super) fn add(row: &mut [u64], other: &[u64]) {
    for (word, other) in row.iter_mut().zip(other) {
        *word ^= other;
    }
}

pub(super) fn flip(row: &mut [u64], bit: usize) {
    row[bit / 64] ^= 1 << (bit % 64);
}

pub(super) fn is_set(row: &[u64], bit: usize) -> bool {
    row[bit / 64] >> (bit % 64) & 1 == 1
}

/// Iterates over the set bits, in ascending order.
pub(super) fn ones(row: &[u64]) -> impl Iterator<Item = usize> {
    row.iter().enumerate().flat_map(|(index, &word)| {
        std::iter::successors((word != 0).then_some(word), |&left| {
            let rest = left & (left - 1);
            (rest != 0).then_some(rest)
        })
        .map(move |left| 64 * index + left.trailing_zeros() as usize)
    })
}

/// Returns the `count` bits from `first` on as a number; `count` is less than 64. Bits beyond the row are zero.
pub(super) fn field(row: &[u64], first: usize, count: usize) -> usize {
    let (word, shift) = (first / 64, first % 64);
    let low = row[word] >> shift;
    // Shifted in two steps, since a shift by 64 would be none.
    let high = row.get(word + 1).map_or(0, |&next| next << 1 << (63 - shift));
    ((low | high) & ((1 << count) - 1)) as usize
}
