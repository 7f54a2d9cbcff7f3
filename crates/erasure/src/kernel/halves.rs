//! The products of every factor with each low and each high half of a byte, for instruction sets that look up 16 bytes
//! at once.

use crate::field;

/// The products with 0, 1 .. 15, and with 0, 16 .. 240.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(super) struct Halves {
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
}

/// Those of each factor.
pub(super) static HALVES: [Halves; 256] = {
    let mut halves = [Halves { low: [0; 16], high: [0; 16] }; 256];
    let mut factor = 0;
    while factor < 256 {
        let products = field::times_powers_of_two(factor as u8);
        let mut half = 0;
        while half < 16 {
            let mut bit = 0;
            while bit < 4 {
                if half >> bit & 1 == 1 {
                    halves[factor].low[half] ^= products[bit];
                    halves[factor].high[half] ^= products[bit + 4];
                }
                bit += 1;
            }
            half += 1;
        }
        factor += 1;
    }
    halves
};
