//! Token buckets.

use crate::Rate;
use crate::rate::BIT_PICOS_PER_BYTE;

/// What may be sent at once, saved up at a rate. Counted in bits times picoseconds a second, so that no fraction is lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    tokens: u128,
}

impl Bucket {
    /// A bucket that holds `bytes`.
    pub(crate) fn full(bytes: u64) -> Self {
        Self { tokens: work(bytes) }
    }

    /// Adds what comes in `picos` at `rate`; no more than `most` bytes stay.
    pub(crate) fn fill(&mut self, picos: u64, rate: Rate, most: u64) {
        let more = u128::from(picos) * u128::from(rate.bits_per_second());
        self.tokens = self.tokens.saturating_add(more);
        self.limit(most);
    }

    /// Pours away what is above `most` bytes.
    pub(crate) fn limit(&mut self, most: u64) {
        self.tokens = self.tokens.min(work(most));
    }

    /// Takes `bytes` if they are there.
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        let left = self.tokens.checked_sub(work(bytes.into()));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    /// Takes what there is for `bytes`, and says what work is left.
    pub(crate) fn take_some(&mut self, bytes: u32) -> u128 {
        let work = work(bytes.into());
        let taken = self.tokens.min(work);
        self.tokens -= taken;
        work - taken
    }
}

fn work(bytes: u64) -> u128 {
    u128::from(bytes) * u128::from(BIT_PICOS_PER_BYTE)
}
