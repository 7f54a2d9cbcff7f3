//! The target of a stream.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;

use super::error::StreamError;
use crate::files::directory::{is_append_only, parent_of};
use crate::files::{is_staging_name, leads_to_special, rename_new, under_random_name};

/// The target of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamTarget {
    /// This process's standard output, as data arrives.
    Stdout,
    /// A file of its name in this directory, once it is complete.
    Directory {
        /// The directory, which is created if it does not exist.
        path: PathBuf,
        /// Whether a file of this name is replaced.
        replaces: bool,
    },
}

impl StreamTarget {
    /// Checks that the stream can be stored under this name, as far as possible before it arrives.
    ///
    /// # Errors
    /// [`StreamError::Exists`] for an existing file, [`StreamError::Reserved`] for a reserved name, and
    /// [`StreamError::Target`] if the system rejects the directory or the name.
    pub fn check(&self, name: &[u8]) -> Result<(), StreamError> {
        match self {
            Self::Stdout => Ok(()),
            Self::Directory { path: directory, replaces } => {
                let path = directory.join(OsStr::from_bytes(name));
                if is_staging_name(name) {
                    return Err(StreamError::Reserved(path));
                }
                // The staged file could not be renamed at the end.
                if File::open(directory).is_ok_and(|opened| is_append_only(&opened)) {
                    let source =
                        io::Error::new(io::ErrorKind::PermissionDenied, "the directory is append-only (chattr +a)");
                    return Err(StreamError::Target { path, source });
                }
                match path.symlink_metadata() {
                    Ok(found) if !replaces || found.is_dir() => Err(StreamError::Exists(path)),
                    // Programs may be communicating through a FIFO or socket, or a link to one.
                    Ok(_) if leads_to_special(&path) => {
                        let source = io::Error::other("devices, FIFOs and sockets are not replaced");
                        Err(StreamError::Target { path, source })
                    }
                    Ok(_) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                    Err(source) => Err(StreamError::Target { path, source }),
                }
            }
        }
    }

    pub(super) fn open(self, name: &[u8]) -> Result<Opened, StreamError> {
        self.check(name)?;
        match self {
            Self::Stdout => Ok(Opened::Stdout(io::stdout())),
            Self::Directory { path, replaces } => {
                Ok(Opened::File(Staged::create(&path, OsStr::from_bytes(name), replaces)?))
            }
        }
    }
}

/// An open target.
pub(super) enum Opened {
    Stdout(io::Stdout),
    File(Staged),
}

impl Opened {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        match self {
            Self::Stdout(out) => out.write_all(bytes).and_then(|()| out.flush()).map_err(StreamError::Output),
            Self::File(staged) => staged.file.write_all(bytes).map_err(|source| staged.failed(source)),
        }
    }

    /// Publishes a file under its name.
    pub(super) fn finish(self) -> Result<(), StreamError> {
        match self {
            Self::Stdout(mut out) => out.flush().map_err(StreamError::Output),
            Self::File(staged) => staged.publish(),
        }
    }
}

/// An incomplete file. Dropping it removes it.
pub(super) struct Staged {
    file: File,
    staged: PathBuf,
    path: PathBuf,
    replaces: bool,
}

impl Staged {
    fn create(directory: &Path, name: &OsStr, replaces: bool) -> Result<Self, StreamError> {
        let path = directory.join(name);
        let failed = |source| StreamError::Target { path: path.clone(), source };
        fs::create_dir_all(directory).map_err(failed)?;
        let create = |name: &str| OpenOptions::new().write(true).create_new(true).open(directory.join(name));
        let (hidden, file) = under_random_name(create).map_err(failed)?;
        Ok(Self { file, staged: directory.join(hidden), path, replaces })
    }

    fn failed(&self, source: io::Error) -> StreamError {
        StreamError::Target { path: self.path.clone(), source }
    }

    fn publish(self) -> Result<(), StreamError> {
        let renamed = self.file.sync_all().and_then(|()| self.rename());
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => StreamError::Exists(self.path.clone()),
            _ => self.failed(error),
        })?;
        let directory = parent_of(&self.path);
        // Where a directory cannot be synced the name may be lost in a power failure, but not a part of the file.
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
        Ok(())
    }

    fn rename(&self) -> io::Result<()> {
        match self.replaces {
            true => fs::rename(&self.staged, &self.path),
            false => Ok(rename_new(CWD, &*self.staged, CWD, &*self.path)?),
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // A published file has another name.
        let _ = fs::remove_file(&self.staged);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let mut names: Vec<OsString> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn stream_target_published_when_complete() {
        let directory = tempfile::tempdir().unwrap();
        let target = |replaces| StreamTarget::Directory { path: directory.path().to_owned(), replaces };
        let mut opened = target(false).open(b"x").unwrap();
        opened.write(b"some").unwrap();
        assert!(!names(directory.path()).contains(&"x".into()));
        drop(opened);
        assert!(names(directory.path()).is_empty(), "an incomplete file is removed");
        let (mut first, mut second) = (target(false).open(b"x").unwrap(), target(false).open(b"x").unwrap());
        first.write(b"first").unwrap();
        second.write(b"second").unwrap();
        first.finish().unwrap();
        assert!(matches!(second.finish(), Err(StreamError::Exists(_))), "another was published before");
        assert!(matches!(target(false).open(b"x"), Err(StreamError::Exists(_))));
        assert_eq!(fs::read(directory.path().join("x")).unwrap(), b"first");
        let mut third = target(true).open(b"x").unwrap();
        third.write(b"third").unwrap();
        third.finish().unwrap();
        assert_eq!(
            (fs::read(directory.path().join("x")).unwrap(), names(directory.path())),
            (b"third".to_vec(), vec!["x".into()])
        );
        // A reserved name could not be distinguished from a staged file.
        assert!(matches!(target(true).check(b".downpour-abcdefgh"), Err(StreamError::Reserved(_))));
        assert!(matches!(target(true).check(&[b'x'; 256]), Err(StreamError::Target { .. })), "ENAMETOOLONG");
        let below_file = StreamTarget::Directory { path: directory.path().join("x"), replaces: true };
        assert!(matches!(below_file.check(b"y"), Err(StreamError::Target { .. })), "ENOTDIR");
        fs::create_dir(directory.path().join("directory")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(directory.path().join("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/null", directory.path().join("null")).unwrap();
        assert!(matches!(target(true).check(b"directory"), Err(StreamError::Exists(_))));
        for name in [&b"socket"[..], b"null"] {
            assert!(matches!(target(true).check(name), Err(StreamError::Target { .. })));
        }
    }
}
