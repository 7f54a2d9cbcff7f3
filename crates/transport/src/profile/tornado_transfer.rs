//! The system of tornado-transfer: a file-transfer protocol with RaptorQ.

use super::{Citation, Profile, SymbolSizes};
use crate::flow::{BlockSizing, InterleavedConfig, ScheduleConfig, StreamCoding};
use crate::recovery::congestion::Ccid2Config;
use crate::recovery::{CongestionConfig, RecoveryConfig};
use crate::wire::{BlockFeedback, FeedbackConfig, FeedbackTiming, Heartbeat, PacketFeedback};

impl Profile {
    /// Source of at most 256 blocks in order, interleaved with repair of earlier ones, then repair of each in turn
    /// (tornado-transfer).
    pub fn tornado_transfer() -> Self {
        Self {
            name: "tornado-transfer".into(),
            base: "tornado-transfer",
            symbols: "1400,1344,1280,1152".parse::<SymbolSizes>().expect("sizes, largest first"),
            blocks: BlockSizing::Partition,
            streams: StreamCoding::UNBOUNDED,
            schedule: ScheduleConfig::Interleaved(InterleavedConfig::default()),
            recovery: RecoveryConfig {
                congestion: CongestionConfig::Ccid2(Ccid2Config::default()),
                ..RecoveryConfig::default()
            },
            feedback: FeedbackConfig {
                ecn: true,
                packets: PacketFeedback::Ranges,
                blocks: Some(BlockFeedback::Mask),
                timing: FeedbackTiming::OnBlocks(Heartbeat::default()),
            },
            ..Self::auto()
        }
    }
}

/// The sources of its numbers.
pub(super) const SOURCES: &[Citation] = &[
    Citation {
        key: "symbols",
        section: "tornado-transfer §2.1: 1400 bytes, so that IP does not fragment; smaller where the path requires it",
    },
    Citation { key: "blocks", section: "tornado-transfer §2.1: the smallest legal number of symbols per block" },
    Citation { key: "streams.overhead", section: "docs/design/streams.md" },
    Citation {
        key: "schedule.repair-every",
        section: "tornado-transfer §2.1: X so that block n-1 can be decoded when block n ends",
    },
    Citation {
        key: "schedule.failure",
        section: "chosen: X suffices for 99 of 100 blocks; later repair completes the other",
    },
    Citation { key: "congestion", section: "tornado-transfer §2.2: CCID 2, RFC 4341" },
    Citation { key: "detection", section: "RFC 9002 §6.1" },
    Citation { key: "timeout", section: "docs/design/recovery.md" },
    Citation { key: "estimator", section: "docs/design/recovery.md: X follows the estimate" },
    Citation { key: "rtt", section: "RFC 6298 §2.3" },
    Citation {
        key: "feedback.packets",
        section: "RFC 4341 §6: CCID 2 needs the fate of each packet, as in DCCP's Ack Vectors",
    },
    Citation { key: "feedback.blocks", section: "tornado-transfer §2.1: a mask of 256 bits" },
    Citation {
        key: "feedback.timing.heartbeat",
        section: "chosen: tornado-transfer §2.1 reports each decoded block at once, and \"constantly\"",
    },
];
