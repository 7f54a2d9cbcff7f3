//! The numbers of a block: RFC 6330, sections 5.3.3 and 5.3.5.

use super::tables::{PARAMETERS, V};

/// K'_max, section 5.1.2.
pub(crate) const MAX_SOURCE_SYMBOLS: u32 = 56_403;

/// f of section 5.3.5.2: degree d is drawn where the random number lies below entry d and not below the one before.
const DEGREES: [u32; 31] = [
    0, 5_243, 529_531, 704_294, 791_675, 844_104, 879_057, 904_023, 922_747, 937_311, 948_962, 958_494, 966_438,
    973_160, 978_921, 983_914, 988_283, 992_138, 995_565, 998_631, 1_001_391, 1_003_887, 1_006_157, 1_008_229,
    1_010_129, 1_011_876, 1_013_490, 1_014_983, 1_016_370, 1_017_662, 1_048_576,
];

/// The numbers that section 5.3.3.3 derives from K': the sizes of the parts of the intermediate block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    /// K': source symbols and padding.
    pub(super) padded: u32,
    /// J(K'), the systematic index.
    systematic_index: u32,
    /// S: LDPC symbols.
    pub(super) ldpc: u32,
    /// H: HDPC symbols.
    pub(super) hdpc: u32,
    /// W: LT symbols, LDPC symbols among them.
    pub(super) lt: u32,
    /// P1: the smallest prime at or above P.
    prime: u32,
}

/// Returns K' of RFC 6330, Table 2, with which a block of `k` source symbols is coded: the next at or above `k`; `None`
/// above the last.
#[must_use]
pub fn padded(k: u32) -> Option<u32> {
    PARAMETERS.iter().map(|row| u32::from(row.0)).find(|&padded| padded >= k.max(1))
}

impl Parameters {
    /// Computes the parameters of a block of `k` source symbols, padded to the next K' of Table 2; `k` is in
    /// `1..=MAX_SOURCE_SYMBOLS`.
    pub(super) fn new(k: u32) -> Self {
        let at = PARAMETERS.partition_point(|row| u32::from(row.0) < k);
        let (padded, systematic_index, ldpc, hdpc, lt) = PARAMETERS[at];
        let mut parameters = Self {
            padded: padded.into(),
            systematic_index: systematic_index.into(),
            ldpc: ldpc.into(),
            hdpc: hdpc.into(),
            lt: lt.into(),
            prime: 0,
        };
        parameters.prime = (parameters.permanent()..).find(|&n| is_prime(n)).expect("a next prime always exists");
        parameters
    }

    /// Returns L: all intermediate symbols.
    pub(super) fn intermediate(&self) -> u32 {
        self.padded + self.ldpc + self.hdpc
    }

    /// Returns P: permanently inactive symbols.
    fn permanent(&self) -> u32 {
        self.intermediate() - self.lt
    }

    /// Writes the intermediate symbols of LDPC row `row`, in `0..S`, to `terms`: section 5.3.3.3. In the RFC, symbol
    /// `i` goes to the rows `i`, `i + a` and `i + 2a` modulo S with a = 1 + i / S; conversely, each row has one such
    /// symbol for each a and each of the three.
    pub(super) fn ldpc_row(&self, row: u32, terms: &mut Vec<u32>) {
        let (s, b, w, p) = (self.ldpc, self.lt - self.ldpc, self.lt, self.permanent());
        terms.clear();
        for first in (0..b).step_by(s as usize) {
            let step = 1 + first / s;
            for back in [0, step, 2 * step] {
                let symbol = first + (row + 2 * s - back) % s;
                if symbol < b {
                    terms.push(symbol);
                }
            }
        }
        terms.extend([b + row, w + row % p, w + (row + 1) % p]);
    }

    /// Returns the two HDPC rows to which column `column` of MT, section 5.3.3.3, adds.
    pub(super) fn hdpc_taps(&self, column: u32) -> [u8; 2] {
        let first = random(column + 1, 6, self.hdpc);
        let second = (first + random(column + 1, 7, self.hdpc - 1) + 1) % self.hdpc;
        // Fits: H is at most 16.
        [first as u8, second as u8]
    }

    /// Appends the intermediate symbols that make up encoding symbol `id` (an internal symbol id) to `terms`: Tuple and
    /// Enc, sections 5.3.5.4 and 5.3.5.3.
    pub(super) fn terms(&self, id: u32, terms: &mut Vec<u32>) {
        let (w, p, prime) = (self.lt, self.permanent(), self.prime);
        let a = (53_591 + self.systematic_index * 997) | 1;
        let y = (10_267 * (self.systematic_index + 1)).wrapping_add(id.wrapping_mul(a));
        let degree = degree(random(y, 0, 1 << 20)).min(w - 2);
        let step = 1 + random(y, 1, w - 1);
        let mut at = random(y, 2, w);
        for _ in 0..degree {
            terms.push(at);
            at = add_modulo(at, step, w);
        }
        let permanent = if degree < 4 { 2 + random(id, 3, 2) } else { 2 };
        let step = 1 + random(id, 4, prime - 1);
        let mut at = random(id, 5, prime);
        for _ in 0..permanent {
            while at >= p {
                at = add_modulo(at, step, prime);
            }
            terms.push(w + at);
            at = add_modulo(at, step, prime);
        }
    }
}

/// Returns Rand, section 5.3.5.1.
fn random(y: u32, i: u32, below: u32) -> u32 {
    let bytes = y.to_le_bytes();
    let drawn = V.iter().zip(bytes).fold(0, |sum, (table, byte)| sum ^ table[usize::from(byte.wrapping_add(i as u8))]);
    drawn % below
}

/// Returns Deg, section 5.3.5.2, before the bound by W.
fn degree(v: u32) -> u32 {
    // All bounds are compared, which is faster with vector instructions than a branching search.
    1 + DEGREES[1..].iter().map(|&bound| u32::from(v >= bound)).sum::<u32>()
}

/// Returns `a + b` modulo `modulus`; both are below it.
fn add_modulo(a: u32, b: u32, modulus: u32) -> u32 {
    let sum = a + b;
    if sum >= modulus { sum - modulus } else { sum }
}

pub(crate) fn is_prime(n: u32) -> bool {
    n > 1 && (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}
