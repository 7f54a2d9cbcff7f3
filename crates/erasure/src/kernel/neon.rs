//! NEON: a product with a constant is looked up by `tbl`, half a byte at a time.

use std::arch::aarch64::{uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8};

use super::halves::HALVES;
use super::vector::Vector;

/// 16 bytes. Its instructions are `neon`.
#[derive(Clone, Copy)]
pub(crate) struct Neon(uint8x16_t);

impl Vector for Neon {
    const BYTES: usize = 16;

    /// The products of the low and the high halves of a byte.
    type Factor = (uint8x16_t, uint8x16_t);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { vdupq_n_u8(0) })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees the instructions, and that 16 bytes may be read.
        Self(unsafe { vld1q_u8(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees the instructions, and that 16 bytes may be written.
        unsafe { vst1q_u8(to, self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { veorq_u8(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn factor(value: u8) -> Self::Factor {
        let halves = &HALVES[usize::from(value)];
        // SAFETY: the caller guarantees the instructions, and both arrays have 16 bytes.
        unsafe { (vld1q_u8(halves.low.as_ptr()), vld1q_u8(halves.high.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller guarantees the instructions.
        unsafe {
            let of_low = vqtbl1q_u8(low, vandq_u8(self.0, vdupq_n_u8(0x0f)));
            let of_high = vqtbl1q_u8(high, vshrq_n_u8::<4>(self.0));
            Self(veorq_u8(of_low, of_high))
        }
    }
}
