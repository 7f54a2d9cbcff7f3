//! Moving averages of samples (lt-tcp §3.1).

use super::samples::Samples;
use transport::recovery::{CONFIDENT, EstimatorFactory, INITIAL_LOSS, LossEstimator, SentPacket};
use transport::settings::{IntegerRange, Number, Setting, Settings, Share, field};

/// Numbers of the moving average with a fixed weight.
#[derive(Clone, Debug, PartialEq)]
pub struct EwmaConfig {
    /// Weight of a new sample: 0.6 (lt-tcp §3.1).
    pub alpha: f64,
    /// The estimate before the first sample: 5 % (chosen: lt-tcp leaves it open).
    pub initial: f64,
    /// Least number of packets in a sample: 64 (chosen: lt-tcp leaves it open).
    pub packets: u32,
}

impl Default for EwmaConfig {
    fn default() -> Self {
        Self { alpha: 0.6, initial: INITIAL_LOSS, packets: CONFIDENT }
    }
}

impl Settings for EwmaConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("alpha", alpha, Number(0.001, 1.0)),
        field!("initial", initial, Share(0.0, 0.99)),
        field!("packets", packets, IntegerRange(1, 100_000)),
    ];
}

impl EstimatorFactory for EwmaConfig {
    const NAME: &'static str = "ewma";

    fn build(&self, assumed: Option<f64>) -> Box<dyn LossEstimator> {
        Box::new(Average::new(Weight::Fixed(self.alpha), assumed.unwrap_or(self.initial), self.packets))
    }
}

/// Numbers of the moving average whose weight depends on the sample.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicEwmaConfig {
    /// The estimate before the first sample: 5 % (chosen: lt-tcp leaves it open).
    pub initial: f64,
    /// Least number of packets in a sample: 64 (chosen: lt-tcp leaves it open).
    pub packets: u32,
}

impl Default for DynamicEwmaConfig {
    fn default() -> Self {
        Self { initial: INITIAL_LOSS, packets: CONFIDENT }
    }
}

impl Settings for DynamicEwmaConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("initial", initial, Share(0.0, 0.99)), field!("packets", packets, IntegerRange(1, 100_000))];
}

impl EstimatorFactory for DynamicEwmaConfig {
    const NAME: &'static str = "dynamic-ewma";

    fn build(&self, assumed: Option<f64>) -> Box<dyn LossEstimator> {
        Box::new(Average::new(Weight::BySample, assumed.unwrap_or(self.initial), self.packets))
    }
}

/// The weight of a new sample.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weight {
    Fixed(f64),
    /// s / (r + s) for a sample s and an estimate r.
    BySample,
}

/// A moving average.
#[derive(Clone, Debug)]
pub(super) struct Average {
    weight: Weight,
    estimate: f64,
    samples: Samples,
}

impl Average {
    pub(super) const fn new(weight: Weight, initial: f64, packets: u32) -> Self {
        Self { weight, estimate: initial, samples: Samples::new(packets) }
    }
}

impl LossEstimator for Average {
    fn on_delivered(&mut self, count: usize) {
        self.samples.on_delivered(count);
    }

    fn on_lost(&mut self) {
        self.samples.on_lost();
    }

    fn on_spurious(&mut self, count: usize, _none_left: bool) {
        self.samples.on_spurious(count);
    }

    fn close_report(&mut self, _delivered: &[SentPacket], _lost: &[SentPacket]) {
        let Some(sample) = self.samples.take() else { return };
        let alpha = match self.weight {
            Weight::Fixed(alpha) => alpha,
            Weight::BySample if sample > 0.0 => sample / (self.estimate + sample),
            Weight::BySample => 0.0,
        };
        self.estimate = alpha * sample + (1.0 - alpha) * self.estimate;
    }

    fn loss(&self) -> f64 {
        self.estimate
    }
}
