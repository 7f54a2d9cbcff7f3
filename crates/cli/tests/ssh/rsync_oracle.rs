//! Random trees, sources and filters: the target equals that of `rsync -a` with the same arguments.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;

use crate::hosts::{Hosts, at};
use crate::program::Program;
use crate::random::{self, Object, Tree, is_staging, snapshot};
use crate::tools::{find, output_of, words};
use crate::tree;

/// Cases of `cargo xtask test-ssh`; [`CASES`] runs more of them, [`SEED`] a single one.
const QUICK: u64 = 10;
const CASES: &str = "DOWNPOUR_HONEST_CASES";
const SEED: &str = "DOWNPOUR_HONEST_SEED";

const PATTERNS: [&str; 22] = [
    "*.tmp",
    "*.txt",
    "cache",
    "cache/",
    "/a",
    "/d/",
    "/*/a",
    "a/**",
    "**/d",
    "d/***",
    "b.*",
    "[a-d]",
    "[!a-e]",
    ".*",
    "x?y",
    "Gr*",
    "*/",
    "*",
    "back\\slash",
    "\\[1\\]",
    "star\\**",
    "-n",
];

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Local,
}

/// A source as typed, without its host, and the same source for rsync: paths below the directory of the sources.
struct Source {
    typed: OsString,
    for_rsync: Vec<OsString>,
}

/// One copy, made twice.
struct Case {
    hosts: Hosts,
    way: Way,
    source: Source,
    /// The command, its options, and those of rsync.
    command: &'static str,
    options: Vec<OsString>,
    for_rsync: Vec<OsString>,
    hard_links: bool,
}

impl Case {
    fn new(rng: &mut Rng) -> Self {
        let hosts = Hosts::start();
        let way = [Way::Up, Way::Down, Way::Down, Way::Local][rng.usize(..4)];
        let base = base(&hosts, way);
        random::grow(rng, &base, 40, 60_000);
        let contents = rng.u8(0..3) == 0;
        let source = if contents { a_directory(rng, way, &base) } else { any_source(rng, way, &base) };
        let command = ["cp", "sync", "sync"][rng.usize(..3)];
        let (mut options, mut for_rsync) = (Vec::new(), vec!["-a".into()]);
        if command == "cp" {
            // As rsync leaves it, also where it is named.
            options.extend(["-rp", "--links=copy"].map(OsString::from));
        }
        let hard_links = rng.u8(0..3) == 0;
        if hard_links {
            both(&mut options, &mut for_rsync, &["-H"]);
        }
        // rsync sends the parent directories of a listed name that is excluded; downpour sends nothing, since its lists
        // have no rules.
        let is_listed = contents && rng.bool();
        let rules = if is_listed { 0 } else { rng.usize(0..4) };
        for _ in 0..rules {
            let option = ["--include", "--exclude", "--exclude"][rng.usize(..3)];
            let pattern = PATTERNS[rng.usize(..PATTERNS.len())];
            both(&mut options, &mut for_rsync, &[option, pattern]);
        }
        if is_listed {
            let list = hosts.local("list");
            fs::write(&list, names(rng, &base.join(&source.for_rsync[0]))).expect("a list");
            let list = list.to_str().expect("a path that is text");
            both(&mut options, &mut for_rsync, &["--from0", "--files-from", list]);
            for_rsync.push("-r".into());
        } else if command == "sync" && rng.bool() {
            both(&mut options, &mut for_rsync, &["--delete"]);
            options.push("--force-empty".into());
        }
        Self { hosts, way, source, command, options, for_rsync, hard_links }
    }

    /// Returns the targets of downpour and rsync.
    fn targets(&self) -> [PathBuf; 2] {
        let ours = if self.way == Way::Up { self.hosts.remote("ours") } else { self.hosts.local("ours") };
        [ours, self.hosts.local("theirs")]
    }

    /// Returns the exit code and the output of rsync.
    fn rsync(&self, target: &Path) -> (i32, String) {
        let mut rsync = Command::new(find("rsync"));
        rsync.args(&self.for_rsync).arg("--");
        let base = base(&self.hosts, self.way);
        // Not `join`: a slash at the end counts.
        rsync.args(self.source.for_rsync.iter().map(|name| joined([base.as_os_str(), OsStr::new("/"), name])));
        let output = output_of(rsync.arg(target));
        (output.status.code().unwrap_or(-1), format!("{rsync:?}\n{}", words(&output.stderr)))
    }

    /// Returns the exit code and the output of downpour.
    fn downpour(&self) -> (i32, String) {
        let mut command = self.hosts.command(self.command);
        let source = match self.way {
            Way::Down => at(&self.source.typed),
            Way::Up | Way::Local => joined([OsStr::new("from/"), &self.source.typed]),
        };
        let target = if self.way == Way::Up { at("ours") } else { "ours".into() };
        command.args(&self.options).arg("--").arg(source).arg(target);
        let line = format!("{command:?}");
        let ended = Program::start(command).end();
        assert!(!ended.stderr.contains("panicked"), "{line}\n{}", ended.stderr);
        (ended.status.code().unwrap_or(-1), format!("{line}\n{}", ended.stderr))
    }

