//! Moves staged files to another file system, such as one mounted below the target: each is first copied there under a
//! temporary name, since a rename cannot cross file systems.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, ftruncate, openat, readlinkat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use crate::attributes::{ExtraRule, SetResult};
use crate::metadata::{Status, mode_of};
use crate::path_handle::PathHandle;
use crate::staging::under_random_name;

/// A copy on the file system of its final name; removed when dropped, unless it was moved there.
#[derive(Debug)]
pub(super) struct TempCopy<'a> {
    directory: &'a OwnedFd,
    pub(super) name: String,
    /// Whether it has all attributes of the staged file.
    pub(super) applied: SetResult,
}

impl<'a> TempCopy<'a> {
    /// Copies the file or link `staged` of the directory `from` to `directory`, with its attributes, and makes it
    /// durable. Its temporary name is a random one that no entry may have.
    ///
    /// # Errors
    /// `EXDEV` for anything but a file or a link; a failure of either disk.
    pub(super) fn new(from: &OwnedFd, staged: &str, directory: &'a OwnedFd, extras: ExtraRule) -> io::Result<Self> {
        let found: Status = statat(from, staged, AtFlags::SYMLINK_NOFOLLOW)?.into();
        match found.file_type {
            FileType::RegularFile => {
                let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let mode = Mode::RUSR | Mode::WUSR;
                let (name, copy) = under_random_name(|name| Ok(File::from(openat(directory, name, flags, mode)?)))?;
                let mut carried = Self { directory, name, applied: SetResult::All };
                carried.copy(from, staged, &copy, &found, extras)?;
                Ok(carried)
            }
            FileType::Symlink => {
                let target = readlinkat(from, staged, Vec::new())?;
                let (name, ()) = under_random_name(|name| Ok(symlinkat(&target, directory, name)?))?;
                let mut carried = Self { directory, name, applied: SetResult::All };
                let link = PathHandle::open(directory, carried.name.as_str())?;
                let made = link.status()?;
                // Other users with write access to this directory may have replaced it. The owner is no evidence: some
                // file systems give every name the same one.
                if !made.is_symlink() || made.links > 1 || readlinkat(&link, "", Vec::new())? != target {
                    return Err(Errno::STALE.into());
                }
                carried.take_over((from, staged), &link, &found, extras)?;
                Ok(carried)
            }
            _ => Err(Errno::XDEV.into()),
        }
    }

    fn copy(&mut self, from: &OwnedFd, staged: &str, copy: &File, found: &Status, extras: ExtraRule) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let open = || openat(from, staged, flags, Mode::empty());
        let source = match open() {
            // It has its final mode, which may deny its owner reading. The copy gets the mode of `found`.
            Err(Errno::ACCESS) => {
                chmodat(from, staged, mode_of(found.mode | 0o400), AtFlags::empty())?;
                open()
            }
            opened => opened,
        };
        copy_data(&File::from(source?), copy, found.size)?;
        let held = PathHandle::from(OwnedFd::from(copy.try_clone()?));
        self.take_over((from, staged), &held, found, extras)?;
        copy.sync_all()
    }

    /// Gives the copy the attributes of the staged file.
    fn take_over(
        &mut self,
        (from, staged): (&OwnedFd, &str),
        copy: &PathHandle,
        found: &Status,
        extras: ExtraRule,
    ) -> io::Result<()> {
        let extra = extras.read(found, || PathHandle::open(from, staged))?;
        self.applied = extras.apply(copy, Some(found.mode), Some(found.mtime), &extra)?;
        Ok(())
    }
}

impl Drop for TempCopy<'_> {
    fn drop(&mut self) {
        // It does not exist if it was moved to its final name.
        let _ = unlinkat(self.directory, &self.name, AtFlags::empty());
    }
}

/// Copies the bytes of a file; its holes stay holes.
fn copy_data(mut from: &File, mut to: &File, size: u64) -> io::Result<()> {
    ftruncate(to, size)?;
    let mut at = 0;
    while let Some(data) = next_data(from, at, size)? {
        from.seek(SeekFrom::Start(data.start))?;
        to.seek(SeekFrom::Start(data.start))?;
        if io::copy(&mut from.take(data.end - data.start), &mut to)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        at = data.end;
    }
    Ok(())
}

/// Returns the next data range of a file, without holes.
#[cfg(target_os = "linux")]
fn next_data(file: &File, at: u64, size: u64) -> io::Result<Option<std::ops::Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    if at >= size {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not report holes.
        Err(Errno::INVAL) => return Ok(Some(at..size)),
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start)).map_or(size, |end| end.min(size));
    Ok(Some(start..end))
}

/// Not implemented on this platform: treats everything as data.
#[cfg(not(target_os = "linux"))]
fn next_data(_: &File, at: u64, size: u64) -> io::Result<Option<std::ops::Range<u64>>> {
    Ok((at < size).then_some(at..size))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::Preserve;

    fn names(directory: &Path) -> Vec<String> {
        let items = fs::read_dir(directory).unwrap();
        items.map(|item| item.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Other users with write access to the directory of a final name know the names that other runs have used there.
    #[test]
    fn temp_copy_name_differs_each_time() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(from.path().join("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", from.path().join("link")).unwrap();
        let [source, directory] = [from.path(), to.path()].map(|path| OwnedFd::from(fs::File::open(path).unwrap()));
        let mut seen = Vec::new();
        for staged in ["file", "file", "link", "link"] {
            let carried = TempCopy::new(&source, staged, &directory, ExtraRule::new(Preserve::default())).unwrap();
            assert_eq!(names(to.path()), [carried.name.as_str()]);
            assert!(request::is_staging_name(carried.name.as_bytes()) && !seen.contains(&carried.name));
            seen.push(carried.name.clone());
            drop(carried);
            // From now on the names are taken by other users, who are not disturbed.
            fs::create_dir(to.path().join(seen.last().unwrap())).unwrap();
            fs::remove_dir(to.path().join(seen.last().unwrap())).unwrap();
            assert_eq!(names(to.path()), [""; 0]);
        }
    }
}
