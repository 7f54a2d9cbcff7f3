//! The origin of a record: the build, the plan, the machine and its load.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::exit::Failure;

/// The sources on which a result depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The codes alone.
    Codes,
    /// The engine in the simulator.
    Simulated,
    /// The program `downpour`.
    Program,
    /// Other programs, or the kernel.
    Other,
}

impl Engine {
    /// Returns the sources on which the result of peers depends, by their names.
    pub(crate) fn of_peers<'a>(mut peers: impl Iterator<Item = &'a str>) -> Self {
        let is_own = |peer: &str| peer.starts_with("downpour") || peer.starts_with("tunnel");
        if peers.any(is_own) { Self::Program } else { Self::Other }
    }

    /// Returns 16 hexadecimal digits that identify the sources; empty if the result depends on none of this project.
    fn digest(self) -> &'static str {
        match self {
            Self::Codes => env!("BUILD_CODES"),
            Self::Simulated => env!("BUILD_SIMULATED"),
            Self::Program => env!("BUILD_PROGRAM"),
            Self::Other => "",
        }
    }
}

/// The commit that this program was built from, followed by `-dirty` if sources differed from it.
pub(crate) const COMMIT: Option<&str> = option_env!("BUILD_COMMIT");

/// The origin of a record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// The commit of the build, followed by `-dirty` if the sources differed from it; empty if not known.
    pub commit: String,
    /// Digest of the sources on which the result depends; empty for other programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Digest of the plan's text.
    pub plan: String,
    /// All settings of each profile involved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<String>,
    /// Processor, number of its cores, and release of the kernel.
    pub machine: String,
    /// Runnable processes at the end of the run, as a mean of the last minute.
    pub load: f64,
}

/// Creates [`Origin`] for the runs of one plan.
#[derive(Clone, Debug)]
pub(crate) struct OriginBuilder {
    plan: String,
    machine: String,
}

impl OriginBuilder {
    /// # Errors
    /// A plan that cannot be read.
    pub(crate) fn new(plan: &Path) -> Result<Self, Failure> {
        let text = fs::read(plan).map_err(Failure::at(plan))?;
        Ok(Self { plan: blake3::hash(&text).to_hex()[..16].to_owned(), machine: machine() })
    }

    /// Returns the origin of a run that ends now.
    pub(crate) fn made(&self, engine: Engine, profiles: Vec<String>) -> Origin {
        Origin {
            commit: COMMIT.unwrap_or_default().to_owned(),
            engine: engine.digest().to_owned(),
            plan: self.plan.clone(),
            profiles,
            machine: self.machine.clone(),
            load: load(),
        }
    }
}

/// Returns the build in a record's origin: records of different builds enter no common median.
pub(crate) fn build(made: Option<&Origin>) -> &str {
    made.map_or("", |made| &made.engine)
}

/// Returns whether the sources on which a result depends have changed since, or are not known.
pub(crate) fn is_stale(made: Option<&Origin>, engine: Engine) -> bool {
    engine != Engine::Other && build(made) != engine.digest()
}

/// Keeps the records of the build that made the last one.
pub(crate) fn of_one_build<'a, R>(records: &mut Vec<&'a R>, of: fn(&R) -> (&str, Option<&Origin>)) {
    let Some(last) = records.iter().max_by_key(|record| of(record).0).map(|record| build(of(record).1).to_owned())
    else {
        return;
    };
    records.retain(|record| build(of(record).1) == last);
}

/// Returns the processor's name as the kernel reports it.
pub(crate) fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    name.and_then(|name| name.split_once(": ")).map_or("unknown", |(_, name)| name).to_owned()
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    format!("{}, {}, Linux {kernel}", processor(), units::count(cores, "core", "cores"))
}

fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|mean| mean.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns the origin of a build with this digest.
    pub(crate) fn by(engine: &str) -> Option<Origin> {
        Some(Origin { engine: engine.to_owned(), ..Origin::default() })
    }

    #[test]
    fn is_stale_after_a_change_of_sources() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let maker = OriginBuilder::new(file.path()).expect("a plan");
        for engine in [Engine::Codes, Engine::Simulated, Engine::Program] {
            let made = maker.made(engine, Vec::new());
            assert_eq!((made.engine.len(), made.plan.len()), (16, 16), "{made:?}");
            assert!(!is_stale(Some(&made), engine));
            assert!(is_stale(by("0123456789abcdef").as_ref(), engine) && is_stale(None, engine));
        }
        assert_ne!(Engine::Codes.digest(), Engine::Simulated.digest());
        // The kernel's TCP does not depend on this project's sources.
        assert!(!is_stale(None, Engine::of_peers(["tcp-cubic", "scp-cubic"].into_iter())));
        assert!(is_stale(None, Engine::of_peers(["tcp-cubic", "downpour-arq"].into_iter())));
        assert!(is_stale(None, Engine::of_peers(["tunnel-told"].into_iter())));
    }

    #[test]
    fn of_one_build_keeps_the_last_build() {
        let records = [("1", by("old")), ("3", by("new")), ("2", by("old")), ("4", by("new"))];
        let mut found: Vec<_> = records.iter().collect();
        of_one_build(&mut found, |(date, made)| (date, made.as_ref()));
        assert_eq!(found.iter().map(|(date, _)| *date).collect::<Vec<_>>(), ["3", "4"]);
    }
}
