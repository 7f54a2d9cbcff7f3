//! A system from outside the engine, and a `downpour` and a lab in which it has a name: `own-system send --profile mine
//! FILE` over sockets, `own-system lab simulate --profile mine --set congestion=mine:beta=0.7` in the simulator, and over
//! emulated links the peer "downpour-auto congestion=mine" of a plan, `own-system lab run PLAN.toml`.
//!
//! It plugs in one of each part that a program may replace: a congestion controller, a schedule, a packet and block size
//! calculator and a loss rate estimator. The profile `mine` names them all.

mod controller;
mod estimator;
mod schedule;
mod sizing;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use controller::MineConfig;
use estimator::OverallConfig;
use lab::peers::Downpour;
use schedule::PatientConfig;
use sizing::ShareOfWindow;
use transport::Profile;
use transport::congestion::CongestionConfig;
use transport::flow::{BlockSizing, ScheduleConfig};
use transport::profile::{AlgorithmRegistry, Citation, NameError, NamedProfile};
use transport::recovery::{EstimatorConfig, RecoveryConfig};

/// The profile, which `profile list` shows.
const MINE: NamedProfile =
    NamedProfile { name: "mine", about: "one of each replaceable part", make: mine, sources: SOURCES };

/// The sources of its own numbers.
const SOURCES: &[Citation] = &[
    Citation { key: "congestion.beta", section: "RFC 9438 §4.3" },
    Citation { key: "schedule.every", section: "chosen: a fifth of the rate for what was lost" },
    Citation { key: "blocks.blocks", section: "chosen: a loss is repaired within a quarter of a round trip" },
    Citation { key: "estimator.initial", section: "docs/design/recovery.md" },
];

fn mine() -> Profile {
    let auto = Profile::auto();
    Profile {
        name: MINE.name.into(),
        base: MINE.name,
        blocks: BlockSizing::custom(ShareOfWindow::default()),
        schedule: ScheduleConfig::custom(PatientConfig::default()),
        recovery: RecoveryConfig {
            congestion: CongestionConfig::custom(MineConfig::default()),
            estimator: EstimatorConfig::custom(OverallConfig::default()),
            ..auto.recovery
        },
        ..auto
    }
}

/// Adds the system to those of the program.
fn registry() -> Result<AlgorithmRegistry, NameError> {
    systems::registry()
        .with_controller::<MineConfig>()?
        .with_schedule::<PatientConfig>()?
        .with_sizing::<ShareOfWindow>()?
        .with_estimator::<OverallConfig>()?
        .with_profile(MINE)
}

fn main() -> ExitCode {
    let registry = registry().expect("names that no other system has");
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    // The first argument selects the lab, which starts itself again under its own name.
    let is_lab = |name: &OsString| Path::new(name).ends_with("lab") || Path::new(name).ends_with(lab::NAME);
    match arguments.iter().take(2).position(is_lab) {
        Some(at) => lab::main(arguments.drain(at..), Downpour::This, registry),
        None => cli::main(arguments, registry),
    }
}
