//! `cargo xtask compare-rsync`: random trees copied by `downpour sync` and by the real rsync, which have to leave the
//! same behind.

mod case;
mod odd;
mod tree;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{fs, io};

use clap::Args;
use fastrand::Rng;
use rustix::fs::{XattrFlags, lsetxattr};

use self::case::{Case, Compared, LIST};
use self::tree::{ACL, DEFAULT_ACL, Node, Object, Scope, Tree, acl};
use xtask::failure::Failure;
use xtask::tools;

/// What `compare-rsync` understands.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The first seed; those after it follow
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many
    #[arg(long, default_value_t = 400)]
    cases: u64,
    /// Keep the trees of the last case in this new folder
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// Differences of a case that are shown.
const MOST_SHOWN: usize = 20;

/// Arguments of `timeout(1)`: rsync may wait for itself for ever, where its own `--timeout` does not help.
const PATIENCE: [&str; 2] = ["10", "rsync"];
/// Its exit code then.
const TIMED_OUT: i32 = 124;

/// Compares, and shows each case that differs.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if tools::find("rsync").is_none() {
        return Err(Failure::new("there is no rsync here: on Debian, apt-get install rsync"));
    }
    tools::run(tools::cargo(tools::root()).args(["build", "--quiet", "--package", "cli"]))?;
    let program = tools::target()?.join("debug").join("downpour");
    let home = tempfile::tempdir().map_err(Failure::at("a temporary folder"))?;
    let probe = home.path().join("probe");
    fs::write(&probe, "").map_err(Failure::at("a temporary file"))?;
    let scope = Scope {
        is_root: rustix::process::geteuid().is_root(),
        has_xattrs: lsetxattr(home.path(), "user.probe", b"", XattrFlags::empty()).is_ok(),
        has_acls: lsetxattr(&probe, ACL, &acl(1, 4), XattrFlags::empty()).is_ok(),
    };
    let (mut differing, mut with_owners, mut with_xattrs) = (0, 0, 0);
    for seed in options.seed..options.seed + options.cases {
        let case = Case::random(&mut Rng::with_seed(seed), scope);
        with_owners += u64::from(case.compared.owners && scope.is_root);
        with_xattrs += u64::from(case.compared.xattrs || case.compared.acls);
        let at = home.path().join(seed.to_string());
        let differences = compare(&case, &at, &program).map_err(Failure::at(format_args!("seed {seed}")))?;
        if !differences.is_empty() {
            differing += 1;
            show(seed, &case, &differences);
        }
        match &options.keep {
            Some(keep) if seed + 1 == options.seed + options.cases => {
                fs::rename(&at, keep).map_err(Failure::at(keep.display()))?;
            }
            _ => fs::remove_dir_all(&at).map_err(Failure::at(at.display()))?,
        }
    }
    println!(
        "{} trees copied by both, {with_owners} with owners and {with_xattrs} with extended attributes or ACLs: {differing} differ",
        options.cases
    );
    let seeds = options.seed..options.seed + options.cases.div_ceil(8);
    let (odd, all) = odd::run(seeds, home.path(), &program).map_err(Failure::at("an odd target"))?;
    println!("{all} more on odd file systems and into a drop box: {odd} differ");
    differing += odd;
    if differing > 0 { Err(Failure::new("downpour sync and rsync differ")) } else { Ok(()) }
}

