//! A random delay of each packet's own, which does not keep order.

use std::time::Duration;

use crate::random::{unit, up_to};
use crate::time::picos;

/// How much later each packet arrives, whatever the packets around it do: later ones overtake it, and it overtakes
/// earlier ones. The default is no delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorderingDelay {
    /// Up to this long, uniform.
    Uniform(Duration),
    /// This long on average, exponential: most packets are hardly delayed, a few for many times the mean.
    Exponential(Duration),
}

impl Default for ReorderingDelay {
    fn default() -> Self {
        Self::Uniform(Duration::ZERO)
    }
}

impl ReorderingDelay {
    /// Returns whether it delays nothing.
    pub fn is_none(self) -> bool {
        let (Self::Uniform(time) | Self::Exponential(time)) = self;
        time.is_zero()
    }

    /// Returns the delay of a packet in picoseconds.
    pub(crate) fn picos(self, draw: u64) -> u64 {
        match self {
            Self::Uniform(most) => up_to(picos(most), draw),
            // A draw is below 1, and the smallest step leaves 2^-53: at most 37 times the mean.
            Self::Exponential(mean) => (picos(mean) as f64 * -(1.0 - unit(draw)).ln()) as u64,
        }
    }
}
