//! Single elements of GF(256) with the polynomial x^8 + x^4 + x^3 + x^2 + 1 (0x11d), of RFC 6330, section 5.7, and of
//! RFC 8681, section 3.7. [`kernel`](crate::kernel) has the arithmetic of long rows, [`matrix`](crate::matrix) that of
//! matrices.

/// The low eight bits of the polynomial.
const POLYNOMIAL: u8 = 0x1d;

/// Powers of 2 (OCT_EXP of RFC 6330, section 5.7.3), twice over, so that the sum of two logarithms needs no remainder.
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

/// Logarithms to the base 2 (OCT_LOG of section 5.7.4); the entry of 0 is not used.
const LOG: [u8; 256] = {
    let mut table = [0; 256];
    let mut power = 0;
    while power < 255 {
        table[EXP[power] as usize] = power as u8;
        power += 1;
    }
    table
};

/// Returns `2 * value`.
const fn double(value: u8) -> u8 {
    (value << 1) ^ (POLYNOMIAL * (value >> 7))
}

/// Returns `value` times 1, 2, 4 .. 128: the columns of the matrix over GF(2) that represents multiplication by
/// `value`.
pub(crate) const fn times_powers_of_two(value: u8) -> [u8; 8] {
    let mut products = [value; 8];
    let mut bit = 1;
    while bit < 8 {
        products[bit] = double(products[bit - 1]);
        bit += 1;
    }
    products
}

/// Returns `a * b`.
pub(crate) fn multiply(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 { 0 } else { EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])] }
}

/// Returns `1 / value`.
///
/// # Panics
///
/// In debug builds for 0, which has no inverse.
pub(crate) fn inverse(value: u8) -> u8 {
    debug_assert_ne!(value, 0, "0 has no inverse");
    EXP[255 - usize::from(LOG[usize::from(value)])]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication by shift and add, straight from the polynomial.
    fn slow_multiply(a: u8, b: u8) -> u8 {
        times_powers_of_two(a)
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| b >> bit & 1 == 1)
            .fold(0, |sum, (_, p)| sum ^ p)
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
}
