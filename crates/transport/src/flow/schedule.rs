//! Schedules: which symbol of a flow to send next. Each is named by its behaviour; a profile picks one.

mod arq;
mod custom;
#[cfg(any(test, feature = "testing"))]
mod harness;
mod wants;
mod windowed;

pub use custom::{CustomSchedule, DynSchedule, ScheduleFactory};
#[cfg(any(test, feature = "testing"))]
pub use harness::TestFlow;
pub use wants::Wants;
pub use windowed::WindowedConfig;

use super::SendBlocks;
use super::tail::Odds;
use crate::recovery::Report;
use crate::settings::choices;
use crate::time::Time;
use crate::wire::{BlockId, SymbolId};
use std::fmt::Debug;
use std::time::Duration;

/// A schedule's knowledge of the path.
#[derive(Clone, Copy, Debug)]
pub struct PathEstimate {
    /// Smoothed round-trip time; `None` before the first sample.
    pub rtt: Option<Duration>,
    /// Estimated probability that a packet is lost, before any repair.
    pub loss: f64,
    /// Mean number of packets lost together.
    pub burst: f64,
    /// Symbols in the packets that congestion control lets be in flight.
    pub window: u64,
}

/// Losses up to this share are repaired in advance. Above it, as after a pause of the whole path, the sender waits for
/// feedback: otherwise it would send many times the object into an almost dead path.
pub const MOST_LOSS: f64 = 0.5;

impl PathEstimate {
    /// Returns the odds for the tail rule when each block may fail with probability `target`.
    #[must_use]
    pub const fn odds(&self, target: f64) -> Odds {
        Odds { loss: self.loss.min(MOST_LOSS), burst: self.burst, target }
    }
}

/// A schedule's next action. Window and pacer are checked before: the returned symbol is sent (law 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleAction {
    /// The next source symbol in order.
    Source,
    /// A source symbol again, which was sent before.
    Retransmit(SymbolId),
    /// One more repair symbol of the block, which is ready.
    Repair(BlockId),
    /// Have `count` repair symbols of the block made, then ask again.
    EncodeRepair {
        /// The block.
        block: BlockId,
        /// Repair symbols wanted.
        count: u32,
    },
    /// The schedule has nothing more that could complete the block: the transfer has failed.
    GiveUp(BlockId),
    /// Nothing before this time, unless feedback or a reply arrives. A time in the past counts as [`ScheduleAction::Idle`].
    Wait(Time),
    /// Nothing until feedback or a reply arrives.
    Idle,
}

/// Decides which symbol of a flow to send next.
pub trait Schedule: Debug + Send {
    /// Returns the next thing to send.
    fn next(&mut self, now: Time, flow: &SendBlocks, path: &PathEstimate) -> ScheduleAction;

    /// Handles a report on the outcome of packets, of this flow or of others.
    fn on_report(&mut self, report: &Report<'_>, flow: &SendBlocks);

    /// Returns whether lost source symbols are sent again. If not, a probe carries repair rather than source.
    fn resends(&self) -> bool {
        true
    }

    /// Returns whether to resend symbols of a block that the receiver lacks although the schedule has nothing more for
    /// it. If not, the transfer fails.
    fn recovers_stalled(&self) -> bool {
        true
    }

    /// Returns whether source symbols are sent as they are. If not, a block of a fountain code is sent as repair alone;
    /// blocks of other codes cannot be, and keep their source.
    fn sends_source(&self) -> bool {
        true
    }
}

/// Returns the next source symbol, if one can be sent now.
pub fn source(flow: &SendBlocks) -> ScheduleAction {
    if flow.source_ready() { ScheduleAction::Source } else { ScheduleAction::Idle }
}

/// A schedule and its parameters, as a profile holds them.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleConfig {
    /// Source in order, lost source resent, repair in the last round trips.
    Windowed(WindowedConfig),
    /// Source in order, lost source resent.
    Arq,
    /// A schedule from another crate: [`ScheduleConfig::custom`].
    Custom(CustomSchedule),
}

choices! {
    "schedule",
    ScheduleConfig {
        "windowed" => Windowed(WindowedConfig),
        "arq" => Arq,
    } else Custom
}

impl ScheduleConfig {
    /// Builds the schedule for one flow.
    pub fn build(&self) -> Box<dyn Schedule> {
        match self {
            Self::Windowed(config) => Box::new(windowed::Windowed::new(config.clone())),
            Self::Arq => Box::new(arq::Arq),
            Self::Custom(custom) => custom.0.build(),
        }
    }
}
