//! Dense equations over GF(256) of a special form: the HDPC symbols of RFC 6330, section 5.3.3.3.

use super::bits;
use crate::matrix::RowEchelon;

/// Equations that tie `rows` unknowns, from `span` on, to all unknowns below `span`: with Y(j) = 2 Y(j - 1) + C(j),
/// unknown `span + h` is the sum of the Y(j) whose `taps` name row h, and of 2^h Y(span - 1).
///
/// As a matrix these rows are dense; with the recurrence each column costs a doubling and three additions.
#[derive(Clone, Debug)]
pub(crate) struct Heavy {
    pub(crate) rows: u32,
    pub(crate) span: u32,
    /// The taps of each column but the last of the span.
    pub(crate) taps: Vec<[u8; 2]>,
}

/// How each heavy equation depends on the inactive unknowns: `rows` rows of one octet per inactive unknown.
#[derive(Clone, Debug)]
pub(super) struct HeavyRows {
    pub(super) unknowns: usize,
    pub(super) octets: Vec<u8>,
}

/// Octets, one for each of some unknowns, as eight planes of bits: doubling all of them only moves planes.
struct Planes {
    words: usize,
    bits: Vec<u64>,
}

impl Planes {
    fn new(words: usize) -> Self {
        Self { words, bits: vec![0; 8 * words] }
    }

    /// Doubles every octet modulo x^8 + x^4 + x^3 + x^2 + 1, and adds `row` as octets of 0 and 1.
    fn double_and_add(&mut self, row: &[u64]) {
        let words = self.words;
        self.bits.rotate_right(words);
        // The highest plane becomes the lowest: x^8 = x^4 + x^3 + x^2 + 1.
        let (carry, rest) = self.bits.split_at_mut(words);
        for plane in rest[words..4 * words].chunks_exact_mut(words) {
            bits::add(plane, carry);
        }
        bits::add(carry, row);
    }

    fn octet(&self, unknown: usize) -> u8 {
        (0..8).fold(0, |octet, plane| {
            octet | u8::from(bits::is_set(&self.bits[plane * self.words..][..self.words], unknown)) << plane
        })
    }
}

impl Heavy {
    /// Returns these equations in the inactive unknowns. `reach` has `words` words for each unknown below the span: the
    /// inactive unknowns that it depends on; `own` names the inactive unknown that each row ties.
    pub(super) fn rows(&self, unknowns: usize, reach: &[u64], own: impl Fn(u32) -> usize) -> HeavyRows {
        let words = bits::words(unknowns);
        let mut chain = Planes::new(words);
        let mut sums: Vec<Planes> = (0..self.rows).map(|_| Planes::new(words)).collect();
        for (reach, taps) in reach.chunks_exact(words.max(1)).zip(&self.taps) {
            chain.double_and_add(reach);
            for &tap in taps {
                bits::add(&mut sums[usize::from(tap)].bits, &chain.bits);
            }
        }
        if let Some(last) = reach.chunks_exact(words.max(1)).nth(self.taps.len()) {
            chain.double_and_add(last);
        }
        let mut octets = Vec::with_capacity(self.rows as usize * unknowns);
        for (row, sum) in sums.iter().enumerate() {
            let start = octets.len();
            octets.extend((0..unknowns).map(|unknown| sum.octet(unknown) ^ chain.octet(unknown)));
            // alpha^h of the last column, for the following rows.
            chain.double_and_add(&vec![0; words]);
            octets[start + own(row as u32)] ^= 1;
        }
        HeavyRows { unknowns, octets }
    }
}

impl HeavyRows {
    pub(super) fn row(&self, row: usize) -> &[u8] {
        &self.octets[row * self.unknowns..][..self.unknowns]
    }

    fn count(&self) -> usize {
        self.octets.len().checked_div(self.unknowns).unwrap_or(0)
    }

    /// Finds coefficients that make unknowns out of these equations: with `given` the octets of each row at the wanted
    /// unknowns, row `i` of the result gives the coefficient of each row in the sum that equals unknown `i`. `None` if
    /// they do not determine the unknowns.
    pub(super) fn invert(&self, given: impl Fn(usize) -> Vec<u8>, looked_for: usize) -> Option<Vec<Vec<u8>>> {
        let count = self.count();
        let mut echelon = RowEchelon::new();
        for row in 0..count {
            let mut octets = given(row);
            octets.resize(looked_for + count, 0);
            octets[looked_for + row] = 1;
            echelon.insert(octets, |row: &Vec<u8>| row[..looked_for].iter().position(|&octet| octet != 0));
        }
        (0..looked_for).map(|unknown| Some(echelon.row(unknown)?[looked_for..].to_vec())).collect()
    }
}
