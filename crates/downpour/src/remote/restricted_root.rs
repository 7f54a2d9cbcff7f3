//! `downpour remote --only DIR`: restricts a key to one directory.
//!
//! The directory is opened once. The kernel (`openat2`) resolves the paths of requests beneath it and follows symbolic
//! links only as long as they stay beneath it. A transfer then gets an open directory and a name in it, which is not
//! followed, so that a user with write access to the directory cannot redirect the transfer.

use std::ffi::OsStr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use rustix::process::{fchdir, geteuid};

use super::path_expansion::matches;
use super::request::RemoteTask;
use crate::error::{Error, KeyRefusal};
use crate::files::directory::NAMED_WAY;
use crate::files::permitted::has_wildcards;
use crate::files::{FilesError, SourceItem};

/// How often to retry resolving a path if the kernel reports a concurrent rename.
const ATTEMPTS: usize = 16;

/// Permissions of a restricted key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Send and receive.
    Full,
    /// Send and compare, but change nothing.
    ReadOnly,
    /// Receive only. Existing files are not sent, but can be replaced and compared.
    WriteOnly,
}

/// The restriction of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRestriction {
    /// The directory, which must exist.
    pub directory: PathBuf,
    /// The permissions in it.
    pub access: Access,
}

/// The open directory of a restricted key.
#[derive(Debug)]
pub(super) struct RestrictedRoot {
    directory: OwnedFd,
    access: Access,
}

/// How an item is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkHandling {
    /// A link is sent as a link.
    AsIs,
    /// The target of a link is sent in its place.
    Followed,
    /// Same as `Followed`; of a directory, only the contents are sent.
    Compared,
}

/// An item to send.
#[derive(Debug)]
pub(super) struct RestrictedItem {
    /// Path of the item, relative to an open directory.
    pub(super) root: SourceItem,
    /// The path in the request.
    typed: PathBuf,
    /// Must stay open, since `root` refers to it.
    _held: OwnedFd,
    /// Whether the item is a symbolic link that was followed.
    pub(super) is_followed: bool,
}

/// Location of an existing item: a directory inside the restriction, and the name of an entry that is not a symbolic
/// link.
struct ItemLocation {
    parent: OwnedFd,
    /// Empty for the restricted directory itself.
    name: Vec<u8>,
    is_directory: bool,
}

impl RestrictedRoot {
    /// Opens the restricted directory.
    ///
    /// # Errors
    /// The directory does not exist or cannot be opened.
    pub(super) fn open(limit: &KeyRestriction) -> Result<Self, Error> {
        let opened = openat(CWD, &limit.directory, NAMED_WAY, Mode::empty());
        let directory = opened.map_err(|error| FilesError::system(&limit.directory, error))?;
        Ok(Self { directory, access: limit.access })
    }

    /// Returns whether the key may read the contents of files.
    pub(super) fn may_read(&self) -> bool {
        self.access != Access::WriteOnly
    }

    /// Checks whether the key may run the task at all.
    ///
    /// # Errors
    /// [`Error::KeyRestricted`] if not.
    pub(super) fn permits(&self, task: &RemoteTask) -> Result<(), Error> {
        self.access.permits(task, geteuid().is_root())
    }

    /// Returns the current path of the directory. Everything that a receiver opens must be beneath it.
    ///
    /// # Errors
    /// `/proc` is not available.
    pub(super) fn path(&self) -> Result<PathBuf, Error> {
        real_path(&self.directory)
    }

    /// Returns the items named by `path`: the path itself or, if it does not exist, the matches of the wildcards in its
    /// last component.
    ///
    /// # Errors
    /// [`FilesError::SourceAbsent`], or [`Error::KeyRestricted`] if the path leaves the directory.
    pub(super) fn sources(&self, path: &Path, reading: LinkHandling) -> Result<Vec<RestrictedItem>, Error> {
        let inside = self.inside(path)?;
        let last = last_name(&inside);
        if !has_wildcards(last) {
            return Ok(vec![self.source(path, &inside, reading)?]);
        }
        let parent = self.open_directory(path, parent_of(&inside))?;
        if statat(&parent, last, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Ok(vec![self.source(path, &inside, reading)?]);
        }
        let mut found = Vec::new();
        for matching in matches(&anchor(&parent, last)) {
            let name = last_name(matching.as_os_str().as_bytes());
            let typed = path.with_file_name(OsStr::from_bytes(name));
            found.push(self.source(&typed, &[parent_of(&inside), b"/", name].concat(), reading)?);
        }
        if found.is_empty() { Err(FilesError::SourceAbsent { path: path.to_owned() }.into()) } else { Ok(found) }
    }

