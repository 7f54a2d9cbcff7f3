//! The system of lt-tcp: Loss-Tolerant TCP.

mod autoregressive;
mod averages;
mod grow_only;
mod oracle;
mod proactive;
mod samples;
mod sizing;

pub use autoregressive::AutoregressiveConfig;
pub use averages::{DynamicEwmaConfig, EwmaConfig};
pub use grow_only::GrowOnlyConfig;
pub use oracle::OracleConfig;
pub use proactive::ProactiveConfig;
pub use sizing::LtTcpBlocks;

use std::time::Duration;
use transport::Profile;
use transport::flow::{BlockSizing, ScheduleConfig, StreamCoding};
use transport::profile::{AlgorithmRegistry, Citation, NameError, NamedProfile};
use transport::recovery::congestion::{CongestionConfig, RenoConfig, Signal};
use transport::recovery::{EstimatorConfig, PacingConfig, RecoveryConfig, RtoConfig, TimeoutConfig};
use transport::wire::{FeedbackConfig, FeedbackTiming};

/// Adds the system to a registry.
pub(crate) fn register(registry: AlgorithmRegistry) -> Result<AlgorithmRegistry, NameError> {
    let named = NamedProfile {
        name: "lt-tcp",
        about: "MDS code: proactive repair by the loss estimate, reactive repair after heavier loss, window by ECN marks",
        make,
        sources: SOURCES,
    };
    registry
        .with_profile(named)?
        .with_schedule::<ProactiveConfig>()?
        .with_sizing::<LtTcpBlocks>()?
        .with_controller::<GrowOnlyConfig>()?
        .with_estimator::<EwmaConfig>()?
        .with_estimator::<DynamicEwmaConfig>()?
        .with_estimator::<AutoregressiveConfig>()?
        .with_estimator::<OracleConfig>()
}

/// Blocks of an MDS code with proactive repair according to the loss estimate and reactive repair after heavier
/// loss, under a window that responds to ECN marks and not to losses (lt-tcp).
///
/// In the document (§3.5) every block counts the packets sent of it less those acknowledged or lost; after a
/// timeout the network counts as empty, and late acknowledgements only count towards completeness. Recovery keeps
/// packets in flight one by one, which gives the sum of these counts (`flow/schedule/proactive/in_flight.rs` proves
/// it). Departs: packets of a block that the receiver has completed stay in flight until they are acknowledged or
/// lost. The document removes them from its sum at once, and so has as many extra packets on the network.
///
/// The faults that the document measured and then repairs are values: `--set in-flight=counter` (§3.5), `--set
/// schedule.idle=10` (§3.4), `--set detection=threshold:packets=1,adapt=off` (§3.3, as revised: late arrivals are
/// taken back), `--set rtt=overestimated` (§2.2), `--set estimator=dynamic-ewma` (§3.1).
///
/// The document requires ECN (§1.1). On a path that fails ECN validation, the window responds to losses until a
/// later test succeeds (RFC 9000 §13.4.2.2): otherwise nothing would limit it.
#[must_use]
pub fn profile() -> Profile {
    crate::named("lt-tcp")
}

fn make() -> Profile {
    let auto = Profile::auto();
    Profile {
        name: "lt-tcp".into(),
        base: "lt-tcp",
        blocks: BlockSizing::custom(LtTcpBlocks::default()),
        streams: StreamCoding::UNBOUNDED,
        schedule: ScheduleConfig::custom(ProactiveConfig::default()),
        recovery: RecoveryConfig {
            congestion: CongestionConfig::Reno(RenoConfig {
                initial: 10,
                threshold: None,
                inflation: 0,
                signal: Signal::Ecn,
                ..RenoConfig::default()
            }),
            pacing: PacingConfig::Off,
            timeout: TimeoutConfig::Rto(RtoConfig {
                min: Duration::from_millis(200),
                max: Duration::from_secs(5),
                ..RtoConfig::default()
            }),
            estimator: EstimatorConfig::custom(EwmaConfig::default()),
            ..RecoveryConfig::default()
        },
        feedback: FeedbackConfig { timing: FeedbackTiming::EveryPacket, ..auto.feedback },
        ..auto
    }
}

/// The sources of its numbers.
const SOURCES: &[Citation] = &[
    Citation {
        key: "symbols",
        section: "chosen: as large as the path carries; lt-tcp §4.2 leaves the packet size open",
    },
    Citation {
        key: "blocks.least",
        section: "chosen: smaller blocks need as much repair as source; lt-tcp §4.2 leaves it open",
    },
    Citation { key: "blocks.most", section: "chosen: Reed-Solomon's fastest blocks; lt-tcp §4.2 leaves it open" },
    Citation { key: "blocks.code", section: "lt-tcp §3.4: any k of n packets decode" },
    Citation { key: "streams.overhead", section: "docs/design/streams.md" },
    Citation {
        key: "schedule.failure",
        section: "chosen: one block in a hundred; lt-tcp §3.1 minimises it without a number",
    },
    Citation { key: "schedule.idle", section: "lt-tcp §3.4: at once when more than n - k are lost" },
    Citation { key: "congestion", section: "lt-tcp §1.1: TCP's window, driven by ECN; RFC 5681 §3.1" },
    Citation { key: "congestion.initial", section: "RFC 6928 §2" },
    Citation { key: "congestion.threshold", section: "RFC 5681 §3.1: arbitrarily high at first" },
    Citation {
        key: "congestion.inflation",
        section: "chosen: feedback reports arrivals beyond a gap, so no window needs inflating",
    },
    Citation {
        key: "congestion.signal",
        section: "lt-tcp §1.1: loss does not signal congestion, unless ECN fails (RFC 9000 §13.4.2.2)",
    },
    Citation { key: "pacing", section: "lt-tcp §1.1: TCP's window, sent by acknowledgements" },
    Citation { key: "detection", section: "lt-tcp §3.3: a reordering threshold as TCP's, RFC 9002 §6.1" },
    Citation { key: "timeout.min", section: "chosen: the minimum of Linux, which lt-tcp §2 modifies" },
    Citation { key: "timeout.max", section: "lt-tcp §2.2: 5 s; 60 s by RFC 6298 §2.5" },
    Citation { key: "timeout.variance", section: "RFC 6298 §2.3" },
    Citation { key: "rtt", section: "RFC 6298 §2.3" },
    Citation { key: "estimator.alpha", section: "lt-tcp §3.1" },
    Citation { key: "in-flight", section: "lt-tcp §3.5: a count without drift" },
    Citation {
        key: "estimator.initial",
        section: "chosen: as in the other profiles (docs/design/recovery.md); lt-tcp §3.1 leaves it open",
    },
    Citation { key: "estimator.packets", section: "chosen: lt-tcp §3.3 leaves open how often the estimator samples" },
];
