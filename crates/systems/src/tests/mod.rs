//! Several systems at a time, and what their tests share.

mod controllers;
mod estimators;
mod profiles;
mod schedules;

use crate::registry;
use transport::Profile;
use transport::congestion::CongestionConfig;
use transport::flow::schedule::TestFlow;
use transport::flow::{BlockSizing, PathEstimate, ScheduleConfig};
use transport::recovery::EstimatorConfig;

/// A path that loses nothing.
pub(crate) const PATH: PathEstimate = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };

/// Returns `auto` with this choice.
fn chosen(key: &str, text: &str) -> Profile {
    let mut profile = registry().profile("auto").expect("of every registry");
    profile.set(key, text).expect("a choice");
    profile
}

pub(crate) fn schedule(text: &str) -> ScheduleConfig {
    chosen("schedule", text).schedule
}

pub(crate) fn sizing(text: &str) -> BlockSizing {
    chosen("blocks", text).blocks
}

pub(crate) fn congestion(text: &str) -> CongestionConfig {
    chosen("congestion", text).recovery.congestion
}

pub(crate) fn estimator(text: &str) -> EstimatorConfig {
    chosen("estimator", text).recovery.estimator
}

/// Returns a flow under the schedule of this text, with blocks of the given sizes.
pub(crate) fn flow(text: &str, code: &str, blocks: &[u32]) -> TestFlow {
    TestFlow::with(&schedule(text), code, blocks)
}

/// Returns a profile of the registry.
fn named(name: &str) -> Profile {
    registry().profile(name).expect("a name of the registry")
}
