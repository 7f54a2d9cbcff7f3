//! Moving what is staged to another file system, such as one that is mounted below the target: it is copied there under
//! a temporary name first, since a rename cannot cross the border.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ftruncate, openat, readlinkat, statat, symlinkat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::files::extras::{Applied, ExtraRule};
use crate::files::held::Held;
use crate::files::metadata::Status;
use crate::files::staging::named_like_staging;

/// A copy on the file system of its final name; removed when dropped, unless it was moved there.
#[derive(Debug)]
pub(super) struct Carried<'a> {
    folder: &'a OwnedFd,
    pub(super) name: String,
    /// Whether it has all attributes of what was staged.
    pub(super) applied: Applied,
}

impl<'a> Carried<'a> {
    /// Copies the file or link `staged` of the folder `from` to `folder`, with its attributes, and makes it durable.
    /// The temporary name is one that no entry may have, and the same in each run: what a run that was killed has left
    /// is replaced.
    ///
    /// # Errors
    /// `EXDEV` for anything but a file or a link; a failure of either disk.
    pub(super) fn new(from: &OwnedFd, staged: &str, folder: &'a OwnedFd, extras: ExtraRule) -> io::Result<Self> {
        let found: Status = statat(from, staged, AtFlags::SYMLINK_NOFOLLOW)?.into();
        let mut carried = Self { folder, name: named_like_staging(staged), applied: Applied::All };
        match unlinkat(folder, &carried.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        match found.file_type {
            FileType::RegularFile => carried.copy(from, staged, &found, extras)?,
            FileType::Symlink => {
                symlinkat(readlinkat(from, staged, Vec::new())?, folder, &carried.name)?;
                let link = Held::open(folder, carried.name.as_str())?;
                let made = link.status()?;
                // Whoever can write this folder may have put something else there.
                if !made.is_symlink() || made.links > 1 || made.owner != geteuid().as_raw() {
                    return Err(Errno::STALE.into());
                }
                carried.take_over((from, staged), &link, &found, extras)?;
            }
            _ => return Err(Errno::XDEV.into()),
        }
        Ok(carried)
    }

    fn copy(&mut self, from: &OwnedFd, staged: &str, found: &Status, extras: ExtraRule) -> io::Result<()> {
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let source = File::from(openat(from, staged, flags | OFlags::RDONLY, Mode::empty())?);
        let flags = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let copy = File::from(openat(self.folder, &self.name, flags, Mode::RUSR | Mode::WUSR)?);
        copy_data(&source, &copy, found.size)?;
        let held = Held::from(OwnedFd::from(copy.try_clone()?));
        self.take_over((from, staged), &held, found, extras)?;
        copy.sync_all()
    }

    /// Gives the copy the attributes of what was staged.
    fn take_over(
        &mut self,
        (from, staged): (&OwnedFd, &str),
        copy: &Held,
        found: &Status,
        extras: ExtraRule,
    ) -> io::Result<()> {
        let extra = extras.read(&Held::open(from, staged)?)?;
        self.applied = extras.apply(copy, Some(found.mode), Some(found.mtime), &extra)?;
        Ok(())
    }
}

impl Drop for Carried<'_> {
    fn drop(&mut self) {
        // It is gone if it was moved to its final name.
        let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
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

/// Returns the next range of a file that is no hole.
#[cfg(target_os = "linux")]
fn next_data(file: &File, at: u64, size: u64) -> io::Result<Option<std::ops::Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    if at >= size {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not tell.
        Err(Errno::INVAL) => return Ok(Some(at..size)),
        Err(error) => return Err(error.into()),
    };
    let end = seek(file, SeekFrom::Hole(start)).map_or(size, |end| end.min(size));
    Ok(Some(start..end))
}

/// Not implemented on this platform: everything is data.
#[cfg(not(target_os = "linux"))]
fn next_data(_: &File, at: u64, size: u64) -> io::Result<Option<std::ops::Range<u64>>> {
    Ok((at < size).then_some(at..size))
}
