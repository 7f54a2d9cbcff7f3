//! Vectors of plain integers, for every machine.

use super::vector::Vector;
use crate::field;

/// 32 bytes, eight to an integer; compilers may use vector instructions for it.
#[derive(Clone, Copy)]
pub(crate) struct Portable([u64; 4]);

/// The lowest bit of each byte.
const LOWEST: u64 = 0x0101_0101_0101_0101;

impl Vector for Portable {
    const BYTES: usize = 32;

    /// The products of the factor with 1, 2, 4 .. 128.
    type Factor = [u64; 8];

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees that 32 bytes may be read, and any bytes are integers.
        Self(unsafe { from.cast::<[u64; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees that 32 bytes may be written.
        unsafe { to.cast::<[u64; 4]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Self([a ^ e, b ^ f, c ^ g, d ^ h])
    }

    #[inline(always)]
    unsafe fn factor(value: u8) -> [u64; 8] {
        field::times_powers_of_two(value).map(u64::from)
    }

    /// Adds the product of each bit: a byte of 0 or 1 times a byte is a byte, so one multiplication serves eight bytes.
    #[inline(always)]
    unsafe fn multiply(self, by: [u64; 8]) -> Self {
        let mut product = [0; 4];
        for (product, value) in product.iter_mut().zip(self.0) {
            for (bit, of_bit) in by.iter().enumerate() {
                *product ^= (value >> bit & LOWEST) * of_bit;
            }
        }
        Self(product)
    }
}
