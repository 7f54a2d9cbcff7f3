//! Random trees, and their contents.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use fastrand::Rng;

/// Few names, so that patterns match them and directories share them; some that shells, patterns and terminals take for
/// something else.
const NAMES: [&[u8]; 16] = [
    b"a",
    b"b.txt",
    b"c d.txt",
    b"cache",
    b"d",
    b"e.tmp",
    b"f.tmp",
    b".hidden",
    "Grüße".as_bytes(),
    b"[1]",
    b"-n",
    b"x:y",
    b"back\\slash",
    b"new\nline",
    b"star*",
    b"\xff\xfe",
];

/// The bytes of a file, which are too many to be shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Content(pub(crate) Vec<u8>);

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B, {:02x?}...", self.0.len(), &self.0[..self.0.len().min(8)])
    }
}

/// The kind of a name, with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Object {
    File(Content),
    Directory,
    Link(PathBuf),
}

/// An object and its attributes. Those of links are not compared: not every system can set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) object: Object,
    pub(crate) mode: u32,
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// The first name of the same file.
    pub(crate) same_as: Option<PathBuf>,
}

/// The entries of a directory by their relative paths.
pub(crate) type Tree = BTreeMap<PathBuf, Entry>;

/// Returns the entries of a directory without staging directories; none if it does not exist.
pub(crate) fn snapshot(directory: &Path) -> Tree {
    let mut found = Tree::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory_path) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory_path) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if is_staging(&path) {
                continue;
            }
            let name = path.strip_prefix(directory).expect("a path in the directory").to_owned();
            found.insert(name, look(&path));
            if path.is_dir() && !path.is_symlink() {
                directories.push(path);
            }
        }
    }
    name_hard_links(directory, &mut found);
    found
}

/// Whether this is the name of a staging directory.
pub(crate) fn is_staging(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".downpour-"))
}

/// An object and its attributes.
pub(crate) fn look(path: &Path) -> Entry {
    let status = path.symlink_metadata().expect("a status");
    if status.is_symlink() {
        let object = Object::Link(path.read_link().expect("a link"));
        return Entry { object, mode: 0, mtime: (0, 0), same_as: None };
    }
    let object =
        if status.is_dir() { Object::Directory } else { Object::File(Content(fs::read(path).expect("a file"))) };
    Entry { object, mode: status.mode() & 0o7777, mtime: (status.mtime(), status.mtime_nsec()), same_as: None }
}

/// Notes which names are the same file.
fn name_hard_links(directory: &Path, tree: &mut Tree) {
    let mut first = HashMap::new();
    for (name, found) in tree.iter_mut().filter(|(_, found)| matches!(found.object, Object::File(_))) {
        let inode = directory.join(name).metadata().expect("a status").ino();
        found.same_as = Some(first.entry(inode).or_insert_with(|| name.clone()).clone());
    }
}

/// A random name.
pub(crate) fn name(rng: &mut Rng) -> &'static OsStr {
    OsStr::from_bytes(NAMES[rng.usize(..NAMES.len())])
}

/// Random bytes, sometimes none.
pub(crate) fn bytes(rng: &mut Rng, most: usize) -> Vec<u8> {
    let length = match rng.u8(0..8) {
        0 => 0,
        1 => rng.usize(..=most),
        _ => rng.usize(..=most.min(5_000)),
    };
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    bytes
}

/// Fills a new directory with up to `count` objects: files of up to `largest` bytes, directories, links, and second
/// names.
pub(crate) fn grow(rng: &mut Rng, root: &Path, count: usize, largest: usize) {
    fs::create_dir_all(root).expect("a directory");
    let (mut directories, mut files) = (vec![root.to_owned()], Vec::new());
    for _ in 0..count {
        let path = directories[rng.usize(..directories.len())].join(name(rng));
        if path.symlink_metadata().is_ok() {
            continue;
        }
        match rng.u8(0..12) {
            0..=3 => {
                fs::create_dir(&path).expect("a directory");
                directories.push(path);
            }
            4 => symlink(link_target(rng), &path).expect("a link"),
            5 if !files.is_empty() => fs::hard_link(&files[rng.usize(..files.len())], &path).expect("a name"),
            _ => {
                fs::write(&path, bytes(rng, largest)).expect("a file");
                files.push(path);
            }
        }
    }
    age(rng, &files, &[0o644, 0o600, 0o755, 0o444, 0o664]);
    // The innermost first: changes in a directory set its time.
    directories.reverse();
    age(rng, &directories, &[0o755, 0o700, 0o750, 0o775]);
}

/// Draws the target of a link: within the tree, absent, or outside of it.
fn link_target(rng: &mut Rng) -> PathBuf {
    match rng.u8(0..5) {
        0 => "no such name".into(),
        1 => Path::new("..").join(name(rng)),
        2 => "/etc/hostname".into(),
        _ => name(rng).into(),
    }
}

/// Random modes, and times of the last twenty years.
fn age(rng: &mut Rng, paths: &[PathBuf], modes: &[u32]) {
    for path in paths {
        fs::set_permissions(path, Permissions::from_mode(modes[rng.usize(..modes.len())])).expect("a mode");
        let time = UNIX_EPOCH + Duration::new(1_000_000_000 + rng.u64(..600_000_000), rng.u32(..1_000_000_000));
        File::open(path).and_then(|file| file.set_modified(time)).expect("a time");
    }
}
