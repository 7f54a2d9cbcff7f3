//! A dry run reports the changes of the run: random trees over random targets, with names deleted.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use downpour_store::{
    BatchSource, Existing, FileSink, Filter, Modes, Notice, NoticeKind, ReceiveOutcome, ReceiveRequest, RequestedItems,
    Scanner, SourceItem, SourceOptions,
};
use tempfile::tempdir;

use crate::common::{BLOCK, Control, SnapshotEntry, noise, send_block, snapshot};

/// Number of random trees.
const TREES: u64 = 300;

/// Random numbers that are equal in every run of the test.
struct Random(Vec<u8>);

impl Random {
    fn new(seed: u64) -> Self {
        Self(noise(4096, seed))
    }

    fn below(&mut self, most: u8) -> u8 {
        self.0.pop().unwrap_or_default() % most
    }
}

/// Fills a directory with a few names, which trees and targets have in common.
fn grow(directory: &Path, random: &mut Random, depth: u8) {
    for name in ["a", "b", "c.keep", "d"] {
        let path = directory.join(name);
        match random.below(7) {
            0 | 1 => {
                fs::create_dir(&path).unwrap();
                if depth > 0 {
                    grow(&path, random, depth - 1);
                }
            }
            2 => fs::write(&path, [random.below(2)]).unwrap(),
            3 => fs::write(&path, b"").unwrap(),
            4 => symlink(["a", "b"][usize::from(random.below(2))], &path).unwrap(),
            5 if directory.join("a").is_file() => fs::hard_link(directory.join("a"), &path).unwrap_or_default(),
            _ => {}
        }
    }
}

/// The notices and counters of a run.
struct RunResult {
    outcome: ReceiveOutcome,
    notices: Vec<Notice>,
}

impl RunResult {
    /// Returns the paths with a notice of this kind.
    fn paths_with(&self, kind: NoticeKind) -> Vec<Vec<u8>> {
        let mut paths: Vec<_> =
            self.notices.iter().filter(|notice| notice.kind == kind).map(|notice| notice.path.clone()).collect();
        paths.sort();
        paths
    }

    fn failures(&self) -> Vec<(u8, Vec<u8>)> {
        let failed = self.notices.iter().filter(|notice| notice.kind.is_failure());
        let mut failed: Vec<_> = failed.map(|notice| (notice.kind as u8, notice.path.clone())).collect();
        failed.sort();
        failed
    }

    fn counts(&self) -> [u64; 8] {
        let ReceiveOutcome { files, bytes, unchanged, present, directories, symlinks, deleted, failed_count, .. } =
            self.outcome;
        [files, bytes, unchanged, present, directories, symlinks, deleted, failed_count]
    }
}

fn run(from: &Path, filter: &Filter, spec: ReceiveRequest) -> RunResult {
    let options = SourceOptions { hard_links: true, filter: Arc::new(filter.clone()), ..SourceOptions::default() };
    let root = if spec.requested.contents { SourceItem::contents(from) } else { SourceItem::new(from) };
    let scanner = Scanner::new(vec![root], options).unwrap();
    let (roots, dry_run) = (scanner.roots(), spec.dry_run);
    let receiving = FileSink::with_target(Arc::new(spec), false).unwrap();
    let mut control = Control::begin(&receiving).unwrap();
    let mut notices = Vec::new();
    for batch in scanner {
        let batch = Arc::new(batch);
        control.send_manifest(&batch).unwrap();
        if !dry_run {
            let source = BatchSource::new(Arc::clone(&batch), Arc::clone(&roots), control.wanted.clone());
            for block in 0..u32::try_from(source.length().div_ceil(BLOCK as u64)).unwrap() {
                send_block(&mut control, &source, batch.number, block, true).unwrap();
            }
        }
        notices.extend(receiving.take_notices());
    }
    let outcome = receiving.finish(&control.end()).unwrap();
    notices.extend(receiving.take_notices());
    RunResult { outcome, notices }
}

fn paths_of<'a>(
    found: &'a BTreeMap<Vec<u8>, SnapshotEntry>,
    holds: impl Fn(&Vec<u8>, &SnapshotEntry) -> bool + 'a,
) -> impl Iterator<Item = &'a Vec<u8>> {
    found.iter().filter(move |(path, found)| holds(path, found)).map(|(path, _)| path)
}

#[test]
fn dry_run_lists_changes_of_the_run() {
    let mut cleared = 0;
    for seed in 0..TREES {
        let (dir, mut random) = (tempdir().unwrap(), Random::new(seed));
        let (from, to) = (dir.path().join("tree"), dir.path().join("to"));
        let contents = random.below(2) == 0;
        let copy = if contents { to.clone() } else { to.join("copy") };
        for root in [&from, &copy] {
            fs::create_dir_all(root).unwrap();
            grow(root, &mut random, 2);
        }
        // Otherwise nothing is deleted.
        fs::write(from.join("filled"), b"x").unwrap();
        let rules: [&[u8]; 4] = [b"", b"- *.keep\n", b"- b/\n", b"- /tree/*/b\n- /*/b\n"];
        let filter = Filter::parse(rules[usize::from(random.below(4))]).unwrap();
        let max_delete = [None, None, Some(0), Some(2)][usize::from(random.below(4))];
        let requested = RequestedItems { contents, many: contents, ..RequestedItems::default() };
        let spec = ReceiveRequest {
            existing: Existing::Replace,
            modes: Modes::Exact,
            delete: Some(filter.clone()),
            max_delete,
            requested,
            ..ReceiveRequest::to_target(&copy)
        };
        let before = snapshot(&copy);
        let planned = run(&from, &filter, ReceiveRequest { dry_run: true, ..spec.clone() });
        assert_eq!(snapshot(&copy), before, "seed {seed}: a dry run changes nothing");
        let done = run(&from, &filter, spec);
        let after = snapshot(&copy);

        assert_eq!(planned.paths_with(NoticeKind::Delete), done.paths_with(NoticeKind::Delete), "seed {seed}: deleted");
        assert_eq!(planned.failures(), done.failures(), "seed {seed}: failed");
        assert_eq!(planned.counts(), done.counts(), "seed {seed}: counts");
        let named = |path: &[u8]| {
            let joined = if contents { Path::new("").to_owned() } else { Path::new("copy").to_owned() };
            joined.join(Path::new(std::ffi::OsStr::from_bytes(path))).into_os_string().as_bytes().to_vec()
        };
        let create: Vec<_> = paths_of(&after, |path, _| !before.contains_key(path)).map(|path| named(path)).collect();
        assert_eq!(planned.paths_with(NoticeKind::Create), create, "seed {seed}: created");
        let listed = |kind, path: &[u8]| planned.paths_with(kind).contains(&named(path));
        for path in paths_of(&before, |path, _| !after.contains_key(path)) {
            assert!(listed(NoticeKind::Delete, path), "seed {seed}: {} is gone", path.escape_ascii());
        }
        for (path, was) in
            before.iter().filter(|(path, was)| after.get(*path).is_some_and(|is| is.content != was.content))
        {
            assert!(listed(NoticeKind::Replace, path), "seed {seed}: {} is another", path.escape_ascii());
            cleared += u64::from(was.content == "directory");
        }
    }
    assert!(cleared > TREES / 10, "only {cleared} directories were replaced");
}
