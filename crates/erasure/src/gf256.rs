//! GF(256) of RFC 6330, section 5.7: octets with the polynomial x^8 + x^4 + x^3 + x^2 + 1, and rows of them.

/// The low eight bits of the polynomial.
const POLYNOMIAL: u8 = 0x1d;

/// OCT_EXP of section 5.7.3, twice over, so that the sum of two logarithms needs no remainder.
const EXP: [u8; 510] = {
    let mut table = [0; 510];
    let mut value = 1;
    let mut power = 0;
    while power < 255 {
        table[power] = value;
        table[power + 255] = value;
        value = double(value);
        power += 1;
    }
    table
};

/// OCT_LOG of section 5.7.4; the entry of 0 is not used.
const LOG: [u8; 256] = {
    let mut table = [0; 256];
    let mut power = 0;
    while power < 255 {
        table[EXP[power] as usize] = power as u8;
        power += 1;
    }
    table
};

/// `2 * value`.
const fn double(value: u8) -> u8 {
    (value << 1) ^ (POLYNOMIAL * (value >> 7))
}

/// `a * b`.
#[cfg(test)]
fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[LOG[a as usize] as usize + LOG[b as usize] as usize] }
}

/// `1 / value`; `value` is not 0.
pub(crate) fn inverse(value: u8) -> u8 {
    debug_assert_ne!(value, 0, "0 has no inverse");
    EXP[255 - LOG[value as usize] as usize]
}

/// `row *= factor`; `factor` is not 0.
pub(crate) fn scale(row: &mut [u8], factor: u8) {
    let log = LOG[factor as usize] as usize;
    for octet in row {
        if *octet != 0 {
            *octet = EXP[LOG[*octet as usize] as usize + log];
        }
    }
}

/// `row += other`: exclusive or, section 5.7.2.
pub(crate) fn add(row: &mut [u8], other: &[u8]) {
    for (octet, other) in row.iter_mut().zip(other) {
        *octet ^= other;
    }
}

/// The multiples of one row by every low and every high half octet. With them a row gains any multiple of this one by two exclusive
/// ors, which compilers turn into vector instructions on every machine, without one look-up per octet.
pub(crate) struct Multiples {
    length: usize,
    /// 16 rows for factors 0 to 15, then 16 rows for factors 0, 16, .. 240.
    table: Vec<u8>,
}

impl Multiples {
    pub(crate) fn new(length: usize) -> Self {
        Self { length, table: vec![0; 32 * length] }
    }

    /// Makes these the multiples of `row`.
    pub(crate) fn set(&mut self, row: &[u8]) {
        let length = self.length;
        for half in 0..2 {
            let (low, high) = self.table.split_at_mut(16 * length);
            let (table, first) = if half == 0 {
                low[length..2 * length].copy_from_slice(row);
                (low, None)
            } else {
                (high, Some(&low[8 * length..9 * length]))
            };
            if let Some(eighth) = first {
                double_into(&mut table[length..2 * length], eighth);
            }
            for factor in 2..16 {
                let (done, rest) = table.split_at_mut(factor * length);
                let top = 1 << factor.ilog2();
                if factor == top {
                    double_into(&mut rest[..length], &done[factor / 2 * length..][..length]);
                } else {
                    let (a, b) = (&done[top * length..][..length], &done[(factor - top) * length..][..length]);
                    for ((sum, a), b) in rest[..length].iter_mut().zip(a).zip(b) {
                        *sum = a ^ b;
                    }
                }
            }
        }
    }

    /// `row += factor * ` the row of [`Multiples::set`].
    pub(crate) fn add_to(&self, row: &mut [u8], factor: u8) {
        let low = &self.table[(factor & 15) as usize * self.length..][..self.length];
        let high = &self.table[(16 + (factor >> 4)) as usize * self.length..][..self.length];
        for ((octet, low), high) in row.iter_mut().zip(low).zip(high) {
            *octet ^= low ^ high;
        }
    }
}

/// `out = 2 * row`.
fn double_into(out: &mut [u8], row: &[u8]) {
    for (out, &octet) in out.iter_mut().zip(row) {
        // The arithmetic of `double` without a multiplication, for the vector instructions.
        let carry = if octet >= 0x80 { POLYNOMIAL } else { 0 };
        *out = (octet << 1) ^ carry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by shift and add, straight from the polynomial.
    fn slow_multiply(mut a: u8, mut b: u8) -> u8 {
        let mut product = 0;
        while b != 0 {
            if b & 1 == 1 {
                product ^= a;
            }
            a = double(a);
            b >>= 1;
        }
        product
    }

    #[test]
    fn tables_are_those_of_the_rfc() {
        // The first and last entries of OCT_EXP and OCT_LOG as printed in sections 5.7.3 and 5.7.4.
        assert_eq!(EXP[..12], [1, 2, 4, 8, 16, 32, 64, 128, 29, 58, 116, 232]);
        assert_eq!(EXP[250..255], [108, 216, 173, 71, 142]);
        assert_eq!(LOG[1..9], [0, 1, 25, 2, 50, 26, 198, 3]);
        assert_eq!(LOG[253..], [80, 88, 175]);
    }

    #[test]
    fn every_product_and_inverse() {
        for a in 0..=255 {
            for b in 0..=255 {
                assert_eq!(multiply(a, b), slow_multiply(a, b), "{a} * {b}");
            }
            if a != 0 {
                assert_eq!(multiply(a, inverse(a)), 1, "1 / {a}");
            }
        }
    }

    #[test]
    fn rows_of_every_length_gain_every_multiple() {
        for length in [0, 1, 7, 64, 100] {
            let row: Vec<u8> = (0..length).map(|i| (i * 7 + 1) as u8).collect();
            let before: Vec<u8> = (0..length).map(|i| (i * 11 + 5) as u8).collect();
            let mut multiples = Multiples::new(length);
            multiples.set(&vec![0xff; length]);
            multiples.set(&row);
            for factor in 0..=255 {
                let mut sum = before.clone();
                multiples.add_to(&mut sum, factor);
                let expected: Vec<u8> = row.iter().zip(&before).map(|(&r, &b)| b ^ slow_multiply(r, factor)).collect();
                assert_eq!(sum, expected, "length {length}, factor {factor}");
                if factor != 0 {
                    let mut product = row.clone();
                    scale(&mut product, factor);
                    add(&mut product, &before);
                    assert_eq!(product, expected, "length {length}, factor {factor}");
                }
            }
        }
    }
}
