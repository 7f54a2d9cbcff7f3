//! Source in order, with lost source resent while more follows; after that, the tail rule.
//!
//! Mid-transfer, a lost source symbol costs the same on the wire as a repair symbol and spares the decoder
//! (docs/design/tail-rule.md). In the last round trips there is no time left to learn of losses, so repair is sent
//! ahead of them.

use super::wants::Wants;
use super::{PathEstimate, Schedule, ScheduleAction, source};
use crate::flow::tail::Outstanding;
use crate::flow::{SendBlock, SendBlocks};
use crate::recovery::Report;
use crate::settings::{Setting, Settings, Share, Span, field};
use crate::time::Time;
use std::time::Duration;

/// Parameters of the windowed schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowedConfig {
    /// Accepted probability that some block is undecodable from the symbols in flight (docs/design/tail-rule.md: 1e-3).
    pub tail_failure: f64,
    /// On paths with shorter round trips, waiting for feedback costs less than coding.
    pub repair_from_rtt: Duration,
}

impl Default for WindowedConfig {
    fn default() -> Self {
        // Coding a block takes a few milliseconds: on shorter round trips feedback arrives first.
        Self { tail_failure: 1e-3, repair_from_rtt: Duration::from_millis(5) }
    }
}

impl Settings for WindowedConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("tail-failure", tail_failure, Share(1e-9, 0.5)),
        field!("repair-from-rtt", repair_from_rtt, Span(Duration::ZERO, Duration::from_secs(10))),
    ];
}

#[derive(Debug)]
pub(super) struct Windowed {
    config: WindowedConfig,
    /// In the tail: blocks that want symbols.
    wants: Wants,
    /// The wants are up to date.
    current: bool,
}

impl Windowed {
    pub(super) fn new(config: WindowedConfig) -> Self {
        Self { config, wants: Wants::default(), current: false }
    }

    /// Recomputes the wants of each open block.
    fn survey(&mut self, flow: &SendBlocks, path: &PathEstimate) {
        self.current = true;
        // The probability is for all blocks together.
        let odds = path.odds(self.config.tail_failure / flow.unfinished().max(1) as f64);
        self.wants.survey(flow, |block| {
            let outstanding = Outstanding {
                need: block.need(),
                in_flight: block.in_flight(),
                intact: block.is_intact(),
                code: block.code(),
                k: block.k(),
            };
            outstanding.extra(odds)
        });
    }
}

/// Returns a symbol for a block that wants `extra`: lost source first, since it may spare the decoder, then repair.
fn supply(flow: &SendBlocks, block: &SendBlock, extra: u32) -> ScheduleAction {
    let id = flow.id_of(block);
    if let Some(lost) = flow.first_lost_of(block) {
        return ScheduleAction::Retransmit(lost);
    }
    if block.repair_ready() > 0 {
        return ScheduleAction::Repair(id);
    }
    if block.can_prepare() { ScheduleAction::EncodeRepair { block: id, count: extra } } else { ScheduleAction::Idle }
}

impl Schedule for Windowed {
    fn next(&mut self, _now: Time, flow: &SendBlocks, path: &PathEstimate) -> ScheduleAction {
        let coding = path.rtt.is_none_or(|rtt| rtt >= self.config.repair_from_rtt);
        if flow.more_to_come() || !coding {
            self.current = false;
            if let Some(lost) = flow.first_lost() {
                return ScheduleAction::Retransmit(lost);
            }
            return source(flow);
        }
        if !self.current {
            self.survey(flow, path);
        }
        self.wants.serve(flow, supply).unwrap_or(ScheduleAction::Idle)
    }

    fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {
        self.current = false;
    }
}
