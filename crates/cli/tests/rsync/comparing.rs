//! Random trees, copied by `downpour sync` and by rsync.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fastrand::Rng;
use rustix::fs::{XattrFlags, lsetxattr};
use tempfile::TempDir;

use crate::case::{Case, Compared, LIST};
use crate::program::command;
use crate::tools::{output_of, words};
use crate::tree::{self, DEFAULT_ACL, Node, Object, Scope, Tree};

/// The first seed, those that follow it, and whether the trees stay where they are.
pub(crate) const SEED: &str = "DOWNPOUR_RSYNC_SEED";
const CASES: &str = "DOWNPOUR_RSYNC_CASES";
const KEEP: &str = "DOWNPOUR_RSYNC_KEEP";

/// The number of differences shown per case.
const MOST_SHOWN: usize = 20;

/// Arguments of `timeout(1)`: rsync may wait for itself for ever, where its own `--timeout` does not help.
const PATIENCE: [&str; 2] = ["10", "rsync"];
/// Its exit code then.
const TIMED_OUT: i32 = 124;

#[test]
#[ignore = "needs rsync: cargo xtask compare-rsync"]
fn sync_target_equals_rsync() {
    let mut home = home();
    let keeps = std::env::var_os(KEEP).is_some();
    home.disable_cleanup(keeps);
    let scope = Scope::of(home.path());
    let (mut with_owners, mut with_xattrs) = (0, 0);
    let differs = |seed: &u64| {
        let case = Case::random(&mut Rng::with_seed(*seed), scope);
        with_owners += u64::from(case.compared.owners && scope.is_root);
        with_xattrs += u64::from(case.compared.xattrs || case.compared.acls);
        let at = home.path().join(seed.to_string());
        let differences = compare(&case, &at).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        if keeps {
            println!("seed {seed} stays in {}", at.display());
        } else {
            fs::remove_dir_all(&at).expect("trees to remove");
        }
        if !differences.is_empty() {
            show(*seed, &case, &differences);
        }
        !differences.is_empty()
    };
    let seeds = seeds(400);
    let differing: Vec<u64> = seeds.clone().filter(differs).collect();
    println!("seeds {seeds:?}, {with_owners} with owners and {with_xattrs} with extended attributes or ACLs");
    assert_eq!(
        differing, [0_u64; 0],
        "seeds that differ; again: {SEED}=N {KEEP}=yes cargo xtask compare-rsync sync_target"
    );
}

/// Returns the seeds of the environment, or this many.
pub(crate) fn seeds(usual: u64) -> Range<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let count = number(CASES).unwrap_or(if number(SEED).is_some() { 1 } else { usual });
    let first = number(SEED).unwrap_or(1);
    first..first + count
}

/// A directory for trees.
pub(crate) fn home() -> TempDir {
    tempfile::Builder::new().prefix("downpour-rsync-").tempdir().expect("a directory")
}

fn show(seed: u64, case: &Case, differences: &[String]) {
    let shown = |words: &[OsString]| words.iter().map(|word| format!(" {word:?}")).collect::<String>();
    println!("seed {seed}:");
    println!("  rsync{}{}", shown(&case.rsync), shown(&case.paths));
    println!("  downpour sync{}{}", shown(&case.downpour), shown(&case.paths));
    for difference in differences.iter().take(MOST_SHOWN) {
        println!("    {difference}");
    }
    if differences.len() > MOST_SHOWN {
        println!("    and {} more", differences.len() - MOST_SHOWN);
    }
}

/// Runs both programs on trees of their own below `at`; returns how they differ.
fn compare(case: &Case, at: &Path) -> io::Result<Vec<String>> {
    let (source, theirs, ours) = (at.join("source"), at.join("rsync"), at.join("downpour"));
    make(case, at, [&theirs, &ours])?;
    let rsync =
        output_of(Command::new("timeout").args(PATIENCE).args(&case.rsync).args(&case.paths).current_dir(&theirs));
    let left_by_rsync = if case.removes { Some(tree::found(&source)?) } else { None };
    if case.removes {
        fs::remove_dir_all(&source)?;
        tree::make(&source, &case.source)?;
    }
    let sync = output_of(&mut sync(case, &ours, &[]));
    if cannot_be_compared(case, &rsync, &sync) {
        return Ok(Vec::new());
    }
    let mut differences = Vec::new();
    let (their_code, our_code) = (rsync.status.code(), sync.status.code());
    // rsync fails on directories that it wants to read where something else is kept.
    if their_code != our_code && !case.compared.kept {
        differences.push(format!("exit codes {their_code:?} and {our_code:?}"));
    }
    if let Some(theirs) = left_by_rsync {
        differences.extend(differing_in_source(&theirs, &tree::found(&source)?));
    }
    differences.extend(differing_at_target(case, &found(&theirs)?, &found(&ours)?));
    if !differences.is_empty() {
        differences.extend([&rsync, &sync].into_iter().flat_map(complaints));
    } else if our_code == Some(0) && !case.removes && !case.repeats() {
        differences.extend(left(case, &ours));
    }
    Ok(differences)
}

