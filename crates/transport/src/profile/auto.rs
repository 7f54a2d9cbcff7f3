//! The default profile.

use super::{Names, Profile, Source, SymbolSizes};
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
            names: Names::default(),
        }
    }
}

/// The sources of its numbers.
pub(super) const SOURCES: &[Source] = &[
    Source {
        key: "symbols",
        section: "docs/design/block-sizes.md: 1408 fills 1500 bytes of IPv4 and IPv6; the others are for tunnels and 1280",
    },
    Source {
        key: "blocks",
        section: "docs/design/block-sizes.md: up to about 1500 symbols, a block fits the second-level cache",
    },
    Source {
        key: "blocks.small-code",
        section: "docs/design/choice-of-code.md: an MDS code for small and last blocks",
    },
    Source { key: "blocks.small-k", section: "chosen: up to this size an MDS code costs no more than RaptorQ" },
    Source { key: "streams.overhead", section: "docs/design/streams.md" },
    Source { key: "schedule.tail-failure", section: "docs/design/tail-rule.md" },
    Source {
        key: "schedule.repair-from-rtt",
        section: "chosen: coding a block takes milliseconds; on shorter paths feedback arrives first",
    },
    Source { key: "congestion", section: "docs/design/auto.md" },
    Source { key: "detection.packets", section: "RFC 9002 §6.1.1" },
    Source { key: "detection.time", section: "RFC 9002 §6.1.2" },
    Source { key: "detection.granularity", section: "RFC 9002 §6.1.2" },
    Source { key: "detection.most-packets", section: "chosen: beyond it only the time threshold applies" },
    Source { key: "detection.most-time", section: "RFC 8985 §6.2: up to one round trip more" },
    Source { key: "detection.feedback-delay", section: "docs/design/feedback.md" },
    Source { key: "timeout", section: "docs/design/recovery.md" },
    Source { key: "detection.adapt", section: "RFC 8985 §6.2: the reordering window adapts" },
    Source { key: "rtt", section: "RFC 9002 §5.3" },
    Source { key: "estimator.initial", section: "docs/design/recovery.md" },
    Source { key: "estimator.half-life", section: "chosen: distinguishes 1 % from 2 % and follows a changing path" },
    Source { key: "feedback.timing", section: "docs/design/feedback.md" },
];
