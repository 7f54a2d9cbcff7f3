//! Reaching names beneath a folder without leaving it.
//!
//! Every component is opened by itself, as a folder and without following links. No name can lead out of the folder,
//! whatever links are in it. (`openat2` with `RESOLVE_BENEATH` would do the same in one call, on Linux only; the last
//! folders used are kept open instead.)

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, symlinkat, unlinkat, utimensat};

use super::entry::Mtime;
use super::staging::{is_unsupported, timestamps};

/// Folders kept open: a few threads at different places of a tree.
const KEPT: usize = 16;

/// What a folder is opened with.
pub(super) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder and everything beneath it, by path. Only its owner may enter what is made here.
#[derive(Debug)]
pub(super) struct Beneath {
    root: Arc<OwnedFd>,
    /// Folders used last, by path; the latest last.
    kept: Mutex<Vec<(Vec<u8>, Arc<OwnedFd>)>>,
}

impl Beneath {
    pub(super) fn new(root: OwnedFd) -> Self {
        Self { root: Arc::new(root), kept: Mutex::default() }
    }

    /// The folder itself.
    pub(super) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Makes an empty file; fails if the name is taken.
    pub(super) fn create_file(&self, path: &[u8]) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    /// Opens a file that was made before, for writing.
    pub(super) fn open_file(&self, path: &[u8]) -> io::Result<File> {
        let (parent, name) = self.parent(path)?;
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(parent, name, flags, Mode::empty())?))
    }

    /// Makes a folder; fails if the name is taken.
    pub(super) fn create_folder(&self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(mkdirat(parent, name, Mode::RWXU)?)
    }

    /// Opens a folder that was made before.
    pub(super) fn open_folder(&self, path: &[u8]) -> io::Result<OwnedFd> {
        let (parent, name) = self.parent(path)?;
        Ok(openat(parent, name, FOLDER, Mode::empty())?)
    }

    /// Makes a symlink; fails if the name is taken. Its time is set where the file system can.
    pub(super) fn create_symlink(&self, path: &[u8], target: &[u8], mtime: Mtime) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        symlinkat(target, &parent, name)?;
        match utimensat(&parent, name, &timestamps(mtime), AtFlags::SYMLINK_NOFOLLOW) {
            Err(error) if !is_unsupported(error) => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Removes a file.
    pub(super) fn remove_file(&self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(unlinkat(parent, name, AtFlags::empty())?)
    }

    /// The open folder that `path` is in, and the name in it.
    fn parent<'a>(&self, path: &'a [u8]) -> io::Result<(Arc<OwnedFd>, &'a [u8])> {
        let Some(slash) = path.iter().rposition(|b| *b == b'/') else {
            return Ok((Arc::clone(&self.root), path));
        };
        let (folder, name) = (&path[..slash], &path[slash + 1..]);
        if let Some(open) = self.touch(folder) {
            return Ok((open, name));
        }
        let mut at = Arc::clone(&self.root);
        for component in folder.split(|b| *b == b'/') {
            at = Arc::new(openat(at, component, FOLDER, Mode::empty())?);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((folder.to_vec(), Arc::clone(&at)));
        Ok((at, name))
    }

    fn touch(&self, folder: &[u8]) -> Option<Arc<OwnedFd>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().rposition(|(path, _)| path == folder)?;
        kept[at..].rotate_left(1);
        kept.last().map(|(_, open)| Arc::clone(open))
    }
}
