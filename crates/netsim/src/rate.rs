//! Data rates, and the exact time a packet takes at one.

/// Bits of IP data per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// Picoseconds per second, times bits per byte.
const WORK_OF_A_BYTE: u64 = 8_000_000_000_000;

impl Rate {
    /// Creates a rate of `bits` bits per second. Zero is refused later, by [`crate::LinkConfig::check`].
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// Creates a rate of `megabits` times 10^6 bits per second; saturates at the largest rate.
    pub const fn from_megabits_per_second(megabits: u64) -> Self {
        Self(megabits.saturating_mul(1_000_000))
    }

    /// Returns the bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the work of sending `bytes`: in a second a rate does 10^12 times its bits of it.
    pub(crate) fn work(bytes: u64) -> u128 {
        u128::from(bytes) * u128::from(WORK_OF_A_BYTE)
    }

    /// Returns the picoseconds that `work` takes. `remainder` carries the fraction from one packet to the next, so that
    /// a million packets take exactly as long as their sum.
    pub(crate) fn picos_for_work(self, work: u128, remainder: &mut u64) -> u64 {
        let rate = self.0.max(1);
        // 64 bits are enough for a packet of up to 2 MB, and 128-bit division is an order of magnitude slower.
        if let Some(work) = u64::try_from(work).ok().and_then(|work| work.checked_add(*remainder)) {
            *remainder = work % rate;
            return work / rate;
        }
        let work = work + u128::from(*remainder);
        *remainder = u64::try_from(work % u128::from(rate)).expect("a remainder is below its 64-bit divisor");
        u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_arithmetic_agree() {
        for rate in [1, 7, 999_999_937, 100_000_000_000, u64::MAX] {
            for bytes in [1_u32, 1500, 2_305_842, 2_305_844, u32::MAX] {
                let mut remainder = rate - 1;
                let work = u128::from(bytes) * 8_000_000_000_000 + u128::from(remainder);
                let picos = Rate(rate).picos_for_work(Rate::work(bytes.into()), &mut remainder);
                let exact = work / u128::from(rate);
                assert_eq!(u128::from(picos), exact.min(u128::from(u64::MAX)), "{bytes} bytes at {rate} bit/s");
                assert_eq!(u128::from(remainder), work % u128::from(rate), "{bytes} bytes at {rate} bit/s");
            }
        }
    }
}
