//! The search that is guided by coverage: cargo-fuzz, with a nightly toolchain.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

use super::{Reached, Searched, Target};
use xtask::failure::Failure;
use xtask::tools;

/// Returns whether there is a cargo-fuzz.
pub(super) fn is_possible() -> bool {
    tools::answers(tools::cargo_nightly().args(["fuzz", "--version"]))
}

/// Searches for `time`, after a build that may take minutes. What cargo-fuzz finds interesting goes to a folder of its
/// own: the committed corpus only grows by hand.
pub(super) fn search(target: Target, seed: u32, time: Duration) -> Result<Searched, Failure> {
    let found = tools::target()?.join("fuzz-corpus").join(target.name);
    fs::create_dir_all(&found).map_err(Failure::at(found.display()))?;
    println!("{}: seed {seed}, guided by coverage, {} s", target.name, time.as_secs());
    let mut command = tools::cargo_nightly();
    command.args(["fuzz", "run", target.name]).arg(found).arg(format!("fuzz/corpus/{}", target.name));
    command.args(["--", "-timeout=10", "-print_final_stats=1", "-artifact_prefix=fuzz/crashes/"]);
    command.args([format!("-seed={seed}"), format!("-max_total_time={}", time.as_secs())]);
    let failed = |error| Failure::new(format_args!("cargo +nightly fuzz: {error}"));
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut told = Told::default();
    for line in BufReader::new(child.stderr.take().expect("it is piped")).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
        eprintln!("{line}");
        told.read(&line);
    }
    let status = child.wait().map_err(failed)?;
    let name = target.name;
    match (status.success(), told) {
        (true, Told { inputs: Some(inputs), reached, .. }) => Ok(Searched { inputs, reached }),
        (_, Told { artifact: Some(file), .. }) => {
            Err(Failure::new(format_args!("{name} broke\nagain: cargo xtask fuzz {name} --replay {file}")))
        }
        _ => Err(Failure::new(format_args!("{name}: cargo-fuzz ended with {status} before the time was up"))),
    }
}

/// What libFuzzer has said of its search.
#[derive(Debug, Default, PartialEq)]
struct Told {
    inputs: Option<u64>,
    reached: Option<Reached>,
    /// The file of an input that broke something.
    artifact: Option<String>,
}

impl Told {
    fn read(&mut self, line: &str) {
        let words: Vec<_> = line.split_whitespace().collect();
        // The size of a corpus has its bytes behind a slash.
        let after = |label: &str| {
            let at = words.iter().position(|word| *word == label)?;
            words.get(at + 1)?.split('/').next()?.parse().ok()
        };
        if let (Some(edges), Some(features), Some(inputs)) = (after("cov:"), after("ft:"), after("corp:")) {
            self.reached = Some(Reached { edges, features, inputs });
        }
        self.inputs = after("stat::number_of_executed_units:").or(self.inputs);
        if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.artifact = Some(file.trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_libfuzzer_are_read() {
        let mut told = Told::default();
        for line in [
            "INFO: seed corpus: files: 7 min: 1b max: 1200b total: 5000b rss: 45Mb",
            "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 46Mb",
            "#155546\tDONE   cov: 1983 ft: 2810 corp: 94/15180b lim: 1810 exec/s: 258 rss: 454Mb",
            "Done 155546 runs in 601 second(s)",
            "stat::number_of_executed_units: 155546",
            "stat::average_exec_per_sec:     258",
        ] {
            told.read(line);
        }
        let reached = Reached { edges: 1983, features: 2810, inputs: 94 };
        assert_eq!(told, Told { inputs: Some(155_546), reached: Some(reached), artifact: None });
        told.read("artifact_prefix='fuzz/crashes/'; Test unit written to fuzz/crashes/crash-12ab");
        assert_eq!(told.artifact.as_deref(), Some("fuzz/crashes/crash-12ab"));
    }
}
