//! A schedule: source in order, and lost source again, but only every so many symbols.

use transport::Time;
use transport::flow::schedule::{ScheduleFactory, source};
use transport::flow::{PathEstimate, Schedule, ScheduleAction, SendBlocks};
use transport::recovery::Report;
use transport::settings::{IntegerRange, Setting, Settings, field};

/// Retransmission that leaves room for new data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PatientConfig {
    /// Source symbols between two retransmissions.
    every: u32,
}

impl Default for PatientConfig {
    fn default() -> Self {
        Self { every: 4 }
    }
}

impl Settings for PatientConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("every", every, IntegerRange(1, 1_000))];
}

impl ScheduleFactory for PatientConfig {
    const NAME: &'static str = "patient";

    fn build(&self) -> Box<dyn Schedule> {
        Box::new(Patient { every: self.every, since: 0 })
    }
}

/// The schedule of one flow.
#[derive(Debug)]
struct Patient {
    every: u32,
    since: u32,
}

impl Schedule for Patient {
    fn next(&mut self, _now: Time, flow: &SendBlocks, _path: &PathEstimate) -> ScheduleAction {
        match flow.first_lost() {
            Some(lost) if self.since >= self.every || !flow.source_ready() => {
                self.since = 0;
                ScheduleAction::Retransmit(lost)
            }
            _ => {
                self.since += 1;
                source(flow)
            }
        }
    }

    fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}
}