/// Makes the source and, for each program, the target.
fn make(case: &Case, at: &Path, directories: [&PathBuf; 2]) -> io::Result<()> {
    fs::create_dir(at)?;
    tree::make(&at.join("source"), &case.source)?;
    if let Some(list) = &case.list {
        fs::write(at.join(LIST), list)?;
    }
    for directory in directories {
        fs::create_dir(directory)?;
        if let Some(target) = &case.target {
            tree::make(&directory.join("target"), target)?;
            if let Some(acl) = &case.inherited {
                lsetxattr(directory.join("target"), DEFAULT_ACL, acl, XattrFlags::empty())?;
            }
        }
    }
    Ok(())
}

/// The command of a case, with these options too.
fn sync(case: &Case, directory: &Path, options: &[&str]) -> Command {
    let mut sync = command(["sync"]);
    sync.args(options).args(&case.downpour).args(&case.paths).current_dir(directory);
    sync
}

/// Whether rsync has broken, or the two programs have failed where they differ on purpose.
fn cannot_be_compared(case: &Case, rsync: &Output, sync: &Output) -> bool {
    // Its two sides have lost each other or wait for each other, as where a directory is in the way of a hard link.
    let is_broken = match rsync.status.code() {
        Some(2 | 12 | TIMED_OUT) => true,
        // It has lost count of its hard links.
        Some(13) => case.compared.hard_links,
        // It gives up at an ACL that it cannot read where it makes backups.
        Some(11) => case.backups.is_some(),
        // It deletes less after it has failed on a directory that it wants to read where something else is kept.
        Some(23) => case.compared.kept && case.deletes(),
        _ => false,
    };
    // A file that replaces a directory with protected names: rsync deletes the unprotected ones, and the directory if
    // only a pattern for directories matches it; downpour keeps all of it.
    let says = |output: &Output, kind: &str| words(&output.stderr).contains(kind);
    let is_in_the_way = says(rsync, "could not make way") || says(sync, "a non-empty directory is in the way");
    // It fails on some paths whose ACLs it wants to read.
    let is_lost = says(rsync, "sys_acl_get_file");
    is_broken || is_lost || (is_in_the_way && (case.deletes() || case.compared.hard_links))
}

/// Returns names that only one of the programs has kept in the source.
fn differing_in_source(theirs: &Tree, ours: &Tree) -> Vec<String> {
    let of_one = names(theirs, ours).filter(|path| theirs.contains_key(*path) != ours.contains_key(*path));
    let differences = of_one.map(|path| {
        let whose = if theirs.contains_key(path) { "rsync" } else { "downpour" };
        format!("source {}: only {whose} has left this", path.as_os_str().as_bytes().escape_ascii())
    });
    differences.collect()
}

fn differing_at_target(case: &Case, theirs: &Tree, ours: &Tree) -> Vec<String> {
    let differences = names(theirs, ours).filter_map(|path| {
        let is_top = path.as_os_str().is_empty();
        let existed = case.target.as_ref().is_some_and(|target| is_top || target.contains_key(path));
        // rsync gives directories of backups more attributes of the original directories.
        let is_directory = ours.get(path).is_some_and(|node| node.object == Object::Directory);
        let is_made = is_directory && case.backups.is_some_and(|backups| path.starts_with(backups));
        // A new target gets the mode of other directories where modes are not preserved.
        let is_default = is_top && case.target.is_none() && case.compared.unpreserved;
        let is_excused = (case.compared.kept && existed) || is_made || is_default;
        let compared = if is_excused { None } else { Some(case.compared) };
        let difference = difference(theirs.get(path), ours.get(path), compared)?;
        Some(format!("{}: {difference}", path.as_os_str().as_bytes().escape_ascii()))
    });
    differences.collect()
}

