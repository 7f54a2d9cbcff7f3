//! Whether a window is paced.

use crate::settings::{Number, Setting, Settings, choices, field};

/// How the packets of a window are spread over a round trip. A rate that the controller sets, and a limit of the user,
/// hold with either.
#[derive(Clone, Debug, PartialEq)]
pub enum PacingConfig {
    /// Somewhat faster than the average rate of the window (RFC 9002 section 7.7).
    Window(WindowPacing),
    /// Not at all: a packet leaves as soon as the window has room, so that acknowledgements are the clock, as in TCP and
    /// in the documents.
    Off,
}

choices! { "pacing", PacingConfig { "window" => Window(WindowPacing), "off" => Off } }

impl Default for PacingConfig {
    fn default() -> Self {
        Self::Window(WindowPacing::default())
    }
}

/// The ratio of the pacing rate to the window's average rate.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowPacing {
    /// 1.25, so that the window and not the pacer is the limit (RFC 9002 section 7.7).
    pub gain: f64,
    /// In slow start: 2, since the window doubles in each round trip, and the rate with it (docs/design/pacing.md).
    pub slow_start: f64,
}

impl Default for WindowPacing {
    fn default() -> Self {
        Self { gain: 1.25, slow_start: 2.0 }
    }
}

impl Settings for WindowPacing {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("gain", gain, Number(1.0, 100.0)), field!("slow-start", slow_start, Number(1.0, 100.0))];
}

impl PacingConfig {
    /// Returns the ratio of the pacing rate to the window's average rate; `None` if the window is not paced.
    pub(super) const fn gain(&self, in_slow_start: bool) -> Option<f64> {
        match self {
            Self::Window(pacing) if in_slow_start => Some(pacing.slow_start),
            Self::Window(pacing) => Some(pacing.gain),
            Self::Off => None,
        }
    }
}
