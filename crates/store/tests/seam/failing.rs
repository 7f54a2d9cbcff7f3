//! After any failure, a name at the target has its old content or all of the new file, the error names the path, no
//! source is lost, and the next run completes the rest.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use downpour_store::{Content, Fault, Faults, FilesError, Filter, Node, ReceiveRequest, SourceOptions};
use fastrand::Rng;

use crate::driver::{Done, Way, run};
use crate::places::{Memory, Place as _, SourcePlace as _, TargetPlace as _};
use crate::trees::{Tree, noise, small, time};

/// Number of cases in the test suite. [`CASES`] runs more, [`SEED`] a single one.
const QUICK: u64 = 600;
const CASES: &str = "DOWNPOUR_SEAM_CASES";
const SEED: &str = "DOWNPOUR_SEAM_SEED";

/// The trees at both ends, and the request.
struct Case {
    from: Memory,
    to: Memory,
    sent: Tree,
    existing: Tree,
    deletes: bool,
    removes: bool,
}

impl Case {
    fn new(sent: Tree, existing: Tree, deletes: bool, removes: bool) -> Self {
        let (from, to) = (Memory::new("from"), Memory::new("to"));
        from.put(&sent);
        to.put(&existing);
        Self { from, to, sent, existing, deletes, removes }
    }

    /// Draws trees that have some names in common.
    fn draw(rng: &mut Rng) -> Self {
        let (sent, mut existing) = (draw_tree(rng), Tree::new());
        for (path, node) in &sent {
            match rng.u8(0..5) {
                0..2 => {}
                2 => drop(existing.insert(path.clone(), node.clone())),
                _ => drop(existing.insert(path.clone(), draw_node(rng))),
            }
        }
        for number in 0..rng.u32(0..4) {
            existing.insert(format!("stale{number}").into_bytes(), draw_node(rng));
        }
        // Every parent directory of a name is a directory at this end too.
        let paths: Vec<_> = existing.keys().cloned().collect();
        for path in paths {
            for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
                existing.insert(path[..at].to_vec(), Node::directory(0o755, time(rng.u32(0..50))));
            }
        }
        // A directory with names in it is not replaced by anything else.
        let blocked: Vec<_> = sent
            .iter()
            .filter(|(path, node)| {
                let has_names = existing.keys().any(|name| name.starts_with(&[path.as_slice(), b"/"].concat()));
                node.content != Content::Directory && has_names
            })
            .map(|(path, _)| path.clone())
            .collect();
        existing.retain(|path, _| {
            !blocked.iter().any(|name| path == name || path.starts_with(&[name, &b"/"[..]].concat()))
        });
        let deletes = rng.bool();
        // A name removed at the source would be deleted at the target by the next run.
        Self::new(sent, existing, deletes, !deletes && rng.bool())
    }

    fn run(&self, seed: u64) -> Result<Done, FilesError> {
        let options = SourceOptions { remove_sources: self.removes, ..SourceOptions::default() };
        let delete = self.deletes.then(Filter::default);
        let spec = ReceiveRequest { delete, force_empty: true, report_stored: self.removes, ..self.to.spec() };
        let source = self.from.source_with(options)?;
        let target = self.to.target_with(spec)?;
        // One in four within one host.
        let way = if seed.is_multiple_of(4) { Way::Copied } else { Way::Blocks };
        run((&*source, &*target), way, seed, &mut |_| {})
    }

    fn fail(&self, from: Faults, to: Faults) {
        self.from.0.fail(from);
        self.to.0.fail(to);
    }

    /// Returns the result of a run without failures.
    fn complete(&self) -> Tree {
        let mut tree = self.sent.clone();
        if !self.deletes {
            let stays = |path: &&Vec<u8>| !self.sent.contains_key(*path);
            tree.extend(self.existing.keys().filter(stays).map(|path| (path.clone(), self.existing[path].clone())));
        }
        tree
    }

    /// Runs with failures, judges the result, and runs again without any. Returns the failures.
    fn check(&self, seed: u64, from: Faults, to: Faults) -> Vec<Fault> {
        self.fail(from, to);
        let result = self.run(seed);
        let struck = [&self.from.0, &self.to.0].map(|store| store.faults().struck().to_vec()).concat();
        self.fail(Faults::none(), Faults::none());
        self.judge(&result, &struck);
        let again = self.run(seed + 1).unwrap();
        assert_eq!(again.outcome.failed_count, 0, "{:?}", again.outcome);
        assert_eq!(self.to.tree(), self.complete(), "the second run, after {struck:?} and {result:?}");
        if self.removes {
            let left = self.from.tree();
            assert!(left.values().all(|node| node.content == Content::Directory), "{left:?}");
        }
        struck
    }

    fn judge(&self, result: &Result<Done, FilesError>, struck: &[Fault]) {
        let (now, left) = (self.to.tree(), self.from.tree());
        let names: BTreeSet<_> = self.sent.keys().chain(self.existing.keys()).chain(now.keys()).collect();
        for path in names {
            let (new, old, found) = (self.sent.get(path), self.existing.get(path), now.get(path));
            let what = format!("{}: {old:?} and {new:?} became {found:?}", path.escape_ascii());
            match found {
                // Attributes are set separately from the content.
                Some(found) => {
                    let is = |known: &Node| known.content == found.content;
                    assert!(old.is_some_and(is) || new.is_some_and(is), "{what}");
                    let has_attributes = |known: &Node| (known.mode, known.mtime) == (found.mode, found.mtime);
                    assert!(old.is_some_and(has_attributes) || new.is_some_and(has_attributes), "{what}");
                }
                None => assert!(old.is_none() || (self.deletes && new.is_none()), "{what}"),
            }
            if let Some(new) = new.filter(|_| !left.contains_key(path)) {
                assert!(self.removes && found == Some(new), "lost at both ends: {what}");
            }
        }
        match result {
            Ok(done) => {
                let lied = struck.contains(&Fault::LostPublish);
                let is_partial = done.outcome.is_partial() || done.outcome.delete_left_out;
                assert!(is_partial || lied || now == self.complete(), "{now:?} after {struck:?}");
                assert!(!is_partial || !struck.is_empty(), "{:?}", done.outcome);
            }
            Err(error) => {
                assert!(!struck.is_empty(), "{error}");
                let named = path_of(error).strip_prefix("to").or_else(|_| path_of(error).strip_prefix("from")).unwrap();
                let is_known = |tree: &Tree| tree.keys().any(|path| named == tree_path(path));
                assert!(named == tree_path(b"") || is_known(&self.sent) || is_known(&self.existing), "{error}");
            }
        }
    }
}

