//! The contents of a staging directory: names, and its lock.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;

use crate::folding::PROBES;
use crate::journal;
use crate::sandbox::READ_DIRECTORY;
use crate::staged_id::StagedId;

pub(super) const LOCK: &str = "lock";
pub(super) const DIRECTORIES: &str = "folders";
pub(super) const LINKS: &str = "links";
pub(super) const FILES: &str = "files";
/// Name of an object created here only to be moved out at once.
pub(super) const MOVING: &str = "moving";
/// Prefix of the names with which the file system is asked whether two names are equal.
pub(super) const SPELLING: &[u8] = b"spelling-";

/// Locks a staging directory; `None` if its last user has removed it meanwhile.
pub(super) fn lock_directory(dir: &OwnedFd) -> rustix::io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(dir, LOCK, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        // The file system does not support locks: continue without one.
        Ok(()) | Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        Err(error) => return Err(error),
    }
    Ok((fstat(&file)?.st_nlink > 0).then(|| File::from(file)))
}

/// Whether a name in a staging directory is that of a directory of staged files: a digit of base 32.
pub(super) fn is_directory_name(name: &[u8]) -> bool {
    matches!(name, [b'a'..=b'z' | b'2'..=b'7'])
}

/// Whether a name in a staging directory is one given by this program.
pub(super) fn is_part(name: &[u8]) -> bool {
    let names = [LOCK, DIRECTORIES, LINKS, FILES, MOVING, journal::NAME, journal::NEW_NAME];
    is_directory_name(name)
        || name.starts_with(SPELLING)
        || names.iter().chain(&PROBES).any(|part| part.as_bytes() == name)
}

/// Returns the staged files in a staging directory.
pub(super) fn staged_files(dir: &OwnedFd) -> io::Result<BTreeSet<StagedId>> {
    let mut found = BTreeSet::new();
    for item in Dir::read_from(dir)? {
        let item = item?;
        if !is_directory_name(item.file_name().to_bytes()) {
            continue;
        }
        let directory = openat(dir, item.file_name(), READ_DIRECTORY, Mode::empty())?;
        for item in Dir::read_from(&directory)? {
            found.extend(StagedId::from_name(item?.file_name().to_bytes()));
        }
    }
    Ok(found)
}
