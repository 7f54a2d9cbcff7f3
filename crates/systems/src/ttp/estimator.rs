//! The average of the two losses that ttp §II-C defines.

use super::loss_window::LossWindow;
use transport::recovery::{CONFIDENT, EstimatorFactory, LossEstimator, SentPacket};
use transport::settings::{IntegerRange, Number, Setting, Settings, Share, field};

/// Numbers of ttp's estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct TtpEstimator {
    /// Weight of the perceived loss against the link loss: 0.5 (chosen: ttp §II-C leaves it open).
    pub weight: f64,
    /// The loss before 64 packets are known: 50 % (ttp §III-A; 20 % for figure 21).
    pub initial: f64,
    /// Packets over which the perceived loss is taken: 1024 (ttp §III-A).
    pub packets: u32,
}

impl Default for TtpEstimator {
    fn default() -> Self {
        Self { weight: 0.5, initial: 0.5, packets: 1024 }
    }
}

impl Settings for TtpEstimator {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("weight", weight, Number(0.0, 1.0)),
        field!("initial", initial, Share(0.0, 0.99)),
        field!("packets", packets, IntegerRange(1, 65_536)),
    ];
}

impl EstimatorFactory for TtpEstimator {
    const NAME: &'static str = "ttp";

    fn build(&self, assumed: Option<f64>) -> Box<dyn LossEstimator> {
        Box::new(Ttp::new(self, assumed.unwrap_or(self.initial)))
    }
}

/// The estimate.
#[derive(Clone, Debug)]
pub(super) struct Ttp {
    weight: f64,
    initial: f64,
    fates: LossWindow,
}

impl Ttp {
    pub(super) const fn new(config: &TtpEstimator, initial: f64) -> Self {
        Self { weight: config.weight, initial, fates: LossWindow::new(config.packets) }
    }
}

impl LossEstimator for Ttp {
    fn on_spurious(&mut self, count: usize, _none_left: bool) {
        self.fates.on_spurious(count);
    }

    fn close_report(&mut self, delivered: &[SentPacket], lost: &[SentPacket]) {
        self.fates.on_report(delivered, lost, |_| {});
    }

    fn loss(&self) -> f64 {
        if self.fates.known() < u64::from(CONFIDENT) {
            return self.initial;
        }
        (self.weight * self.fates.perceived() + (1.0 - self.weight) * self.fates.link()).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_total_and_recent_loss() {
        let mut ttp = Ttp::new(&TtpEstimator { packets: 100, weight: 0.25, ..TtpEstimator::default() }, 0.5);
        assert_eq!(ttp.loss(), 0.5);
        (0..20).for_each(|_| ttp.fates.on_lost());
        ttp.fates.on_delivered(80);
        assert_eq!((ttp.fates.perceived(), ttp.fates.link()), (0.25, 0.2));
        assert!((ttp.loss() - 0.2125).abs() < 1e-12, "{}", ttp.loss());
        ttp.fates.on_delivered(100);
        assert_eq!((ttp.fates.perceived(), ttp.fates.link()), (0.0, 0.1));
        (0..5).for_each(|_| ttp.fates.on_lost());
        ttp.fates.on_spurious(4);
        assert_eq!(ttp.fates.perceived(), 1.0 / 99.0);
        (0..200).for_each(|_| ttp.fates.on_lost());
        assert_eq!((ttp.fates.perceived(), ttp.loss()), (100.0, 1.0), "a share all the same");
    }
}
