//! A loss rate estimator: the share of all packets so far.

use transport::recovery::{EstimatorFactory, INITIAL_LOSS, LossEstimator};
use transport::settings::{Setting, Settings, Share, field};

/// The estimate over the whole connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OverallConfig {
    /// The loss before anything is known.
    initial: f64,
}

impl Default for OverallConfig {
    fn default() -> Self {
        Self { initial: INITIAL_LOSS }
    }
}

impl Settings for OverallConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("initial", initial, Share(0.0, 0.99))];
}

impl EstimatorFactory for OverallConfig {
    const NAME: &'static str = "overall";

    fn build(&self, assumed: Option<f64>) -> Box<dyn LossEstimator> {
        Box::new(Overall { assumed: assumed.unwrap_or(self.initial), known: 0, lost: 0 })
    }
}

/// Counts of packets.
#[derive(Debug)]
struct Overall {
    assumed: f64,
    known: u64,
    lost: u64,
}

impl LossEstimator for Overall {
    fn on_delivered(&mut self, count: usize) {
        self.known += count as u64;
    }

    fn on_lost(&mut self) {
        self.known += 1;
        self.lost += 1;
    }

    fn on_spurious(&mut self, count: usize, _none_left: bool) {
        self.lost = self.lost.saturating_sub(count as u64);
    }

    fn loss(&self) -> f64 {
        if self.known == 0 { self.assumed } else { self.lost as f64 / self.known as f64 }
    }
}
