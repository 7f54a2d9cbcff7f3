//! What became of the last packets, and of all: the two losses of ttp (§II-B), which its rate and its padding follow.

use std::collections::VecDeque;

/// Packets whose fate is known.
#[derive(Clone, Debug)]
pub(super) struct LossWindow {
    /// Of the last so many it is kept.
    kept: usize,
    /// True for those lost.
    last: VecDeque<bool>,
    /// The lost ones of these.
    missing: u64,
    known: u64,
    lost: u64,
}

impl LossWindow {
    /// Nothing is known; the fates of the last `kept` packets will be.
    pub(super) const fn new(kept: u32) -> Self {
        Self { kept: kept as usize, last: VecDeque::new(), missing: 0, known: 0, lost: 0 }
    }

    /// `count` packets arrived.
    pub(super) fn on_delivered(&mut self, count: usize) {
        (0..count.min(self.kept)).for_each(|_| self.push(false));
        self.known += count as u64;
    }

    /// A packet was lost.
    pub(super) fn on_lost(&mut self) {
        self.push(true);
        self.known += 1;
        self.lost += 1;
    }

    fn push(&mut self, lost: bool) {
        if self.last.len() >= self.kept {
            self.missing -= u64::from(self.last.pop_front() == Some(true));
        }
        self.last.push_back(lost);
        self.missing += u64::from(lost);
    }

    /// `count` packets called lost arrived after all: losses are taken back from the newest on.
    pub(super) fn on_spurious(&mut self, count: usize) {
        self.lost = self.lost.saturating_sub(count as u64);
        let losses = self.last.iter_mut().rev().filter(|lost| **lost).take(count);
        self.missing -= losses.map(|lost| *lost = false).count() as u64;
    }

    /// Packets whose fate is known, in all.
    pub(super) const fn known(&self) -> u64 {
        self.known
    }

    /// Short-term: missing to received, over the last packets. Where nothing was received it is 1 for each missing packet.
    pub(super) fn perceived(&self) -> f64 {
        self.missing as f64 / (self.last.len() as u64 - self.missing).max(1) as f64
    }

    /// Long-term: lost to transmitted, over all.
    pub(super) fn link(&self) -> f64 {
        self.lost as f64 / self.known.max(1) as f64
    }
}
