//! AVX2: a product with a constant is looked up by `vpshufb`, half a byte at a time.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi64, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::halves::HALVES;
use super::vector::Vector;

/// 32 bytes. Its instructions are `avx2`.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256i);

impl Vector for Avx2 {
    const BYTES: usize = 32;

    /// The products of the low and the high halves of a byte, in each lane.
    type Factor = (__m256i, __m256i);

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { _mm256_setzero_si256() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees the instructions, and that 32 bytes may be read.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees the instructions, and that 32 bytes may be written.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn factor(value: u8) -> Self::Factor {
        let halves = &HALVES[usize::from(value)];
        // SAFETY: the caller guarantees the instructions, and both arrays have 16 bytes.
        unsafe {
            let low = _mm_loadu_si128(halves.low.as_ptr().cast());
            let high = _mm_loadu_si128(halves.high.as_ptr().cast());
            (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high))
        }
    }

    #[inline(always)]
    unsafe fn multiply(self, (low, high): Self::Factor) -> Self {
        // SAFETY: the caller guarantees the instructions.
        unsafe {
            let half = _mm256_set1_epi8(0x0f);
            let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(self.0, half));
            let of_high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi64::<4>(self.0), half));
            Self(_mm256_xor_si256(of_low, of_high))
        }
    }
}
