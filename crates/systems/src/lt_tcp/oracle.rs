//! A given loss, whatever is lost (lt-tcp §2.3).

use transport::recovery::{EstimatorFactory, INITIAL_LOSS, LossEstimator};
use transport::settings::{Setting, Settings, Share, field};

/// The number of the oracle.
#[derive(Clone, Debug, PartialEq)]
pub struct OracleConfig {
    /// The share of lost packets, 0 to 0.99: 5 %.
    pub loss: f64,
}

impl Default for OracleConfig {
    fn default() -> Self {
        Self { loss: INITIAL_LOSS }
    }
}

impl Settings for OracleConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!(bare "loss", loss, Share(0.0, 0.99))];
}

impl EstimatorFactory for OracleConfig {
    const NAME: &'static str = "oracle";

    fn build(&self, _assumed: Option<f64>) -> Box<dyn LossEstimator> {
        Box::new(Oracle(self.loss))
    }
}

/// The given loss.
#[derive(Debug)]
struct Oracle(f64);

impl LossEstimator for Oracle {
    fn loss(&self) -> f64 {
        self.0
    }

    fn zero_without_loss(&self) -> bool {
        false
    }
}
