//! Random trees, in memory and on disk.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, lchown, symlink};
use std::path::{Path, PathBuf};

use fastrand::Rng;
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags, lgetxattr, llistxattr, lsetxattr, mknodat,
    utimensat,
};

/// Few names, so that patterns match them and trees share them; some that shells and patterns take for something else.
pub(crate) const NAMES: [&[u8]; 14] = [
    b"a",
    b"b.txt",
    b"c d.txt",
    b"cache",
    b"d",
    b"e.tmp",
    b"f.tmp",
    b".hidden",
    "Gr\u{fc}\u{df}e".as_bytes(),
    b"[1]",
    b"-n",
    b"star*",
    b"back\\slash",
    b"\xff\xfe",
];

/// Largest number of names in a tree.
const MOST: usize = 24;

/// The kind of a name, with its content.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Object {
    File(Vec<u8>),
    Directory,
    Link(PathBuf),
    Pipe,
    Other,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(content) => {
                write!(f, "file of {} bytes {:02x?}", content.len(), &content[..content.len().min(2)])
            }
            Self::Directory => f.write_str("directory"),
            Self::Link(target) => write!(f, "link to {target:?}"),
            Self::Pipe => f.write_str("pipe"),
            Self::Other => f.write_str("socket or device"),
        }
    }
}

/// A name with its attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) object: Object,
    pub(crate) mode: u32,
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// Owner and group.
    pub(crate) owner: (u32, u32),
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The first name of the same file.
    pub(crate) same_as: Option<PathBuf>,
}

/// Names by their paths, parents first.
pub(crate) type Tree = BTreeMap<PathBuf, Node>;

/// Features of the file system and the user that trees may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope {
    /// The program is root, so that names may belong to any user.
    pub(crate) is_root: bool,
    /// The file system has extended attributes.
    pub(crate) has_xattrs: bool,
    /// It has ACLs.
    pub(crate) has_acls: bool,
}

impl Scope {
    /// Returns what this user may create in a directory.
    pub(crate) fn of(directory: &Path) -> Self {
        let probe = directory.join("probe");
        fs::write(&probe, "").expect("a file");
        Self {
            is_root: rustix::process::geteuid().is_root(),
            has_xattrs: lsetxattr(directory, "user.probe", b"", XattrFlags::empty()).is_ok(),
            has_acls: lsetxattr(&probe, ACL, &acl(1, 4), XattrFlags::empty()).is_ok(),
        }
    }
}

fn name(rng: &mut Rng) -> PathBuf {
    OsStr::from_bytes(NAMES[rng.usize(..NAMES.len())]).into()
}

fn content(rng: &mut Rng) -> Vec<u8> {
    let length = [0, 1, 5, 5, 5, 300, 70_000][rng.usize(..7)];
    vec![rng.u8(b'a'..=b'd'); length]
}

