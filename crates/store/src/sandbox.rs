//! The directory sandbox of a receiver: every operation takes a path beneath one directory and cannot leave it.
//!
//! Each path component is opened by itself with `openat`, as a directory and without following symbolic links, so no
//! name leaves the sandbox, whatever links it contains. (`openat2` with `RESOLVE_BENEATH` would do the same in one
//! call, on Linux only; instead the most recently used directories are kept open.)

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rustix::fs::{
    Access, AtFlags, Dir, FileType, Mode, OFlags, accessat, fstat, linkat, mkdirat, openat, readlinkat, renameat,
    statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::path::Arg;

pub(super) use super::directory::READ_DIRECTORY;
use super::directory::{WAY, readable};
use super::inheritance::InheritedAcl;
use super::metadata::{Identity, Status, mode_of, set_metadata, timestamps, tolerate};
use super::path_handle::PathHandle;
use crate::lock::lock;
use crate::messages::Mtime;

/// Number of directories kept open: enough for a few threads at different parts of a tree.
const KEPT: usize = 32;

/// A directory and everything beneath it, addressed by relative path.
#[derive(Debug)]
pub(super) struct DirectorySandbox {
    root: Arc<Directory>,
    /// Recently used directories by path, most recent last.
    kept: Mutex<VecDeque<CachedDirectory>>,
}

/// An open directory and its path.
type CachedDirectory = (Box<[u8]>, Arc<Directory>);

/// A directory opened as a path, to reach names in it.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) fd: OwnedFd,
    /// Whether this process has just created it, so that it contains nothing of other programs.
    is_new: bool,
    may_write: OnceLock<bool>,
    inherited: OnceLock<InheritedAcl>,
}

impl Directory {
    fn new(fd: OwnedFd, is_new: bool) -> Arc<Self> {
        Arc::new(Self { fd, is_new, may_write: OnceLock::new(), inherited: OnceLock::new() })
    }
}

impl DirectorySandbox {
    pub(super) fn new(root: OwnedFd) -> Self {
        Self { root: Directory::new(root, false), kept: Mutex::default() }
    }

