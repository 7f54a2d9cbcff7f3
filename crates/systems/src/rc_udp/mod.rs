//! The system of rc-udp: Raptor coding over UDP.

mod block_at_a_time;
mod bytes;
mod highspeed;

pub use block_at_a_time::BlockAtATimeConfig;
pub use bytes::BytesBlocks;
pub use highspeed::HighSpeedConfig;

use transport::Profile;
use transport::flow::{BlockSizing, ScheduleConfig, StreamCoding};
use transport::profile::{AlgorithmRegistry, Citation, NameError, NamedProfile, SymbolSizes};
use transport::recovery::{CongestionConfig, FixedRateConfig, RecoveryConfig};
use transport::time::Rate;
use transport::wire::{BlockFeedback, DoneConfig, FeedbackConfig, FeedbackTiming, Heartbeat, PacketFeedback};

/// rc-udp §VI-A, table II: R1 is not controlled; R2 is nominally 100 Mbit/s.
const NOMINAL_RATE: Rate = Rate::from_bits_per_second(100_000_000);

/// Adds the system to a registry.
pub(crate) fn register(registry: AlgorithmRegistry) -> Result<AlgorithmRegistry, NameError> {
    let named = NamedProfile {
        name: "rc-udp",
        about: "one block at a time, coded symbols at a fixed rate until it is acknowledged",
        make,
        sources: SOURCES,
    };
    registry
        .with_profile(named)?
        .with_schedule::<BlockAtATimeConfig>()?
        .with_sizing::<BytesBlocks>()?
        .with_controller::<HighSpeedConfig>()
}

/// Coded symbols of one block at a time, at a fixed rate, until it is acknowledged (rc-udp).
///
/// Departs: a block is acknowledged when it is decoded, not when (1 + epsilon) K of its symbols have arrived. These
/// may not suffice, and the block would be lost.
#[must_use]
pub fn profile() -> Profile {
    crate::named("rc-udp")
}

fn make() -> Profile {
    Profile {
        name: "rc-udp".into(),
        base: "rc-udp",
        symbols: SymbolSizes::only(1024).filling_packets(),
        blocks: BlockSizing::custom(BytesBlocks::default()),
        streams: StreamCoding::UNBOUNDED,
        schedule: ScheduleConfig::custom(BlockAtATimeConfig::default()),
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
            blocks: Some(BlockFeedback::Done(DoneConfig::default())),
            timing: FeedbackTiming::OnBlocks(Heartbeat::default()),
        },
        ..Profile::auto()
    }
}

/// The sources of its numbers.
const SOURCES: &[Citation] = &[
    Citation { key: "symbols", section: "rc-udp §IV-C: L = 1 KB takes the least time to code" },
    Citation { key: "symbols.per-packet", section: "rc-udp §IV-B a: r symbols per packet, set according to the MTU" },
    Citation { key: "blocks.bytes", section: "rc-udp §IV-C: B = 1 MB takes the least time to code" },
    Citation { key: "blocks.code", section: "rc-udp §III: LT over K symbols and those of a pre-code" },
    Citation { key: "streams.overhead", section: "docs/design/streams.md" },
    Citation { key: "schedule.wait", section: "rc-udp §IV-B b: delta-t = 0.3 ms" },
    Citation { key: "schedule.blocks", section: "rc-udp §IV-B: block by block" },
    Citation {
        key: "schedule.ahead",
        section: "rc-udp §IV-B b: the next block may be encoded when the one before is acknowledged",
    },
    Citation { key: "schedule.epsilon", section: "rc-udp §V-A: 0.01" },
    Citation {
        key: "congestion.rate",
        section: "rc-udp §VI-A, table II: 100 Mbit/s, R2's nominal value and, by §VI-B, R1's",
    },
    Citation { key: "congestion.window", section: "rc-udp §IV-B: symbols stream until the block is acknowledged" },
    Citation { key: "congestion.insist", section: "rc-udp §VI-A: the rate is set, whatever the path does" },
    Citation { key: "congestion.train", section: "docs/design/pacing.md: evenly, as the rate has it" },
    Citation { key: "pacing", section: "docs/design/pacing.md: without effect, the controller sets a rate" },
    Citation { key: "detection", section: "RFC 9002 §6.1: reported only, losses change nothing" },
    Citation {
        key: "timeout",
        section: "docs/design/recovery.md: without it a lost acknowledgement stalls the transfer",
    },
    Citation { key: "estimator", section: "docs/design/recovery.md: decides how many symbols are encoded at once" },
    Citation { key: "rtt", section: "RFC 6298 §2.3" },
    Citation {
        key: "feedback.packets",
        section: "chosen: rc-udp §IV-B b counts (1 + epsilon) K arrivals and needs no packet numbers",
    },
    Citation {
        key: "feedback.blocks.epsilon",
        section: "chosen: rc-udp §IV-B acknowledges (1 + epsilon) K received symbols, epsilon 0.01; this profile acknowledges decoded blocks",
    },
    Citation {
        key: "feedback.timing.heartbeat",
        section: "chosen: rc-udp §IV-B acknowledges each block once, and that packet may be lost",
    },
];