fn show(seed: u64, case: &Case, differences: &[String]) {
    let shown = |words: &[OsString]| words.iter().map(|word| format!(" {word:?}")).collect::<String>();
    println!("seed {seed} (cargo xtask compare-rsync --seed {seed} --cases 1 --keep DIR):");
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
fn compare(case: &Case, at: &Path, program: &Path) -> io::Result<Vec<String>> {
    fs::create_dir(at)?;
    tree::make(&at.join("source"), &case.source)?;
    if let Some(list) = &case.list {
        fs::write(at.join(LIST), list)?;
    }
    let (theirs, ours) = (at.join("rsync"), at.join("downpour"));
    for folder in [&theirs, &ours] {
        fs::create_dir(folder)?;
        if let Some(target) = &case.target {
            tree::make(&folder.join("target"), target)?;
            if let Some(acl) = &case.inherited {
                lsetxattr(folder.join("target"), DEFAULT_ACL, acl, XattrFlags::empty())?;
            }
        }
    }
    let mut rsync = Command::new("timeout");
    let rsync = ran(rsync.args(PATIENCE).args(&case.rsync).args(&case.paths).current_dir(&theirs))?;
    let source = at.join("source");
    let left_by_rsync = if case.removes { Some(tree::found(&source)?) } else { None };
    if case.removes {
        fs::remove_dir_all(&source)?;
        tree::make(&source, &case.source)?;
    }
    let mut sync = command(program, at);
    let sync = ran(sync.arg("sync").args(&case.downpour).args(&case.paths).current_dir(&ours))?;

    // Its two sides have lost each other or wait for each other, as where a folder is in the way of a hard link.
    let is_broken = match rsync.status.code() {
        Some(2 | 12 | TIMED_OUT) => true,
        // It gives up at an ACL that it cannot read where it makes backups.
        Some(11) => case.backups.is_some(),
        // It deletes less after it has failed on a folder that it wants to read where something else is kept.
        Some(23) => case.compared.kept && case.deletes(),
        _ => false,
    };
    // What an exclude pattern protects in a folder that a file is to replace: rsync deletes what it does not protect, and
    // the folder if only the pattern for folders matches it; downpour keeps all of it.
    let says = |output: &Output, words: &str| String::from_utf8_lossy(&output.stderr).contains(words);
    let is_in_the_way = says(&rsync, "could not make way") || says(&sync, "a folder that is not empty is in the way");
    if is_broken || (is_in_the_way && case.deletes()) {
        return Ok(Vec::new());
    }
    let mut differences = Vec::new();
    let (their_code, our_code) = (rsync.status.code(), sync.status.code());
    // rsync fails on folders that it wants to read where something else is kept.
    if their_code != our_code && !case.compared.kept {
        differences.push(format!("exit codes {their_code:?} and {our_code:?}"));
    }
    if let Some(theirs) = left_by_rsync {
        let ours = tree::found(&source)?;
        for path in
            theirs.keys().chain(ours.keys()).filter(|path| theirs.contains_key(*path) != ours.contains_key(*path))
        {
            let whose = if theirs.contains_key(path) { "rsync" } else { "downpour" };
            differences
                .push(format!("source {}: only {whose} has left this", path.as_os_str().as_bytes().escape_ascii()));
        }
    }
    let (theirs, ours) = (found(&theirs)?, found(&ours)?);
    for path in theirs.keys().chain(ours.keys().filter(|path| !theirs.contains_key(*path))) {
        let is_top = path.as_os_str().is_empty();
        let existed = case.target.as_ref().is_some_and(|target| is_top || target.contains_key(path));
        // rsync gives folders of backups further attributes of those that they stand for.
        let is_folder = ours.get(path).is_some_and(|node| node.object == Object::Folder);
        let is_made = is_folder && case.backups.is_some_and(|backups| path.starts_with(backups));
        let compared = if (case.compared.kept && existed) || is_made { None } else { Some(case.compared) };
        differences.extend(difference(theirs.get(path), ours.get(path), compared).map(|difference| {
            let name = path.as_os_str().as_bytes().escape_ascii();
            format!("{name}: {difference}")
        }));
    }
    if !differences.is_empty() {
        for output in [&rsync, &sync] {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            differences.extend(text.lines().map(|line| format!("| {line}")));
        }
    } else if our_code == Some(0) && !case.removes {
        differences.extend(left(case, at, program)?);
    }
    Ok(differences)
}

/// What a second run would still do.
fn left(case: &Case, at: &Path, program: &Path) -> io::Result<Vec<String>> {
    let mut again = command(program, at);
    again.arg("sync").args(["-n", "--json"]).args(&case.downpour).args(&case.paths).current_dir(at.join("downpour"));
    let text = ran(&mut again)?.stdout;
    let text = String::from_utf8_lossy(&text);
    let is_done = |line: &&str| {
        let says = |what: &str| line.contains(&format!("\"what\":\"{what}\""));
        line.contains("\"type\":\"notice\"") && !says("kept") && !says("left_out")
    };
    Ok(text.lines().filter(is_done).map(|line| format!("a second run would still do something: {line}")).collect())
}

fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    // Nothing of the user's configuration.
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
    command
}

fn ran(command: &mut Command) -> io::Result<Output> {
    command.stdin(Stdio::null()).output()
}

fn found(folder: &Path) -> io::Result<Tree> {
    match tree::found(&folder.join("target")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Tree::new()),
        found => found,
    }
}

/// How what the two programs have left under a name differs, in the object or also in its attributes.
fn difference(theirs: Option<&Node>, ours: Option<&Node>, compared: Option<Compared>) -> Option<String> {
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
    if theirs.mode != ours.mode {
        return Some(format!("modes {:o} and {:o}", theirs.mode, ours.mode));
    }
    if theirs.mtime != ours.mtime && !is_excused(theirs, ours, compared) {
        return Some(format!("times {:?} and {:?}", theirs.mtime, ours.mtime));
    }
    if compared.owners && theirs.owner != ours.owner {
        return Some(format!("owners {:?} and {:?}", theirs.owner, ours.owner));
    }
    let of = |node: &Node, acls: bool| -> Vec<_> {
        node.xattrs.clone().into_iter().filter(|(name, _)| name.starts_with(b"system.posix_acl") == acls).collect()
    };
    for (is_compared, acls) in [(compared.xattrs, false), (compared.acls, true)] {
        // The ACL at the target is that of the file that became the one of both names.
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

/// Whether two contents of the same size and time were there, and one or the other became the one file of both names.
fn is_either(theirs: &Node, ours: &Node, compared: Option<Compared>) -> bool {
    let size = |node: &Node| if let Object::File(content) = &node.object { Some(content.len()) } else { None };
    compared.is_some_and(|compared| compared.hard_links)
        && size(theirs).is_some_and(|theirs| size(ours) == Some(theirs))
        && theirs.mtime == ours.mtime
}

/// Whether a folder was changed whose time is not set. Downpour makes its staging folder in the target even where
/// nothing comes to stand there.
fn is_excused(theirs: &Node, ours: &Node, compared: Compared) -> bool {
    /// Trees are older than this.
    const NOW: i64 = 1_700_000_000;
    theirs.object == Object::Folder && (ours.mtime.0 > NOW || compared.untimed)
}
