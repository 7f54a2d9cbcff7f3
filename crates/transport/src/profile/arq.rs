//! The ARQ document's system.

use super::{Profile, Source};
use crate::flow::{BlockSizing, FixedBlocks, ScheduleConfig};
use crate::recovery::{CongestionConfig, CubicConfig, RecoveryConfig};
use crate::wire::FeedbackTiming;
use erasure::BlockCode;

impl Profile {
    /// Automatic repeat request with CUBIC and no code (arq): what a congestion-controlled transport without erasure codes
    /// does on the same path.
    pub fn arq() -> Self {
        let uncoded = BlockCode::Uncoded;
        let auto = Self::auto();
        Self {
            name: "arq".into(),
            blocks: BlockSizing::Fixed(FixedBlocks { code: uncoded, small_code: uncoded, ..FixedBlocks::default() }),
            schedule: ScheduleConfig::Arq,
            recovery: RecoveryConfig {
                congestion: CongestionConfig::Cubic(CubicConfig::default()),
                ..RecoveryConfig::default()
            },
            feedback: crate::wire::FeedbackChoice { timing: FeedbackTiming::EveryPacket, ..auto.feedback },
            ..auto
        }
    }
}

/// Where its numbers come from.
pub(super) const SOURCES: &[Source] = &[
    Source { key: "symbols", section: "design §6" },
    Source { key: "blocks", section: "arq §2: no code; blocks are the engine's unit of writing" },
    Source { key: "congestion", section: "RFC 9438 §4" },
    Source { key: "detection", section: "RFC 9002 §6.1" },
    Source { key: "timeout", section: "design §8" },
    Source { key: "rtt", section: "arq §2.1: alpha 0.125, beta 0.25, as RFC 6298 §2.3" },
    Source { key: "estimator", section: "design §8: only shown, nothing depends on it" },
];
