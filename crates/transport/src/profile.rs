//! Profiles: named, printable sets of choices. Read this file first: it names every choice the engine makes.
//!
//! A profile is a local matter of who sends data. Only plans, the symbol size and the choice of feedback cross the wire, so
//! the two ends of a connection may run different ones.

use crate::flow::{BlockSizing, ScheduleConfig, StreamCoding, WindowedConfig};
use crate::recovery::{CongestionConfig, CubicConfig, RecoveryConfig};
use crate::time::Rate;
use crate::wire::{FeedbackChoice, FeedbackTiming};
use erasure::{BlockCode, WindowCode};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How data is sent: code and block sizing, schedule, congestion control and loss detection, feedback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Symbol sizes in bytes, largest first; a flow takes the largest that the path is known to carry.
    pub symbol_sizes: Vec<u16>,
    /// How objects are cut into blocks and coded.
    pub blocks: BlockSizing,
    /// What codes streams.
    pub streams: StreamCoding,
    /// Which symbol goes next.
    pub schedule: ScheduleConfig,
    /// Congestion control, loss detection, the loss assumed at first.
    pub recovery: RecoveryConfig,
    /// The feedback wanted from the receiver.
    pub feedback: FeedbackProfile,
    /// Caps whatever controls, in IP bits per second.
    pub limit: Option<Rate>,
}

/// The feedback a sender wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackProfile {
    /// Feedbacks per round trip; 0: one for every batch of packets that arrives.
    pub per_rtt: u8,
    /// Least time between two.
    pub at_least: Duration,
}

impl FeedbackProfile {
    /// As it crosses the wire.
    pub fn choice(&self) -> FeedbackChoice {
        let timing = match self.per_rtt {
            0 => FeedbackTiming::EveryPacket,
            per_rtt => FeedbackTiming::Spaced {
                per_rtt,
                min_micros: u32::try_from(self.at_least.as_micros()).unwrap_or(u32::MAX),
            },
        };
        FeedbackChoice { ecn: true, blocks: true, timing }
    }
}

/// No profile has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no profile is called '{0}' (there are: {names})", names = Profile::NAMES.join(", "))]
pub struct UnknownProfile(String);

impl Profile {
    /// Every profile's name.
    pub const NAMES: [&'static str; 2] = ["auto", "arq"];

    /// The default: lost source is sent again while there is more to come, repair goes ahead of losses in the last round
    /// trips. CUBIC, unless a rate is told.
    pub fn auto() -> Self {
        Self {
            name: "auto".into(),
            // Design section 6: 1408 fills a 1500-byte packet of IPv4 and IPv6; the others are for tunnels and 1280.
            symbol_sizes: vec![1408, 1344, 1280, 1152],
            blocks: BlockSizing { k: 1024, code: BlockCode::RaptorQ, small_code: BlockCode::ReedSolomon, small_k: 256 },
            streams: StreamCoding::Blocks,
            schedule: ScheduleConfig::Windowed(WindowedConfig {
                tail_failure: 1e-3,
                // Coding a block takes a few milliseconds: on shorter round trips feedback is there first.
                repair_from_rtt: Duration::from_millis(5),
            }),
            recovery: RecoveryConfig::default(),
            feedback: FeedbackProfile { per_rtt: 32, at_least: Duration::from_millis(1) },
            limit: None,
        }
    }

    /// Automatic repeat request with CUBIC and no code (arq): what a congestion-controlled transport without erasure codes
    /// does on the same path.
    pub fn arq() -> Self {
        let uncoded = BlockCode::Uncoded;
        Self {
            name: "arq".into(),
            blocks: BlockSizing { code: uncoded, small_code: uncoded, ..Self::auto().blocks },
            schedule: ScheduleConfig::Arq,
            recovery: RecoveryConfig {
                congestion: CongestionConfig::Cubic(CubicConfig::default()),
                ..RecoveryConfig::default()
            },
            feedback: FeedbackProfile { per_rtt: 0, at_least: Duration::ZERO },
            ..Self::auto()
        }
    }

    /// The profile of this name.
    ///
    /// # Errors
    /// [`UnknownProfile`] lists the names there are.
    pub fn named(name: &str) -> Result<Self, UnknownProfile> {
        match name {
            "auto" => Ok(Self::auto()),
            "arq" => Ok(Self::arq()),
            _ => Err(UnknownProfile(name.into())),
        }
    }

    /// The same, sending at exactly `rate` whatever is lost.
    #[must_use]
    pub fn with_told_rate(mut self, rate: Rate) -> Self {
        self.recovery.congestion = CongestionConfig::Told { rate };
        self
    }

    /// The same, never faster than `rate`.
    #[must_use]
    pub fn with_limit(mut self, rate: Rate) -> Self {
        self.limit = Some(rate);
        self
    }

    /// The same, with streams protected by a window code all along.
    #[must_use]
    pub fn with_window_code(mut self, code: WindowCode) -> Self {
        // A quarter of what a receiver gives each stream by default: the largest window that it takes.
        self.streams = StreamCoding::Window { code, symbols: 64 };
        self
    }

    /// The rate this profile is told, if it is.
    pub const fn told_rate(&self) -> Option<Rate> {
        match self.recovery.congestion {
            CongestionConfig::Told { rate } => Some(rate),
            CongestionConfig::Cubic(_) => None,
        }
    }

    /// The largest symbol that a datagram of `payload` bytes carries; the smallest where none fits.
    pub fn symbol_size_for(&self, payload: usize) -> u16 {
        let fits = |size: &&u16| usize::from(**size) + crate::wire::SYMBOL_OVERHEAD <= payload;
        let smallest = self.symbol_sizes.last().copied().unwrap_or(1152);
        self.symbol_sizes.iter().find(fits).copied().unwrap_or(smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_survive_being_written_down() {
        for name in Profile::NAMES {
            let profile = Profile::named(name).expect("listed");
            assert_eq!(profile.name, name);
            let told =
                profile.with_told_rate(Rate::from_bits_per_second(100_000_000)).with_window_code(WindowCode::Rlc);
            let text = serde_json::to_string(&told).expect("plain data");
            assert!(text.contains(r#""streams":{"kind":"window","code":"rlc","symbols":64}"#), "{text}");
            assert_eq!(serde_json::from_str::<Profile>(&text).expect("round trip"), told);
        }
        assert!(Profile::named("brutal").is_err_and(|e| e.to_string().contains("auto, arq")));
    }

    #[test]
    fn symbols_fit_the_path() {
        let auto = Profile::auto();
        for (payload, size) in [(1472, 1408), (1451, 1408), (1450, 1344), (1200, 1152), (900, 1152)] {
            assert_eq!(auto.symbol_size_for(payload), size, "{payload}");
        }
    }
}
