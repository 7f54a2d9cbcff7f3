//! The response function of HighSpeed TCP (RFC 3649): [`Reno`](super::reno) below 38 packets; above, the larger the
//! window, the faster it grows and the less it is reduced.

use transport::congestion::{CongestionControl, ControllerFactory, Reno, RenoConfig, Response, Signal, WindowLimit};
use transport::settings::{IntegerRange, Setting, Settings, field};

/// Numbers of HighSpeed TCP; those of its response function are fixed (RFC 3649 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighSpeedConfig {
    /// Initial cwnd in packets: 10 (RFC 6928).
    pub initial: u32,
    /// Packets by which the window is inflated in fast recovery: 0, see [`RenoConfig::inflation`].
    pub inflation: u32,
}

impl Default for HighSpeedConfig {
    fn default() -> Self {
        Self { initial: 10, inflation: 0 }
    }
}

impl Settings for HighSpeedConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("initial", initial, IntegerRange(1, 1000)), field!("inflation", inflation, IntegerRange(0, 100))];
}

impl ControllerFactory for HighSpeedConfig {
    const NAME: &'static str = "highspeed";

    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        Box::new(highspeed(*self, max_packet))
    }
}

/// Reno with that response function and an infinite initial ssthresh.
pub(super) fn highspeed(config: HighSpeedConfig, max_packet: u32) -> Reno {
    let HighSpeedConfig { initial, inflation } = config;
    let (signal, limit) = (Signal::Loss, WindowLimit::None);
    let numbers = RenoConfig { initial, threshold: None, beta: 0.5, inflation, signal, limit };
    Reno::new("highspeed", numbers, Response { increase, decrease: Some(decrease) }, max_packet)
}

/// Low_Window and High_Window, in packets (RFC 3649 section 5).
const LOW_WINDOW: f64 = 38.0;
const HIGH_WINDOW: f64 = 83_000.0;
/// Low_P and High_P: the loss rates at these windows.
const LOW_LOSS: f64 = 1e-3;
const HIGH_LOSS: f64 = 1e-7;
/// High_Decrease: b(High_Window).
const HIGH_DECREASE: f64 = 0.1;
/// Above it the response function would be extrapolated, down to a decrease of 0.
const LARGEST: f64 = HIGH_WINDOW;

/// Returns the position of `window` between Low_Window and High_Window, on a logarithmic scale.
fn position(window: f64) -> f64 {
    (window.clamp(LOW_WINDOW, LARGEST) / LOW_WINDOW).ln() / (HIGH_WINDOW / LOW_WINDOW).ln()
}

/// Returns b(w), the share by which a congestion event reduces a window of `window` packets (RFC 3649 section 5).
pub(super) fn decrease(window: f64) -> f64 {
    (HIGH_DECREASE - 0.5) * position(window) + 0.5
}

/// Returns a(w), the packets that a round trip without congestion adds to a window of `window` packets (RFC 3649
/// section 5).
pub(super) fn increase(window: f64) -> f64 {
    if window <= LOW_WINDOW {
        return 1.0;
    }
    let decrease = decrease(window);
    let window = window.min(LARGEST);
    window * window * loss(window) * 2.0 * decrease / (2.0 - decrease)
}

/// Returns p(w), the loss rate at which the window averages `window` packets.
fn loss(window: f64) -> f64 {
    (position(window) * (HIGH_LOSS / LOW_LOSS).ln()).exp() * LOW_LOSS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Appendix B of RFC 3649: windows at which a(w) reaches a whole number, with their b(w).
    #[test]
    fn agrees_with_the_table_of_the_rfc() {
        for (window, whole, share) in
            [(38.0, 1.0, 0.50), (118.0, 2.0, 0.44), (221.0, 3.0, 0.41), (1058.0, 8.0, 0.33), (10_661.0, 30.0, 0.21)]
        {
            assert!((increase(window) / whole - 1.0).abs() < 0.025, "a({window}) is {}", increase(window));
            assert!((decrease(window) - share).abs() < 0.0055, "b({window}) is {}", decrease(window));
        }
        assert_eq!((increase(10.0), decrease(10.0)), (1.0, 0.5));
        assert_eq!(decrease(1e9), decrease(83_000.0));
        assert!((increase(1e9) / 72.0 - 1.0).abs() < 0.02, "{}", increase(1e9));
    }

    /// Section 5: p(w) = 0.078 / w^1.2, with both numbers rounded.
    #[test]
    fn agrees_with_the_response_function_of_the_rfc() {
        for window in [50.0_f64, 1000.0, 50_000.0] {
            assert!(
                (loss(window) * window.powf(1.2) / 0.078 - 1.0).abs() < 0.03,
                "{}",
                loss(window) * window.powf(1.2)
            );
        }
    }
}
