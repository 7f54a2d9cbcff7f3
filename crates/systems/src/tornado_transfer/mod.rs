//! The system of tornado-transfer: a file-transfer protocol with RaptorQ.

mod ccid2;
mod interleaved;
mod ledbat;
mod partition;
mod tfrc;

pub use ccid2::Ccid2Config;
pub use interleaved::InterleavedConfig;
pub use ledbat::LedbatConfig;
pub use partition::{Partition, SubFiles};
pub use tfrc::TfrcConfig;

use transport::Profile;
use transport::flow::{BlockSizing, ScheduleConfig, StreamCoding};
use transport::profile::{AlgorithmRegistry, Citation, NameError, NamedProfile, SymbolSizes};
use transport::recovery::{CongestionConfig, PacingConfig, RecoveryConfig};
use transport::wire::{BlockFeedback, FeedbackConfig, FeedbackTiming, Heartbeat, PacketFeedback};

/// Adds the system to a registry.
pub(crate) fn register(registry: AlgorithmRegistry) -> Result<AlgorithmRegistry, NameError> {
    let named = NamedProfile {
        name: "tornado-transfer",
        about: "RaptorQ: source interleaved with repair of earlier blocks, then repair of each block in turn",
        make,
        sources: SOURCES,
    };
    registry
        .with_profile(named)?
        .with_schedule::<InterleavedConfig>()?
        .with_sizing::<Partition>()?
        .with_sizing::<SubFiles>()?
        .with_controller::<Ccid2Config>()?
        .with_controller::<TfrcConfig>()?
        .with_controller::<LedbatConfig>()
}

/// Source of at most 256 blocks in order, interleaved with repair of earlier ones, then repair of each in turn
/// (tornado-transfer).
#[must_use]
pub fn profile() -> Profile {
    crate::named("tornado-transfer")
}

fn make() -> Profile {
    Profile {
        name: "tornado-transfer".into(),
        base: "tornado-transfer",
        symbols: "1400,1344,1280,1152".parse::<SymbolSizes>().expect("sizes, largest first"),
        blocks: BlockSizing::custom(Partition),
        streams: StreamCoding::UNBOUNDED,
        schedule: ScheduleConfig::custom(InterleavedConfig::default()),
        recovery: RecoveryConfig {
            congestion: CongestionConfig::custom(Ccid2Config::default()),
            pacing: PacingConfig::Off,
            ..RecoveryConfig::default()
        },
        feedback: FeedbackConfig {
            ecn: true,
            packets: PacketFeedback::Ranges,
            blocks: Some(BlockFeedback::Mask),
            timing: FeedbackTiming::OnBlocks(Heartbeat::default()),
        },
        ..Profile::auto()
    }
}

/// The sources of its numbers.
const SOURCES: &[Citation] = &[
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
    Citation { key: "pacing", section: "RFC 4341 §5: CCID 2 sends what the window allows" },
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
