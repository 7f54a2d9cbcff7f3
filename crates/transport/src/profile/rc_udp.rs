//! The system of rc-udp: Raptor coding over UDP.

use super::{Profile, Source, SymbolSizes};
use crate::flow::{BlockAtATimeConfig, BlockSizing, BytesBlocks, ScheduleConfig, StreamCoding};
use crate::recovery::{CongestionConfig, FixedRateConfig, RecoveryConfig};
use crate::time::Rate;
use crate::wire::{BlockFeedback, DoneBlocks, FeedbackConfig, FeedbackTiming, Heartbeat, PacketFeedback};

/// rc-udp §VI-A, table II: R1 is not controlled; R2 is nominally 100 Mbit/s.
const NOMINAL_RATE: Rate = Rate::from_bits_per_second(100_000_000);

impl Profile {
    /// Coded symbols of one block at a time, at a fixed rate, until it is acknowledged (rc-udp).
    ///
    /// Departs: a block is acknowledged when it is decoded, not when (1 + epsilon) K of its symbols have arrived. These
    /// may not suffice, and the block would be lost.
    pub fn rc_udp() -> Self {
        Self {
            name: "rc-udp".into(),
            base: "rc-udp",
            symbols: SymbolSizes::only(1024).filling_packets(),
            blocks: BlockSizing::Bytes(BytesBlocks::default()),
            streams: StreamCoding::UNBOUNDED,
            schedule: ScheduleConfig::BlockAtATime(BlockAtATimeConfig::default()),
            recovery: RecoveryConfig {
                congestion: CongestionConfig::FixedRate(FixedRateConfig {
                    rate: NOMINAL_RATE,
                    window: false,
                    insist: true,
                    ..FixedRateConfig::default()
                }),
                ..RecoveryConfig::default()
            },
            feedback: FeedbackConfig {
                ecn: true,
                packets: PacketFeedback::Ranges,
                blocks: Some(BlockFeedback::Done(DoneBlocks::default())),
                timing: FeedbackTiming::OnBlocks(Heartbeat::default()),
            },
            ..Self::auto()
        }
    }
}

/// The sources of its numbers.
pub(super) const SOURCES: &[Source] = &[
    Source { key: "symbols", section: "rc-udp §IV-C: L = 1 KB takes the least time to code" },
    Source { key: "symbols.per-packet", section: "rc-udp §IV-B a: r symbols per packet, set according to the MTU" },
    Source { key: "blocks.bytes", section: "rc-udp §IV-C: B = 1 MB takes the least time to code" },
    Source { key: "blocks.code", section: "rc-udp §III: LT over K symbols and those of a pre-code" },
    Source { key: "streams.overhead", section: "docs/design/streams.md" },
    Source { key: "schedule.wait", section: "rc-udp §IV-B b: delta-t = 0.3 ms" },
    Source { key: "schedule.blocks", section: "rc-udp §IV-B: block by block" },
    Source {
        key: "schedule.ahead",
        section: "rc-udp §IV-B b: the next block may be encoded when the one before is acknowledged",
    },
    Source { key: "schedule.epsilon", section: "rc-udp §V-A: 0.01" },
    Source {
        key: "congestion.rate",
        section: "rc-udp §VI-A, table II: 100 Mbit/s, R2's nominal value and, by §VI-B, R1's",
    },
    Source { key: "congestion.window", section: "rc-udp §IV-B: symbols stream until the block is acknowledged" },
    Source { key: "congestion.insist", section: "rc-udp §VI-A: the rate is set, whatever the path does" },
    Source { key: "congestion.train", section: "docs/design/pacing.md: evenly, as the rate has it" },
    Source { key: "detection", section: "RFC 9002 §6.1: reported only, losses change nothing" },
    Source {
        key: "timeout",
        section: "docs/design/recovery.md: without it a lost acknowledgement stalls the transfer",
    },
    Source { key: "estimator", section: "docs/design/recovery.md: decides how many symbols are encoded at once" },
    Source { key: "rtt", section: "RFC 6298 §2.3" },
    Source {
        key: "feedback.packets",
        section: "chosen: rc-udp §IV-B b counts (1 + epsilon) K arrivals and needs no packet numbers",
    },
    Source {
        key: "feedback.blocks.epsilon",
        section: "chosen: rc-udp §IV-B acknowledges (1 + epsilon) K received symbols, epsilon 0.01; here a block is done once decoded",
    },
    Source {
        key: "feedback.timing.heartbeat",
        section: "chosen: rc-udp §IV-B acknowledges each block once, and that packet may be lost",
    },
];
