//! Targets on unusual file systems, as far as they can be mounted, and drop boxes: small trees of names that all of
//! them support. In every third case, the second copy writes the names in capitals, which exFAT takes for the same.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fastrand::Rng;

use crate::case::Compared;
use crate::comparing::{SEED, complaints, difference, home, names, seeds};
use crate::program::{command, copy_program, program_with};
use crate::tools::{output_of, words};
use crate::tree::{self, Node, Object, Tree};

/// Why a file system cannot be mounted.
type Missing = String;

/// No two fold together: on exFAT, unlike in Unicode, the Kelvin sign and the `i` without a dot are separate letters.
const NAMES: [&str; 9] = ["a", "b.txt", "c d", "k", "\u{212a}", "i", "\u{131}", "\u{df}", "ss"];

/// A user who owns nothing.
const STRANGER: u32 = 65_534;

/// A mounted file system for targets.
struct Mounted {
    name: &'static str,
    path: PathBuf,
    /// Commands that unmount it.
    ends: Vec<Command>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for end in &mut self.ends {
            // After a failure the user sees the mount.
            drop(call(end));
        }
    }
}

/// Returns the stdout of a successful program.
fn call(command: &mut Command) -> Result<String, Missing> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(words(&output.stdout))
    } else {
        Err(format!("{command:?}: {}", words(&output.stderr)))
    }
}

