//! A peer that sends arbitrary messages to [`store`], and symbols to the decoders of [`erasure`]: plain functions that
//! take bytes as their choices and panic if a rule is broken.
//!
//! Only tests, fuzz targets and `cargo xtask soak` need them, and they use only the public items of these crates, so
//! they are a crate of their own and not released.

mod codes;
mod draws;
mod messages;
mod oracle;
mod request;
mod sender;
mod tree;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use store::{FileSink, ReceiveRequest, TargetPath};

use draws::Draws;
use oracle::Oracle;
use sender::Announcements;
use tree::{Tree, snapshot};

pub use codes::{check_random_code, fuzz_decoder};
pub use messages::fuzz_messages;

/// Passes every input of a corpus in `fuzz/corpus` to its target.
///
/// # Panics
/// If the target does, or if the corpus cannot be read or has fewer than 3 inputs.
pub fn replay(corpus: &str, target: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let paths = fs::read_dir(&directory).expect("a corpus").map(|input| input.expect("an input").path());
    let mut inputs: Vec<_> = paths.collect();
    inputs.sort();
    assert!(inputs.len() >= 3, "{} inputs in {}", inputs.len(), directory.display());
    for input in inputs {
        println!("replaying {}", input.display());
        target(&fs::read(&input).expect("an input"));
    }
}

/// Bytes drawn from a seed: more than a case uses.
const DRAWN: usize = 1024;

/// Interprets `data` as the choices of a user and of a hostile sender, and checks the rule of every receiver: nothing
/// outside the receive request is created, replaced, followed, chmodded or deleted, and every published file is whole.
///
/// A target with files, directories and links is made in a temporary directory. One or two transfers with random
/// requests meet manifests, digests, voids and bytes in any order. The oracle is a second, slow formulation of what the
/// request permits, applied to snapshots of the target before and after each transfer.
///
/// # Panics
/// If the rule is broken, or if there is no temporary directory.
pub fn fuzz_sink(data: &[u8]) {
    run(data);
}

/// The number of targets that a case has opened, and of those refused before the sender connected.
#[derive(Debug, Default, Clone, Copy)]
pub struct Openings {
    /// All targets.
    pub all: u64,
    /// Refused targets.
    pub refused: u64,
}

fn run(data: &[u8]) -> Openings {
    let mut draws = Draws::new(data);
    // In memory: a case writes a dozen files and syncs them.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory");
    let (into, outside) = (dir.path().join("into"), dir.path().join("outside"));
    fs::create_dir(&outside).expect("a new directory");
    fs::write(outside.join("victim"), "victim").expect("a new file");
    tree::populate(&mut draws, &into);
    let original = snapshot(&into);
    let mut openings = Openings::default();
    for _ in 0..=u8::from(draws.one_in(3)) {
        let spec = request::spec(&mut draws, &into);
        let is_open = transfer(&mut draws, &spec, [&into, &outside], &original);
        openings.all += 1;
        openings.refused += u64::from(!is_open);
    }
    openings
}

/// Runs [`fuzz_sink`] with choices that follow from `seed`.
///
/// # Panics
/// If the rule is broken, or if there is no temporary directory.
pub fn check_random_case(seed: u64) -> Openings {
    let mut data = [0; DRAWN];
    blake3::Hasher::new().update(&seed.to_be_bytes()).finalize_xof().fill(&mut data);
    run(&data)
}

/// Runs one transfer into the directory `into` and judges its changes in it and in `outside`. Returns whether the
/// target was opened.
fn transfer(draws: &mut Draws<'_>, spec: &ReceiveRequest, [into, outside]: [&Path; 2], original: &Tree) -> bool {
    let before = (snapshot(into), snapshot(outside));
    let Ok(sink) = FileSink::new(spec.clone()) else {
        assert_eq!(before, (snapshot(into), snapshot(outside)), "a target that was refused");
        return false;
    };
    let mut announcements = Announcements::default();
    if !sender::attack(draws, &sink, &mut announcements) {
        // The remaining writes may be refused too.
        let _ = sink.flush();
        let _ = sink.abandon(draws.one_in(2));
    }
    let after = (snapshot(into), snapshot(outside));
    assert_eq!(before.1, after.1, "outside of the target");
    judge((spec, &announcements), sink.destination(), into, [original, &before.0, &after.0]);
    true
}

/// Judges the change of the tree beneath `into`, which contains `destination`, with the trees before the first
/// transfer, before this one and after it.
fn judge(
    (spec, announcements): (&ReceiveRequest, &Announcements),
    destination: &TargetPath,
    into: &Path,
    [original, before, after]: [&Tree; 3],
) {
    let place = destination.directory.strip_prefix(into).expect("the destination is in the target");
    let place = place.as_os_str().as_bytes();
    let beneath = if place.is_empty() { Vec::new() } else { [place, b"/"].concat() };
    let inside = |tree: &Tree| -> Tree {
        tree.iter().filter_map(|(path, found)| Some((path.strip_prefix(&*beneath)?.to_vec(), found.clone()))).collect()
    };
    let beside = |tree: &Tree| -> Tree {
        let others = tree.iter().filter(|(path, _)| *path != place && !path.starts_with(&beneath));
        others.map(|(path, found)| (path.clone(), found.clone())).collect()
    };
    assert_eq!(beside(before), beside(after), "beside the destination");
    let oracle = Oracle { spec, announcements, rename: destination.rename.as_deref(), original: &inside(original) };
    oracle.judge(&inside(before), &inside(after));
}
