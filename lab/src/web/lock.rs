//! The lock of the machine: real programs and timed codes are measured alone; demonstrations play in parallel.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::experiment_index::ExperimentIndex;
use super::lock;
use super::refusal::Refusal;
use super::testing::running;

const ALONE: &str = "real programs and timed codes are measured alone";

/// The lock that rooms take before they start work.
#[derive(Debug)]
pub(super) struct MeasurementLock {
    experiments: Arc<ExperimentIndex>,
    given: Mutex<CurrentWork>,
}

/// The current work of the rooms: each keeps a clone meanwhile.
#[derive(Debug, Default)]
struct CurrentWork {
    demonstrations: Arc<()>,
    measurements: Arc<()>,
}

/// The right to play or to measure while it exists.
#[derive(Debug)]
#[must_use]
pub(super) struct LockGuard {
    _given: Arc<()>,
}

impl LockGuard {
    fn of(given: &Arc<()>) -> Self {
        Self { _given: Arc::clone(given) }
    }
}

impl MeasurementLock {
    pub(super) fn new(experiments: Arc<ExperimentIndex>) -> Arc<Self> {
        Arc::new(Self { experiments, given: Mutex::default() })
    }

    /// Takes the right to play a demonstration, until the guard is dropped. Reads directories.
    ///
    /// # Errors
    /// A measurement runs, on this page or in a terminal.
    pub(super) fn play(&self) -> Result<LockGuard, Refusal> {
        let refuse = |name: &str| {
            Refusal::conflict(format_args!("{name} runs, and {ALONE}: wait until it has ended, or stop it in Testing"))
        };
        let running: BTreeMap<String, bool> = running(&self.experiments);
        if let Some((name, _)) = running.iter().find(|(_, needs_quiet)| **needs_quiet) {
            return Err(refuse(name));
        }
        let given = lock(&self.given);
        match Arc::strong_count(&given.measurements) {
            1 => Ok(LockGuard::of(&given.demonstrations)),
            _ => Err(refuse("another plan")),
        }
    }

    /// Takes the right to start a measurement. It may be dropped once the run has the lock of its records.
    ///
    /// # Errors
    /// A demonstration plays.
    pub(super) fn measure(&self) -> Result<LockGuard, Refusal> {
        let given = lock(&self.given);
        match Arc::strong_count(&given.demonstrations) {
            1 => Ok(LockGuard::of(&given.measurements)),
            _ => Err(Refusal::conflict(format_args!(
                "a demonstration plays, and {ALONE}: wait until it has ended, or stop it"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{PLAN, Store, write};

    #[test]
    fn measurements_and_demonstrations_exclude_each_other() {
        let home = tempfile::tempdir().expect("a directory");
        let measurement_lock = MeasurementLock::new(Arc::new(ExperimentIndex::of(None, home.path().to_owned())));
        let (first, second) = (
            measurement_lock.play().expect("nothing runs"),
            measurement_lock.play().expect("they play beside each other"),
        );
        drop(first);
        let refused = measurement_lock.measure().expect_err("one plays").to_string();
        assert!(refused.starts_with("a demonstration plays, and real programs"), "{refused}");
        drop(second);
        let measured = measurement_lock.measure().expect("none plays");
        let refused = measurement_lock.play().expect_err("it begins").to_string();
        assert!(refused.starts_with("another plan runs, and real programs"), "{refused}");
        drop(measured);

        // Started outside of this program.
        let put = |name: &str, peers: &str| {
            let text = format!(
                "name = \"{name}\"\ntitle = \"x\"\nlink = \"rate=10M\"\ncap = \"60s\"\n{peers}\n\
                 [[sweep]]\nname = \"x\"\nvary = \"link.delay\"\nvalues = [\"5ms\"]\n"
            );
            write(&home.path().join(name).join(PLAN), text.as_bytes()).expect("written");
            Store::open(&home.path().join(name)).expect("a new directory")
        };
        let _simulated = put("one", "[[flow]]\nname = \"a\"\nprofile = \"auto\"\nsize = \"1MB\"");
        drop(measurement_lock.play().expect("it runs in virtual time"));
        let real = put("two", "[[flow]]\nname = \"a\"\npeer = \"tcp-cubic\"\nsize = \"1MB\"");
        let refused = measurement_lock.play().expect_err("it runs").to_string();
        assert!(refused.starts_with("lab-results/two runs, and real programs"), "{refused}");
        drop(real);
        measurement_lock.play().map(drop).expect("it has ended");
    }
}