/// Returns a path of a tree as the stores show it.
fn tree_path(path: &[u8]) -> PathBuf {
    Path::new("tree").join(OsStr::from_bytes(path))
}

fn path_of(error: &FilesError) -> &Path {
    match error {
        FilesError::DiskFull { path } | FilesError::Io { path, .. } => path,
        other => panic!("the error names no path: {other}"),
    }
}

fn draw_node(rng: &mut Rng) -> Node {
    // Sizes and times differ between any two, except by chance, so that no other version counts as unchanged.
    let (mode, mtime) = (*rng.choice(&[0o644, 0o600, 0o755]).unwrap(), time(rng.u32(..)));
    match rng.u8(0..8) {
        0 => Node::directory(mode | 0o700, mtime),
        1 => Node::symlink(format!("to/{}", rng.u8(..)), mtime),
        2 => Node::file(*b"", mode, mtime),
        _ => Node::file(noise(rng.usize(0..5000), rng.u64(..)), mode, mtime),
    }
}

fn draw_tree(rng: &mut Rng) -> Tree {
    let (mut tree, mut directories) = (Tree::new(), vec![Vec::new()]);
    for number in 0..rng.u32(1..20) {
        let directory = rng.choice(&directories).unwrap();
        let name = format!("{number}").into_bytes();
        let path = if directory.is_empty() { name } else { [directory.as_slice(), b"/", &name].concat() };
        let node = draw_node(rng);
        if node.content == Content::Directory {
            directories.push(path.clone());
        }
        tree.insert(path, node);
    }
    tree
}

#[test]
fn random_faults_leave_old_or_new_content() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(CASES).unwrap_or(QUICK),
    };
    let (mut failures, mut runs) = (BTreeSet::new(), 0);
    for seed in seeds.clone() {
        let result = std::panic::catch_unwind(|| {
            let mut rng = Rng::with_seed(seed);
            let case = Case::draw(&mut rng);
            let faults = |rng: &mut Rng| match rng.bool() {
                true => Faults::seeded(rng.u64(..), rng.u64(2..80)),
                false => Faults::at(rng.u64(0..10), *rng.choice(&Fault::ALL).unwrap()),
            };
            let (from, to) = match rng.u8(0..4) {
                0 => (faults(&mut rng), Faults::none()),
                1 => (faults(&mut rng), faults(&mut rng)),
                _ => (Faults::none(), faults(&mut rng)),
            };
            case.check(seed, from, to)
        });
        let Ok(struck) = result else {
            panic!("seed {seed}; again: {SEED}={seed} cargo test -p downpour-store --test seam random_faults");
        };
        runs += u64::from(!struck.is_empty());
        failures.extend(struck);
    }
    // Otherwise these cases test little.
    let count = seeds.end - seeds.start;
    assert!(count < 100 || (runs * 2 > count && failures.len() == Fault::ALL.len()), "{runs} of {count}: {failures:?}");
}

#[test]
fn each_call_may_fail_in_each_way() {
    let mut existing = small();
    existing.insert(b"other".to_vec(), Node::file(*b"another version", 0o644, time(70)));
    existing.insert(b"dir/stale".to_vec(), Node::file(*b"stale", 0o644, time(71)));
    existing.remove(&b"dir/file"[..]);
    for (deletes, removes) in [(true, false), (false, true)] {
        for fault in Fault::ALL {
            for at_source in [false, true] {
                let calls = (0..).take_while(|call| {
                    let case = Case::new(small(), existing.clone(), deletes, removes);
                    let (fails, works) = (Faults::at(*call, fault), Faults::none());
                    let (from, to) = if at_source { (fails, works) } else { (works, fails) };
                    !case.check(1, from, to).is_empty()
                });
                let calls = calls.count();
                println!("{fault:?} at {calls} calls{}", if at_source { " of the source" } else { "" });
            }
        }
    }
}