    /// Returns the item at `inside`, which was requested as `path`.
    fn source(&self, path: &Path, inside: &[u8], reading: LinkHandling) -> Result<RestrictedItem, Error> {
        let source =
            |root, held, is_followed| RestrictedItem { root, typed: path.to_owned(), _held: held, is_followed };
        let directory = |is_followed| {
            let directory = self.open_directory(path, inside)?;
            Ok(source(SourceItem::contents(anchor(&directory, b".")), directory, is_followed))
        };
        let typed = path.as_os_str().as_bytes();
        let last = last_name(typed);
        if matches!(last, b"" | b"." | b"..") || (typed == b"~" && reading == LinkHandling::Compared) {
            return directory(false);
        }
        if typed == b"~" {
            // Sent under its own name, as any home.
            let directory = self.open_directory(path, inside)?;
            let name = last_name(self.path()?.as_os_str().as_bytes()).to_vec();
            return Ok(source(SourceItem { path: anchor(&directory, b"."), name: Some(name) }, directory, false));
        }
        let parent = self.open_directory(path, parent_of(inside))?;
        let seen =
            statat(&parent, last_name(inside), AtFlags::SYMLINK_NOFOLLOW).map_err(|error| absent(path, error))?;
        let is_link = FileType::from_raw_mode(seen.st_mode) == FileType::Symlink;
        if is_link && reading == LinkHandling::AsIs {
            return Ok(source(SourceItem::new(anchor(&parent, last)), parent, false));
        }
        let ItemLocation { parent, name, is_directory } = self.find(path, inside)?;
        if is_directory && reading == LinkHandling::Compared {
            return directory(is_link);
        }
        let name = if name.is_empty() { b"." } else { &name[..] };
        let root = SourceItem { path: anchor(&parent, name), name: Some(last.to_vec()) };
        Ok(source(root, parent, is_link))
    }

    /// Changes the current directory of this process to the parent directory of `target`. Returns the target's path
    /// relative to it.
    ///
    /// # Errors
    /// [`Error::KeyRestricted`] if the target is outside, [`Error::Files`] if its parent directory does not exist.
    pub(super) fn enter(&self, target: &Path) -> Result<PathBuf, Error> {
        let inside = self.inside(target)?;
        let (parent, mut name) = match self.find(target, &inside) {
            Ok(ItemLocation { parent, name, .. }) => (parent, name),
            // The target will be created.
            Err(Error::Files(FilesError::SourceAbsent { .. })) => {
                let slashes = inside.iter().rev().take_while(|byte| **byte == b'/').count();
                let inside = &inside[..inside.len() - slashes];
                let parent = self.open_directory(target, parent_of(inside))?;
                (parent, last_name(inside).to_vec())
            }
            Err(error) => return Err(error),
        };
        fchdir(&parent).map_err(|error| FilesError::system(target, error))?;
        if name.is_empty() {
            name.push(b'.');
        } else if inside.ends_with(b"/") || inside.ends_with(b"/.") {
            name.push(b'/');
        }
        Ok(OsStr::from_bytes(&name).into())
    }

    /// Opens an existing directory, to measure its disk.
    ///
    /// # Errors
    /// [`Error::KeyRestricted`] if it is outside, [`FilesError::SourceAbsent`].
    pub(super) fn measured(&self, directory: &Path) -> Result<(PathBuf, OwnedFd), Error> {
        let directory = self.open_directory(directory, &self.inside(directory)?)?;
        Ok((anchor(&directory, b"."), directory))
    }

