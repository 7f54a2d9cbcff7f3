//! Profiles: named sets of choices, as values and as text. Start reading here: a [`Profile`] names every choice the
//! engine makes.
//!
//! A profile is local to the sender of data. Only plans, the symbol size and the requested feedback are on the wire, so
//! that the two ends of a connection may have different profiles.

mod auto;
mod feedback;
mod keys;
mod registry;
mod show;
mod symbols;

pub use keys::{Key, ProfileError};
pub use registry::{AlgorithmRegistry, NameError};
pub use show::{Difference, SettingRow};
pub use symbols::SymbolSizes;

use crate::flow::{BlockSizing, ScheduleConfig, StreamCoding, WindowCoding};
use crate::recovery::{CongestionConfig, FixedRateConfig, RecoveryConfig};
use crate::time::Rate;
use crate::wire::FeedbackConfig;
use erasure::WindowCode;

/// How data is sent: code and block sizing, schedule, congestion control and loss detection, feedback.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The named profile that it is based on, which documents the sources of the values they share.
    pub base: &'static str,
    /// Symbol sizes; a flow takes the largest that the path is known to carry.
    pub symbols: SymbolSizes,
    /// How objects are cut into blocks and coded.
    pub blocks: BlockSizing,
    /// How streams are coded.
    pub streams: StreamCoding,
    /// Which symbol to send next.
    pub schedule: ScheduleConfig,
    /// Congestion control, loss detection, timeouts, the loss estimate.
    pub recovery: RecoveryConfig,
    /// The feedback requested from the receiver.
    pub feedback: FeedbackConfig,
    /// Limits the rate, in IP bits per second, whatever the controller.
    pub limit: Option<Rate>,
    /// The names by which it can choose the program's own algorithms.
    pub registry: AlgorithmRegistry,
}

/// The source of a number: a section of a document, or the reason for a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Citation {
    /// The key, or `KEY.NUMBER`. A key alone is the source of all its numbers without an entry of their own.
    pub key: &'static str,
    /// A section of a document in `docs/REFERENCES.md` (`arq §2.1`, `RFC 9438 §4.6`), a design note
    /// (`docs/design/feedback.md`), or `chosen: ` and the reason.
    pub section: &'static str,
}

/// A profile that a program can name.
#[derive(Clone, Copy)]
pub struct NamedProfile {
    /// Its name: lower-case letters, digits and hyphens.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Makes it. [`AlgorithmRegistry::profile`] completes it with the registry.
    pub make: fn() -> Profile,
    /// The source of each of its numbers.
    pub sources: &'static [Citation],
}

impl std::fmt::Debug for NamedProfile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The profile of every registry.
const AUTO: NamedProfile = NamedProfile {
    name: "auto",
    about: "source first, lost symbols again, repair in the last round trips",
    make: Profile::auto,
    sources: auto::SOURCES,
};

impl Profile {
    /// Returns the same profile with the controller `fixed-rate`: it sends at exactly `rate`, whatever the losses, unless
    /// the path carries far less ([`FixedRateConfig::insist`]).
    #[must_use]
    pub fn with_fixed_rate(mut self, rate: Rate) -> Self {
        let config = match self.recovery.congestion {
            CongestionConfig::FixedRate(config) => config,
            // The published systems have no other controller to fall back to.
            _ => FixedRateConfig { insist: self.base != "auto", ..FixedRateConfig::default() },
        };
        self.recovery.congestion = CongestionConfig::FixedRate(FixedRateConfig { rate, ..config });
        self
    }

    /// Returns the same profile with a limit on its rate.
    #[must_use]
    pub fn with_limit(mut self, rate: Rate) -> Self {
        self.limit = Some(rate);
        self
    }

    /// Returns the same profile with a window code for streams.
    #[must_use]
    pub fn with_window_code(mut self, code: WindowCode) -> Self {
        self.streams = StreamCoding::Window(WindowCoding { code, ..WindowCoding::default() });
        self
    }

    /// Returns the rate of a profile with the controller `fixed-rate`.
    pub const fn fixed_rate(&self) -> Option<Rate> {
        match self.recovery.congestion {
            CongestionConfig::FixedRate(config) => Some(config.rate),
            _ => None,
        }
    }

    /// Returns the rate at which a profile with the controller `auto` begins, if set.
    pub const fn min_rate(&self) -> Option<Rate> {
        match self.recovery.congestion {
            CongestionConfig::Auto(config) => config.min_rate,
            _ => None,
        }
    }
}
