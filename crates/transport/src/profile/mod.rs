//! Profiles: named sets of choices, as values and as text. Start reading here: a [`Profile`] names every choice the
//! engine makes.
//!
//! A profile is local to the sender of data. Only plans, the symbol size and the requested feedback are on the wire, so
//! that the two ends of a connection may have different profiles.

mod arq;
mod auto;
mod feedback;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod keys;
mod lt_tcp;
mod names;
mod rc_udp;
mod show;
mod symbols;
mod tornado_transfer;
mod ttp;

pub use keys::{Key, ProfileError};
pub use names::{AlgorithmRegistry, NameError};
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
    /// The built-in profile that it is based on, which documents the sources of the values they share.
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
    pub names: AlgorithmRegistry,
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

/// A built-in profile.
struct BuiltInProfile {
    name: &'static str,
    /// A description in one line.
    about: &'static str,
    make: fn() -> Profile,
    sources: &'static [Citation],
}

/// Every profile, the default first.
const ENTRIES: [BuiltInProfile; 6] = [
    BuiltInProfile {
        name: "auto",
        about: "source first, lost symbols again, repair in the last round trips",
        make: Profile::auto,
        sources: auto::SOURCES,
    },
    BuiltInProfile {
        name: "arq",
        about: "uncoded sliding-window ARQ with congestion control, as TCP does it",
        make: Profile::arq,
        sources: arq::SOURCES,
    },
    BuiltInProfile {
        name: "rc-udp",
        about: "one block at a time, coded symbols at a fixed rate until it is acknowledged",
        make: Profile::rc_udp,
        sources: rc_udp::SOURCES,
    },
    BuiltInProfile {
        name: "tornado-transfer",
        about: "RaptorQ: source interleaved with repair of earlier blocks, then repair of each block in turn",
        make: Profile::tornado_transfer,
        sources: tornado_transfer::SOURCES,
    },
    BuiltInProfile {
        name: "lt-tcp",
        about: "MDS code: proactive repair by the loss estimate, reactive repair after heavier loss, window by ECN marks",
        make: Profile::lt_tcp,
        sources: lt_tcp::SOURCES,
    },
    BuiltInProfile {
        name: "ttp",
        about: "Tornado code: chunks padded for the average loss, each encoded while the one before is sent",
        make: Profile::ttp,
        sources: ttp::SOURCES,
    },
];

impl Profile {
    /// Names of the built-in profiles.
    pub const NAMES: [&'static str; ENTRIES.len()] = {
        let mut names = [""; ENTRIES.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = ENTRIES[at].name;
            at += 1;
        }
        names
    };

    /// Returns the built-in profile of this name.
    ///
    /// # Errors
    /// [`ProfileError::UnknownName`] lists the known names.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let entry = ENTRIES.iter().find(|entry| entry.name == name);
        entry.map(|entry| (entry.make)()).ok_or_else(|| ProfileError::UnknownName(name.into()))
    }

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

#[cfg(test)]
mod tests;