    /// Translates a path of a request to a path beneath the directory, which is the home (`~`) of the key. An absolute
    /// path must begin with the path of the directory. The result is never empty nor absolute, but may still leave the
    /// directory.
    fn inside(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let bytes = path.as_os_str().as_bytes();
        let inside = match bytes {
            b"" | b"~" => b".".to_vec(),
            [b'~', b'/', rest @ ..] => rest.to_vec(),
            [b'~', ..] => {
                return Err(Error::KeyRestricted(KeyRefusal::OtherHome(path.to_owned())));
            }
            [b'/', ..] => {
                let own = self.path()?.into_os_string().into_vec();
                let rest = bytes.strip_prefix(&own[..]).filter(|rest| rest.is_empty() || rest.starts_with(b"/"));
                rest.ok_or_else(|| outside(path))?.to_vec()
            }
            _ => bytes.to_vec(),
        };
        let slashes = inside.iter().take_while(|byte| **byte == b'/').count();
        let inside = inside[slashes..].to_vec();
        Ok(if inside.is_empty() { b".".to_vec() } else { inside })
    }

    /// Finds the existing item at `inside`, following symbolic links that stay beneath the directory.
    fn find(&self, path: &Path, inside: &[u8]) -> Result<ItemLocation, Error> {
        let item = self.open_with(path, inside, OpenMode::Anything)?;
        let seen = fstat(&item).map_err(|error| absent(path, error))?;
        let is_directory = FileType::from_raw_mode(seen.st_mode) == FileType::Directory;
        let real = real_path(&item)?;
        let real = real.strip_prefix(self.path()?).map_err(|_| outside(path))?.as_os_str().as_bytes();
        // `real` has no links; a component that has become one since is refused.
        let parent = self.open_with(path, parent_of(real), OpenMode::DirectoryWithoutLinks)?;
        Ok(ItemLocation { parent, name: last_name(real).to_vec(), is_directory })
    }

    /// Opens the directory at `inside`, which was requested as `path`. Refuses to leave the restricted directory.
    fn open_directory(&self, path: &Path, inside: &[u8]) -> Result<OwnedFd, Error> {
        self.open_with(path, inside, OpenMode::Directory)
    }

    fn open_with(&self, path: &Path, inside: &[u8], mode: OpenMode) -> Result<OwnedFd, Error> {
        let mut attempts = 0..ATTEMPTS;
        loop {
            match open_beneath(&self.directory, inside, mode) {
                Ok(opened) => return Ok(opened),
                // A component was renamed while the kernel resolved `..`.
                Err(Errno::AGAIN | Errno::INTR) if attempts.next().is_some() => {}
                Err(Errno::XDEV | Errno::LOOP) => return Err(outside(path)),
                Err(Errno::NOSYS) => return Err(Error::KeyRestricted(KeyRefusal::NoOpenat2)),
                Err(error) => return Err(absent(path, error)),
            }
        }
    }
}

/// How to open an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenMode {
    /// A directory.
    Directory,
    /// A directory whose path must not contain symbolic links.
    DirectoryWithoutLinks,
    /// An entry of any type, to determine its type.
    Anything,
}

/// Opens `path` beneath a directory. Symbolic links are followed as long as they stay beneath it; absolute links leave
/// it.
#[cfg(target_os = "linux")]
fn open_beneath(directory: &OwnedFd, path: &[u8], mode: OpenMode) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{OFlags, ResolveFlags, openat2};
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let (flags, resolve) = match mode {
        OpenMode::Directory => (NAMED_WAY, beneath),
        OpenMode::DirectoryWithoutLinks => (NAMED_WAY, beneath | ResolveFlags::NO_SYMLINKS),
        OpenMode::Anything => (OFlags::PATH | OFlags::CLOEXEC, beneath),
    };
    openat2(directory, path, flags, Mode::empty(), resolve)
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(_: &OwnedFd, _: &[u8], _: OpenMode) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Replaces the path in an error about one of these items by the path that was requested.
pub(super) fn as_typed(error: FilesError, sources: &[RestrictedItem]) -> FilesError {
    let typed = |path: PathBuf| {
        let source = sources.iter().find(|source| source.root.path == path);
        source.map_or(path, |source| source.typed.clone())
    };
    match error {
        FilesError::SourceAbsent { path } => FilesError::SourceAbsent { path: typed(path) },
        FilesError::SourceUnusable { path, reason } => FilesError::SourceUnusable { path: typed(path), reason },
        FilesError::NotRecursive { path } => FilesError::NotRecursive { path: typed(path) },
        FilesError::SourceEmpty { path } => FilesError::SourceEmpty { path: typed(path) },
        FilesError::SameName { name, first, second } => {
            FilesError::SameName { name, first: typed(first), second: typed(second) }
        }
        FilesError::Permission { path, source } => FilesError::Permission { path: typed(path), source },
        FilesError::Io { path, source } => FilesError::Io { path: typed(path), source },
        other => other,
    }
}

