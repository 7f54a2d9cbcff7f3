//! `cargo xtask fuzz`: cargo-fuzz for everything that reads bytes from strangers.
//!
//! The targets are functions of their crates that panic where a rule is broken, each with a file in `fuzz/fuzz_targets`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;

use xtask::failure::Failure;
use xtask::tools;

/// The options of `fuzz`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// One target [default: all, one after the other]
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// The figures of a search without a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Searched {
    /// Inputs given to the target.
    pub(crate) inputs: u64,
    pub(crate) reached: Reached,
}

/// libFuzzer's figures: the edges of the program reached, their combinations with counts, and the inputs that reach all
/// of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) edges: u64,
    pub(crate) features: u64,
    pub(crate) inputs: u64,
}

/// Searches; an error lists the broken targets.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    require()?;
    let mut targets = targets()?;
    if let Some(chosen) = &options.target {
        if !targets.contains(chosen) {
            return Err(Failure::new(format_args!("the targets are {}", targets.join(", "))));
        }
        targets.retain(|target| target == chosen);
    }
    let mut broken = Vec::new();
    for target in targets {
        if let Err(failure) = search(&target, Duration::from_secs(options.seconds)) {
            eprintln!("{failure}");
            broken.push(target);
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(Failure::new(format_args!("broken: {}", broken.join(", ")))) }
}

/// An error that names the missing tool.
pub(crate) fn require() -> Result<(), Failure> {
    if !tools::answers(tools::cargo_nightly().arg("--version")) {
        return Err(Failure::new("no nightly toolchain (rustup toolchain install nightly)"));
    }
    if !tools::answers(tools::cargo_nightly().args(["fuzz", "--version"])) {
        return Err(Failure::new("no cargo-fuzz (cargo install --locked cargo-fuzz)"));
    }
    Ok(())
}

/// The names of the targets, which are those of their corpora too.
pub(crate) fn targets() -> Result<Vec<String>, Failure> {
    let files = tools::files(&tools::root().join("fuzz/fuzz_targets"), Some("rs"))?;
    let name = |file: PathBuf| file.file_stem().map(|name| name.to_string_lossy().into_owned());
    Ok(files.into_iter().filter_map(name).collect())
}

/// Searches one target for `time`, after a build that may take minutes. Interesting inputs of cargo-fuzz go to a
/// separate directory: the committed corpus only grows by hand.
///
/// # Errors
/// The broken input, with the command that replays it; no cargo-fuzz.
pub(crate) fn search(target: &str, time: Duration) -> Result<Searched, Failure> {
    let found = tools::target()?.join("fuzz-corpus").join(target);
    // libFuzzer does not make the directory of its artifacts.
    for directory in [&found, &tools::root().join("fuzz/crashes")] {
        fs::create_dir_all(directory).map_err(Failure::at(directory.display()))?;
    }
    println!("{target}: {} s", time.as_secs());
    let mut command = tools::cargo_nightly();
    command.args(["fuzz", "run", target]).arg(found).arg(format!("fuzz/corpus/{target}"));
    command.args(["--", "-timeout=10", "-print_final_stats=1", "-artifact_prefix=fuzz/crashes/"]);
    command.arg(format!("-max_total_time={}", time.as_secs()));
    let failed = |error| Failure::new(format_args!("cargo +nightly fuzz: {error}"));
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    let mut printed = Printed::default();
    for line in BufReader::new(child.stderr.take().expect("it is piped")).split(b'\n') {
        let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
        eprintln!("{line}");
        printed.read(&line);
    }
    let status = child.wait().map_err(failed)?;
    match (status.success(), printed) {
        (true, Printed { inputs: Some(inputs), reached: Some(reached), .. }) => Ok(Searched { inputs, reached }),
        (_, Printed { artifact: Some(file), .. }) => {
            Err(Failure::new(format_args!("{target} broke\nagain: cargo +nightly fuzz run {target} {file}")))
        }
        _ => Err(Failure::new(format_args!("{target}: cargo-fuzz ended with {status} before the time was up"))),
    }
}

/// The output of libFuzzer about its search.
#[derive(Debug, Default, PartialEq)]
struct Printed {
    inputs: Option<u64>,
    reached: Option<Reached>,
    /// The file of an input that broke something.
    artifact: Option<String>,
}

impl Printed {
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
        let mut printed = Printed::default();
        for line in [
            "INFO: seed corpus: files: 7 min: 1b max: 1200b total: 5000b rss: 45Mb",
            "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 46Mb",
            "#155546\tDONE   cov: 1983 ft: 2810 corp: 94/15180b lim: 1810 exec/s: 258 rss: 454Mb",
            "Done 155546 runs in 601 second(s)",
            "stat::number_of_executed_units: 155546",
            "stat::average_exec_per_sec:     258",
        ] {
            printed.read(line);
        }
        let reached = Reached { edges: 1983, features: 2810, inputs: 94 };
        assert_eq!(printed, Printed { inputs: Some(155_546), reached: Some(reached), artifact: None });
        printed.read("artifact_prefix='fuzz/crashes/'; Test unit written to fuzz/crashes/crash-12ab");
        assert_eq!(printed.artifact.as_deref(), Some("fuzz/crashes/crash-12ab"));
    }
}
