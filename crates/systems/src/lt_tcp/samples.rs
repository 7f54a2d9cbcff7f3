//! Samples of the loss.

/// Counts packets until there are enough for a sample of the loss (lt-tcp §3.3). The document leaves the time of a
/// sample open: it is the end of a report with at least `packets` packets since the last sample, so that a small window
/// does not give samples of 0 and 1.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    packets: u32,
    known: u32,
    lost: u32,
}

impl Samples {
    pub(super) const fn new(packets: u32) -> Self {
        Self { packets, known: 0, lost: 0 }
    }

    pub(super) fn on_delivered(&mut self, count: usize) {
        self.known = self.known.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
    }

    pub(super) const fn on_lost(&mut self) {
        self.known = self.known.saturating_add(1);
        self.lost = self.lost.saturating_add(1);
    }

    /// Handles spurious losses: those that a sample has counted already cannot be taken back (lt-tcp §3.3).
    pub(super) fn on_spurious(&mut self, count: usize) {
        self.lost = self.lost.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// Returns the sample, if one is due.
    pub(super) fn take(&mut self) -> Option<f64> {
        if self.known < self.packets {
            return None;
        }
        let sample = f64::from(self.lost) / f64::from(self.known);
        (self.known, self.lost) = (0, 0);
        Some(sample)
    }
}