fn outside(path: &Path) -> Error {
    Error::KeyRestricted(KeyRefusal::Outside(path.to_owned()))
}

fn absent(path: &Path, error: Errno) -> Error {
    match error {
        Errno::NOENT | Errno::NOTDIR => FilesError::SourceAbsent { path: path.to_owned() }.into(),
        error => FilesError::system(path, error).into(),
    }
}

/// Returns a path for `name` in an open directory. While the directory is open, renames do not change what the path
/// refers to.
fn anchor(directory: &OwnedFd, name: &[u8]) -> PathBuf {
    Path::new(&format!("/proc/self/fd/{}", directory.as_raw_fd())).join(OsStr::from_bytes(name))
}

/// Returns the current path of an open file.
fn real_path(file: &OwnedFd) -> Result<PathBuf, Error> {
    let link = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    let unknown = |error: Errno| Error::KeyRestricted(KeyRefusal::Untraceable(error.to_string()));
    let path = readlinkat(CWD, link, Vec::new()).map_err(unknown)?;
    Ok(OsStr::from_bytes(path.as_bytes()).into())
}

/// Returns the part after the last slash.
fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// Returns the part before the last slash; `.` if there is no slash.
fn parent_of(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => &path[..slash],
        None => b".",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use tempfile::{TempDir, tempdir};

    use super::*;
    use crate::files::{Preserve, ReceiveRequest, Scanner, SourceOptions};

    /// Returns the only part of a manifest, of entries without bytes.
    fn without_bytes(entries: Vec<crate::files::Entry>) -> crate::messages::ManifestPart {
        crate::messages::ManifestPart { batch: 0, last: true, whole: false, again: false, length: 0, entries }
    }

    /// Creates `limit`, a directory with a tree and links in it, next to `secret`.
    fn limited() -> (TempDir, RestrictedRoot) {
        let base = tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir_all(at("limit/directory/in")).unwrap();
        fs::create_dir(at("secret")).unwrap();
        for file in ["limit/file", "limit/directory/inner", "secret/key", "limit-beside"] {
            fs::write(at(file), file).unwrap();
        }
        for (target, link) in [
            ("../secret", "limit/out"),
            ("../secret/key", "limit/out-file"),
            ("directory", "limit/inside"),
            ("file", "limit/inside-file"),
            ("/proc/self/root", "limit/magic"),
            ("nothing", "limit/dangling"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        symlink(at("secret"), at("limit/absolute")).unwrap();
        let only = RestrictedRoot::open(&KeyRestriction { directory: at("limit"), access: Access::Full }).unwrap();
        (base, only)
    }

    /// Returns the names that are sent for a path.
    fn sent(only: &RestrictedRoot, path: &str, reading: LinkHandling) -> Result<Vec<String>, Error> {
        let sources = only.sources(Path::new(path), reading)?;
        let roots = sources.iter().map(|source| source.root.clone()).collect();
        let batches = Scanner::new(roots, SourceOptions::default())?;
        let entries = batches.flat_map(|batch| batch.entries);
        Ok(entries.map(|entry| String::from_utf8(entry.path).unwrap()).collect())
    }

    /// Returns paths that leave the directory for any task.
    fn ways_out(base: &Path) -> Vec<String> {
        let mut ways: Vec<String> = [
            "..",
            "../",
            "../secret",
            "directory/../..",
            "directory/../../secret/key",
            "~/..",
            "~/../secret",
            "~root",
            "~root/",
            "~root/x",
            "~no-such-user/x",
            "/",
            "/etc/passwd",
            "/etc",
            "//etc",
            "/proc/self/root",
            "out/",
            "out/key",
            "out/.",
            "inside/../../secret",
            "absolute/",
            "absolute/key",
            "magic/",
            "magic/etc/passwd",
            "directory/../out/key",
        ]
        .map(str::to_owned)
        .to_vec();
        for outside in ["secret", "secret/key", "limit-beside", "limit/../secret"] {
            ways.push(base.join(outside).display().to_string());
        }
        ways
    }

    #[test]
    fn sources_outside_are_refused() {
        let (base, only) = limited();
        for reading in [LinkHandling::AsIs, LinkHandling::Followed, LinkHandling::Compared] {
            for way in ways_out(base.path()) {
                let refused = only.sources(Path::new(&way), reading).map(drop);
                assert!(matches!(refused, Err(Error::KeyRestricted(_))), "{way:?} {reading:?}: {refused:?}");
            }
            for pattern in ["out/*", "../*", "/etc/*", "~/../*", "absolute/k*", "magic/*"] {
                let refused = only.sources(Path::new(pattern), reading).map(drop);
                assert!(matches!(refused, Err(Error::KeyRestricted(_))), "{pattern:?} {reading:?}: {refused:?}");
            }
        }
        for link in ["out", "out-file", "absolute", "magic"] {
            for reading in [LinkHandling::Followed, LinkHandling::Compared] {
                let refused = only.sources(Path::new(link), reading).map(drop);
                assert!(matches!(refused, Err(Error::KeyRestricted(_))), "{link:?} {reading:?}: {refused:?}");
            }
            assert_eq!(sent(&only, link, LinkHandling::AsIs).unwrap(), [link], "the link itself is inside");
        }
        let absent = only.sources(Path::new("*/*"), LinkHandling::AsIs).map(drop);
        assert!(matches!(absent, Err(Error::Files(FilesError::SourceAbsent { .. }))), "{absent:?}");
    }

    #[test]
    fn restricted_sources_found_by_any_spelling() {
        let (base, only) = limited();
        let absolute = base.path().canonicalize().unwrap().join("limit");
        let absolute = |name: &str| absolute.join(name).display().to_string();
        let tree = ["directory", "directory/in", "directory/inner"];
        for (path, reading, names) in [
            ("file", LinkHandling::Followed, &["file"][..]),
            ("~/file", LinkHandling::Followed, &["file"]),
            ("./directory/../file", LinkHandling::Followed, &["file"]),
            (&absolute("file"), LinkHandling::Followed, &["file"]),
            ("directory", LinkHandling::Followed, &tree),
            ("directory", LinkHandling::AsIs, &tree),
            ("directory", LinkHandling::Compared, &["in", "inner"]),
            ("directory/", LinkHandling::AsIs, &["in", "inner"]),
            (&absolute("directory/."), LinkHandling::AsIs, &["in", "inner"]),
            ("inside", LinkHandling::Followed, &["inside", "inside/in", "inside/inner"]),
            ("inside", LinkHandling::AsIs, &["inside"]),
            ("inside", LinkHandling::Compared, &["in", "inner"]),
            ("inside/inner", LinkHandling::AsIs, &["inner"]),
            ("inside-file", LinkHandling::Followed, &["inside-file"]),
            ("fi*", LinkHandling::Followed, &["file"]),
            ("inside/in*", LinkHandling::Followed, &["in", "inner"]),
        ] {
            assert_eq!(sent(&only, path, reading).unwrap(), names, "{path} {reading:?}");
        }
        let whole = sent(&only, "", LinkHandling::AsIs).unwrap();
        assert_eq!(whole.len(), 11, "{whole:?}");
        for (path, reading) in
            [("~/", LinkHandling::AsIs), ("~/.", LinkHandling::Followed), ("~", LinkHandling::Compared)]
        {
            assert_eq!(sent(&only, path, reading).unwrap(), whole, "{path} {reading:?}");
        }
        let named = sent(&only, absolute("").trim_end_matches('/'), LinkHandling::AsIs).unwrap();
        assert_eq!((named.len(), &*named[0]), (12, "limit"));
        for reading in [LinkHandling::AsIs, LinkHandling::Followed] {
            assert_eq!(sent(&only, "~", reading).unwrap(), named, "{reading:?}");
        }
        for absent in ["nothing", "directory/nothing", "file/x", "nothing/x", "no*"] {
            let error = sent(&only, absent, LinkHandling::Followed).unwrap_err();
            assert!(
                matches!(&error, Error::Files(FilesError::SourceAbsent { path }) if path == Path::new(absent)),
                "{error}"
            );
        }
    }

    #[test]
    fn restricted_error_names_requested_path() {
        let (_base, only) = limited();
        let sources = only.sources(Path::new("~/directory"), LinkHandling::Followed).unwrap();
        let roots = sources.iter().map(|source| source.root.clone()).collect();
        let options = SourceOptions { recursive: false, ..SourceOptions::default() };
        let error = as_typed(Scanner::new(roots, options).unwrap_err(), &sources);
        assert_eq!(error.to_string(), "~/directory is a directory");
    }

    #[test]
    fn restricted_source_swapped_not_followed() {
        let (base, only) = limited();
        let limit = base.path().join("limit");
        let found = |path| only.sources(Path::new(path), LinkHandling::Followed).unwrap().remove(0);
        let (file, inner) = (found("file"), found("directory/inner"));
        // Replace the last component, and a parent directory, by symbolic links.
        fs::remove_file(limit.join("file")).unwrap();
        symlink("../secret/key", limit.join("file")).unwrap();
        fs::rename(limit.join("directory"), limit.join("moved")).unwrap();
        fs::create_dir(base.path().join("secret/directory")).unwrap();
        fs::write(base.path().join("secret/inner"), "secret").unwrap();
        symlink("../secret", limit.join("directory")).unwrap();
        let scanned = |source: &RestrictedItem| {
            let mut batches = Scanner::new(vec![source.root.clone()], SourceOptions::default()).unwrap();
            batches.next().unwrap().entries.remove(0).kind
        };
        assert!(matches!(scanned(&file), crate::files::EntryKind::Symlink { .. }), "{:?}", scanned(&file));
        let mut content = String::new();
        fs::File::open(&inner.root.path).unwrap().read_to_string(&mut content).unwrap();
        assert_eq!(content, "limit/directory/inner");
    }

    #[test]
    fn restricted_directory_replaced_keeps_handle() {
        let (base, only) = limited();
        fs::rename(base.path().join("limit"), base.path().join("moved")).unwrap();
        symlink("secret", base.path().join("limit")).unwrap();
        assert_eq!(sent(&only, "file", LinkHandling::Followed).unwrap(), ["file"]);
        assert!(matches!(
            sent(&only, "key", LinkHandling::Followed),
            Err(Error::Files(FilesError::SourceAbsent { .. }))
        ));
        assert_eq!(only.path().unwrap(), base.path().canonicalize().unwrap().join("moved"));
    }

    #[test]
    fn restricted_target_link_followed_only_inside() {
        let (base, only) = limited();
        let within = Some(only.path().unwrap());
        let into = |name: &str| base.path().join("limit").join(name);
        for (target, outside) in [(into("directory"), false), (into("inside"), false), (into("out"), true)] {
            let spec = ReceiveRequest { within: within.clone(), ..ReceiveRequest::into_directory(&target) };
            let sink = crate::files::FileSink::new(spec).unwrap();
            let begun = sink.begin(crate::files::SourceId([1; 16])).and_then(|()| sink.decide(None));
            let batch = without_bytes(Vec::new());
            let taken = begun.and_then(|()| sink.add_manifest_part(&batch).map(drop));
            assert_eq!(matches!(taken, Err(FilesError::TargetOutside { .. })), outside, "{target:?}: {taken:?}");
        }
        assert_eq!(fs::read_dir(base.path().join("secret")).unwrap().count(), 1);
    }

    /// The target, or a parent of it, is replaced between any two steps of a transfer.
    #[test]
    fn restricted_target_swapped_not_followed() {
        let entry = |path: &str, kind| crate::files::Entry {
            path: path.into(),
            kind,
            mode: 0o755,
            mtime: crate::files::Mtime::default(),
            extra: crate::files::Extra::default(),
        };
        for (target, replaced) in
            [("directory", "directory"), ("directory/in", "directory"), ("directory/in", "directory/in")]
        {
            for step in 0..4 {
                let (base, only) = limited();
                fs::create_dir_all(base.path().join("secret/in")).unwrap();
                let limit = base.path().join("limit");
                let becomes_link = |at: usize| {
                    if at == step {
                        fs::rename(limit.join(replaced), limit.join("moved")).unwrap();
                        symlink(base.path().join("secret"), limit.join(replaced)).unwrap();
                    }
                };
                let within = Some(only.path().unwrap());
                let spec = ReceiveRequest { within, ..ReceiveRequest::into_directory(limit.join(target)) };
                becomes_link(0);
                let taken = crate::files::FileSink::new(spec).and_then(|sink| {
                    becomes_link(1);
                    sink.begin(crate::files::SourceId([1; 16]))?;
                    becomes_link(2);
                    sink.decide(None)?;
                    becomes_link(3);
                    let entries = vec![
                        entry("new", crate::files::EntryKind::Directory),
                        entry("new/file", crate::files::EntryKind::File { size: 0, version: 0, hash: None }),
                    ];
                    let batch = without_bytes(entries);
                    sink.add_manifest_part(&batch)?;
                    sink.settle(|_, _| {})?;
                    sink.flush()
                });
                let step = format!("{target}, {replaced} replaced at step {step}: {taken:?}");
                let names = |directory: &str| fs::read_dir(base.path().join(directory)).unwrap().count();
                assert_eq!((names("secret"), names("secret/in")), (2, 0), "{step}");
                let moved = limit.join("moved").join(target.strip_prefix(replaced).unwrap().trim_start_matches('/'));
                assert_eq!(taken.is_ok(), moved.join("new").is_dir(), "{step}");
            }
        }
    }

    #[test]
    fn restricted_root_sets_no_attributes() {
        let (_base, only) = limited();
        let options = [
            Preserve { owner: true, ..Preserve::default() },
            Preserve { xattrs: true, ..Preserve::default() },
            Preserve { specials: true, ..Preserve::default() },
        ];
        for preserve in options {
            let task = RemoteTask::Receive(Box::new(ReceiveRequest { preserve, ..ReceiveRequest::to_target("x") }));
            assert_eq!(only.permits(&task).is_err(), geteuid().is_root(), "{preserve:?}");
        }
    }

    #[test]
    fn tasks_beyond_the_access_are_refused() {
        let (_base, only) = limited();
        let spec =
            |dry_run| RemoteTask::Receive(Box::new(ReceiveRequest { dry_run, ..ReceiveRequest::to_target("x") }));
        let send = |links| RemoteTask::Send {
            sources: Vec::new(),
            scan: SourceOptions { links, ..SourceOptions::default() },
            compared: false,
            dry_run: false,
        };
        let plain = || send(crate::files::LinkPolicy::Copy);
        let removing = |dry_run| RemoteTask::Send {
            sources: Vec::new(),
            scan: SourceOptions { remove_sources: true, ..SourceOptions::default() },
            compared: false,
            dry_run,
        };
        let tasks = || {
            let pipe = RemoteTask::Pipe { command: "true".into() };
            [
                spec(false),
                spec(true),
                plain(),
                send(crate::files::LinkPolicy::Follow),
                removing(false),
                removing(true),
                RemoteTask::Examine { directory: None },
                pipe,
            ]
        };
        for (access, wanted) in [
            (Access::Full, [true, true, true, false, true, true, true, false]),
            (Access::ReadOnly, [false, true, true, false, false, true, false, false]),
            (Access::WriteOnly, [true, true, false, false, false, false, true, false]),
        ] {
            let only = RestrictedRoot { directory: only.directory.try_clone().unwrap(), access };
            assert_eq!(tasks().map(|task| only.permits(&task).is_ok()), wanted, "{access:?}");
        }
    }
}