    /// Returns the directory itself.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root.fd
    }

    /// Whether the directory itself was removed by another process.
    pub(super) fn is_removed(&self) -> bool {
        fstat(self.root()).is_ok_and(|found| found.st_nlink == 0)
    }

    /// Returns the status of a name without following a link; `None` if it does not exist, and for every name in a
    /// directory that this run has created, until [`Self::forget_new`].
    pub(super) fn look(&self, path: &[u8]) -> io::Result<Option<Status>> {
        let (parent, name) = self.parent(path)?;
        if parent.is_new {
            return Ok(None);
        }
        match statat(&parent.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether names may be created and replaced in the directory that contains `path`.
    pub(super) fn may_write(&self, path: &[u8]) -> io::Result<bool> {
        let (parent, _) = self.parent(path)?;
        let ask = || accessat(&parent.fd, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok();
        Ok(*parent.may_write.get_or_init(ask))
    }

    /// Returns the attributes that names in the directory that contains `path` inherit.
    pub(super) fn inherited(&self, path: &[u8]) -> io::Result<InheritedAcl> {
        let (parent, _) = self.parent(path)?;
        Ok(parent.inherited.get_or_init(|| InheritedAcl::of(&parent.fd)).clone())
    }

    /// Creates a directory, and returns its status; fails if the name exists.
    pub(super) fn create_directory(&self, path: &[u8], mode: u32) -> io::Result<Status> {
        let (parent, name) = self.parent(path)?;
        mkdirat(&parent.fd, name, mode_of(mode))?;
        self.enter_new(path)
    }

    /// Marks a directory as new: it contains only names created by this process, so that none of them needs to be
    /// looked up. Returns its status.
    pub(super) fn enter_new(&self, path: &[u8]) -> io::Result<Status> {
        let (parent, name) = self.parent(path)?;
        let fd = openat(&parent.fd, name, WAY, Mode::empty())?;
        let made = Status::from(fstat(&fd)?);
        self.keep(path, Directory::new(fd, true));
        Ok(made)
    }

    /// Stops treating directories as new.
    pub(super) fn forget_new(&self) {
        self.lock().clear();
    }

    /// Creates a symlink; fails if the name exists.
    pub(super) fn create_symlink(&self, path: &[u8], target: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(symlinkat(target, &parent.fd, name)?)
    }

    /// Sets the mtime of a symlink itself.
    pub(super) fn set_link_time(&self, path: &[u8], mtime: Mtime) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        let set = utimensat(&parent.fd, name, &timestamps(mtime), AtFlags::SYMLINK_NOFOLLOW);
        tolerate(set, parent.fd.as_fd(), || statat(&parent.fd, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// Returns the target of a symlink.
    pub(super) fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (parent, name) = self.parent(path)?;
        Ok(readlinkat(&parent.fd, name, Vec::new())?.into_bytes())
    }

    /// Opens a file or directory for reading, but not a link. Never blocks on a FIFO.
    pub(super) fn open(&self, path: &[u8]) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(openat(&parent.fd, name, flags, Mode::empty())?))
    }

    /// Opens the file or directory that was `found`.
    ///
    /// # Errors
    /// `ESTALE` if something else has its name by now: other users with write access to its directory could otherwise
    /// redirect a mode to a file that was never inspected.
    pub(super) fn open_found(&self, path: &[u8], found: Identity) -> io::Result<File> {
        let file = self.open(path)?;
        if Status::from(fstat(&file)?).identity == found { Ok(file) } else { Err(Errno::STALE.into()) }
    }

    /// Opens the file that was `found`, of any kind, as a mere path.
    ///
    /// # Errors
    /// `ESTALE` if something else has its name by now.
    pub(super) fn hold(&self, path: &[u8], found: Identity) -> io::Result<PathHandle> {
        let (parent, name) = self.parent(path)?;
        let held = PathHandle::open(&parent.fd, name)?;
        if held.status()?.identity == found { Ok(held) } else { Err(Errno::STALE.into()) }
    }

    /// Sets the given mode and mtime of the file or directory that was `found`. Its owner may do that without
    /// permission to read it.
    pub(super) fn set_attributes(
        &self,
        path: &[u8],
        found: Identity,
        mode: Option<u32>,
        mtime: Option<Mtime>,
    ) -> io::Result<()> {
        let held = self.hold(path, found)?;
        match held.set(mode, mtime) {
            // Without /proc the held file cannot be reached.
            Err(error) if errno(&error) == Errno::STALE => set_metadata(self.open_found(path, found)?, mode, mtime),
            result => result,
        }
    }

    /// Moves `name` of the directory `from` to `path`, replacing a file or link unless `new`.
    pub(super) fn place(&self, from: &OwnedFd, name: &str, path: &[u8], new: bool) -> rustix::io::Result<()> {
        let (parent, last) = self.parent(path).map_err(|e| errno(&e))?;
        if new { rename_new(from, name.as_bytes(), &parent.fd, last) } else { renameat(from, name, &parent.fd, last) }
    }

    /// Returns the device of the sandbox if requested.
    pub(super) fn device_if(&self, asked: bool) -> Option<u64> {
        // Without a device, no directory is on it.
        asked.then(|| fstat(&self.root.fd).map_or(0, |found| Status::from(found).identity.device))
    }

    /// Returns the open directory that contains `path`, and the name in it.
    pub(super) fn parent<'a>(&self, path: &'a [u8]) -> io::Result<(Arc<Directory>, &'a [u8])> {
        match path.iter().rposition(|b| *b == b'/') {
            Some(slash) => Ok((self.directory(&path[..slash])?, &path[slash + 1..])),
            None => Ok((Arc::clone(&self.root), path)),
        }
    }

    /// Opens a directory; the empty path is the sandbox itself.
    pub(super) fn directory(&self, path: &[u8]) -> io::Result<Arc<Directory>> {
        // Start at the deepest directory that is open, then descend. Not recursive: a path may have 2048 components.
        let mut known = path.len();
        let mut at = loop {
            if known == 0 {
                break Arc::clone(&self.root);
            }
            if let Some(open) = self.touch(&path[..known]) {
                break open;
            }
            known = path[..known].iter().rposition(|b| *b == b'/').unwrap_or(0);
        };
        while known < path.len() {
            let start = if known == 0 { 0 } else { known + 1 };
            let end = path[start..].iter().position(|b| *b == b'/').map_or(path.len(), |slash| start + slash);
            at = Directory::new(openat(&at.fd, &path[start..end], WAY, Mode::empty())?, false);
            self.keep(&path[..end], Arc::clone(&at));
            known = end;
        }
        Ok(at)
    }

    /// Lists the names in a directory, sorted, each with whether it is a directory.
    pub(super) fn list(&self, path: &[u8]) -> io::Result<Vec<(Vec<u8>, bool)>> {
        let listed = self.open_to_list(path)?;
        let mut names = Vec::new();
        for item in Dir::new(listed)? {
            let item = item?;
            let name = item.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let is_directory = match item.file_type() {
                FileType::Directory => true,
                // Some file systems do not report the type.
                FileType::Unknown => statat(&self.directory(path)?.fd, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| Status::from(stat).is_directory()),
                _ => false,
            };
            names.push((name.to_vec(), is_directory));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens a directory to list or sync it.
    ///
    /// # Errors
    /// `EACCES` if this user may not read it, whatever other permissions they have.
    pub(super) fn open_to_list(&self, path: &[u8]) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return readable(self.root());
        }
        // By its name: reading needs no permission to search it.
        let (parent, name) = self.parent(path)?;
        Ok(openat(&parent.fd, name, READ_DIRECTORY, Mode::empty())?)
    }

    /// Removes a name that is not a directory.
    pub(super) fn remove(&self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(unlinkat(&parent.fd, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub(super) fn remove_directory(&self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        unlinkat(&parent.fd, name, AtFlags::REMOVEDIR)?;
        self.lock().retain(|(kept, _)| **kept != *path);
        Ok(())
    }

    fn keep(&self, path: &[u8], directory: Arc<Directory>) {
        let mut kept = self.lock();
        let oldest = (kept.len() >= KEPT).then(|| kept.pop_front());
        kept.push_back((path.into(), directory));
        drop(kept);
        drop(oldest);
    }

    fn touch(&self, path: &[u8]) -> Option<Arc<Directory>> {
        let mut kept = self.lock();
        let at = kept.iter().rposition(|(known, _)| **known == *path)?;
        let found = if at + 1 == kept.len() { None } else { kept.remove(at) };
        kept.extend(found);
        kept.back().map(|(_, open)| Arc::clone(open))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<CachedDirectory>> {
        lock(&self.kept)
    }
}

/// Returns the system error number of an error.
pub(super) fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// Renames without replacing anything.
pub fn rename_new(
    from: impl AsFd,
    name: impl Arg + Copy,
    to: impl AsFd,
    new_name: impl Arg + Copy,
) -> rustix::io::Result<()> {
    let (from, to) = (from.as_fd(), to.as_fd());
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    match rustix::fs::renameat_with(from, name, to, new_name, rustix::fs::RenameFlags::NOREPLACE) {
        // The file system does not support the flag.
        Err(error) if error != Errno::PERM && super::metadata::is_unsupported(error) => {}
        result => return result,
    }
    rename_by_link(from, name, to, new_name)
}

/// Renames without replacing anything, if the system cannot do so in one step.
fn rename_by_link(
    from: BorrowedFd<'_>,
    name: impl Arg + Copy,
    to: BorrowedFd<'_>,
    new_name: impl Arg + Copy,
) -> rustix::io::Result<()> {
    // A second name is as good, if the file system has hard links, unless a directory is renamed.
    let made = match linkat(from, name, to, new_name, AtFlags::empty()) {
        Ok(()) => true,
        // An NFS server that gets the request twice answers the second one so.
        Err(Errno::EXIST) if are_one(from, name, to, new_name) => true,
        Err(Errno::EXIST) => return Err(Errno::EXIST),
        Err(_) => false,
    };
    if made {
        // The file has its new name; the old one is removed with the staging directory.
        let _ = unlinkat(from, name, AtFlags::empty());
        return Ok(());
    }
    // Without either, check first. An object created between the check and the rename is lost only if it is a file or
    // an empty directory: rename never replaces a directory that is not empty.
    match statat(to, new_name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => renameat(from, name, to, new_name),
        Err(error) => Err(error),
    }
}

/// Whether two names refer to the same file.
fn are_one(from: BorrowedFd<'_>, name: impl Arg, to: BorrowedFd<'_>, new_name: impl Arg) -> bool {
    let one = statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map(Status::from);
    let other = statat(to, new_name, AtFlags::SYMLINK_NOFOLLOW).map(Status::from);
    one.is_ok_and(|one| other.is_ok_and(|other| one.identity == other.identity))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn rename_by_link_replaces_nothing() {
        let here = tempfile::tempdir().unwrap();
        let path = |name: &str| here.path().join(name);
        let directory = File::open(here.path()).unwrap();
        let rename = |name: &str, new_name: &str| rename_by_link(directory.as_fd(), name, directory.as_fd(), new_name);
        for name in ["file", "other", "twice"] {
            fs::write(path(name), name).unwrap();
        }
        fs::create_dir(path("directory")).unwrap();
        fs::create_dir(path("empty")).unwrap();
        fs::hard_link(path("twice"), path("second")).unwrap();
        for (name, taken) in [("file", "other"), ("file", "empty"), ("directory", "empty"), ("directory", "other")] {
            assert_eq!(rename(name, taken), Err(Errno::EXIST), "{name} to {taken}");
            assert!(path(name).exists() && path(taken).exists());
        }
        for (name, new_name) in [("file", "free"), ("directory", "new"), ("twice", "second")] {
            assert_eq!(rename(name, new_name), Ok(()), "{name} to {new_name}");
            assert!(!path(name).exists() && path(new_name).exists());
        }
        assert_eq!(fs::read(path("free")).unwrap(), b"file");
        assert_eq!(fs::read(path("second")).unwrap(), b"twice");
        assert_eq!(rename("absent", "nothing"), Err(Errno::NOENT));
    }

    /// In a directory of another user, who exchanges names between the look-up and the change.
    #[test]
    fn set_attributes_fails_on_exchanged_file() {
        let here = tempfile::tempdir().unwrap();
        let path = |name: &str| here.path().join(name);
        fs::write(path("found"), b"found").unwrap();
        fs::write(path("secret"), b"other").unwrap();
        let sandbox = DirectorySandbox::new(File::open(here.path()).unwrap().into());
        let mode = |name: &str| sandbox.look(name.as_bytes()).unwrap().unwrap().mode;
        let found = sandbox.look(b"found").unwrap().unwrap().identity;
        sandbox.set_attributes(b"found", found, Some(0o751), None).unwrap();
        assert_eq!(mode("found"), 0o751);
        let before = mode("secret");
        fs::rename(path("secret"), path("found")).unwrap();
        let error = sandbox.set_attributes(b"found", found, Some(0o777), None).unwrap_err();
        assert_eq!((errno(&error), mode("found")), (Errno::STALE, before));
    }
}