fn node(rng: &mut Rng, scope: Scope) -> Node {
    let object = match rng.u8(..20) {
        0..6 => Object::Directory,
        6..8 => Object::Link(
            [&b"a"[..], b"../d", b"/nowhere/a", b"nowhere", b"../../x", b"d/../a"][rng.usize(..6)].into_path(),
        ),
        8 => Object::Pipe,
        _ => Object::File(content(rng)),
    };
    let mode = match object {
        Object::Directory => [0o755, 0o700, 0o775, 0o1777, 0o555][rng.usize(..5)],
        Object::Link(_) => 0o777,
        _ => [0o644, 0o600, 0o755, 0o444, 0o640][rng.usize(..5)],
    };
    let owner = if scope.is_root && rng.u8(..3) == 0 {
        (rng.choice([0, 1, 2, 4242]).unwrap_or(0), rng.choice([0, 1, 2, 4242]).unwrap_or(0))
    } else {
        (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
    };
    let mut xattrs = BTreeMap::new();
    if scope.has_xattrs && rng.u8(..4) == 0 && matches!(object, Object::File(_) | Object::Directory) {
        xattrs.insert(b"user.note".to_vec(), vec![rng.u8(..3); rng.usize(..40)]);
    }
    if scope.has_acls && rng.u8(..5) == 0 && !matches!(object, Object::Link(_)) {
        xattrs.insert(ACL.to_vec(), acl(rng.choice([1, 2, 4242]).unwrap_or(1), rng.u8(..8)));
    }
    if scope.has_acls && rng.u8(..8) == 0 && object == Object::Directory {
        xattrs.insert(DEFAULT_ACL.to_vec(), default_acl(rng));
    }
    // With the same fraction of a second: rsync takes times of the same second for equal, and a file system may keep
    // whole seconds only.
    let mtime = (1_600_000_000 + [0, 1, 100_000][rng.usize(..3)], 250_000_000);
    Node { object, mode, mtime, owner, xattrs, same_as: None }
}

/// Name of the attribute that holds an ACL.
const ACL: &[u8] = b"system.posix_acl_access";

/// An ACL that gives one more user these permissions (`acl(5)`, `linux/posix_acl_xattr.h`).
fn acl(user: u32, permissions: u8) -> Vec<u8> {
    let permissions = u16::from(permissions);
    encoded(&[(1, 6, u32::MAX), (2, permissions, user), (4, 4, u32::MAX), (16, 7, u32::MAX), (32, 4, u32::MAX)])
}

fn encoded(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let entry = |(tag, permissions, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    [&2_u32.to_le_bytes()[..], &entries.iter().map(entry).collect::<Vec<_>>().concat()].concat()
}

/// Name of the attribute with the default ACL of a directory.
pub(crate) const DEFAULT_ACL: &[u8] = b"system.posix_acl_default";

/// Draws a default ACL: stricter than the umask, laxer, or with rights of one more user.
pub(crate) fn default_acl(rng: &mut Rng) -> Vec<u8> {
    let plain = |group: u16, others: u16| vec![(1, 7, u32::MAX), (4, group, u32::MAX), (32, others, u32::MAX)];
    let entries: Vec<(u16, u16, u32)> = match rng.u8(..4) {
        0 => plain(5, 0),
        1 => plain(0, 0),
        2 => plain(7, 7),
        _ => vec![(1, 7, u32::MAX), (2, 7, 4242), (4, 5, u32::MAX), (16, 7, u32::MAX), (32, 0, u32::MAX)],
    };
    encoded(&entries)
}

trait IntoPath {
    fn into_path(self) -> PathBuf;
}

impl IntoPath for &[u8] {
    fn into_path(self) -> PathBuf {
        OsStr::from_bytes(self).into()
    }
}

/// Draws a tree.
pub(crate) fn random(rng: &mut Rng, scope: Scope) -> Tree {
    let mut tree = Tree::new();
    for _ in 0..rng.usize(1..MOST) {
        grow(&mut tree, rng, scope);
    }
    tree
}

/// Adds a name at a random path, unless it exists.
fn grow(tree: &mut Tree, rng: &mut Rng, scope: Scope) {
    let mut path = PathBuf::new();
    // Into a directory of the tree at most three deep.
    for _ in 0..rng.usize(..4) {
        let inside: Vec<_> = tree
            .iter()
            .filter(|(known, node)| node.object == Object::Directory && known.parent() == Some(path.as_path()))
            .map(|(known, _)| known.clone())
            .collect();
        match rng.choice(inside) {
            Some(directory) => path = directory,
            None => break,
        }
    }
    path.push(name(rng));
    let files: Vec<PathBuf> = tree
        .iter()
        .filter(|(_, node)| matches!(node.object, Object::File(_)) && node.same_as.is_none())
        .map(|(path, _)| path.clone())
        .collect();
    let mut new = node(rng, scope);
    if matches!(new.object, Object::File(_))
        && rng.u8(..5) == 0
        && let Some(first) = rng.choice(files)
    {
        new = Node { same_as: Some(first.clone()), ..tree[&first].clone() };
    }
    tree.entry(path).or_insert(new);
}

/// Draws the state of an earlier copy of a tree that users have changed.
pub(crate) fn aged(source: &Tree, rng: &mut Rng, scope: Scope) -> Tree {
    let mut tree = source.clone();
    for path in source.keys() {
        let Some(old) = tree.get(path).cloned() else { continue };
        let changed = match rng.u8(..10) {
            0 | 1 => {
                remove(&mut tree, path);
                continue;
            }
            2 => node(rng, scope),
            3 => Node { mtime: node(rng, scope).mtime, ..old.clone() },
            4 => Node { mode: node_of_kind(rng, scope, &old).mode, owner: node(rng, scope).owner, ..old.clone() },
            5 => Node { xattrs: node_of_kind(rng, scope, &old).xattrs, ..old.clone() },
            6 if matches!(old.object, Object::File(_)) => Node { object: Object::File(content(rng)), ..old.clone() },
            _ => continue,
        };
        if changed.object != Object::Directory {
            remove(&mut tree, path);
        }
        tree.insert(path.clone(), Node { same_as: None, ..changed });
    }
    for _ in 0..rng.usize(..6) {
        grow(&mut tree, rng, scope);
    }
    // A first name may be gone or something else.
    let firsts = tree.clone();
    for node in tree.values_mut() {
        if let Some(first) = &node.same_as {
            match firsts.get(first) {
                Some(found) if matches!(found.object, Object::File(_)) && found.same_as.is_none() => {
                    *node = Node { same_as: Some(first.clone()), ..found.clone() };
                }
                _ => node.same_as = None,
            }
        }
    }
    tree
}

fn node_of_kind(rng: &mut Rng, scope: Scope, like: &Node) -> Node {
    let is_like = |node: &Node| std::mem::discriminant(&node.object) == std::mem::discriminant(&like.object);
    std::iter::repeat_with(|| node(rng, scope)).take(50).find(is_like).unwrap_or_else(|| like.clone())
}

fn remove(tree: &mut Tree, path: &Path) {
    tree.retain(|known, _| !known.starts_with(path));
}

/// Makes a tree in a new directory.
pub(crate) fn make(at: &Path, tree: &Tree) -> io::Result<()> {
    fs::create_dir(at)?;
    for (path, node) in tree {
        let path = at.join(path);
        match (&node.object, &node.same_as) {
            // Later, when its first name exists.
            (_, Some(_)) => continue,
            (Object::File(content), None) => fs::write(&path, content)?,
            (Object::Directory, _) => fs::create_dir(&path)?,
            (Object::Link(target), _) => symlink(target, &path)?,
            (Object::Pipe, _) => mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0)?,
            (Object::Other, _) => {}
        }
    }
    for (path, node) in tree {
        if let Some(first) = &node.same_as {
            fs::hard_link(at.join(first), at.join(path))?;
        }
    }
    // Times last, and those of a directory after its entries.
    for (path, node) in tree.iter().rev() {
        let path = at.join(path);
        lchown(&path, Some(node.owner.0), Some(node.owner.1))?;
        for (name, value) in &node.xattrs {
            lsetxattr(&path, name.as_slice(), value, XattrFlags::empty())?;
        }
        if !matches!(node.object, Object::Link(_)) {
            fs::set_permissions(&path, Permissions::from_mode(node.mode))?;
        }
        set_mtime(&path, node.mtime)?;
    }
    set_mtime(at, (1_600_000_000, 250_000_000))
}

fn set_mtime(path: &Path, (seconds, nanoseconds): (i64, i64)) -> io::Result<()> {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    Ok(utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Reads a tree; the directory itself has the empty path.
pub(crate) fn found(at: &Path) -> io::Result<Tree> {
    let (mut tree, mut firsts) = (Tree::new(), HashMap::new());
    let mut left = vec![PathBuf::new()];
    while let Some(path) = left.pop() {
        let full = if path.as_os_str().is_empty() { at.to_owned() } else { at.join(&path) };
        let metadata = full.symlink_metadata()?;
        let kind = metadata.file_type();
        let object = if kind.is_dir() {
            let mut inside = fs::read_dir(&full)?
                .map(|item| item.map(|item| path.join(item.file_name())))
                .collect::<io::Result<Vec<_>>>()?;
            // The last entry is read first.
            inside.sort_by(|one, other| other.cmp(one));
            left.extend(inside);
            Object::Directory
        } else if kind.is_symlink() {
            Object::Link(fs::read_link(&full)?)
        } else if kind.is_fifo() {
            Object::Pipe
        } else if kind.is_file() {
            Object::File(fs::read(&full)?)
        } else {
            Object::Other
        };
        let is_shared = kind.is_file() && metadata.nlink() > 1;
        let first = is_shared.then(|| firsts.entry(metadata.ino()).or_insert_with(|| path.clone()).clone());
        let node = Node {
            mode: if kind.is_symlink() { 0o777 } else { metadata.mode() & 0o7777 },
            mtime: (metadata.mtime(), metadata.mtime_nsec()),
            owner: (metadata.uid(), metadata.gid()),
            xattrs: if kind.is_symlink() { BTreeMap::new() } else { xattrs(&full)? },
            same_as: first,
            object,
        };
        tree.insert(path, node);
    }
    Ok(tree)
}

fn xattrs(path: &Path) -> io::Result<BTreeMap<Vec<u8>, Vec<u8>>> {
    let (mut names, mut value) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let length = match llistxattr(path, names.as_mut_slice()) {
        Ok(length) => length,
        Err(rustix::io::Errno::OPNOTSUPP) => 0,
        Err(error) => return Err(error.into()),
    };
    let mut found = BTreeMap::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let length = lgetxattr(path, name, value.as_mut_slice())?;
        found.insert(name.to_vec(), value[..length].to_vec());
    }
    Ok(found)
}
