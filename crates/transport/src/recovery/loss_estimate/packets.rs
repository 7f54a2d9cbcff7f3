//! The loss over the last packets, with exponentially decreasing weight.

use super::{CONFIDENT, HALF_LIFE, INITIAL_LOSS, LossEstimator};
use crate::settings::{Number, Setting, Settings, Share, field};

/// Numbers of the estimate over the last packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketsConfig {
    /// Loss assumed until it is measured, 0 to 0.99: 5 % (docs/design/recovery.md).
    pub initial: f64,
    /// Packets after which an observation has half its weight: 2000. The memory is then about 2,900 packets: enough to
    /// distinguish 1 % from 2 % (29 against 58 losses), and short enough to follow a path that changes during a
    /// transfer.
    pub half_life: f64,
}

impl Default for PacketsConfig {
    fn default() -> Self {
        Self { initial: INITIAL_LOSS, half_life: HALF_LIFE }
    }
}

impl Settings for PacketsConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("initial", initial, Share(0.0, 0.99)), field!("half-life", half_life, Number(1.0, 1e9))];
}

/// Weighted counts.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    assumed: f64,
    half_life: f64,
    /// Weight of the packets delivered or lost.
    known: f64,
    /// Weight of the lost ones.
    lost: f64,
}

impl Packets {
    pub(super) const fn new(assumed: f64, half_life: f64) -> Self {
        Self { assumed, half_life, known: 0.0, lost: 0.0 }
    }
}

impl LossEstimator for Packets {
    fn on_delivered(&mut self, count: usize) {
        if count > 0 {
            let factor = (-(count as f64) / self.half_life).exp2();
            self.known = self.known * factor + count as f64;
            self.lost *= factor;
        }
    }

    fn on_lost(&mut self) {
        self.on_delivered(1);
        self.lost += 1.0;
    }

    fn on_spurious(&mut self, count: usize, none_left: bool) {
        // Their weight has decayed since: an error of at most the share of a half-life by which they were late.
        self.lost = if none_left { 0.0 } else { (self.lost - count as f64).max(0.0) };
    }

    /// Returns the loss. Below [`CONFIDENT`] packets the assumption replaces the missing ones.
    fn loss(&self) -> f64 {
        let missing = (f64::from(CONFIDENT) - self.known).max(0.0);
        (self.lost + missing * self.assumed) / (self.known + missing)
    }
    fn zero_without_loss(&self) -> bool {
        false
    }
}