/// The names in either tree.
pub(crate) fn names<'a>(theirs: &'a Tree, ours: &'a Tree) -> impl Iterator<Item = &'a PathBuf> {
    theirs.keys().chain(ours.keys().filter(|path| !theirs.contains_key(*path)))
}

/// Returns the error output of a program, to be shown below the differences.
pub(crate) fn complaints(output: &Output) -> Vec<String> {
    words(&output.stderr).lines().map(|line| format!("| {line}")).collect()
}

/// Returns the changes that a second run would make.
fn left(case: &Case, directory: &Path) -> Vec<String> {
    let text = words(&output_of(&mut sync(case, directory, &["-n", "--json"])).stdout);
    let is_done = |line: &&str| {
        let says = |kind: &str| line.contains(&format!("\"what\":\"{kind}\""));
        line.contains("\"type\":\"notice\"") && !says("kept") && !says("left_out")
    };
    text.lines().filter(is_done).map(|line| format!("a second run would still do something: {line}")).collect()
}

fn found(directory: &Path) -> io::Result<Tree> {
    match tree::found(&directory.join("target")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Tree::new()),
        found => found,
    }
}

/// Returns how the two results differ under a name, in the object or also in its attributes.
pub(crate) fn difference(theirs: Option<&Node>, ours: Option<&Node>, compared: Option<Compared>) -> Option<String> {
    let (theirs, ours) = match (theirs, ours) {
        (Some(theirs), Some(ours)) => (theirs, ours),
        (None, None) => return None,
        (Some(theirs), None) => return Some(format!("only rsync has this {:?}", theirs.object)),
        (None, Some(ours)) => return Some(format!("only downpour has this {:?}", ours.object)),
    };
    if theirs.object != ours.object && !is_either(theirs, ours, compared) {
        return Some(format!("{:?} and {:?}", theirs.object, ours.object));
    }
    let compared = compared?;
    let excused = if compared.unpreserved { 0o1070 } else { 0 };
    if theirs.mode & !excused != ours.mode & !excused {
        return Some(format!("modes {:o} and {:o}", theirs.mode, ours.mode));
    }
    let is_within = theirs.mtime.0.abs_diff(ours.mtime.0) <= compared.window && compared.window > 0;
    if theirs.mtime != ours.mtime && !is_within && !is_excused(theirs, ours, compared) {
        return Some(format!("times {:?} and {:?}", theirs.mtime, ours.mtime));
    }
    if compared.owners && theirs.owner != ours.owner {
        return Some(format!("owners {:?} and {:?}", theirs.owner, ours.owner));
    }
    let of = |node: &Node, acls: bool| -> Vec<_> {
        node.xattrs.clone().into_iter().filter(|(name, _)| name.starts_with(b"system.posix_acl") == acls).collect()
    };
    for (is_compared, acls) in [(compared.xattrs, false), (compared.acls, true)] {
        // The ACL at the target is that of the file which has both names now.
        let is_left = acls && !compared.acls_copied && is_either(theirs, ours, Some(compared));
        if is_compared && !is_left && of(theirs, acls) != of(ours, acls) {
            return Some(format!("attributes {:?} and {:?}", of(theirs, acls), of(ours, acls)));
        }
    }
    if compared.hard_links && theirs.same_as != ours.same_as {
        return Some(format!("the same file as {:?} and {:?}", theirs.same_as, ours.same_as));
    }
    None
}

/// Whether two files of the same size and time existed, either of which became the one file of both names.
fn is_either(theirs: &Node, ours: &Node, compared: Option<Compared>) -> bool {
    let size = |node: &Node| if let Object::File(content) = &node.object { Some(content.len()) } else { None };
    compared.is_some_and(|compared| compared.hard_links)
        && size(theirs).is_some_and(|theirs| size(ours) == Some(theirs))
        && theirs.mtime == ours.mtime
}

/// Whether the time of a changed directory is not set. downpour makes its staging directory in the target even if it
/// then adds no name.
fn is_excused(theirs: &Node, ours: &Node, compared: Compared) -> bool {
    /// Trees are older than this.
    const NOW: i64 = 1_700_000_000;
    theirs.object == Object::Directory && (ours.mtime.0 > NOW || compared.untimed)
}
