//! `selftest`: the accuracy of this machine's emulation.
//!
//! The endpoints run on the same processors as the emulator, as in an experiment. Each check measures a value that the
//! model knows exactly.

mod checks;
mod traffic;

use std::fmt;
use std::io;
use std::path::Path;

use netsim::{Duplex, Rate};

use crate::emulated::{EmulatedNetwork, EmulationError, Observation};
use crate::exit::{Code, Failure};
use crate::layout::Layout;
use crate::output::say;
use crate::testbed::acquire;
use crate::verdict::RunValidity;

/// Rates to try, in Mbit/s.
const RATES: [u64; 6] = [10, 50, 100, 200, 500, 1000];
/// The attempts at a rate, and the successes it needs: a shared machine has bad moments.
const TRIES: usize = 3;
const TRIES_RIGHT: usize = 2;

/// The result of a check.
struct Finding {
    name: String,
    measured: String,
    wanted: String,
    /// Whether it is right.
    holds: bool,
    verdict: RunValidity,
}

/// The reason for a missing result.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error(transparent)]
    Emulation(#[from] EmulationError),
    #[error("a host's socket failed: {0}")]
    Socket(#[from] io::Error),
}

/// Starts a network for one check, from a link in text form.
fn start(link: &str, keeper: &Path) -> Result<EmulatedNetwork, CheckError> {
    let link: Duplex = link.parse().expect("the links of the checks are right");
    let layout = Layout::pair(&link).expect("the links of the checks are right");
    Ok(EmulatedNetwork::start(layout, keeper)?)
}

/// Runs all checks and prints their results.
///
/// # Errors
/// A machine without namespaces, or one too slow for the lowest rate.
pub fn run() -> Result<u8, Failure> {
    acquire().map_err(|error| Failure::new(Code::Lacking, error))?;
    let keeper = std::env::current_exe().map_err(|error| Failure::new(Code::Other, error))?;
    say(&format!("{:<44} {:<30} {:<24} verdict of the run\n", "check", "measured", "wanted"));
    let mut all_hold = true;
    let findings = [
        checks::same_drops("loss=5%", &keeper),
        checks::same_drops("loss=5%,burst=5", &keeper),
        checks::round_trips(&keeper),
    ];
    for finding in findings {
        all_hold &= is_right(finding)?;
    }
    let mut trusted = None;
    for rate in RATES {
        let mut right = 0;
        for _ in 0..TRIES {
            right += usize::from(is_right(checks::rate(Rate::from_megabits_per_second(rate), &keeper))?);
        }
        if right < TRIES_RIGHT {
            break;
        }
        trusted = Some(rate);
    }
    let Some(rate) = trusted else {
        return Err(Failure::new(
            Code::Invalid,
            format_args!("this machine cannot emulate {} Mbit/s accurately", RATES[0]),
        ));
    };
    say(&format!("accurate up to {rate} Mbit/s, with both ends on this machine\n"));
    if all_hold {
        Ok(Code::Done as u8)
    } else {
        Err(Failure::new(Code::Invalid, "a check failed: see the lines with NO and INVALID"))
    }
}

/// Prints the result of a check; returns whether it is right and the run valid.
fn is_right(finding: Result<Finding, CheckError>) -> Result<bool, Failure> {
    let finding = finding.map_err(|error| Failure::new(Code::Other, error))?;
    say(&format!("{finding}\n"));
    Ok(finding.holds && finding.verdict.is_valid())
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.holds { "" } else { " NO" };
        write!(f, "{:<44} {:<30} {:<24} {}", self.name, self.measured, format!("{}{mark}", self.wanted), self.verdict)
    }
}

/// Stops a network, and judges the run.
fn stop(network: EmulatedNetwork) -> (Observation, RunValidity) {
    let observation = network.stop();
    let verdict = RunValidity::of(&observation);
    (observation, verdict)
}
