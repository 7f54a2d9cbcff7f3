//! The system of tornado-transfer: a file-transfer protocol with RaptorQ.

use super::{Profile, Source, SymbolSizes};
use crate::flow::{BlockSizing, InterleavedConfig, ScheduleConfig};

impl Profile {
    /// Source of at most 256 blocks in order, with repair of earlier ones in between, then repair of each in turn (tornado-transfer).
    pub fn tornado_transfer() -> Self {
        Self {
            name: "tornado-transfer".into(),
            symbols: SymbolSizes::only(1400),
            blocks: BlockSizing::Partition,
            schedule: ScheduleConfig::Interleaved(InterleavedConfig::default()),
            ..Self::auto()
        }
    }
}

/// Where its numbers come from.
pub(super) const SOURCES: &[Source] = &[
    Source { key: "symbols", section: "tornado-transfer §2.1: 1400 bytes, so that IP does not fragment" },
    Source { key: "blocks", section: "tornado-transfer §2.1: the smallest legal number of symbols per block" },
    Source {
        key: "schedule.repair-every",
        section: "tornado-transfer §2.1: X so that block n-1 can be decoded when block n ends",
    },
    Source {
        key: "schedule.failure",
        section: "chosen: X holds in all but one block of a hundred, later repair serves that one",
    },
    Source { key: "congestion", section: "tornado-transfer §2.2" },
    Source { key: "detection", section: "RFC 9002 §6.1" },
    Source { key: "timeout", section: "design §8" },
    Source { key: "estimator", section: "design §8: X follows it" },
    Source { key: "rtt", section: "RFC 6298 §2.3" },
    Source { key: "feedback.timing", section: "design §8: with each decoded block at once" },
];
