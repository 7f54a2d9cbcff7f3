//! The system of ttp: the Tornado Transport Protocol.

mod chunks;
mod estimator;
mod loss_window;
mod rate;
mod sizing;

pub use chunks::{ChunksConfig, EncodeOrder};
pub use estimator::TtpEstimator;
pub use rate::TtpRate;
pub use sizing::TtpBlocks;

use transport::Profile;
use transport::flow::{BlockSizing, ScheduleConfig, StreamCoding};
use transport::profile::{AlgorithmRegistry, Citation, NameError, NamedProfile};
use transport::recovery::{CongestionConfig, EstimatorConfig, RecoveryConfig};

use transport::wire::{FeedbackConfig, FeedbackTiming, LastPackets, PacketCountTiming, PacketFeedback};

/// Adds the system to a registry.
pub(crate) fn register(registry: AlgorithmRegistry) -> Result<AlgorithmRegistry, NameError> {
    let named = NamedProfile {
        name: "ttp",
        about: "Tornado code: chunks padded for the average loss, each encoded while the one before is sent",
        make,
        sources: SOURCES,
    };
    registry
        .with_profile(named)?
        .with_schedule::<ChunksConfig>()?
        .with_sizing::<TtpBlocks>()?
        .with_controller::<TtpRate>()?
        .with_estimator::<TtpEstimator>()
}

/// Chunks of a Tornado code, padded for the moving average of loss, each encoded while the previous one is sent, at
/// a rate halved when loss exceeds thresholds (ttp).
#[must_use]
pub fn profile() -> Profile {
    crate::named("ttp")
}

fn make() -> Profile {
    let auto = Profile::auto();
    Profile {
        name: "ttp".into(),
        base: "ttp",
        blocks: BlockSizing::custom(TtpBlocks::default()),
        streams: StreamCoding::UNBOUNDED,
        schedule: ScheduleConfig::custom(ChunksConfig::default()),
        recovery: RecoveryConfig {
            congestion: CongestionConfig::custom(TtpRate::default()),
            estimator: EstimatorConfig::custom(TtpEstimator::default()),
            ..RecoveryConfig::default()
        },
        feedback: FeedbackConfig {
            packets: PacketFeedback::Last(LastPackets::default()),
            timing: FeedbackTiming::Every(PacketCountTiming::default()),
            ..auto.feedback
        },
        ..auto
    }
}

/// The sources of its numbers.
const SOURCES: &[Citation] = &[
    Citation { key: "symbols", section: "chosen: as large as the path carries; ttp names no packet size" },
    Citation { key: "blocks.bits", section: "ttp §III-A: 1 Mb; §II-A has 1 MB" },
    Citation { key: "blocks.spare", section: "chosen: room for the padding that completes 999 of 1000 chunks" },
    Citation { key: "streams.overhead", section: "docs/design/streams.md" },
    Citation { key: "schedule.padding", section: "chosen: ttp §II-A asks for a high probability without a number" },
    Citation { key: "schedule.mend", section: "chosen: ttp §I lets transfers fail" },
    Citation { key: "schedule.encode", section: "chosen: ttp §II-C, figure 2 encodes a chunk before it is sent" },
    Citation { key: "congestion", section: "ttp §III-A" },
    Citation { key: "congestion.add", section: "chosen: ttp §II-B has a constant without a number" },
    Citation { key: "pacing", section: "docs/design/pacing.md: without effect, the controller sets a rate" },
    Citation { key: "detection", section: "chosen: RFC 9002 §6.1; ttp §II-B counts zeros of the bitmap" },
    Citation {
        key: "timeout",
        section: "chosen: docs/design/recovery.md; ttp has no timeout and stalls when control packets are lost",
    },
    Citation { key: "rtt", section: "RFC 6298 §2.3: used by timeouts only" },
    Citation { key: "estimator.weight", section: "chosen: ttp §II-C averages both losses without giving weights" },
    Citation { key: "estimator.initial", section: "ttp §III-A; 20 % for figure 21" },
    Citation { key: "estimator.packets", section: "ttp §III-A: control packets of 1K bits" },
    Citation { key: "feedback.packets", section: "ttp §III-A: control packets of 1K bits" },
    Citation { key: "feedback.timing.packets", section: "ttp §II-B: every n packets, n as §III-A" },
    Citation {
        key: "feedback.timing.threshold",
        section: "chosen: ttp §II-B gives no threshold; 1 % is above the loss of its links themselves",
    },
    Citation { key: "feedback.timing.factor", section: "chosen: ttp §II-B has a constant factor without a number" },
];