fn with(program: &str, arguments: &[&Path]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Another view of a directory, by FUSE.
fn bindfs(home: &Path) -> Result<Mounted, Missing> {
    let (real, path) = (home.join("real"), home.join("bindfs"));
    for directory in [&real, &path] {
        fs::create_dir(directory).expect("a directory");
    }
    call(&mut with("bindfs", &[&real, &path]))?;
    Ok(Mounted { name: "bindfs", ends: vec![with("umount", &[&path])], path })
}

/// exFAT, by FUSE.
fn exfat(home: &Path) -> Result<Mounted, Missing> {
    let (image, path) = (home.join("image"), home.join("exfat"));
    File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a file");
    fs::create_dir(&path).expect("a directory");
    call(&mut with("mkfs.exfat", &[&image]))?;
    let device = PathBuf::from(call(with("losetup", &[]).args(["-f", "--show"]).arg(&image))?);
    let mut mounted = Mounted { name: "exFAT", path, ends: vec![with("losetup", &[Path::new("-d"), &device])] };
    call(&mut with("mount.exfat-fuse", &[&device, &mounted.path]))?;
    mounted.ends.insert(0, with("umount", &[&mounted.path]));
    Ok(mounted)
}

#[test]
#[ignore = "needs rsync: cargo xtask compare-rsync"]
fn sync_on_odd_file_system_equals_rsync() {
    let home = home();
    let mut differing = Vec::new();
    for mount in [bindfs, exfat] {
        let mounted = match mount(home.path()) {
            Ok(mounted) => mounted,
            Err(why) => {
                println!("NOT COMPARED on one odd file system: {why}");
                continue;
            }
        };
        for seed in seeds(50) {
            let at = home.path().join(format!("{}-{seed}", mounted.name));
            let differences = compare(&mut Rng::with_seed(seed), &at, &mounted.path.join(seed.to_string()));
            let differences = differences.unwrap_or_else(|error| panic!("seed {seed} on {}: {error}", mounted.name));
            if !differences.is_empty() {
                println!("seed {seed} on {}:", mounted.name);
                differences.iter().for_each(|difference| println!("    {difference}"));
                differing.push(seed);
            }
        }
    }
    assert_eq!(differing, [0_u64; 0], "seeds that differ; again: {SEED}=N cargo xtask compare-rsync sync_on_odd");
}

#[test]
#[ignore = "needs rsync: cargo xtask compare-rsync"]
fn cp_into_drop_box_equals_rsync() {
    if !rustix::process::geteuid().is_root() {
        println!("NOT COMPARED with a drop box, for which this must run as root: it copies as another user");
        return;
    }
    assert_eq!(drop_box(home().path()).expect("a drop box"), [""; 0]);
}

/// Draws a tree of files and directories.
fn draw(rng: &mut Rng) -> Tree {
    let mut tree = Tree::new();
    let node = |object, mode, seconds| Node {
        object,
        mode,
        // Of a step that every file system keeps.
        mtime: (1_600_000_000 + 2 * seconds, 0),
        owner: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
        xattrs: std::collections::BTreeMap::new(),
        same_as: None,
    };
    for _ in 0..rng.usize(1..14) {
        let directories: Vec<PathBuf> = tree
            .iter()
            .filter(|(_, node): &(_, &Node)| node.object == Object::Directory)
            .map(|(path, _)| path.clone())
            .collect();
        let mut path = rng.choice(directories).filter(|_| rng.bool()).unwrap_or_default();
        path.push(NAMES[rng.usize(..NAMES.len())]);
        let content = vec![rng.u8(b'a'..=b'd'); [0, 5, 70_000][rng.usize(..3)]];
        let new = match rng.u8(..3) {
            0 => node(Object::Directory, 0o755, rng.i64(0..3)),
            _ => node(Object::File(content), 0o644, rng.i64(0..3)),
        };
        tree.entry(path).or_insert(new);
    }
    tree
}

/// Returns a tree with the ASCII letters of its names in capitals.
fn in_capitals(tree: &Tree) -> Tree {
    let capitals = |path: &PathBuf| path.to_str().expect("text").to_ascii_uppercase();
    tree.iter().map(|(path, node)| (PathBuf::from(capitals(path)), node.clone())).collect()
}

/// Copies a tree below `at` into `place` with both programs, once more after it has changed, and compares.
fn compare(rng: &mut Rng, at: &Path, directory: &Path) -> io::Result<Vec<String>> {
    fs::create_dir(at)?;
    fs::create_dir(directory)?;
    let mut differences = Vec::new();
    let folds = rng.u8(..3) == 0;
    for round in 0..2 {
        let from = at.join(format!("source-{round}"));
        let drawn = draw(rng);
        tree::make(&from, &if folds && round > 0 { in_capitals(&drawn) } else { drawn })?;
        let source = format!("{}/", from.display());
        // rsync deletes the file that it has just found under its other name.
        let delete = (round > 0 && !folds).then_some("--delete");
        let forced = delete.map(|_| "--force-empty");
        let (theirs, ours) = (directory.join("rsync"), directory.join("downpour"));
        let rsync = output_of(Command::new("rsync").args(["-rlpt"]).args(delete).arg(&source).arg(&theirs));
        let sync = output_of(command(["sync"]).args(delete).args(forced).arg(&source).arg(&ours));
        differences
            .extend(differing(&rsync, &sync, &theirs, &ours)?.into_iter().map(|text| format!("round {round}: {text}")));
    }
    // Unreadable entries cannot be removed; the file system is removed at the end.
    let _ = fs::remove_dir_all(directory);
    fs::remove_dir_all(at)?;
    Ok(differences)
}

fn differing(rsync: &Output, sync: &Output, theirs: &Path, ours: &Path) -> io::Result<Vec<String>> {
    let mut differences = Vec::new();
    if rsync.status.code() != sync.status.code() {
        differences.push(format!("exit codes {:?} and {:?}", rsync.status.code(), sync.status.code()));
    }
    // exfat-fuse cannot always read a file renamed onto a name that it takes for the same, not even after rsync.
    let theirs = match tree::found(theirs) {
        Ok(theirs) => theirs,
        Err(error) => {
            println!("NOT COMPARED on one odd file system: it cannot read what rsync alone has written: {error}");
            return Ok(differences);
        }
    };
    let ours = match tree::found(ours) {
        Ok(ours) => ours,
        Err(error) => return Ok(vec![format!("it cannot be read, unlike what rsync has written: {error}")]),
    };
    for path in names(&theirs, &ours) {
        let difference = difference(theirs.get(path), ours.get(path), Some(Compared::default()));
        differences.extend(difference.map(|text| format!("{}: {text}", path.display())));
    }
    if !differences.is_empty() {
        differences.extend([rsync, sync].into_iter().flat_map(complaints));
    }
    Ok(differences)
}

/// Copies files as a stranger into a directory that every user may write to and none may read.
fn drop_box(home: &Path) -> io::Result<Vec<String>> {
    let at = home.join("drop-box");
    fs::create_dir(&at)?;
    for directory in [home, &at] {
        fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    }
    // The stranger cannot enter where the program was built.
    let copied = at.join("downpour-program");
    copy_program(&copied);
    let mut files = Vec::new();
    for name in ["one", "two"] {
        let path = at.join(name);
        fs::write(&path, name)?;
        fs::set_permissions(&path, Permissions::from_mode(0o644))?;
        files.push(path);
    }
    let boxes = ["rsync", "downpour"].map(|name| at.join(name));
    for path in &boxes {
        fs::create_dir(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o1733))?;
    }
    let mut rsync = Command::new("rsync");
    rsync.args(["-t"]).args(&files).arg(&boxes[0]).uid(STRANGER).gid(STRANGER).current_dir("/");
    let mut sync = program_with(&copied, ["cp"]);
    sync.args(&files).arg(&boxes[1]).uid(STRANGER).gid(STRANGER).current_dir("/");
    let (rsync, sync) = (output_of(&mut rsync), output_of(&mut sync));
    differing(&rsync, &sync, &boxes[0], &boxes[1])
}
