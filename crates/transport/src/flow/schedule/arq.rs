//! Automatic repeat request: every lost source symbol is sent again, no repair is made (arq §3).

use super::{PathEstimate, Schedule, ScheduleAction, source};
use crate::flow::SendBlocks;
use crate::recovery::Report;
use crate::time::Time;

#[derive(Debug)]
pub(super) struct Arq;

impl Schedule for Arq {
    fn next(&mut self, _now: Time, flow: &SendBlocks, _path: &PathEstimate) -> ScheduleAction {
        flow.first_lost().map_or_else(|| source(flow), ScheduleAction::Retransmit)
    }

    fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}
}
