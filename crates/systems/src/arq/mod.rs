//! The system of arq: reliable transmission and congestion control over UDP.

mod fixed_window;

pub use fixed_window::FixedWindowConfig;

use erasure::BlockCode;
use transport::Profile;
use transport::flow::{BlockSizing, FixedBlocks, ScheduleConfig};
use transport::profile::{AlgorithmRegistry, Citation, NameError, NamedProfile, SymbolSizes};
use transport::recovery::congestion::{CubicConfig, CubicForm};
use transport::recovery::{CongestionConfig, DetectionConfig, DuplicatesConfig, PacingConfig, RecoveryConfig};
use transport::wire::{FeedbackConfig, FeedbackTiming, PacketFeedback};

/// Adds the system to a registry.
pub(crate) fn register(registry: AlgorithmRegistry) -> Result<AlgorithmRegistry, NameError> {
    let named = NamedProfile {
        name: "arq",
        about: "uncoded sliding-window ARQ with congestion control, as TCP does it",
        make,
        sources: SOURCES,
    };
    registry.with_profile(named)?.with_controller::<FixedWindowConfig>()
}

/// Uncoded automatic repeat request with a cumulative acknowledgement of every packet (arq), as TCP does it.
///
/// The document has three stages. This is the last, with CUBIC; `--set congestion=reno` is the second and `--set
/// congestion=fixed-window` the first. `--set
/// congestion=cubic:initial=10,threshold=none,beta=0.7,hystart=on,form=rfc9438 --set feedback.packets=ranges --set
/// detection=threshold` has the numbers of RFC 9438 and selective acknowledgements.
///
/// Departs: a timeout sends probes (`timeout=probe`). The timeout of the document (`--set timeout=rto`) has no
/// lower bound and declares packets lost whose acknowledgement is merely late, on some paths forever. If the path
/// does not carry packets of 1400 bytes and headers, smaller ones are used; the sender of the document would wait
/// forever.
#[must_use]
pub fn profile() -> Profile {
    crate::named("arq")
}

fn make() -> Profile {
    let uncoded = BlockCode::Uncoded;
    let auto = Profile::auto();
    Profile {
        name: "arq".into(),
        base: "arq",
        symbols: "1400,1344,1280,1152".parse::<SymbolSizes>().expect("sizes, largest first"),
        blocks: BlockSizing::Fixed(FixedBlocks { code: uncoded, small_code: uncoded, ..FixedBlocks::default() }),
        schedule: ScheduleConfig::Arq,
        recovery: RecoveryConfig {
            congestion: CongestionConfig::Cubic(CubicConfig {
                initial: 1,
                threshold: Some(64),
                beta: 0.5,
                hystart: false,
                form: CubicForm::Document,
                ..CubicConfig::default()
            }),
            pacing: PacingConfig::Off,
            detection: DetectionConfig::Duplicates(DuplicatesConfig::default()),
            ..RecoveryConfig::default()
        },
        feedback: FeedbackConfig {
            packets: PacketFeedback::InOrder,
            timing: FeedbackTiming::EveryPacket,
            ..auto.feedback
        },
        ..auto
    }
}

/// The sources of its numbers.
const SOURCES: &[Citation] = &[
    Citation { key: "symbols", section: "arq §3.1.1: segments of 1400 bytes; smaller where the path requires it" },
    Citation { key: "blocks", section: "arq §2: uncoded; a block is only the unit of writing" },
    Citation { key: "streams.overhead", section: "docs/design/streams.md" },
    Citation { key: "congestion.initial", section: "arq §3.1: one MSS; §4.1 names no other" },
    Citation { key: "congestion.threshold", section: "arq §3.1: 64 MSS; §4.1 names no other" },
    Citation { key: "congestion.beta", section: "arq §4.1: 0.5" },
    Citation { key: "congestion.c", section: "arq §4.1: 0.4" },
    Citation { key: "congestion.fast-convergence", section: "arq §4.1" },
    Citation {
        key: "congestion.form",
        section: "arq §4.1: K from W_max and beta, a timeout reduces the window and W_max (by beta: chosen), and the fast recovery of §3.1 stays; --set congestion.form=rfc9438 is the RFC's",
    },
    Citation { key: "congestion.hystart", section: "arq §3.1: slow start ends at ssthresh or with a loss" },
    Citation { key: "pacing", section: "arq §3.1: the sender sends what the window allows" },
    Citation { key: "detection.count", section: "arq §2.1, §3.1: three duplicate acknowledgements" },
    Citation {
        key: "detection.newreno",
        section: "RFC 6582; arq §3.1 leaves open how several losses in a window are detected",
    },
    Citation { key: "detection.recovery", section: "arq §2.1: fast recovery; §2.2 measures with and without" },
    Citation {
        key: "timeout",
        section: "docs/design/recovery.md: probes; arq §2.1.1 retransmits everything after EstimatedRTT + 4 DevRTT (--set timeout=rto)",
    },
    Citation { key: "rtt", section: "arq §2.1.1: alpha 0.125, beta 0.25, as RFC 6298 §2.3" },
    Citation { key: "estimator", section: "docs/design/recovery.md: reported only, nothing depends on it" },
];
