//! An autoregressive model: the next sample is a constant plus a weighted sum of the last ones, with weights fitted
//! online by recursive least squares. lt-tcp §5 proposes the model as future work and leaves everything else open.

use super::samples::Samples;
use std::collections::VecDeque;
use transport::recovery::{CONFIDENT, EstimatorFactory, INITIAL_LOSS, LossEstimator, SentPacket};
use transport::settings::{IntegerRange, Setting, Settings, Share, field};

const MAX_ORDER: usize = 8;
const TERMS: usize = MAX_ORDER + 1;

/// The forgetting factor: a memory of about 500 samples.
const FORGETTING: f64 = 0.998;

/// The initial variance of the weights, which start as the mean of the last samples: how fast samples change them.
const DOUBT: f64 = 10.0;

/// Bound on the sum of the variances: equal samples carry no information, and forgetting would let the variances grow
/// without limit.
const MOST_DOUBT: f64 = 1e4;

/// Numbers of the autoregressive model.
#[derive(Clone, Debug, PartialEq)]
pub struct AutoregressiveConfig {
    /// Order of the model, in samples: 4.
    pub order: u32,
    /// The estimate before the first sample: 5 %.
    pub initial: f64,
    /// Least number of packets in a sample: 64.
    pub packets: u32,
}

impl Default for AutoregressiveConfig {
    fn default() -> Self {
        Self { order: 4, initial: INITIAL_LOSS, packets: CONFIDENT }
    }
}

impl Settings for AutoregressiveConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("order", order, IntegerRange(1, MAX_ORDER as u64)),
        field!("initial", initial, Share(0.0, 0.99)),
        field!("packets", packets, IntegerRange(1, 100_000)),
    ];
}

impl EstimatorFactory for AutoregressiveConfig {
    const NAME: &'static str = "autoregressive";

    fn build(&self, assumed: Option<f64>) -> Box<dyn LossEstimator> {
        Box::new(Autoregressive::new(self, assumed.unwrap_or(self.initial)))
    }
}

/// The model and its weights. Term 0 is the constant.
#[derive(Clone, Debug)]
pub(super) struct Autoregressive {
    terms: usize,
    weights: [f64; TERMS],
    /// Covariance of the weights, divided by the variance of the noise.
    covariance: [[f64; TERMS]; TERMS],
    /// The last samples, newest first.
    last: VecDeque<f64>,
    prediction: f64,
    samples: Samples,
}

impl Autoregressive {
    pub(super) fn new(config: &AutoregressiveConfig, initial: f64) -> Self {
        let terms = (config.order as usize).clamp(1, MAX_ORDER) + 1;
        let mut weights = [0.0; TERMS];
        weights[1..terms].fill(1.0 / (terms - 1) as f64);
        let mut covariance = [[0.0; TERMS]; TERMS];
        (0..terms).for_each(|i| covariance[i][i] = DOUBT);
        let last = vec![initial; terms - 1].into();
        Self { terms, weights, covariance, last, prediction: initial, samples: Samples::new(config.packets) }
    }

    /// Returns the factors of the weights for the next sample.
    fn inputs(&self) -> [f64; TERMS] {
        let mut inputs = [0.0; TERMS];
        inputs[0] = 1.0;
        inputs[1..].iter_mut().zip(&self.last).for_each(|(input, last)| *input = *last);
        inputs
    }

    fn predict(&self) -> f64 {
        let sum: f64 = self.inputs().iter().zip(&self.weights).map(|(input, weight)| input * weight).sum();
        sum.clamp(0.0, 1.0)
    }

    /// One step of recursive least squares: gain P x / (f + x' P x), weights + gain x error, covariance (P - gain x' P)
    /// / f.
    fn fit(&mut self, sample: f64) {
        let (inputs, terms) = (self.inputs(), self.terms);
        let mut doubt = [0.0; TERMS];
        for (doubt, row) in doubt.iter_mut().zip(&self.covariance) {
            *doubt = row.iter().zip(&inputs).map(|(p, x)| p * x).sum();
        }
        let spread: f64 = doubt.iter().zip(&inputs).map(|(d, x)| d * x).sum();
        let predicted: f64 = inputs.iter().zip(&self.weights).map(|(x, w)| x * w).sum();
        let total: f64 = (0..terms).map(|i| self.covariance[i][i]).sum();
        let forgetting = if total < MOST_DOUBT { FORGETTING } else { 1.0 };
        let scale = 1.0 / (forgetting + spread);
        for i in 0..terms {
            self.weights[i] += doubt[i] * scale * (sample - predicted);
            for j in 0..terms {
                self.covariance[i][j] = (self.covariance[i][j] - doubt[i] * doubt[j] * scale) / forgetting;
            }
        }
    }
}

impl LossEstimator for Autoregressive {
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
        if let Some(sample) = self.samples.take() {
            self.fit(sample);
            self.last.pop_back();
            self.last.push_front(sample);
            self.prediction = self.predict();
        }
    }

    fn loss(&self) -> f64 {
        self.prediction
    }
}
