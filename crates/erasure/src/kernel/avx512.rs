//! AVX-512 with GFNI. A product with a constant is linear over GF(2), so it is one `vgf2p8affineqb` with the constant's
//! 8 x 8 matrix; the field of `vgf2p8mulb` is another one (0x11b).

use std::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_storeu_si512, _mm512_xor_si512,
};

use super::vector::Vector;
use crate::field;

/// 64 bytes. Its instructions are `avx512f`, `avx512bw`, `avx512vl` and `gfni`.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512i);

/// The matrix of each factor: byte `7 - i` selects the bits of a byte that add up to bit `i` of the product.
static MATRICES: [u64; 256] = {
    let mut matrices = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let columns = field::times_powers_of_two(factor as u8);
        let mut row = 0;
        while row < 8 {
            let mut column = 0;
            while column < 8 {
                let bit = (columns[column] >> row & 1) as u64;
                matrices[factor] |= bit << (8 * (7 - row) + column);
                column += 1;
            }
            row += 1;
        }
        factor += 1;
    }
    matrices
};

impl Vector for Avx512 {
    const BYTES: usize = 64;

    type Factor = __m512i;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { _mm512_setzero_si512() })
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller guarantees the instructions, and that 64 bytes may be read.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller guarantees the instructions, and that 64 bytes may be written.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn factor(value: u8) -> __m512i {
        // SAFETY: the caller guarantees the instructions.
        unsafe { _mm512_set1_epi64(MATRICES[usize::from(value)].cast_signed()) }
    }

    #[inline(always)]
    unsafe fn multiply(self, by: __m512i) -> Self {
        // SAFETY: the caller guarantees the instructions.
        Self(unsafe { _mm512_gf2p8affine_epi64_epi8::<0>(self.0, by) })
    }
}
