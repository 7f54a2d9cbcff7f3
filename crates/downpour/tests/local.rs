//! Copies within a host, in virtual time.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use downpour::remote::{HostCopy, Location, copy};
use downpour::{Error, Rate, Summary};
use runtime::{Virtual, VirtualBuilder};

/// Copies the contents of `from` to `to` on threads of `runtime`.
fn copy_within(runtime: &Arc<Virtual>, from: &Path, to: &Path, limit: Option<Rate>) -> Result<Summary, Error> {
    let mut asked = HostCopy::new(vec![Location::Local(from.to_owned())], Location::Local(to.to_owned()));
    asked.options.engine.profile.limit = limit;
    let entered = runtime::enter(Arc::clone(runtime) as _);
    let transfer = copy(asked);
    // This thread does not wait by the runtime, whose clock would stop.
    drop(entered);
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(transfer?.finish())
}

fn tree(files: usize, size: usize) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::create_dir(directory.path().join("tree")).expect("a tree");
    for n in 0..files {
        fs::write(directory.path().join(format!("tree/{n}")), contents(n, size)).expect("a file");
    }
    directory
}

/// Returns the contents of the file of this number, by which it differs from the others.
fn contents(n: usize, size: usize) -> Vec<u8> {
    vec![u8::try_from(n).expect("a small number"); size]
}

fn assert_whole(copied: &Path, files: usize, size: usize) {
    for n in 0..files {
        assert!(fs::read(copied.join(n.to_string())).expect("a copy") == contents(n, size), "{n}");
    }
}

#[test]
fn a_limit_holds_for_an_hour() {
    const FILES: usize = 36;
    const SIZE: usize = 100_000;
    let (from, to) = (tree(FILES, SIZE), tempfile::tempdir().unwrap());
    let runtime = Arc::new(VirtualBuilder::default().build());
    // 1 kB a second, so that 3.6 MB take an hour.
    let limit = Some(Rate::from_bits_per_second(8000));
    let summary = copy_within(&runtime, &from.path().join("tree"), &to.path().join("tree"), limit).unwrap();
    assert_whole(&to.path().join("tree"), FILES, SIZE);
    assert_eq!(summary.bytes.total, (FILES * SIZE) as u64);
    let took = runtime.elapsed();
    assert!((Duration::from_secs(3_590)..Duration::from_secs(3_650)).contains(&took), "{took:?}");
    assert!(summary.elapsed.abs_diff(took) < Duration::from_secs(1), "{:?}", summary.elapsed);
}

#[test]
fn local_copy_no_thread_reported_no_partial_file() {
    const FILES: usize = 5;
    const SIZE: usize = 3_000_000;
    // This one, the session, the walk, the one that settles, and the one that waits for the disk.
    const NEEDED: usize = 5;
    let from = tree(FILES, SIZE);
    for most_threads in 1..=NEEDED {
        let to = tempfile::tempdir().unwrap();
        let runtime = Arc::new(VirtualBuilder { most_threads, ..VirtualBuilder::default() }.build());
        let (source, target) = (from.path().join("tree"), to.path().join("tree"));
        let Err(error) = copy_within(&runtime, &source, &target, None) else {
            // Two of them may have ended before the last one is started.
            assert!(most_threads > 2, "{most_threads} threads are not enough");
            assert_whole(&target, FILES, SIZE);
            continue;
        };
        assert!(most_threads < NEEDED && error.to_string().contains("no more threads"), "{most_threads}: {error}");
        for n in 0..FILES {
            let is_whole = |copied: Vec<u8>| copied.len() == SIZE;
            assert!(fs::read(target.join(n.to_string())).ok().is_none_or(is_whole), "{n} with {most_threads} threads");
        }
    }
}
