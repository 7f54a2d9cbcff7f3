//! Each block is sent with as much repair as the loss estimate asks for; if too few of its symbols are left to decode
//! it, more repair follows at once (lt-tcp §3.1, §3.4).

mod idle;

use crate::first_round::{Rounds, lacking};
use idle::IdleCounters;
use transport::flow::SendBlock;
use transport::flow::SendBlocks;
use transport::flow::schedule::ScheduleFactory;
use transport::flow::{Odds, Outstanding};
use transport::flow::{PathEstimate, Schedule, ScheduleAction};
use transport::recovery::Report;
use transport::settings::{IntegerRange, Or, Setting, Settings, Share, field};
use transport::time::Time;

/// Parameters of the proactive schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct ProactiveConfig {
    /// Accepted probability that a block needs reactive repair. lt-tcp §3.1 wants it small and gives no number.
    pub failure: f64,
    /// Acknowledgements of later blocks without one of its own after which a block gets reactive repair, or a timeout, as
    /// before lt-tcp §3.4; `off`: at once when too few symbols are left to decode it. The document has no number.
    pub idle: Option<u32>,
}

impl Default for ProactiveConfig {
    fn default() -> Self {
        Self { failure: 1e-2, idle: None }
    }
}

impl Settings for ProactiveConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] =
        &[field!("failure", failure, Share(1e-9, 0.5)), field!("idle", idle, Or("off", IntegerRange(1, 100_000)))];
}

impl ScheduleFactory for ProactiveConfig {
    const NAME: &'static str = "proactive";

    fn build(&self) -> Box<dyn Schedule> {
        Box::new(Proactive::new(self.clone()))
    }
}

impl ProactiveConfig {
    /// Returns n - k of lt-tcp §3.4: the fewest repair symbols with which a block is decodable except with the accepted
    /// probability.
    fn repair(&self, block: &SendBlock, path: &PathEstimate) -> u32 {
        // lt-tcp §3.1: the estimate is the share of packets lost; clustering is ignored.
        let odds = Odds { burst: 1.0, ..path.odds(self.failure) };
        Outstanding::whole(block.k(), block.code()).extra(odds)
    }
}

#[derive(Debug)]
pub(super) struct Proactive {
    config: ProactiveConfig,
    rounds: Rounds,
    idle: Option<IdleCounters>,
}

impl Proactive {
    pub(super) fn new(config: ProactiveConfig) -> Self {
        let idle = config.idle.map(IdleCounters::new);
        Self { config, rounds: Rounds::default(), idle }
    }
}

/// Returns a symbol for a block that wants `missing` symbols. It is repair, since lt-tcp sends nothing twice (§3.5).
/// Departs: a code with few symbols may have sent them all, a case that the document does not cover; then lost source
/// is resent.
fn supply(flow: &SendBlocks, block: &SendBlock, missing: u32) -> ScheduleAction {
    let id = flow.id_of(block);
    if block.repair_ready() > 0 {
        return ScheduleAction::Repair(id);
    }
    if block.can_prepare() {
        return ScheduleAction::EncodeRepair { block: id, count: missing };
    }
    match flow.first_lost_of(block) {
        Some(lost) if block.is_exhausted() => ScheduleAction::Retransmit(lost),
        _ => ScheduleAction::Idle,
    }
}

impl Schedule for Proactive {
    fn next(&mut self, _now: Time, flow: &SendBlocks, path: &PathEstimate) -> ScheduleAction {
        let Self { config, rounds, idle } = self;
        let wanted = |block: &SendBlock| idle.as_ref().map_or_else(|| lacking(block), |idle| idle.wanted(block));
        rounds.next(flow, 0, |block| config.repair(block, path), wanted, supply)
    }

    fn on_report(&mut self, report: &Report<'_>, flow: &SendBlocks) {
        if let Some(idle) = &mut self.idle {
            idle.on_report(report, flow);
        }
        self.rounds.on_report();
    }
}

#[cfg(test)]
mod in_flight;
