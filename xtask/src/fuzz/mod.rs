//! `cargo xtask fuzz`: hostile bytes for everything that reads bytes.
//!
//! The targets are plain functions of their crates that panic where a rule is broken. With cargo-fuzz and a nightly
//! toolchain, coverage guides the search; without, inputs are mutations of the committed corpora. Each follows from the
//! seed and its number alone, so a run can be repeated from any point, whatever became of the process.

mod guided;
mod mutate;
mod search;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use erasure::BlockCode;

use search::Search;
use xtask::failure::Failure;
use xtask::tools;

/// What `fuzz` understands.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// One target [default: all, one after the other]
    #[arg(value_parser = target)]
    target: Option<Target>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Repeat the search of this seed
    #[arg(long)]
    seed: Option<u64>,
    /// Start at this input of the seed
    #[arg(long, requires = "seed", default_value_t = 0)]
    from: u64,
    /// Only feed this file to the target
    #[arg(long, value_name = "FILE", requires = "target")]
    replay: Option<PathBuf>,
    /// Of the decoders only this code's; searches without coverage
    #[arg(long, value_name = "NAME", requires = "target")]
    code: Option<BlockCode>,
    /// Search here even where cargo-fuzz could
    #[arg(long)]
    plain: bool,
}

/// Something that reads bytes from strangers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Its name, and that of its corpus.
    pub(crate) name: &'static str,
    function: fn(&[u8]),
}

/// Same names as in `fuzz/fuzz_targets`.
pub(crate) const TARGETS: [Target; 14] = [
    Target { name: "wire", function: transport::wire::fuzzing::fuzz_wire },
    Target { name: "strangers", function: transport::endpoint::fuzzing::fuzz_strangers },
    Target { name: "handshake", function: transport::secure::fuzzing::fuzz_handshake },
    Target { name: "decoder", function: erasure::fuzzing::fuzz_decoder },
    Target { name: "window", function: erasure::fuzzing::fuzz_window },
    Target { name: "connection", function: sim::fuzzing::fuzz_connection },
    Target { name: "messages", function: downpour::messages::fuzz_messages },
    Target { name: "sink", function: downpour::files::fuzzing::fuzz_sink },
    Target { name: "journal", function: downpour::files::fuzzing::fuzz_journal },
    Target { name: "filter", function: downpour::files::fuzzing::fuzz_filter },
    Target { name: "ticket", function: downpour::ticket::fuzzing::fuzz_ticket },
    Target { name: "remote", function: downpour::remote::fuzzing::fuzz_remote },
    Target { name: "tunnel", function: downpour::tunnel::fuzzing::fuzz_tunnel },
    Target { name: "profile", function: transport::profile::fuzzing::fuzz_profile },
];

/// What a search without a failure has tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Searched {
    /// Inputs given to the target.
    pub(crate) inputs: u64,
    /// What a search that is guided by coverage has reached.
    pub(crate) reached: Option<Reached>,
}

/// libFuzzer's figures: the edges of the program that were taken, their combinations with how often they were, and
/// the inputs that reach all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) edges: u64,
    pub(crate) features: u64,
    pub(crate) inputs: u64,
}

fn target(name: &str) -> Result<Target, String> {
    let known = || TARGETS.map(|target| target.name).join(", ");
    TARGETS.into_iter().find(|target| target.name == name).ok_or_else(|| format!("the targets are {}", known()))
}

impl Target {
    /// The committed inputs.
    fn corpus(self) -> Result<Vec<Vec<u8>>, Failure> {
        let files = tools::files(&tools::root().join("fuzz/corpus").join(self.name), None)?;
        files.iter().map(|file| fs::read(file).map_err(Failure::at(file.display()))).collect()
    }
}

/// Searches; an error says which targets broke.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let (Some(file), Some(target)) = (&options.replay, options.target) {
        let input = fs::read(file).map_err(Failure::at(file.display()))?;
        (target.function)(&input);
        println!("{}: {} bytes, nothing broke", target.name, input.len());
        return Ok(());
    }
    if options.code.is_some() && options.target.is_some_and(|target| target.name != "decoder") {
        return Err(Failure::new("--code goes with the target decoder"));
    }
    let guided = !options.plain && options.seed.is_none() && options.code.is_none() && guided::is_possible();
    if !guided {
        println!("Mutations of the corpora, without coverage (for that: a nightly toolchain and cargo-fuzz).");
    }
    let targets = options.target.map_or(TARGETS.to_vec(), |target| vec![target]);
    let mut broken = Vec::new();
    for target in targets {
        let time = Duration::from_secs(options.seconds);
        let result = if guided { search_guided(target, time) } else { search_plainly(target, time, options) };
        if let Err(failure) = result {
            eprintln!("{failure}");
            broken.push(target.name);
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(Failure::new(format_args!("broken: {}", broken.join(", ")))) }
}

/// Where inputs that broke something are kept.
fn crashes() -> PathBuf {
    tools::root().join("fuzz/crashes")
}

/// Searches one target, guided by coverage.
///
/// # Errors
/// What broke, with the command that replays it; no cargo-fuzz.
pub(crate) fn search_guided(target: Target, time: Duration) -> Result<Searched, Failure> {
    // libFuzzer does not make the folder of its artifacts.
    let crashes = crashes();
    fs::create_dir_all(&crashes).map_err(Failure::at(crashes.display()))?;
    // libFuzzer draws a seed of its own for 0.
    guided::search(target, fastrand::u32(1..), time)
}

fn search_plainly(target: Target, time: Duration, options: &Options) -> Result<Searched, Failure> {
    let seed = options.seed.unwrap_or_else(|| fastrand::u64(..));
    // The first byte of an input of the decoders is the code's place in the list.
    let place = |code| BlockCode::ALL.iter().position(|&other| other == code);
    let first = options.code.and_then(place).map(|place| place as u8);
    if let Some(code) = options.code.filter(|_| first.is_none()) {
        return Err(Failure::new(format_args!("the target decoder does not have {code}")));
    }
    let search = Search { target, corpus: target.corpus()?, first, seed, crashes: crashes() };
    search.run(options.from, time)
}
