//! The default profile.

use super::{AlgorithmRegistry, Citation, Profile, SymbolSizes};
use crate::flow::{BlockCoding, BlockSizing, ScheduleConfig, StreamCoding, WindowedConfig};
use crate::recovery::{ProbeConfig, RecoveryConfig, TimeoutConfig};
use crate::wire::{FeedbackConfig, FeedbackTiming, Spacing};

impl Profile {
    /// The default: lost source symbols are resent in mid-transfer, repair is sent ahead of losses in the last round
    /// trips. The controller finds the rate of the path, unless a fixed one is given.
    pub fn auto() -> Self {
        let timeout = TimeoutConfig::Probe(ProbeConfig { steady: 8, ..ProbeConfig::default() });
        Self {
            name: "auto".into(),
            base: "auto",
            symbols: SymbolSizes::default(),
            blocks: BlockSizing::default(),
            streams: StreamCoding::Blocks(BlockCoding::default()),
            schedule: ScheduleConfig::Windowed(WindowedConfig::default()),
            recovery: RecoveryConfig { timeout, ..RecoveryConfig::default() },
            feedback: FeedbackConfig::everything(FeedbackTiming::Spaced(Spacing::default())),
            limit: None,
            registry: AlgorithmRegistry::default(),
        }
    }
}

/// The sources of its numbers.
pub(super) const SOURCES: &[Citation] = &[
    Citation {
        key: "symbols",
        section: "docs/design/block-sizes.md: 1408 fills 1500 bytes of IPv4 and IPv6; the others are for tunnels and 1280",
    },
    Citation {
        key: "blocks",
        section: "docs/design/block-sizes.md: up to about 1500 symbols, a block fits the second-level cache",
    },
    Citation {
        key: "blocks.small-code",
        section: "docs/design/choice-of-code.md: an MDS code for small and last blocks",
    },
    Citation { key: "blocks.small-k", section: "chosen: up to this size an MDS code costs no more than RaptorQ" },
    Citation { key: "streams.overhead", section: "docs/design/streams.md" },
    Citation { key: "schedule.tail-failure", section: "docs/design/tail-rule.md" },
    Citation {
        key: "schedule.repair-from-rtt",
        section: "chosen: coding a block takes milliseconds; on shorter paths feedback arrives first",
    },
    Citation { key: "congestion", section: "docs/design/auto.md" },
    Citation { key: "pacing.gain", section: "RFC 9002 §7.7" },
    Citation { key: "pacing.slow-start", section: "docs/design/pacing.md: the window doubles in each round trip" },
    Citation { key: "detection.packets", section: "RFC 9002 §6.1.1" },
    Citation { key: "detection.time", section: "RFC 9002 §6.1.2" },
    Citation { key: "detection.granularity", section: "RFC 9002 §6.1.2" },
    Citation { key: "detection.most-packets", section: "chosen: beyond it only the time threshold applies" },
    Citation { key: "detection.most-time", section: "RFC 8985 §6.2: up to one round trip more" },
    Citation { key: "detection.feedback-delay", section: "docs/design/feedback.md" },
    Citation { key: "timeout", section: "docs/design/recovery.md" },
    Citation { key: "detection.adapt", section: "RFC 8985 §6.2: the reordering window adapts" },
    Citation { key: "rtt", section: "RFC 9002 §5.3" },
    Citation { key: "estimator.initial", section: "docs/design/recovery.md" },
    Citation { key: "estimator.half-life", section: "chosen: distinguishes 1 % from 2 % and follows a changing path" },
    Citation { key: "feedback.timing", section: "docs/design/feedback.md" },
];