    /// Returns the entries of a target with the promised attributes.
    fn found(&self, target: &Path) -> Tree {
        let mut tree = snapshot(target);
        if !self.hard_links {
            tree.values_mut().for_each(|found| found.same_as = None);
        }
        tree
    }
}

/// The directory that holds the sources.
fn base(hosts: &Hosts, way: Way) -> PathBuf {
    if way == Way::Down { hosts.sshd.home() } else { hosts.local("from") }
}

fn joined<'a>(parts: impl IntoIterator<Item = &'a OsStr>) -> OsString {
    parts.into_iter().collect()
}

fn both(options: &mut Vec<OsString>, for_rsync: &mut Vec<OsString>, words: &[&str]) {
    for all in [options, for_rsync] {
        all.extend(words.iter().map(OsString::from));
    }
}

/// The contents of a directory.
fn a_directory(rng: &mut Rng, way: Way, base: &Path) -> Source {
    let directories: Vec<PathBuf> =
        directories(base).into_iter().filter(|name| name.components().count() == 1).collect();
    if way == Way::Down && (directories.is_empty() || rng.u8(0..3) == 0) {
        let typed = ["", ".", "./", "~/"][rng.usize(..4)].into();
        return Source { typed, for_rsync: vec!["".into()] };
    }
    let name = if directories.is_empty() {
        OsString::new()
    } else {
        directories[rng.usize(..directories.len())].clone().into()
    };
    let typed = joined([&name, OsStr::new("/")]);
    Source { for_rsync: vec![typed.clone()], typed }
}

/// Draws one object, by its name or below the remote home, or those that a wildcard matches.
fn any_source(rng: &mut Rng, way: Way, base: &Path) -> Source {
    let names = tree::names(base);
    let wildcard = ["*.txt", "*", "?", "[a-d]"][rng.usize(..4)];
    let matching = |name: &PathBuf| {
        let bytes = name.as_os_str().as_bytes();
        match wildcard {
            "*.txt" => bytes.ends_with(b".txt"),
            "?" => bytes.len() == 1,
            "[a-d]" => matches!(bytes, [b'a'..=b'd']),
            _ => !bytes.starts_with(b"."),
        }
    };
    let matched: Vec<OsString> = names.iter().filter(|name| matching(name)).map(OsString::from).collect();
    if way == Way::Down && !matched.is_empty() && rng.bool() {
        return Source { typed: wildcard.into(), for_rsync: matched };
    }
    let name = names[rng.usize(..names.len())].as_os_str();
    let typed = if way == Way::Down && rng.bool() { joined([OsStr::new("~/"), name]) } else { name.into() };
    Source { typed, for_rsync: vec![name.into()] }
}

/// Returns the directories below one.
fn directories(base: &Path) -> Vec<PathBuf> {
    let tree = snapshot(base).into_iter();
    tree.filter(|(_, found)| found.object == Object::Directory).map(|(name, _)| name).collect()
}

/// A list of some names beneath a directory, each with a NUL byte behind it.
fn names(rng: &mut Rng, directory: &Path) -> Vec<u8> {
    let mut list = Vec::new();
    for name in snapshot(directory).keys().filter(|_| rng.u8(0..4) == 0) {
        list.extend_from_slice(name.as_os_str().as_bytes());
        list.push(0);
    }
    list
}

/// The same target twice, with some of the names of the source, of which some are older versions.
fn populate(rng: &mut Rng, case: &Case) {
    let count = rng.usize(0..12);
    for target in case.targets() {
        random::grow(&mut rng.clone(), &target, count, 5_000);
    }
}

fn case(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let case = Case::new(&mut rng);
    populate(&mut rng, &case);
    let [ours, theirs] = case.targets();
    let ((ended, output), (rsync_ended, rsync_output)) = (case.downpour(), case.rsync(&theirs));
    let output = format!("{output}\n{rsync_output}");
    let (found, expected) = (case.found(&ours), case.found(&theirs));
    let differing: Vec<_> = expected.iter().filter(|(name, object)| found.get(*name) != Some(*object)).collect();
    for (name, expected) in &differing {
        eprintln!("{name:?} is {:?}\n  instead of {expected:?}", found.get(*name));
    }
    let surplus: Vec<_> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(differing.is_empty() && surplus.is_empty(), "surplus: {surplus:?}\n{output}");
    assert_eq!(ended, rsync_ended, "{output}");
    assert!(ended != 0 || !tree::names(&ours).iter().any(|name| is_staging(name)), "{output}");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn random_copy_equals_rsync() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(CASES).unwrap_or(QUICK),
    };
    let failed: Vec<u64> = seeds.filter(|seed| std::panic::catch_unwind(|| case(*seed)).is_err()).collect();
    assert_eq!(failed, [0_u64; 0], "seeds that differ; again: {SEED}=N cargo xtask test-ssh random_copy_equals");
}
