//! Token buckets.

use crate::Rate;

/// What may be sent at once, saved up at a rate. Counted in the work it takes, so that no fraction is lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    tokens: u128,
}

impl Bucket {
    /// A bucket that holds `bytes`.
    pub(crate) fn full(bytes: u64) -> Self {
        Self { tokens: Rate::work(bytes) }
    }

    /// Adds what comes in `picos` at `rate`; no more than `most` bytes stay.
    pub(crate) fn fill(&mut self, picos: u64, rate: Rate, most: u64) {
        let more = u128::from(picos) * u128::from(rate.bits_per_second());
        self.tokens = self.tokens.saturating_add(more);
        self.limit(most);
    }

    /// Pours away what is above `most` bytes.
    pub(crate) fn limit(&mut self, most: u64) {
        self.tokens = self.tokens.min(Rate::work(most));
    }

    /// Takes `bytes` if they are there.
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        let left = self.tokens.checked_sub(Rate::work(bytes.into()));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    /// Takes what there is, at most `work`, and says how much that was.
    pub(crate) fn take_some(&mut self, work: u128) -> u128 {
        let taken = self.tokens.min(work);
        self.tokens -= taken;
        taken
    }
}
