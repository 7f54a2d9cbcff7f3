//! Token buckets.

use crate::Rate;

/// The bytes that may be sent at once, accumulated at a rate. Counted in units of work, so that no fraction is lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    tokens: u128,
}

impl Bucket {
    /// Creates a bucket that holds `bytes`.
    pub(crate) fn full(bytes: u64) -> Self {
        Self { tokens: Rate::work(bytes) }
    }

    /// Adds the bytes of `picos` at `rate`, up to `most` bytes.
    pub(crate) fn fill(&mut self, picos: u64, rate: Rate, most: u64) {
        let more = u128::from(picos) * u128::from(rate.bits_per_second());
        self.tokens = self.tokens.saturating_add(more);
        self.limit(most);
    }

    /// Discards the excess over `most` bytes.
    pub(crate) fn limit(&mut self, most: u64) {
        self.tokens = self.tokens.min(Rate::work(most));
    }

    /// Takes `bytes` if they are available; returns whether they are.
    pub(crate) fn take(&mut self, bytes: u32) -> bool {
        let left = self.tokens.checked_sub(Rate::work(bytes.into()));
        self.tokens = left.unwrap_or(self.tokens);
        left.is_some()
    }

    /// Takes the available bytes, at most `work`, and returns their number.
    pub(crate) fn take_some(&mut self, work: u128) -> u128 {
        let taken = self.tokens.min(work);
        self.tokens -= taken;
        taken
    }
}
