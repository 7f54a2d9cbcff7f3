//! The loss over the last packets, newer ones weighing more.

use super::{CONFIDENT, HALF_LIFE, INITIAL};
use crate::settings::{Number, Setting, Settings, Share, field};

/// Numbers of the estimate over the last packets.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketsConfig {
    /// Loss assumed until the path has shown its own, 0 to 0.99: 5 % (docs/design/recovery.md).
    pub initial: f64,
    /// After so many further packets an observation counts half: 2000. The memory is then about 2,900 packets: enough to tell
    /// 1 % from 2 % (29 against 58 losses), short enough to follow a path that changes within a transfer.
    pub half_life: f64,
}

impl Default for PacketsConfig {
    fn default() -> Self {
        Self { initial: INITIAL, half_life: HALF_LIFE }
    }
}

impl Settings for PacketsConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("initial", initial, Share(0.0, 0.99)), field!("half-life", half_life, Number(1.0, 1e9))];
}

/// Weighed counts.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    assumed: f64,
    half_life: f64,
    /// Packets whose fate is known, newer ones weighing more.
    known: f64,
    /// Of these, the lost ones.
    lost: f64,
}

impl Packets {
    pub(super) const fn new(assumed: f64, half_life: f64) -> Self {
        Self { assumed, half_life, known: 0.0, lost: 0.0 }
    }

    pub(super) fn on_delivered(&mut self, count: usize) {
        if count > 0 {
            let factor = (-(count as f64) / self.half_life).exp2();
            self.known = self.known * factor + count as f64;
            self.lost *= factor;
        }
    }

    pub(super) fn on_lost(&mut self) {
        self.on_delivered(1);
        self.lost += 1.0;
    }

    pub(super) fn on_spurious(&mut self, count: usize, none_left: bool) {
        // Their weight has decayed since; the difference is at most the share of a half-life they were late.
        self.lost = if none_left { 0.0 } else { (self.lost - count as f64).max(0.0) };
    }

    /// Below [`CONFIDENT`] packets the assumption still counts, with the weight of the packets that are missing.
    pub(super) fn loss(&self) -> f64 {
        let missing = (f64::from(CONFIDENT) - self.known).max(0.0);
        (self.lost + missing * self.assumed) / (self.known + missing)
    }
}
