//! Finds or creates the staging directory of a source. Only a directory that belongs to this user and that no other
//! user can write to is used: in a shared directory another user may have taken its name.

use std::cell::OnceCell;
use std::io;
use std::os::fd::OwnedFd;

use data_encoding::BASE32_NOPAD;
use request::is_staging_name;
use request::names::{STAGING_CHARACTERS, STAGING_PREFIX};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::layout::is_part;
use crate::directory::{entries, readable};
use crate::journal;
use crate::messages::SourceId;
use crate::metadata::Status;
use crate::sandbox::{READ_DIRECTORY, errno};

/// Permissions with which others can write.
const OTHERS_WRITE: u32 = 0o022;
/// Maximum number of directories with names of staging directories that are opened to find that of a source.
const MAX_CANDIDATES: usize = 1000;
/// Maximum number of random names tried.
const MAX_ATTEMPTS: usize = 16;

/// An open staging directory.
pub(super) struct StagingHandle {
    /// Its name in the target.
    pub(super) name: String,
    pub(super) dir: OwnedFd,
    /// Whether it was created just now.
    pub(super) is_new: bool,
}

/// Looks for staging directories in one target.
pub(super) struct Finder<'a> {
    target: &'a OwnedFd,
    /// Whether the target may be changed: by a file created for a moment, to learn the owners and modes of the file
    /// system, and by closing a staging directory to other users.
    may_change: bool,
    created: OnceCell<Option<Status>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(target: &'a OwnedFd, may_change: bool) -> Self {
        Self { target, may_change, created: OnceCell::new() }
    }

    /// Returns the staging directory of `source`. Its name follows from the source, or is random if another user had
    /// taken that name.
    pub(super) fn find(&self, source: SourceId) -> io::Result<Option<StagingHandle>> {
        match self.open_for(staging_name(source), source)? {
            Some(found) => Ok(Some(found)),
            None => self.search(source),
        }
    }

    /// As [`Finder::find`], but creates the directory if there is none.
    ///
    /// # Errors
    /// I/O errors, also if other users keep replacing the new directory.
    pub(super) fn find_or_create(&self, source: SourceId) -> io::Result<StagingHandle> {
        // A directory with a random name may hold data received by an earlier run, although the first name is free now.
        if let Some(found) = self.find(source)? {
            return Ok(found);
        }
        let mut last = match self.create(&staging_name(source)) {
            Ok(found) => return Ok(found),
            Err(error) if is_taken(error) => error,
            Err(error) => return Err(error.into()),
        };
        if let Some(found) = self.find(source)? {
            return Ok(found);
        }
        // A random name could not be found again in a directory that cannot be listed.
        let is_listed = readable(self.target).is_ok();
        for attempt in 0..MAX_ATTEMPTS {
            let name = if is_listed { random_name()? } else { further_name(source, attempt) };
            match self.create(&name) {
                Ok(found) => return Ok(found),
                Err(error) if is_taken(error) => last = error,
                Err(error) => return Err(error.into()),
            }
        }
        Err(last.into())
    }

    /// Creates a staging directory.
    fn create(&self, name: &str) -> Result<StagingHandle, Errno> {
        mkdirat(self.target, name, Mode::RWXU)?;
        let dir = openat(self.target, name, READ_DIRECTORY, Mode::empty())?;
        if !self.is_ours(&dir)? {
            return Err(Errno::EXIST);
        }
        close(&dir)?;
        Ok(StagingHandle { name: name.to_owned(), dir, is_new: true })
    }

    /// Opens an existing staging directory; `None` if there is none of this name, or if it must not be used for
    /// `source`.
    fn open_for(&self, name: String, source: SourceId) -> io::Result<Option<StagingHandle>> {
        let Some(found) = self.open(name)? else { return Ok(None) };
        if matches!(journal::source(&found.dir), Ok(Some(other)) if other != source) {
            return Ok(None);
        }
        // A dry run changes no mode.
        if self.may_change {
            close(&found.dir)?;
        }
        Ok(Some(found))
    }

    /// Opens an existing staging directory of this user's; `None` if there is none of this name.
    pub(super) fn open(&self, name: String) -> io::Result<Option<StagingHandle>> {
        let dir = match openat(self.target, &name, READ_DIRECTORY, Mode::empty()) {
            Ok(dir) => dir,
            // Missing, a link, a file, or a directory that this user cannot enter.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // If others can rename, they could give this name to any directory of this user.
        if !self.is_ours(&dir)? || !holds_only_parts(&dir)? {
            return Ok(None);
        }
        Ok(Some(StagingHandle { name, dir, is_new: false }))
    }

    /// Returns the staging directory with a random name whose journal is that of `source`.
    fn search(&self, source: SourceId) -> io::Result<Option<StagingHandle>> {
        let names = match entries(self.target) {
            Ok(names) => names,
            Err(error) if errno(&error) == Errno::ACCESS => return self.try_further(source),
            Err(error) => return Err(error),
        };
        let mut candidates = 0;
        for item in names {
            let item = item?;
            let Ok(name) = item.file_name().to_str() else { continue };
            if !is_staging_name(name.as_bytes()) || candidates >= MAX_CANDIDATES {
                continue;
            }
            candidates += 1;
            if let Some(found) = self.open_for(name.to_owned(), source)?
                && matches!(journal::source(&found.dir), Ok(Some(of)) if of == source)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The same if names cannot be listed: tries the names that such a directory may have.
    fn try_further(&self, source: SourceId) -> io::Result<Option<StagingHandle>> {
        for attempt in 0..MAX_ATTEMPTS {
            if let Some(found) = self.open_for(further_name(source, attempt), source)?
                && matches!(journal::source(&found.dir), Ok(Some(of)) if of == source)
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Whether an open directory belongs to this user and no other user can write to it.
    fn is_ours(&self, dir: &OwnedFd) -> rustix::io::Result<bool> {
        let found = Status::from(fstat(dir)?);
        let is_private =
            |owner: u32, has_modes: bool| found.owner == owner && (!has_modes || found.mode & OTHERS_WRITE == 0);
        if !is_private(geteuid().as_raw(), true) {
            // Some file systems give every file the same owner or mode.
            let Some(created) = self.created() else { return Ok(false) };
            if !is_private(created.owner, created.mode & 0o077 == 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the status of a file that was created with mode 0600 in the target; `None` if none can be created.
    fn created(&self) -> Option<Status> {
        *self.created.get_or_init(|| {
            let name = self.may_change.then(random_name)?.ok()?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(self.target, &name, flags, Mode::RUSR | Mode::WUSR).ok()?;
            let created = fstat(&file).ok().map(Status::from);
            let _ = unlinkat(self.target, &name, AtFlags::empty());
            created
        })
    }
}

/// Closes a directory to all other users.
fn close(dir: &OwnedFd) -> rustix::io::Result<()> {
    if Status::from(fstat(dir)?).mode & 0o777 != 0o700 {
        // It keeps its mode if the file system has no modes.
        let _ = fchmod(dir, Mode::RWXU);
    }
    Ok(())
}

/// Whether creating a directory failed because its name exists, or was taken before the directory was opened.
fn is_taken(error: Errno) -> bool {
    matches!(error, Errno::EXIST | Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::ACCESS)
}

/// Whether a directory holds only names that this program keeps in a staging directory.
fn holds_only_parts(dir: &OwnedFd) -> io::Result<bool> {
    for item in Dir::read_from(dir)? {
        let item = item?;
        let name = item.file_name().to_bytes();
        let is_link = item.file_type() == FileType::Symlink;
        if !matches!(name, b"." | b"..") && (is_link || !is_part(name)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the name of the staging directory of a source, unless another user has taken it.
pub(crate) fn staging_name(source: SourceId) -> String {
    named(&source.0)
}

/// Creates a file under a random name of the form reserved for staging directories: other users cannot take it before.
///
/// # Errors
/// Errors of `put`, also if every tried name existed.
pub fn under_random_name<T>(mut put: impl FnMut(&str) -> io::Result<T>) -> io::Result<(String, T)> {
    let mut attempts = 1..MAX_ATTEMPTS;
    loop {
        let name = random_name()?;
        match put(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts.next().is_some() => {}
            made => return made.map(|made| (name, made)),
        }
    }
}

/// Returns a name for the staging directory of a source if another user has taken the first one and names cannot be
/// listed: each user has others.
fn further_name(source: SourceId, attempt: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&source.0).update(&geteuid().as_raw().to_be_bytes()).update(&attempt.to_be_bytes());
    let mut id = [0; 16];
    hasher.finalize_xof().fill(&mut id);
    named(&id)
}

fn random_name() -> io::Result<String> {
    let mut random = [0; 16];
    runtime::fill(&mut random)?;
    Ok(named(&random))
}

fn named(id: &[u8; 16]) -> String {
    let mut id = BASE32_NOPAD.encode(id);
    id.make_ascii_lowercase();
    id.truncate(STAGING_CHARACTERS);
    format!("{STAGING_PREFIX}{id}")
}
